//! Promises that hold for every request.

use poem::http::{Method, StatusCode};
use serde_json::json;

use crate::testing::App;

#[tokio::test]
async fn health_and_readiness() {
    let app = App::new().await;
    assert_eq!(*app.stranger().get("/healthz").await.data(), json!({"status": "ok"}));
    assert_eq!(*app.stranger().get("/readyz").await.data(), json!({"status": "ok"}));
    app.settings.draining.cancel();
    app.stranger().get("/healthz").await.data();
    let reply = app.stranger().get("/readyz").await;
    reply.error(503, "UNAVAILABLE");
    assert_eq!(reply.header("retry-after"), Some("1"));
}

#[tokio::test]
async fn framework_errors_use_the_envelope() {
    let app = App::new().await;
    let stranger = app.stranger();
    stranger.get("/api/nothing-here").await.error(404, "NOT_FOUND");
    stranger.get("/nothing-here").await.error(404, "NOT_FOUND");
    for path in ["/healthz", "/openapi.json", "/docs"] {
        let reply = stranger.post(path, &json!({})).await;
        reply.error(405, "METHOD_NOT_ALLOWED");
        assert_eq!(reply.header("allow"), Some("GET, HEAD"), "{path}");
    }
}

#[tokio::test]
async fn bodies_stop_at_their_cap() {
    let app = App::with(|values| values.max_body = 1000).await;
    let stranger = app.stranger();
    let declared = stranger
        .send(Method::POST, "/healthz", |request| {
            request.header("content-length", 1001).body(vec![b'a'; 1001])
        })
        .await;
    declared.error(413, "PAYLOAD_TOO_LARGE");
}

#[tokio::test]
async fn every_answer_names_its_request() {
    let app = App::new().await;
    let own = app.stranger().with("X-Request-Id", "req-1.a_B").get("/healthz").await;
    assert_eq!(own.header("x-request-id"), Some("req-1.a_B"));
    let long = "x".repeat(65);
    for insane in ["", "a b", "a\"b", long.as_str()] {
        let reply = app.stranger().with("X-Request-Id", insane).get("/healthz").await;
        let id = reply.header("x-request-id").unwrap();
        assert_eq!(id.len(), 32, "{insane:?} became {id:?}");
    }
}

#[tokio::test]
async fn every_answer_carries_the_security_headers() {
    let app = App::new().await;
    for path in ["/", "/healthz", "/api/nothing-here", "/docs", "/openapi.json"] {
        let reply = app.stranger().get(path).await;
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"), "{path}");
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{path}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        assert!(!policy.contains("script-src 'unsafe-inline'"), "{path}: {policy}");
        let expected = path.starts_with("/api").then_some("no-store");
        assert_eq!(reply.header("cache-control").filter(|value| *value == "no-store"), expected, "{path}");
    }
}

#[tokio::test]
async fn a_rate_limited_request_gets_retry_after() {
    let app = App::with(|values| values.rate_limits.auth_per_ip = 1.try_into().unwrap()).await;
    app.stranger().post("/api/auth/nothing-here", &json!({})).await.error(404, "NOT_FOUND");
    let reply = app.stranger().post("/api/auth/nothing-here", &json!({})).await;
    reply.error(429, "RATE_LIMITED");
    let seconds: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds));
    app.stranger().get("/healthz").await.data();
}

#[tokio::test]
async fn the_documentation_runs_without_inline_script() {
    let app = App::new().await;
    let page = app.stranger().send(Method::GET, "/docs", |request| request).await;
    assert_eq!(page.response.status(), StatusCode::OK);
    for (path, sign) in [("/docs/style.css", ".swagger-ui"), ("/docs/swagger-ui.js", "SwaggerUIBundle")] {
        let text = app.text(path).await;
        assert!(text.contains(sign), "{path} lacks {sign}");
    }
    assert!(!app.text("/docs").await.contains("<script>"));
}
