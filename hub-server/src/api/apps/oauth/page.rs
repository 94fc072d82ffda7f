//! The page on which the owner of a bot decides: no script, no framing, and a form that can only be sent here and
//! from here to the app.

use hub_core::{Error, apps::Authorization};
use maud::{DOCTYPE, Markup, html};
use url::Url;

use super::texts::Texts;

/// The content security policy of the page. Browsers also apply it to the redirect after the form, so it contains the
/// origin of the app.
pub(super) fn policy(authorization: Option<&Authorization>) -> String {
    let origin = authorization.and_then(|authorization| Url::parse(&authorization.redirect_uri).ok());
    let origin = origin.map(|url| format!(" {}", url.origin().ascii_serialization())).unwrap_or_default();
    let form = if authorization.is_some() { format!("'self'{origin}") } else { "'none'".to_owned() };
    format!(
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action {form}; frame-ancestors 'none'"
    )
}

fn frame(lang: &str, title: &str, inside: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang=(lang) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (title) " · Message Hub" }
                link rel="stylesheet" href="/login/style.css";
            }
            body { main { header { h1 { "Message Hub" } } (inside) } }
        }
    }
}

pub(super) fn consent(authorization: &Authorization, texts: &Texts) -> Markup {
    let app = &authorization.app;
    let place = Url::parse(&authorization.redirect_uri).map(|url| url.origin().ascii_serialization());
    let fields = [
        ("client_id", Some(app.id.to_string())),
        ("redirect_uri", Some(authorization.redirect_uri.clone())),
        ("response_type", Some("code".to_owned())),
        ("scope", Some(authorization.scopes.to_string())),
        ("state", authorization.state.clone()),
        ("bot_id", authorization.bot.as_ref().map(|bot| bot.id.to_string())),
        ("code_challenge", Some(authorization.code_challenge.clone())),
        ("code_challenge_method", Some("S256".to_owned())),
        ("consent", Some(authorization.consent.clone())),
    ];
    let nothing_to_choose = authorization.bot.is_none() && authorization.bots.is_empty();
    let inside = html! {
        h2 { (texts.question.0) (app.name) (texts.question.1) }
        @if !app.description.is_empty() { p { (app.description) } }
        p.note { (texts.author.0) strong { (app.owner_name) } (texts.author.1) }
        @if nothing_to_choose {
            p.problem role="alert" { (texts.no_bot) }
        }
        form method="post" action="/api/auth/oauth/authorize" {
            @for (name, value) in fields {
                @if let Some(value) = value { input type="hidden" name=(name) value=(value); }
            }
            @match &authorization.bot {
                Some(bot) => p { (texts.bot) ": " strong { (bot.name) } " " span.note { (bot.id) } },
                None if nothing_to_choose => {},
                None => {
                    label for="bot" { (texts.bot) }
                    select #bot name="bot_id" required {
                        @for bot in &authorization.bots { option value=(bot.id) { (bot.name) } }
                    }
                },
            }
            @if authorization.scopes.iter().next().is_none() {
                p { (texts.no_ability) }
            } @else {
                p { (texts.abilities) }
                ul { @for scope in authorization.scopes.iter() { li { ((texts.ability)(scope)) } } }
            }
            @if let Ok(place) = place {
                p.note { (texts.leads_to.0) strong { (place) } (texts.leads_to.1) }
            }
            button type="submit" name="decision" value="deny" formnovalidate { (texts.deny) }
            @if !nothing_to_choose { button type="submit" name="decision" value="allow" { (texts.allow) } }
        }
    };
    frame(texts.lang, texts.title, &inside)
}

/// The error of an invalid authorization request, for the author of the app. It contains no redirect.
pub(super) fn problem(error: &Error, texts: &Texts) -> Markup {
    let inside = html! {
        h2 { (texts.problem) }
        p.problem role="alert" lang="en" { (error.message()) }
        p { (texts.problem_help) }
    };
    frame(texts.lang, texts.problem_title, &inside)
}
