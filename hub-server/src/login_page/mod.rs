//! `/login`: the page on which people sign in, make an account, and let another device in; and `/login/reset`, on which
//! they set a new password with the link of an administrator.
//!
//! The pages contain no script and no style; both are in files next to this one, which use the API like any other
//! client.

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

mod reset;
mod texts;

/// What is at `/login`.
pub(crate) const PATHS: [&str; 6] =
    ["/login", "/login/reset", "/login/page.js", "/login/login.js", "/login/reset.js", "/login/style.css"];

/// Pictures are QR codes, which the script gets as text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The pages and their files.
pub(crate) fn pages() -> Route {
    let script = |text| get(file("text/javascript; charset=utf-8", text));
    Route::new()
        .at("/", get(login_page))
        .at("/reset", get(reset::reset_page))
        .at("/page.js", script(include_str!("page.js")))
        .at("/login.js", script(include_str!("login.js")))
        .at("/reset.js", script(include_str!("reset.js")))
        .at("/style.css", get(file("text/css; charset=utf-8", include_str!("style.css"))))
}

/// Whether a browser that accepts these languages prefers Chinese to English; for other pages.
pub(crate) fn prefers_chinese(accepted: Option<&str>) -> bool {
    texts::choose(None, accepted).lang == texts::CHINESE.lang
}

fn file(content_type: &'static str, text: &'static str) -> impl Endpoint<Output = Response> {
    make_sync(move |_| {
        text.with_content_type(content_type).with_header(header::CACHE_CONTROL, "no-cache").into_response()
    })
}

#[derive(Debug, Default, Deserialize)]
struct Asked {
    lang: Option<String>,
}

#[handler]
async fn login_page(Data(hub): Data<&Hub>, request: &Request, asked: Option<Query<Asked>>) -> Response {
    let texts = language(request, asked);
    // A page is better than an error if this cannot be read.
    let is_new = hub.accounts().is_new().await.unwrap_or_default();
    answer(&page(hub, texts, Registering::on(hub, is_new)))
}

/// How people get an account here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Registering {
    /// There is no account: no one can sign in.
    is_new: bool,
    /// Whether an account can be created on this page.
    is_possible: bool,
    /// The field for what the hub asks for: its label and its help.
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
            // The setup token opens every registration, and no other registration makes the first account.
            _ if is_new && config.setup_token_required => Some(Ticket::Setup),
            Registration::Invite => Some(Ticket::Invite),
            Registration::Open | Registration::Closed => None,
        };
        let is_possible = ticket.is_some() || config.registration == Registration::Open;
        Self { is_new, is_possible, ticket }
    }
}

/// The words of a page: what the address asks for, else what the browser prefers.
fn language(request: &Request, asked: Option<Query<Asked>>) -> &'static Texts {
    let asked = asked.and_then(|asked| asked.0.lang);
    texts::choose(asked.as_deref(), request.header(header::ACCEPT_LANGUAGE))
}

fn answer(page: &Markup) -> Response {
    page.0
        .clone()
        .with_content_type("text/html; charset=utf-8")
        .with_header(header::CONTENT_SECURITY_POLICY, POLICY)
        .with_header(header::CACHE_CONTROL, "no-store")
        .with_header(header::VARY, "Accept-Language")
        .into_response()
}

fn page(hub: &Hub, texts: &Texts, registering: Registering) -> Markup {
    let passkeys = hub.accounts().check_passkeys_work();
    let no_passkeys = passkeys.as_ref().err().map(|reason| texts.no_passkeys.unwrap_or(reason.message()));
    let content = html! {
        @if let Some(reason) = no_passkeys {
            p #no-passkeys.note { (reason) }
        }
        (entrance(hub, texts, passkeys.is_ok(), registering))
        (inside(texts, passkeys.is_ok()))
        (confirmation(texts))
    };
    frame(texts, texts.title, "/login/login.js", &content)
}

/// What the pages have in common.
fn frame(texts: &Texts, title: &str, script: &str, content: &Markup) -> Markup {
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
                script src=(script) defer {}
            }
            body {
                main {
                    header {
                        h1 { "Message Hub" }
                        a href={ "?lang=" (texts.other_language.0) } hreflang=(texts.other_language.0)
                            lang=(texts.other_language.0) id="language" { (texts.other_language.1) }
                    }
                    noscript { p.problem { (texts.needs_script) } }
                    p #message role="status" aria-live="polite" {}
                    p #problem.problem role="alert" {}
                    (content)
                }
                div #texts hidden {
                    @for (name, text) in texts.spoken { span data-name=(name) { (text) } }
                    @for (sentence, text) in texts.told { span data-told=(sentence) { (text) } }
                }
            }
        }
    }
}

