//! Failures as pages: a sentence in the language of the page, the message of the API, and the next step.

use hub_core::{Error, ErrorCode, error::Reason};
use maud::{DOCTYPE, Markup, html};
use poem::Response;

use super::{
    forms::Submitted,
    layout::{head, send},
    page::PAGE_TOKEN,
    parts::cause::commands,
    words::{self, Refusals, Words},
};
use crate::{appearance::Appearance, envelope::status};

/// Characters of a value in the summary of a form.
const MAX_SHOWN: usize = 200;

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
        (advice(words, error))
        @if let Some(after) = error.retry_after() { p { ((words.refusals.again_in)(after.as_secs().max(1))) } }
        dl.facts {
            dt { (words.common.code) } dd { code data-computed { (error.code().as_str()) } }
            dt { (words.common.request_id) } dd { code data-computed { (request_id) } }
        }
    }
}

/// The steps towards a solution, in the language of the page.
pub(super) fn advice(words: &Words, error: &Error) -> Markup {
    html! { @for advice in error.advice() { p { (commands(&(words.refusals.advice)(advice))) } } }
}

/// The page of a failure.
pub(crate) fn page(appearance: Appearance, error: &Error, request_id: &str, is_route: bool) -> Response {
    let words = words::of(appearance.language);
    let (title, said) = match error.code() {
        ErrorCode::NotFound if !is_route => words.refusals.no_page,
        code => sentence(words, code),
    };
    let main = html! {
        p { (said) }
        (details(words, error, request_id))
        p { a.button href="/console" { (words.refusals.home) } }
    };
    send(&plain(appearance, title, &main), status(error.code()))
}

/// A form of our own pages that a visitor sent after the session had ended.
pub(super) struct Unsent<'a> {
    /// The operation of its action; `None` if its page has no such action.
    pub(super) operation: Option<&'static str>,
    pub(super) form: &'a Submitted,
    /// The path of its page.
    pub(super) address: &'a str,
}

impl Unsent<'_> {
    /// Whether a new session can send it; forms that let others in are scoped to the session that opened their page.
    fn can_be_sent_again(&self) -> bool {
        self.operation.is_some() && self.form.field(PAGE_TOKEN).is_none()
    }

    /// The submitted fields, without secrets.
    fn fields(&self) -> impl Iterator<Item = &(String, String)> {
        // `api_key` and `auth.secret`, but not `keywords`; `auth.secret.clear` removes one and contains none.
        let is_secret = |name: &str| {
            let secrets = ["password", "secret", "key", "token"];
            !name.contains(".clear") && name.split(['.', '_']).any(|part| secrets.contains(&part))
        };
        self.form.fields.iter().filter(move |(name, _)| !is_secret(name))
    }

    /// Describes the effect of sending the form, with its values.
    fn summary(&self, words: &Words) -> Markup {
        let title = self.operation.map(|operation| (words.actions.title)(operation).unwrap_or(operation));
        let values = self.fields().filter(|(name, value)| name != "once" && !value.is_empty());
        html! {
            @if let Some(title) = title {
                p { (words.actions.unsent) " " strong { (title) } }
                dl.facts {
                    @for (name, value) in values {
                        dt { @match (words.actions.field)(name) {
                            Some(name) => (name),
                            None => code { (name) },
                        } }
                        dd { bdi { (shown(words, value)) } }
                    }
                }
            }
        }
    }
}

/// A value as the summary shows it, of limited length.
fn shown(words: &Words, value: &str) -> String {
    match value {
        "true" => words.common.yes.to_owned(),
        "false" => words.common.no.to_owned(),
        _ if value.chars().nth(MAX_SHOWN).is_some() => value.chars().take(MAX_SHOWN).chain(['…']).collect(),
        _ => value.to_owned(),
    }
}

/// The page for a form of a visitor whose session has ended: the action and the submitted values, to be sent again.
pub(super) fn signed_out(
    appearance: Appearance,
    error: &Error,
    request_id: &str,
    unsent: &Unsent<'_>,
) -> Response {
    let words = words::of(appearance.language);
    let (title, said) = words.refusals.signed_out;
    let said = if unsent.can_be_sent_again() { said } else { words.actions.open_again_help };
    let main = html! {
        p { (said) }
        (unsent.summary(words))
        p { a.button href="/login" target="_blank" rel="noopener" { (words.refusals.sign_in) } }
        @if unsent.can_be_sent_again() {
            form method="post" {
                @for (name, value) in unsent.fields() { input type="hidden" name=(name) value=(value); }
                button name="do" value=(unsent.form.action) { (words.refusals.send_again) }
            }
        } @else {
            p { a.button href=(unsent.address) { (words.actions.open_again) } }
        }
        (details(words, error, request_id))
    };
    send(&plain(appearance, title, &main), status(error.code()))
}

/// Renders a document without navigation, for visitors without a session.
fn plain(appearance: Appearance, title: &str, main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang=(words::of(appearance.language).lang) data-theme=(appearance.theme.as_str()) {
            (head(appearance, title))
            body.plain {
                header.top { a.brand href="/console" { "Message Hub" } }
                main #content { h1 { (title) } (main) }
            }
        }
    }
}
