//! Signing in and registering with the forms of the page alone, for browsers without script. With script, the page
//! uses the API instead.

use std::fmt::Write as _;

use hub_core::{Error, ErrorCode, Hub, accounts::is_safe_path};
use poem::{
    Request, Response, handler,
    web::{Data, Form},
};
use serde::Deserialize;
use serde_json::json;

use super::{Registering, answer, language, page, texts::Texts};
use crate::{
    api::{
        auth::{LoginRequest, RegisterRequest},
        sign_in::SignIn,
    },
    console,
    credentials::check_origin,
    envelope::{ApiError, status},
    wire,
};

/// The fields of both forms.
#[derive(Debug, Deserialize)]
struct Entry {
    #[serde(rename = "do")]
    action: String,
    username: String,
    password: String,
    ticket: Option<String>,
}

/// Path to open after the sign-in, from the query of the page.
#[derive(Debug, Default, Deserialize)]
struct PageQuery {
    redirect: Option<String>,
}

#[handler]
pub(super) async fn submit(
    Data(hub): Data<&Hub>,
    request: &Request,
    sign_in: SignIn<'_>,
    Form(entry): Form<Entry>,
) -> poem::Result<Response> {
    // Only browsers submit this form, and they send the origin. The page below repeats the username.
    check_origin(sign_in.settings, request.method(), request.headers())?;
    let username = entry.username.clone();
    let error = match enter(&sign_in, entry).await {
        Ok(cookies) => {
            let query: PageQuery = request.params().unwrap_or_default();
            let to =
                query.redirect.filter(|path| is_safe_path(path)).unwrap_or_else(|| console::HOME.to_owned());
            return Ok(console::see_other(&to, &cookies));
        }
        // The edge logs the cause.
        Err(error) if error.inner().code() == ErrorCode::Internal => return Err(error.into()),
        Err(error) => error.into_inner(),
    };
    let texts = language(request, None);
    let is_new = hub.accounts().is_new().await.unwrap_or_default();
    let refused = (username.as_str(), explain(texts, &error));
    let mut response = answer(&page(hub, texts, Registering::on(hub, is_new), false, Some(&refused)));
    response.set_status(status(error.code()));
    Ok(response)
}

/// Signs in or registers. Returns the cookies of the new session.
async fn enter(sign_in: &SignIn<'_>, entry: Entry) -> Result<Vec<String>, ApiError> {
    let accounts = sign_in.hub.accounts();
    let signed_in = if entry.action == "register" {
        let ticket = entry.ticket.filter(|ticket| !ticket.is_empty());
        let body = json!({ "username": entry.username, "password": entry.password, "setup_token": ticket });
        let (new, ticket) = wire::read::<RegisterRequest>(&body)?.into();
        accounts.register(new, ticket, &sign_in.client).await?
    } else {
        let body = json!({ "username": entry.username, "password": entry.password });
        let LoginRequest { username, password } = wire::read(&body)?;
        sign_in.check_account(&username).await?;
        accounts.login(&username, password.0, &sign_in.client).await?
    };
    sign_in.session_cookies(&signed_in).await
}

/// Describes the error, in the language of the page if it has a text for it.
fn explain(texts: &Texts, error: &Error) -> String {
    let translated = |text: &str| {
        texts.errors.iter().find(|(english, _)| *english == text).map(|(_, translated)| *translated)
    };
    if error.details().is_empty() {
        let known = translated(error.message()).or_else(|| translated(error.code().as_str()));
        return known.unwrap_or(error.message()).to_owned();
    }
    let mut explained = String::new();
    for detail in error.details() {
        let label = match &*detail.field {
            "username" => texts.username,
            "password" => texts.password,
            "setup_token" => texts.setup_token,
            field => field,
        };
        let separator = if explained.is_empty() { "" } else { " · " };
        // Writing to a String cannot fail.
        let _ =
            write!(explained, "{separator}{label}: {}", translated(&detail.reason).unwrap_or(&detail.reason));
    }
    explained
}
