//! The document around every page: navigation, language and theme, notices, the commands that do the same.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use hub_core::accounts::User;
use maud::{DOCTYPE, Markup, html};
use poem::{
    IntoResponse, Response,
    http::{HeaderName, StatusCode, header},
};

use super::{
    assets, commands, find,
    page::{Answer, Ask, Content, see_other},
    parts::{self, icon::Icon},
    shortcuts, words,
};
use crate::{
    appearance::{Appearance, Language, Theme},
    envelope::ApiError,
};

/// Scripts and styles are files of the hub; a script cannot turn text into markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// Pages below this size are sent as they are, in bytes.
const COMPRESSED_FROM: usize = 1024;

/// Converts the result of a handler into an HTTP response.
pub(super) async fn response(ask: &Ask, answer: Answer, status: StatusCode) -> Result<Response, ApiError> {
    match answer {
        Answer::Goto(to) => Ok(see_other(&to, &[])),
        Answer::Leave { to, cookies } => Ok(see_other(&to, &cookies)),
        Answer::Page(content) => {
            let is_secret = content.is_secret;
            let page = if ask.is_fragment {
                fragment(ask, &content)
            } else {
                let me = ask.hub.accounts().me(&ask.actor).await?;
                page(ask, &me.user, &content)
            };
            let mut response = send(&page, status);
            // Compression together with a secret would let its length be measured.
            if ask.accepts_gzip && !is_secret {
                compress(&mut response).await;
            }
            Ok(response)
        }
    }
}

/// Headers of every page.
pub(super) fn send(page: &Markup, status: StatusCode) -> Response {
    parts::signs::shown(&page.0)
        .into_owned()
        .with_content_type("text/html; charset=utf-8")
        .with_header(header::CONTENT_SECURITY_POLICY, POLICY)
        // Chromium sends `Origin: null` with the forms of a page without referrer.
        .with_header(header::REFERRER_POLICY, "same-origin")
        .with_header(header::CACHE_CONTROL, "no-store")
        .with_header(header::VARY, "Cookie, Accept-Language, Accept-Encoding, X-Fragment")
        .with_header(HeaderName::from_static("cross-origin-opener-policy"), "same-origin-allow-popups")
        .with_header(
            HeaderName::from_static("permissions-policy"),
            "publickey-credentials-get=(self), publickey-credentials-create=(self), clipboard-write=(self), \
             camera=(), microphone=(), geolocation=()",
        )
        .with_status(status)
        .into_response()
}

async fn compress(response: &mut Response) {
    let Ok(body) = response.take_body().into_vec().await else { return };
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(3));
    let written =
        (body.len() >= COMPRESSED_FROM).then(|| encoder.write_all(&body).and_then(|()| encoder.finish()));
    match written {
        Some(Ok(small)) => {
            response
                .headers_mut()
                .insert(header::CONTENT_ENCODING, poem::http::HeaderValue::from_static("gzip"));
            response.set_body(small);
        }
        // Writing to a vector cannot fail.
        _ => response.set_body(body),
    }
}

/// Renders the `<head>` of every document.
pub(super) fn head(appearance: Appearance, title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width";
            title { (title) " · Message Hub" }
            link rel="icon" href="/favicon.svg" type="image/svg+xml";
            link rel="stylesheet" href=(assets::path("console.css"));
            script type="module" src=(assets::path("page.js")) {}
            script type="module" src=(assets::path("live.js")) {}
            @if appearance.theme == Theme::System { meta name="color-scheme" content="light dark"; }
        }
    }
}

/// Renders the document from which a script takes the regions that it replaces.
fn fragment(ask: &Ask, content: &Content) -> Markup {
    html! {
        (DOCTYPE)
        html lang=(ask.words.lang) { head { title { (content.title) " · Message Hub" } } body { (inside(ask, content)) } }
    }
}

/// Renders the region that differs between pages.
fn inside(ask: &Ask, content: &Content) -> Markup {
    html! {
        div data-region="main" {
            @if !content.above.is_empty() {
                p.above {
                    @for (address, text) in &content.above { a href=(address) { bdi { (text) } } " / " }
                }
            }
            h1 { bdi { (content.title) } }
            (notices(ask))
            (content.main)
            (same_elsewhere(ask))
        }
    }
}

fn page(ask: &Ask, user: &User, content: &Content) -> Markup {
    let words = ask.words;
    html! {
        (DOCTYPE)
        html lang=(words.lang) data-theme=(ask.appearance.theme.as_str())
            data-keys=[(!ask.appearance.has_keys).then_some("off")]
            data-announcements=[(!ask.appearance.announces).then_some("off")] {
            (head(ask.appearance, &content.title))
            body {
                a.skip href="#content" { (words.frame.skip) }
                header.top {
                    a.brand href="/console" { "Message Hub" }
                    (find::field(ask))
                    p.connection data-connection role="status" aria-label=(words.live.connection) hidden {}
                    (preferences(ask))
                    (account(ask, user))
                }
                nav.rail aria-label=(words.frame.main_navigation) { (rail(ask)) }
                main #content tabindex="-1" {
                    (inside(ask, content))
                    noscript { p.muted { (words.frame.no_script) } }
                }
                p.announcement data-announcement role="status" {}
                (spoken(ask))
            }
        }
    }
}

