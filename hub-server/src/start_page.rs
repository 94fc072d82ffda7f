//! `/`: what runs here and how to send the first message. Server-rendered, without script.

use hub_core::{Hub, demo};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use poem::{IntoResponse, Response, handler, http::header, web::Data};

use crate::AppSettings;

/// A message of the demo bot with what became of it.
#[derive(Debug, Clone)]
pub struct RecentMessage {
    /// When, as text.
    pub at: String,
    /// Who wrote.
    pub from: String,
    /// What.
    pub text: String,
    /// What became of it, for example `200 in 4 ms, replied`.
    pub outcome: String,
    /// The trace that tells more.
    pub trace: Option<String>,
}

/// Messages that are shown.
const SHOWN: u32 = 10;

/// The last messages of the demo, newest first.
async fn recent(hub: &Hub) -> Vec<RecentMessage> {
    let found = demo::recent(hub, SHOWN).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "the demo's messages could not be read");
        Vec::new()
    });
    let view = |message: demo::Recent| RecentMessage {
        // The time of day in UTC, as in 16:13:20.
        at: message.at.to_string()[11..19].to_owned(),
        from: message.from,
        text: message.text,
        outcome: message.outcome,
        trace: message.trace_id.map(|id| id.to_string()),
    };
    found.into_iter().map(view).collect()
}

/// The page loads and runs nothing; its one style sheet is inline.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}\
pre{padding:.8rem;overflow-x:auto;background:#8881;border-radius:.4rem}\
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .8rem .2rem 0}\
:root{color-scheme:light dark}";

/// The page.
#[handler]
pub async fn start_page(hub: Data<&Hub>, settings: Data<&AppSettings>) -> Response {
    let messages = if settings.development { recent(&hub).await } else { Vec::new() };
    page(&settings, &messages)
        .into_string()
        .with_content_type("text/html; charset=utf-8")
        .with_header(header::CONTENT_SECURITY_POLICY, POLICY)
        .with_header(header::CACHE_CONTROL, "no-store")
        .into_response()
}

fn page(settings: &AppSettings, messages: &[RecentMessage]) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                // A tour that moves: no script is needed for that.
                @if settings.development { meta http-equiv="refresh" content="5"; }
                title { "Message Hub" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Message Hub" }
                p { "A hub between people's chat bot accounts and programs." }
                ul {
                    li { a href="/docs" { "API documentation" } " — " a href="/openapi.json" { "openapi.json" } }
                    li { a href="/healthz" { "Health" } " — " a href="/readyz" { "readiness" } }
                }
                // Strangers of a public hub learn nothing about it.
                @if settings.development { (tour(settings, messages)) }
            }
        }
    }
}

fn tour(settings: &AppSettings, messages: &[RecentMessage]) -> Markup {
    let base = settings.public_url.as_str().trim_end_matches('/');
    html! {
        h2 { "Start here" }
        p { "Make an account; on this machine the first one is the admin:" }
        pre {
            "curl -c cookies -H 'Content-Type: application/json' -H 'Origin: " (base) "' \\\n"
            "  -d '{\"username\":\"ada\",\"password\":\"correct horse\"}' \\\n  " (base) "/api/auth/register"
        }
        @if let Some(control) = settings.sim_control {
            p { "Send a message as a person of the simulated chat network:" }
            pre { "cargo run --release -p hub-cli -- sim say \"order 42\" --as Ada" }
            p { "or, to the simulator's control address, which lists its bots under /_sim/accounts:" }
            pre {
                "curl http://" (control) "/_sim/accounts\n"
                "curl -H 'Content-Type: application/json' \\\n"
                "  -d '{\"wx_id\":\"WX_ID\",\"text\":\"order 42\"}' http://" (control) "/_sim/messages"
            }
            p { "The demo's channel posts to a receiver in this process, which checks the signature. See what it "
                "got, or make it fail twice to see the hub try again:" }
            pre {
                "curl http://" (control) "/receiver/requests\n"
                "curl -d '{\"mode\":\"fail\",\"times\":2}' http://" (control) "/receiver/behaviour"
            }
        }
        h2 { "Last messages" }
        @if messages.is_empty() {
            p { "None yet. " a href="/" { "Look again" } "." }
        } @else {
            table {
                tr { th { "At" } th { "From" } th { "Text" } th { "What became of it" } th { "Trace" } }
                @for message in messages {
                    tr { td { (message.at) } td { (message.from) } td { (message.text) } td { (message.outcome) }
                        td { code { (message.trace.as_deref().unwrap_or_default()) } } }
                }
            }
            p { "One message step by step: " code { "hub-cli traces show TRACE" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Values;

    #[test]
    fn what_people_wrote_is_text() {
        let settings = AppSettings::from(Values::new("http://localhost:9800".parse().unwrap()));
        let evil = RecentMessage {
            at: "now".into(),
            from: "<b>Ada</b>".into(),
            text: "<script>alert(1)</script>".into(),
            outcome: "\"><img src=x>".into(),
            trace: None,
        };
        let text = page(&settings, &[evil]).into_string();
        assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{text}");
        assert!(!text.contains("<script") && !text.contains("<img") && !text.contains("<b>"), "{text}");
    }

    #[test]
    fn strangers_of_a_public_hub_learn_nothing() {
        let mut values = Values::new("https://hub.example".parse().unwrap());
        values.development = false;
        let text = page(&AppSettings::from(values), &[]).into_string();
        assert!(!text.contains("register") && !text.contains(env!("CARGO_PKG_VERSION")), "{text}");
    }
}
