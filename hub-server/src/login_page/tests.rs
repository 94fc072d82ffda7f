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
    assert!(text.contains("&lt;b&gt;GitHub&lt;/b&gt;") && text.contains("/api/auth/oauth/github"), "{text}");
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
            let found = script.split(start).skip(1).map(|rest| rest.split(ends).next().unwrap().to_owned());
            found.filter(|word| !word.is_empty()).collect::<Vec<_>>()
        };
        for spoken in [after("say('"), after("spoken.")].concat() {
            assert!(text.contains(&format!("data-name=\"{spoken}\"")), "{spoken} is not on {page}");
        }
        // Excluded: the field exists only where the hub requires a token.
        for id in after("at('").into_iter().filter(|id| id != "ticket") {
            assert!(text.contains(&format!("id=\"{id}\"")), "{id} is not on {page}");
        }
    }
}

/// The Chinese pages translate the messages of the hub for mistakes that users can make on them.
#[tokio::test]
async fn refusals_have_words_in_both_languages() {
    let app = App::with_hub(|builder| builder).await;
    let known = |sentence: &str| super::texts::CHINESE.errors.iter().any(|(error, _)| *error == sentence);
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
        let shown = ["METHOD_NOT_ALLOWED", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE", "WINDOW_CLOSED"];
        let elsewhere =
            shown.contains(&code.as_str()) || ["UPSTREAM_ERROR", "INVALID_PARAMS"].contains(&code.as_str());
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
