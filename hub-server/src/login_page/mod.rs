//! Pages for sign-in. On `/login` users sign in, create an account, and approve another device; on `/login/reset`
//! they set a new password with the link of an administrator.
//!
//! The pages contain no script and no style. Both are in files in this directory, which use the API like any other
//! client. Signing in and registering with a password also work without script.

use hub_core::{Hub, config::Registration};
use maud::{DOCTYPE, Markup, html};
use poem::{
    Endpoint, IntoResponse, Request, Response, Route,
    endpoint::make_sync,
    get, handler,
    http::header,
    web::{Data, Query},
};
use serde::Deserialize;

use self::texts::Texts;
use crate::{AppSettings, appearance::Appearance, console, credentials::Presented};

mod form;
mod reset;
#[cfg(test)]
mod tests;
mod texts;

/// Path of the sign-in page, which also receives its forms.
pub(crate) const SIGN_IN: &str = "/login";

/// Paths of the pages and their files.
pub(crate) const PATHS: [&str; 7] = [
    SIGN_IN,
    "/login/reset",
    "/login/page.js",
    "/login/login.js",
    "/login/passkey.js",
    "/login/reset.js",
    "/login/style.css",
];

/// Images are QR codes, which the script receives as text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The pages and their files.
pub(crate) fn pages() -> Route {
    let script = |text| get(file("text/javascript; charset=utf-8", text));
    Route::new()
        .at("/", get(login_page).post(form::submit))
        .at("/reset", get(reset::reset_page))
        .at("/page.js", script(include_str!("page.js")))
        .at("/login.js", script(include_str!("login.js")))
        .at("/passkey.js", script(include_str!("../console/assets/passkey.js")))
        .at("/reset.js", script(include_str!("reset.js")))
        .at("/style.css", get(file("text/css; charset=utf-8", include_str!("style.css"))))
}

fn file(content_type: &'static str, text: &'static str) -> impl Endpoint<Output = Response> {
    make_sync(move |_| {
        text.with_content_type(content_type).with_header(header::CACHE_CONTROL, "no-cache").into_response()
    })
}

#[derive(Debug, Default, Deserialize)]
struct PageQuery {
    lang: Option<String>,
    /// Reason that a sign-in with a provider failed: the name of one of the texts.
    error: Option<String>,
}

#[handler]
async fn login_page(
    Data(hub): Data<&Hub>,
    Data(settings): Data<&AppSettings>,
    request: &Request,
    query: Option<Query<PageQuery>>,
) -> Response {
    let query = query.map(|query| query.0).unwrap_or_default();
    let texts = language(request, query.lang.as_deref());
    let name = query.error.map(|word| format!("error_{word}"));
    let refused = texts
        .spoken
        .iter()
        .find(|(text, _)| name.as_deref() == Some(*text))
        .map(|(_, text)| ("", (*text).to_owned()));
    // If this cannot be read, the page is shown without it.
    let is_new = hub.accounts().is_new().await.unwrap_or_default();
    let has_session = !Presented::of(request.headers(), settings.is_https()).cookies.is_empty();
    answer(&page(hub, texts, Registering::on(hub, is_new), has_session, refused.as_ref()))
}

/// Possibilities to get an account on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Registering {
    /// No account exists, so no one can sign in.
    is_new: bool,
    /// Whether an account can be created on this page.
    is_possible: bool,
    /// Ticket that the form requires.
    ticket: Option<Ticket>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ticket {
    Setup,
    Invite,
}

impl Registering {
    fn on(hub: &Hub, is_new: bool) -> Self {
        let config = &hub.context().config;
        let ticket = match config.registration {
            // The setup token is accepted in every registration mode, and the first account requires it.
            _ if is_new && config.setup_token_required => Some(Ticket::Setup),
            Registration::Invite => Some(Ticket::Invite),
            Registration::Open | Registration::Closed => None,
        };
        let is_possible = ticket.is_some() || config.registration == Registration::Open;
        Self { is_new, is_possible, ticket }
    }
}

