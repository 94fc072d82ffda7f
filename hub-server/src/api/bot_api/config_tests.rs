//! The configuration of an app, which the bot's owner sets and the app reads.

use poem::http::Method;
use serde_json::{Value, json};

use crate::testing::{
    Reply,
    app_on_bot::{BOT, Fixture, Scene, text},
};

const PATHS: [&str; 2] = ["/bot/v1/app/config", "/bot/v1/config"];

impl Scene<'_> {
    async fn change(&self, body: Value) -> Reply {
        let path = format!("/api/bots/{BOT}/apps/{}", self.app_id);
        self.ada.send(Method::PUT, &path, |request| request.body_json(&body)).await
    }
}

#[tokio::test]
async fn an_app_reads_the_configuration_that_the_owner_sees_masked() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&["config:read"]).await;
    for path in PATHS {
        assert_eq!(scene.client().get(path).await.json, json!({ "ok": true, "config": {} }));
    }
    let config =
        json!({ "github_token": "ghp_0123456789", "repo": "acme/site", "port": 8080, "drafts": true });
    let changed = scene.change(json!({ "config": config })).await;
    let masks = json!({ "github_token": "***6789", "repo": "***", "port": "***", "drafts": "***" });
    assert_eq!(changed.data()["config"], masks);
    let list = scene.ada.get(&format!("/api/bots/{BOT}/apps")).await;
    assert_eq!(list.data()["items"][0]["config"], masks);
    let config =
        json!({ "github_token": "ghp_0123456789", "repo": "acme/site", "port": "8080", "drafts": "true" });
    for path in PATHS {
        assert_eq!(scene.client().get(path).await.json, json!({ "ok": true, "config": config }));
    }
    // Another change keeps it; a change of it replaces it, and masks keep values.
    assert_eq!(scene.change(json!({ "handle": "sky" })).await.data()["config"], masks);
    scene.change(json!({ "config": { "github_token": "***6789", "repo": "acme/shop" } })).await.data();
    let config = json!({ "github_token": "ghp_0123456789", "repo": "acme/shop" });
    assert_eq!(scene.client().get(PATHS[0]).await.json["config"], config);
    scene.change(json!({ "config": {} })).await.data();
    assert_eq!(scene.client().get(PATHS[0]).await.json["config"], json!({}));
}

#[tokio::test]
async fn an_installation_may_bring_its_configuration() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&["config:read"]).await;
    let path = format!("/api/bots/{BOT}/apps/{}", scene.app_id);
    scene.ada.send(Method::DELETE, &path, |request| request).await.data();
    let (app_id, once) = (scene.app_id, scene.ada.with("Idempotency-Key", "k"));
    let install = async |value: &str| {
        let body = json!({ "app_id": app_id, "config": { "token": value } });
        once.post(&format!("/api/bots/{BOT}/apps/install"), &body).await
    };
    let first = install("ghp_0123456789").await;
    assert_eq!(first.data()["config"], json!({ "token": "***6789" }));
    assert_eq!(install("ghp_0123456789").await.json, first.json);
    install("ghp_another").await.error(409, "CONFLICT");
    let token = format!("Bearer {}", text(first.data(), "app_token"));
    let read = fixture.app.stranger().with("Authorization", &token).get(PATHS[0]).await;
    assert_eq!(read.json["config"], json!({ "token": "ghp_0123456789" }));
}

#[tokio::test]
async fn a_bad_configuration_is_refused_without_its_values() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&["config:read"]).await;
    let many: serde_json::Map<_, _> = (0..65).map(|n| (format!("n{n}"), json!("s3cret"))).collect();
    for (config, field) in [
        (json!({ "token": ["s3cret"] }), "config.token"),
        (json!({ "token": { "is": "s3cret" } }), "config.token"),
        (json!({ "token": "***cret" }), "config.token"),
        (json!({ "": "s3cret" }), "config."),
        (json!({ "n".repeat(65): "s3cret" }), &format!("config.{}", "n".repeat(64))),
        (json!({ "token": "s3cret".repeat(16 << 10) }), "config"),
        (many.into(), "config"),
        (json!("s3cret"), "config"),
    ] {
        let reply = scene.change(json!({ "config": config })).await;
        let error = reply.error(400, "INVALID_PARAMS");
        assert_eq!(error["details"][0]["field"], field, "{error}");
        assert!(!reply.json.to_string().contains("s3cret"), "{}", reply.json);
    }
}

#[tokio::test]
async fn a_configuration_requires_the_scope_and_an_enabled_app() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&["bot:read", "config:read"]).await;
    scene.change(json!({ "config": { "token": "s3cret" }, "scopes": ["bot:read"] })).await.data();
    for path in PATHS {
        let reply = scene.client().get(path).await;
        assert!(text(reply.error(403, "FORBIDDEN"), "message").contains("config:read"));
        assert_eq!(reply.json["ok"], false);
    }
    scene.change(json!({ "scopes": ["config:read"], "enabled": false })).await.data();
    for path in PATHS {
        scene.client().get(path).await.error(403, "FORBIDDEN");
        fixture.app.stranger().get(path).await.error(401, "UNAUTHORIZED");
    }
}

#[tokio::test]
async fn the_database_contains_the_names_of_a_configuration_and_sealed_values() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&["config:read"]).await;
    scene.change(json!({ "config": { "github_token": "ghp_0123456789" } })).await.data();
    for path in PATHS {
        scene.client().get(path).await;
    }
    let log = scene.calls(PATHS.len()).await;
    for call in &log {
        assert_eq!(text(call, "response_body"), r#"{"config":{"github_token":"***"},"ok":true}"#);
    }
    let rows = fixture.app.contents().await.join("\n");
    assert!(rows.contains("github_token"), "in the audit log");
    assert!(!rows.contains("ghp_") && !rows.contains("6789"), "{rows}");
}