/// What a visitor who is not signed in sees. While there is no account, that is the form that creates the first one.
fn entrance(hub: &Hub, texts: &Texts, passkeys: bool, registering: Registering) -> Markup {
    let Registering { is_new, is_possible, .. } = registering;
    let title = if is_new { texts.new_account } else { texts.title };
    html! {
        section #entrance hidden aria-labelledby="entrance-title" {
            h2 #entrance-title { (title) }
            @if is_new {
                p #first-account { (texts.first_account) }
                (register(texts, passkeys, registering))
            }
            div #returning hidden[is_new] {
                form #sign-in {
                    label for="username" { (texts.username) }
                    input #username name="username" autocomplete="username" autocapitalize="none" spellcheck="false"
                        required maxlength="32";
                    label for="password" { (texts.password) }
                    input #password name="password" type="password" autocomplete="current-password" required;
                    button type="submit" { (texts.sign_in) }
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
                    (register(texts, passkeys, registering))
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

/// The form that creates an account.
fn register(texts: &Texts, passkeys: bool, registering: Registering) -> Markup {
    let ticket = registering.ticket.map(|ticket| match ticket {
        Ticket::Setup => (texts.setup_token, texts.setup_token_hint),
        Ticket::Invite => (texts.invite, texts.invite_hint),
    });
    html! {
        form #register {
            @if let Some((label, hint)) = ticket {
                label for="ticket" { (label) }
                input #ticket name="ticket" autocomplete="off" spellcheck="false" required
                    aria-describedby="ticket-hint";
                p #ticket-hint.note { (hint) }
            }
            label for="new-username" { (texts.username) }
            input #new-username name="username" autocomplete="username" autocapitalize="none"
                spellcheck="false" required minlength="2" maxlength="32" pattern="[A-Za-z0-9_\\-]{2,32}"
                title=(texts.username_hint) aria-describedby="username-hint";
            p #username-hint.note { (texts.username_hint) }
            label for="new-password" { (texts.password) }
            input #new-password name="password" type="password" autocomplete="new-password" required
                minlength="8" maxlength="256" aria-describedby="password-hint";
            p #password-hint.note { (texts.password_hint) }
            button type="submit" { (texts.create) }
            @if passkeys { button #create-passkey type="button" { (texts.create_with_passkey) } }
        }
    }
}

/// What who is signed in sees.
fn inside(texts: &Texts, passkeys: bool) -> Markup {
    html! {
        section #inside hidden aria-labelledby="inside-title" {
            h2 #inside-title tabindex="-1" { (texts.signed_in_as) span #who {} }
            div #let-in hidden role="status" {
                h3 { (texts.let_in) }
                ul #let-in-list {}
            }
            p { a.button #go-on href="/" { (texts.go_on) } }
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

/// What who is signed in and opened the link of a QR code sees.
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

#[cfg(test)]
mod tests {
    use hub_core::{
        accounts::Provider,
        config::{HubConfig, Registration},
    };
    use serde_json::json;

    use crate::testing::App;

    #[tokio::test]
    async fn the_page_runs_its_own_files_alone() {
        let mut github = Provider::github("id", "shh".into());
        github.display_name = "<b>GitHub</b>".to_owned();
        let app = App::with_hub(|builder| {
            let mut config = HubConfig::default();
            config.providers = vec![github];
            builder.config(config)
        })
        .await;
        let reply = app.stranger().get("/login").await;
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.contains("script-src 'self';") && !policy.contains("unsafe"), "{policy}");
        let text = app.text("/login").await;
        assert_eq!(text.matches("<script src=\"/login/").count(), 2, "{text}");
        assert_eq!(text.matches("<script").count(), 2, "{text}");
        for bad in [" on", "style=", "<b>", "shh", "javascript:"] {
            assert!(
                !text.contains(&format!(" {bad}click")) && (bad == " on" || !text.contains(bad)),
                "{bad}: {text}"
            );
        }
        assert!(
            text.contains("&lt;b&gt;GitHub&lt;/b&gt;") && text.contains("/api/auth/oauth/github"),
            "{text}"
        );
        for file in &super::PATHS[2..] {
            assert!(app.text(file).await.len() > 500, "{file}");
        }
        let chinese = app.stranger().with("Accept-Language", "zh-CN").get("/login").await;
        assert_eq!(chinese.response.status(), 200);
        assert!(app.text("/login?lang=zh&qr=hubq_x").await.contains("登录"));
    }

    #[tokio::test]
    async fn every_field_has_a_label_and_every_text_of_the_script_is_there() {
        let app = App::new().await;
        for (page, script) in [("/login", "/login/login.js"), ("/login/reset", "/login/reset.js")] {
            let text = app.text(page).await;
            let fields = text.split("<input ").skip(1).map(|rest| rest.split('"').nth(1).unwrap());
            for field in fields {
                assert!(text.contains(&format!("<label for=\"{field}\"")), "{field} has no label");
            }
            let script = app.text("/login/page.js").await + &app.text(script).await;
            let after = |start: &str| {
                let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-');
                let found =
                    script.split(start).skip(1).map(|rest| rest.split(ends).next().unwrap().to_owned());
                found.filter(|word| !word.is_empty()).collect::<Vec<_>>()
            };
            for spoken in [after("say('"), after("spoken.")].concat() {
                assert!(text.contains(&format!("data-name=\"{spoken}\"")), "{spoken} is not on {page}");
            }
            // Asked for elsewhere: the field is there where the hub wants a token.
            for id in after("at('").into_iter().filter(|id| id != "ticket") {
                assert!(text.contains(&format!("id=\"{id}\"")), "{id} is not on {page}");
            }
        }
    }

    /// What the hub says of what people do wrong here, the Chinese pages say in Chinese.
    #[tokio::test]
    async fn refusals_have_words_in_both_languages() {
        let app = App::with_hub(|builder| builder).await;
        let known = |sentence: &str| super::texts::CHINESE.told.iter().any(|(told, _)| *told == sentence);
        app.user("ada").await;
        let (long, new) = ("x".repeat(300), "a new passphrase");
        let reset = |password: &str| json!({ "token": "hubr_x", "new_password": password });
        let register = |name: &str, password: &str, token: &str| json!({ "username": name, "password": password, "setup_token": token });
        for (path, body) in [
            ("/api/auth/login", json!({ "username": "ada", "password": "wrong" })),
            ("/api/auth/password/reset", reset(new)),
            ("/api/auth/register", register("a b", "short", "")),
            ("/api/auth/register", register("bob", &long, "")),
            ("/api/auth/register", register("bob-by-name", "bob-by-name", "")),
            ("/api/auth/register", register("bob", "password1", "")),
            ("/api/auth/register", register("bob", new, "hubt_x")),
            ("/api/auth/register", register("bob", new, "hubi_x")),
            ("/api/auth/qr/exchange", json!({ "qr_id": "hubq_x", "poll_secret": "x", "exchange": "x" })),
        ] {
            let reply = app.stranger().post(path, &body).await;
            let error = &reply.json["error"];
            let reasons = error["details"].as_array().cloned().unwrap_or_default();
            for reason in &reasons {
                let reason = reason["reason"].as_str().unwrap();
                assert!(known(reason), "{path}: {reason:?} has no words");
            }
            let message = error["message"].as_str().unwrap();
            assert!(!reasons.is_empty() || known(message), "{path}: {message:?} has no words");
        }
        for code in hub_core::ErrorCode::ALL {
            let shown =
                ["METHOD_NOT_ALLOWED", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE", "WINDOW_CLOSED"];
            let elsewhere = shown.contains(&code.as_str())
                || ["UPSTREAM_ERROR", "INVALID_PARAMS"].contains(&code.as_str());
            assert!(elsewhere || known(code.as_str()), "{code} has no words");
        }
    }

    #[tokio::test]
    async fn a_hub_without_an_account_shows_the_form_that_creates_it() {
        let app = App::new().await;
        let text = app.text("/login").await;
        assert!(text.contains("id=\"first-account\"") && text.contains("id=\"returning\" hidden"), "{text}");
        assert!(text.contains("id=\"register\"") && !text.contains("<details"), "{text}");
        assert!(!text.contains("id=\"ticket\""), "none is asked for on loopback: {text}");
        assert!(text.contains("2 to 32 letters"), "the format is described: {text}");
        app.user("ada").await;
        let text = app.text("/login").await;
        assert!(
            !text.contains("id=\"first-account\"") && text.contains("<details id=\"new-account\">"),
            "{text}"
        );
        assert!(text.contains("id=\"returning\"") && !text.contains("id=\"returning\" hidden"), "{text}");
    }

    #[tokio::test]
    async fn a_token_is_asked_for_where_one_is_needed() {
        let page = async |registration, setup_token_required, is_new: bool| {
            let app = App::configured(|config| {
                config.registration = registration;
                config.setup_token_required = setup_token_required;
            })
            .await;
            if !is_new {
                app.hub.accounts().ensure_admin("ada", "tr0mbone solo".into()).await.unwrap();
            }
            app.text("/login").await
        };
        for (registration, required, is_new, label) in [
            (Registration::Open, true, true, Some("Setup token")),
            (Registration::Closed, true, true, Some("Setup token")),
            (Registration::Open, true, false, None),
            (Registration::Invite, true, false, Some("Invitation")),
            (Registration::Open, false, true, None),
        ] {
            let text = page(registration, required, is_new).await;
            let found =
                text.split_once("<label for=\"ticket\">").map(|(_, rest)| rest.split('<').next().unwrap());
            assert_eq!(found, label, "{registration:?} {required} {is_new}: {text}");
            assert!(text.contains("id=\"register\""), "{text}");
        }
        let closed = page(Registration::Closed, true, false).await;
        assert!(!closed.contains("id=\"register\""), "registration is closed: {closed}");
    }

    #[tokio::test]
    async fn a_hub_without_passkeys_says_so() {
        let app = App::with_hub(|builder| {
            let mut config = HubConfig::default();
            config.public_url = "http://192.0.2.1:9800".parse().unwrap();
            builder.config(config)
        })
        .await;
        let text = app.text("/login").await;
        assert!(text.contains("id=\"no-passkeys\"") && !text.contains("id=\"passkey\""), "{text}");
        assert!(app.text("/login?lang=zh").await.contains("此地址不能使用通行密钥"));
    }
}