/// Returns the texts in the language of the query, else in the one of the cookie or that the browser prefers.
fn language(request: &Request, lang: Option<&str>) -> &'static Texts {
    texts::choose(lang, Appearance::of(request.headers()).is_chinese())
}

fn answer(page: &Markup) -> Response {
    page.0
        .clone()
        .with_content_type("text/html; charset=utf-8")
        .with_header(header::CONTENT_SECURITY_POLICY, POLICY)
        .with_header(header::CACHE_CONTROL, "no-store")
        .with_header(header::VARY, "Cookie, Accept-Language")
        // Chromium sends `Origin: null` with the forms of a page without referrer.
        .with_header(header::REFERRER_POLICY, "same-origin")
        .into_response()
}

/// Renders the page; after a rejected form with the entered username and the reason.
fn page(
    hub: &Hub,
    texts: &Texts,
    registering: Registering,
    has_session: bool,
    refused: Option<&(&str, String)>,
) -> Markup {
    let passkeys = hub.accounts().check_passkeys_work();
    let no_passkeys = passkeys.as_ref().err().map(|reason| texts.no_passkeys.unwrap_or(reason.message()));
    let content = html! {
        // The script requests the user only if there may be a session.
        @if has_session { template #session {} }
        @if let Some(reason) = no_passkeys {
            p #no-passkeys.note { (reason) }
        }
        (entrance(hub, texts, passkeys.is_ok(), registering, refused.map_or("", |(username, _)| username)))
        (inside(texts, passkeys.is_ok()))
        (confirmation(texts))
    };
    frame(texts, texts.title, "/login/login.js", refused.map_or("", |(_, reason)| reason), &content)
}

/// Renders the common frame of the pages.
fn frame(texts: &Texts, title: &str, script: &str, problem: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang=(texts.lang) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (title) " · Message Hub" }
                link rel="icon" href="/favicon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/login/style.css";
                script src="/login/page.js" defer {}
                script src=(script) type="module" {}
            }
            body {
                main {
                    header {
                        h1 { "Message Hub" }
                        a href={ "?lang=" (texts.other_language.0) } hreflang=(texts.other_language.0)
                            lang=(texts.other_language.0) id="language" { (texts.other_language.1) }
                    }
                    noscript { p.note { (texts.needs_script) } }
                    p #message role="status" aria-live="polite" {}
                    p #problem.problem role="alert" { (problem) }
                    (content)
                }
                div #texts hidden {
                    @for (name, text) in texts.spoken { span data-name=(name) { (text) } }
                    @for (sentence, text) in texts.errors { span data-told=(sentence) { (text) } }
                }
            }
        }
    }
}

/// Renders the part for visitors who are not signed in. While no account exists, it is the form that creates the
/// first one.
fn entrance(hub: &Hub, texts: &Texts, passkeys: bool, registering: Registering, username: &str) -> Markup {
    let Registering { is_new, is_possible, .. } = registering;
    let title = if is_new { texts.new_account } else { texts.title };
    html! {
        section #entrance aria-labelledby="entrance-title" {
            h2 #entrance-title { (title) }
            @if is_new {
                p #first-account { (texts.first_account) }
                (register(texts, passkeys, registering, username))
            }
            div #returning hidden[is_new] {
                form #sign-in method="post" {
                    label for="username" { (texts.username) }
                    input #username name="username" autocomplete="username" autocapitalize="none" spellcheck="false"
                        required maxlength="32" value=(username);
                    label for="password" { (texts.password) }
                    input #password name="password" type="password" autocomplete="current-password" required;
                    button type="submit" name="do" value="sign_in" { (texts.sign_in) }
                }
                h3 { (texts.other_ways) }
                div.ways {
                    @if passkeys { button #passkey type="button" { (texts.with_passkey) } }
                    (providers(hub, texts))
                    button #show-qr type="button" aria-expanded="false" aria-controls="qr" { (texts.show_qr) }
                }
                div #qr hidden {
                    h3 { (texts.qr_title) }
                    p { (texts.qr_help) }
                    img #qr-image alt=(texts.qr_alt) width="240" height="240";
                    p { a #qr-link href="/login" {} }
                    p { (texts.qr_code) " " strong #qr-code {} }
                    p #qr-status role="status" aria-live="polite" {}
                }
            }
            @if is_possible && !is_new {
                details #new-account {
                    summary { (texts.new_account) }
                    (register(texts, passkeys, registering, ""))
                }
            }
        }
    }
}

