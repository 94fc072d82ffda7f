//! *Let another device in*: a device that shows a code for signing in is signed in as the user.

use hub_core::{Error, ErrorCode, accounts::QrAsker};
use maud::{Markup, html};

use crate::{
    api::qr_login::ConfirmQrLogin,
    console::{
        page::{Answer, Ask, Page, does, handler},
        parts::{
            form::{self, Field, Form},
            time::time,
        },
    },
    envelope::ApiError,
};

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/account/devices",
    shows: &[],
    command: "",
    show: handler!(show),
    actions: &[
        does!("openQrLogin", open, |words| words.devices.opened),
        does!("confirmQrLogin", decide, |words| words.devices.decided),
    ],
};

/// With `?qr=`, as in the code, the field is filled in. A refused decision is shown with its form again. A session that is
/// too old is confirmed before anything is typed.
async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.devices;
    let fresh_until = ask.hub.accounts().me(&ask.actor).await?.fresh_until;
    if fresh_until.is_none_or(|until| until <= ask.hub.context().store.now()) {
        let main = html! { p { (words.what) } p { (words.too_old) } p { (form::confirm(ask)) } };
        return Ok(page(ask, main));
    }
    let form = Form::new(ask, "open").or(ask, "decide");
    let id = Field {
        name: "qr_id",
        label: words.code,
        help: Some(words.code_help),
        value: ask.query("qr").unwrap_or_default().to_owned(),
        is_required: true,
        max: Some(2048),
        ..Field::default()
    };
    let main = html! {
        p { (words.what) }
        (form.render(&html! { (form.field(&id)) (form::page_token(ask)) }, words.open))
    };
    Ok(page(ask, main))
}

fn page(ask: &Ask, main: Markup) -> Answer {
    let above = vec![("/console/account/security".to_owned(), ask.words.account.security.to_owned())];
    // The id of a code is worth something until the code is used.
    Answer::secret(ask.words.devices.title, above, main)
}

/// Shows the device that wants to sign in. Address, program and time come first, because users are tricked into
/// confirming the devices of others.
async fn open(ask: &Ask) -> Result<Answer, ApiError> {
    ask.check_page_token()?;
    let id = id_in(ask.field("qr_id").unwrap_or_default());
    let asker = ask.hub.accounts().open_qr_login(&ask.actor, &id).await.map_err(unknown)?;
    Ok(page(ask, decision(ask, &id, &asker)))
}

/// Turns `NOT_FOUND` and `INVALID_TOKEN` into an error of the form's field; the session continues.
fn unknown(error: Error) -> Error {
    match error.code() {
        ErrorCode::NotFound | ErrorCode::InvalidToken => {
            Error::invalid("qr_id", "is unknown, was used or has expired")
        }
        _ => error,
    }
}

/// Extracts the id from the input: the link in the code, or the id itself.
fn id_in(typed: &str) -> String {
    let typed = typed.trim();
    let of_link = url::Url::parse(typed).ok().and_then(|link| {
        link.query_pairs().find(|(name, _)| name == "qr").map(|(_, value)| value.into_owned())
    });
    of_link.unwrap_or_else(|| typed.to_owned())
}

fn decision(ask: &Ask, qr_id: &str, asker: &QrAsker) -> Markup {
    let (words, account) = (&ask.words.devices, &ask.words.account);
    html! {
        p { strong { (words.question) } }
        dl.facts {
            dt { (account.program) } dd { bdi { (asker.user_agent) } }
            dt { (account.address) } dd { (asker.ip) }
            dt { (words.requested) } dd { (time(Some(asker.requested_at), "")) }
            dt { (ask.words.keys.expires) } dd { (time(Some(asker.expires_at), "")) }
        }
        form.fields method="post" {
            input type="hidden" name="qr_id" value=(qr_id);
            (form::page_token(ask))
            div.field {
                label for="user_code" { (words.user_code) }
                input #user_code name="user_code" maxlength="32" autocomplete="off" required autofocus
                    aria-describedby="user_code-help";
                p.help #user_code-help { (words.user_code_help) }
            }
            input type="hidden" name="do" value="decide";
            p.actions {
                button name="approve" value="true" { (words.approve) }
                button name="approve" value="false" formnovalidate { (words.refuse) }
            }
        }
    }
}

async fn decide(ask: &Ask) -> Result<Answer, ApiError> {
    ask.check_page_token()?;
    let body = ask.form::<ConfirmQrLogin>()?;
    let (id, code) = (&body.qr_id, body.user_code.as_deref().unwrap_or_default());
    if body.approve && code.is_empty() {
        return Err(Error::invalid("user_code", "must be given to approve").into());
    }
    let decided = ask.hub.accounts().confirm_qr_login(&ask.actor, id, code, body.approve).await;
    decided.map_err(|error| match error.code() {
        ErrorCode::InvalidToken => {
            Error::invalid("user_code", "is wrong, or the code was used or has expired; show a new one")
        }
        _ => error,
    })?;
    if body.approve { Ok(ask.done()) } else { Ok(Answer::Goto("/console/account/security".to_owned())) }
}
