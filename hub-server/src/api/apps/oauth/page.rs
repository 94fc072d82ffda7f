//! The page on which a bot's owner decides: without script, framed by nobody, and its form goes nowhere but here and
//! from here to the app.

use hub_core::{Error, apps::Authorization};
use maud::{DOCTYPE, Markup, html};
use url::Url;

/// The page's policy. Browsers hold the form's way on to it as well, so the app's origin stands there.
pub(super) fn policy(asked: Option<&Authorization>) -> String {
    let origin = asked.and_then(|asked| Url::parse(&asked.redirect_uri).ok());
    let origin = origin.map(|url| format!(" {}", url.origin().ascii_serialization())).unwrap_or_default();
    let form = if asked.is_some() { format!("'self'{origin}") } else { "'none'".to_owned() };
    format!(
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action {form}; frame-ancestors 'none'"
    )
}

fn frame(title: &str, inside: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
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

/// The question.
pub(super) fn consent(asked: &Authorization) -> Markup {
    let app = &asked.app;
    let place = Url::parse(&asked.redirect_uri).map(|url| url.origin().ascii_serialization());
    let fields = [
        ("client_id", Some(app.id.to_string())),
        ("redirect_uri", Some(asked.redirect_uri.clone())),
        ("response_type", Some("code".to_owned())),
        ("scope", Some(asked.scopes.to_string())),
        ("state", asked.state.clone()),
        ("bot_id", asked.bot.as_ref().map(|bot| bot.id.to_string())),
        ("code_challenge", Some(asked.code_challenge.clone())),
        ("code_challenge_method", Some("S256".to_owned())),
        ("consent", Some(asked.consent.clone())),
    ];
    let nothing_to_choose = asked.bot.is_none() && asked.bots.is_empty();
    let inside = html! {
        h2 { "Let " (app.name) " onto your bot?" }
        @if !app.description.is_empty() { p { (app.description) } }
        p.note { "An app by the user " strong { (app.owner_name) } "." }
        @if nothing_to_choose {
            p.problem role="alert" { "You have no bot yet. Bind one first, then come back." }
        }
        form method="post" action="/api/auth/oauth/authorize" {
            @for (name, value) in fields {
                @if let Some(value) = value { input type="hidden" name=(name) value=(value); }
            }
            @match &asked.bot {
                Some(bot) => p { "Bot: " strong { (bot.name) } " " span.note { (bot.id) } },
                None if nothing_to_choose => {},
                None => {
                    label for="bot" { "Bot" }
                    select #bot name="bot_id" required {
                        @for bot in &asked.bots { option value=(bot.id) { (bot.name) } }
                    }
                },
            }
            @if asked.scopes.iter().next().is_none() {
                p { "It asks for no ability." }
            } @else {
                p { "It will be able to" }
                ul { @for scope in asked.scopes.iter() { li { (scope.in_words()) } } }
            }
            @if let Ok(place) = place { p.note { "Either answer leads you to " strong { (place) } "." } }
            button type="submit" name="decision" value="deny" formnovalidate { "Deny" }
            @if !nothing_to_choose { button type="submit" name="decision" value="allow" { "Allow" } }
        }
    };
    frame("Let an app onto your bot", &inside)
}

/// What is wrong with the question. It leads nowhere.
pub(super) fn problem(error: &Error) -> Markup {
    let inside = html! {
        h2 { "This authorization does not work" }
        p.problem role="alert" { (error.message()) }
        p { "Tell the app's author. Nothing was changed." }
    };
    frame("Authorization", &inside)
}