fn providers(hub: &Hub, texts: &Texts) -> Markup {
    html! {
        @for provider in hub.accounts().providers() {
            a.button data-provider=(provider.name) href={ "/api/auth/oauth/" (provider.name) } {
                (texts.with) (provider.display_name)
            }
        }
    }
}

/// Renders the form that creates an account.
fn register(texts: &Texts, passkeys: bool, registering: Registering, username: &str) -> Markup {
    let ticket = registering.ticket.map(|ticket| match ticket {
        Ticket::Setup => (texts.setup_token, texts.setup_token_hint),
        Ticket::Invite => (texts.invite, texts.invite_hint),
    });
    html! {
        form #register method="post" {
            @if let Some((label, hint)) = ticket {
                label for="ticket" { (label) }
                input #ticket name="ticket" autocomplete="off" spellcheck="false" required
                    aria-describedby="ticket-hint";
                p #ticket-hint.note { (hint) }
            }
            label for="new-username" { (texts.username) }
            input #new-username name="username" autocomplete="username" autocapitalize="none"
                spellcheck="false" required minlength="2" maxlength="32" pattern="[A-Za-z0-9_\\-]{2,32}"
                title=(texts.username_hint) aria-describedby="username-hint" value=(username);
            p #username-hint.note { (texts.username_hint) }
            label for="new-password" { (texts.password) }
            input #new-password name="password" type="password" autocomplete="new-password" required
                minlength="8" maxlength="256" aria-describedby="password-hint";
            p #password-hint.note { (texts.password_hint) }
            button type="submit" name="do" value="register" { (texts.create) }
            @if passkeys { button #create-passkey type="button" { (texts.create_with_passkey) } }
        }
    }
}

/// Renders the part for a signed-in user.
fn inside(texts: &Texts, passkeys: bool) -> Markup {
    html! {
        section #inside hidden aria-labelledby="inside-title" {
            h2 #inside-title tabindex="-1" { (texts.signed_in_as) span #who {} }
            div #let-in hidden role="status" {
                h3 { (texts.let_in) }
                ul #let-in-list {}
            }
            p { a.button #go-on href=(console::HOME) { (texts.go_on) } }
            @if passkeys {
                form #add-passkey {
                    label for="passkey-name" { (texts.passkey_name) }
                    input #passkey-name name="name" maxlength="64" autocomplete="off";
                    button type="submit" { (texts.add_passkey) }
                }
            }
            button #sign-out type="button" { (texts.sign_out) }
        }
    }
}

/// Renders the confirmation for a signed-in user who opened the link of a QR code.
fn confirmation(texts: &Texts) -> Markup {
    html! {
        section #confirmation hidden aria-labelledby="confirmation-title" {
            h2 #confirmation-title tabindex="-1" { (texts.confirm_title) }
            p { (texts.confirm_help) }
            dl {
                dt { (texts.asker_address) } dd #asker-address {}
                dt { (texts.asker_program) } dd #asker-program {}
                dt { (texts.asker_time) } dd #asker-time {}
            }
            form #confirm {
                label for="user-code" { (texts.code_there) }
                input #user-code name="user_code" autocomplete="off" autocapitalize="characters"
                    spellcheck="false" required maxlength="16";
                button type="submit" { (texts.approve) }
                button #refuse type="button" { (texts.refuse) }
            }
        }
    }
}
