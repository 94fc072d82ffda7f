//! Failures as pages: what happened, in the language of the page, the sentence of the API, and what to do next.

use hub_core::{Error, ErrorCode, error::Reason};
use maud::{DOCTYPE, Markup, html};
use poem::Response;

use super::{
    forms::Submitted,
    layout::{head, send},
    words::{self, Refusals, Words},
};
use crate::{appearance::Appearance, envelope::status};

/// Whether a form that was refused for this reason is shown again; other failures have a page of their own.
pub(super) fn can_be_corrected(error: &Error) -> bool {
    is_session_too_old(error)
        || matches!(
            error.code(),
            ErrorCode::InvalidParams
                | ErrorCode::Conflict
                | ErrorCode::WindowClosed
                | ErrorCode::PayloadTooLarge
                | ErrorCode::UpstreamError
        )
}

/// Whether the user has to sign in again before this is allowed.
pub(super) fn is_session_too_old(error: &Error) -> bool {
    error.reason() == Some(Reason::SessionTooOld)
}

/// Title and sentence for a code.
pub(super) fn sentence(words: &Words, code: ErrorCode) -> (&'static str, &'static str) {
    let refusals: &Refusals = &words.refusals;
    match code {
        ErrorCode::Unauthorized | ErrorCode::InvalidToken => refusals.signed_out,
        ErrorCode::Forbidden => refusals.forbidden,
        ErrorCode::NotFound => refusals.not_found,
        ErrorCode::InvalidParams => refusals.invalid,
        ErrorCode::MethodNotAllowed => refusals.method,
        ErrorCode::Conflict => refusals.conflict,
        ErrorCode::WindowClosed => refusals.window_closed,
        ErrorCode::PayloadTooLarge => refusals.too_large,
        ErrorCode::UnsupportedMediaType => refusals.media_type,
        ErrorCode::RateLimited => refusals.rate_limited,
        ErrorCode::UpstreamError => refusals.upstream,
        ErrorCode::Unavailable => refusals.unavailable,
        ErrorCode::Internal => refusals.internal,
    }
}

/// The sentence of the API, which is English, with the code and the id of the request.
pub(super) fn details(words: &Words, error: &Error, request_id: &str) -> Markup {
    html! {
        p lang="en" { (error.message()) @if let Some(hint) = error.hint() { ". " (hint) } "." }
        @if let Some(after) = error.retry_after() { p { ((words.refusals.again_in)(after.as_secs().max(1))) } }
        dl.facts {
            dt { (words.common.code) } dd { code data-computed { (error.code().as_str()) } }
            dt { (words.common.request_id) } dd { code data-computed { (request_id) } }
        }
    }
}

/// The page of a failure.
pub(crate) fn page(look: Appearance, error: &Error, request_id: &str, is_route: bool) -> Response {
    let words = words::of(look.language);
    let (title, said) = match error.code() {
        ErrorCode::NotFound if !is_route => words.refusals.no_page,
        code => sentence(words, code),
    };
    let main = html! {
        p { (said) }
        (details(words, error, request_id))
        p { a.button href="/console" { (words.refusals.home) } }
    };
    send(&plain(look, title, &main), status(error.code()))
}

/// The page for a form of a visitor whose session has ended. It keeps what was typed, except for secrets.
pub(super) fn signed_out(look: Appearance, error: &Error, request_id: &str, form: &Submitted) -> Response {
    let words = words::of(look.language);
    let (title, said) = words.refusals.signed_out;
    // `api_key` and `auth.secret`, but not `keywords`; `auth.secret.clear` removes one and contains none.
    let is_secret = |name: &str| {
        let secrets = ["password", "secret", "key", "token"];
        !name.contains(".clear") && name.split(['.', '_']).any(|part| secrets.contains(&part))
    };
    let main = html! {
        p { (said) }
        p { a.button href="/login" target="_blank" rel="noopener" { (words.refusals.sign_in) } }
        @if !form.action.is_empty() { form method="post" {
            @for (name, value) in form.fields.iter().filter(|(name, _)| !is_secret(name)) {
                input type="hidden" name=(name) value=(value);
            }
            button name="do" value=(form.action) { (words.refusals.send_again) }
        } }
        (details(words, error, request_id))
    };
    send(&plain(look, title, &main), status(error.code()))
}

/// A document without navigation, for visitors about whom nothing is known.
fn plain(look: Appearance, title: &str, main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang=(words::of(look.language).lang) data-theme=(look.theme.as_str()) {
            (head(look, title))
            body.plain {
                header.top { a.brand href="/console" { "Message Hub" } }
                main #content { h1 { (title) } (main) }
            }
        }
    }
}
