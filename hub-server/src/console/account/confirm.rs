//! *Confirm it is you*: a new session, with which ways to sign in can be changed.

use hub_core::{
    Error, ErrorCode,
    accounts::{Me, is_safe_path},
};
use maud::{Markup, html};

use crate::{
    console::{
        assets,
        page::{Answer, Ask, Page, does, handler},
        parts::form::{Field, Form},
    },
    credentials::{cleared_cookie, entry_cookies},
    envelope::ApiError,
};

/// Address of the page.
pub(crate) const CONFIRM: &str = "/console/confirm";

pub(in crate::console) static PAGE: Page = Page {
    path: CONFIRM,
    shows: &["getMe"],
    command: "",
    show: handler!(show),
    actions: &[
        does!("login", confirm, |words| words.account.confirm),
        does!("logout", another_way, |words| words.account.confirm),
    ],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.account;
    let me = ask.hub.accounts().me(&ask.actor).await?;
    let form = Form::new(ask, "confirm");
    let password = Field {
        name: "password",
        label: words.password,
        kind: "password",
        is_required: true,
        ..Field::default()
    };
    let main = html! {
        @if me.has_password {
            p { (words.confirm_help) }
            (form.render(&form.field(&password), words.confirm_button))
        }
        @if me.passkeys > 0 { (with_passkey(ask, &me)) }
        p { (words.another_way_help) }
        form method="post" { p.actions { button name="do" value="another_way" { (words.another_way) } } }
    };
    Ok(Answer::page(words.confirm, Vec::new(), main))
}

/// The form of the script that confirms with a passkey.
fn with_passkey(ask: &Ask, me: &Me) -> Markup {
    let words = &ask.words.account;
    html! {
        form #confirm-passkey method="dialog" data-passkey data-script hidden
            data-username=(me.user.username) data-back=(back(ask)) {
            p.problem data-problem role="alert" {}
            p.actions { button { (words.confirm_passkey) } }
        }
        template data-word="passkey_cancelled" { (words.passkey_cancelled) }
        template data-word="passkey_unavailable" { (words.passkey_unavailable) }
        script type="module" src=(assets::path("security.js")) {}
    }
}

/// The page from which the user came.
fn back(ask: &Ask) -> String {
    ask.query("back").filter(|path| is_safe_path(path)).unwrap_or(super::super::HOME).to_owned()
}

/// A new session in place of the present one.
async fn confirm(ask: &Ask) -> Result<Answer, ApiError> {
    let accounts = ask.hub.accounts();
    let username = accounts.me(&ask.actor).await?.user.username;
    ask.limits.check_account(&username, None)?;
    let password = ask.field("password").unwrap_or_default().to_owned();
    let signed_in = accounts.login(&username, password.into(), &ask.client).await;
    // The session goes on: it is the field of the form that is wrong.
    let signed_in = signed_in.map_err(|error| match error.code() {
        ErrorCode::Unauthorized => Error::invalid("password", "is wrong"),
        _ => error,
    })?;
    accounts.logout(&ask.actor).await?;
    let cookies = entry_cookies(&ask.hub, &ask.settings, signed_in.me.user.id, &signed_in.token).await?;
    Ok(Answer::Leave { to: back(ask), cookies })
}

async fn another_way(ask: &Ask) -> Result<Answer, ApiError> {
    ask.hub.accounts().logout(&ask.actor).await?;
    let query =
        url::form_urlencoded::Serializer::new(String::new()).append_pair("redirect", &back(ask)).finish();
    Ok(Answer::Leave { to: format!("/login?{query}"), cookies: vec![cleared_cookie(&ask.settings)] })
}