fn rail(ask: &Ask) -> Markup {
    let frame = &ask.words.frame;
    let links = [
        ("/console", Icon::Home, frame.home),
        ("/console/messages", Icon::Message, ask.words.messages.title),
        ("/console/bots", Icon::Bot, frame.bots),
    ];
    let account = &ask.words.account;
    let account = [
        ("/console/account", account.profile),
        ("/console/account/security", account.security),
        ("/console/account/sessions", account.sessions),
        ("/console/account/keys", frame.keys),
        ("/console/account/activity", account.activity),
    ];
    let is_in_account = ask.path.starts_with("/console/account");
    html! {
        ul {
            @for (address, icon, text) in links {
                @let is_here = ask.path == address || (address != "/console" && ask.path.starts_with(&format!("{address}/")));
                li { a href=(address) aria-current=[is_here.then_some("page")] { (icon) span { (text) } } }
            }
            li {
                a href="/console/account" aria-current=[(ask.path == "/console/account").then_some("page")] {
                    (Icon::Person) span { (frame.account) }
                }
                @if is_in_account {
                    ul { @for (address, text) in account { li { a href=(address)
                        aria-current=[(ask.path == address).then_some("page")] { span { (text) } } } } }
                }
            }
            li.apart { a href="/docs" { (Icon::Book) span { (frame.api_reference) } } }
        }
    }
}

/// Language and theme. They are kept by the browser.
fn preferences(ask: &Ask) -> Markup {
    let frame = &ask.words.frame;
    html! {
        details.menu {
            summary { (Icon::Appearance) span { (frame.look) } }
            form method="post" action=(ask.path) {
                label for="language" { (frame.language) }
                select #language name="language" {
                    @for language in Language::ALL {
                        @let words = words::of(language);
                        option value=(language.as_str()) lang=(words.lang) selected[language == ask.appearance.language] {
                            (words.own_name)
                        }
                    }
                }
                label for="theme" { (frame.theme) }
                select #theme name="theme" {
                    @for (theme, name) in Theme::ALL.into_iter().zip(frame.themes) {
                        option value=(theme.as_str()) selected[theme == ask.appearance.theme] { (name) }
                    }
                }
                button name="do" value="look" { (frame.apply) }
                p { a href=(shortcuts::PATH) { (ask.words.shortcuts.title) } }
            }
        }
    }
}

fn account(ask: &Ask, user: &User) -> Markup {
    let frame = &ask.words.frame;
    html! {
        details.menu {
            summary { (Icon::Person) bdi { (user.display_name) } }
            form method="post" action=(ask.path) {
                p { (frame.signed_in_as) " " bdi { (user.username) } }
                button name="do" value="sign_out" { (frame.sign_out) }
            }
        }
    }
}

/// Renders the outcome of the last form: a notice of success, or the error.
fn notices(ask: &Ask) -> Markup {
    let all = ask.page.actions.iter().chain(super::PAGES.iter().flat_map(|page| page.actions));
    let done = ask.query("done").and_then(|done| all.into_iter().find(|action| action.operation == done));
    let done = done.map(|action| (action.done)(ask.words));
    let refused = ask.submitted.as_ref().and_then(|form| form.refused.as_ref());
    html! {
        @if let Some(done) = done { p.notice role="status" { (Icon::Ok) (done) } }
        @if let Some(error) = refused { (parts::form::refusal(ask, error)) }
    }
}

/// Renders the commands that print the same data.
fn same_elsewhere(ask: &Ask) -> Markup {
    html! {
        @if !ask.page.command.is_empty() || !ask.page.shows.is_empty() {
            details.elsewhere {
                summary { (ask.words.frame.as_command) }
                @let commands = commands::of(ask);
                @for command in commands { (parts::code::copied(ask.words, &command)) }
            }
        }
    }
}

/// Renders the texts of the scripts as templates.
fn spoken(ask: &Ask) -> Markup {
    let (live, keys) = (ask.words.live, &ask.words.shortcuts);
    let said = [
        ("copied", ask.words.common.copied),
        ("connecting", live.connecting),
        ("live", live.connected),
        ("polling", live.polling),
        ("offline", live.offline),
        ("signed_out", live.signed_out),
        ("new_rows", live.new_rows),
        ("not_sent", live.not_sent),
        ("too_large", ask.words.people.file_too_large),
        ("announced", keys.announced),
        ("palette_title", keys.palette_title),
        ("palette_help", keys.palette_help),
        ("on_page", keys.on_page),
        ("go_to", keys.go_to),
        ("found", keys.found),
        ("nothing", keys.nothing),
        ("dismiss", keys.dismiss),
    ];
    html! {
        @for (name, text) in said { template data-word=(name) { (text) } }
    }
}
