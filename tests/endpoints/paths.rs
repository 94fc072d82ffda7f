//! Paths as people type them and as programs join them, and the methods that load balancers ask for, over a real server.

use reqwest::{Client, Method, StatusCode, header};
use serde_json::Value;

use crate::support::hub_process::{HubProcess, NetworkProcess};

/// A hub, and a client that follows redirects.
async fn start() -> (HubProcess, NetworkProcess, Client, tempfile::TempDir) {
    let (folder, network) = (tempfile::tempdir().unwrap(), NetworkProcess::start().await);
    let hub = HubProcess::start(folder.path(), &network, &[]).await;
    #[expect(clippy::disallowed_methods, reason = "a test calls the server from outside, over a real socket")]
    let client = Client::builder().no_proxy().build().unwrap();
    (hub, network, client, folder)
}

#[tokio::test]
async fn a_slash_at_the_end_of_a_page_and_repeated_slashes_lead_to_the_same() {
    let (hub, _network, client, _folder) = start().await;
    let get = async |path: &str| {
        let response = client.get(format!("{}{path}", hub.url)).send().await.unwrap();
        let (status, url) = (response.status(), response.url().clone());
        (status, url, response.text().await.unwrap())
    };
    for (typed, meant) in [
        ("/console/", "/console"),
        ("//console//", "/console"),
        ("/console/bots/?status=online", "/console/bots?status=online"),
        ("/login/", "/login"),
        ("/docs/", "/docs"),
    ] {
        let ((status, url, page), (expected, at, _)) = (get(typed).await, get(meant).await);
        assert_eq!((status, url.path(), url.query()), (expected, at.path(), at.query()), "{typed}");
        assert!(status.is_success() && page.contains("<html"), "{typed}: {status} {page}");
    }
    for path in ["/api/auth/me", "//api/auth/me", "/api//auth/me", "//api///auth/me"] {
        let (status, _, text) = get(path).await;
        let refused: Value = serde_json::from_str(&text).unwrap_or_default();
        let found = (status, refused["error"]["code"].as_str());
        assert_eq!(found, (StatusCode::UNAUTHORIZED, Some("UNAUTHORIZED")), "{path}: {text}");
    }
    // A slash at the end of a path of the API is another path.
    let (status, _, text) = get("/api/auth/me/").await;
    assert!(status == StatusCode::NOT_FOUND && text.contains("NOT_FOUND"), "{status} {text}");
}

#[tokio::test]
async fn options_responds_with_the_methods_of_a_path() {
    let (hub, _network, client, _folder) = start().await;
    for (path, allowed) in [
        ("/api/auth/me", "GET, HEAD, OPTIONS"),
        ("/api/bots", "GET, HEAD, OPTIONS"),
        ("/api/bots/bot_01BX5ZZKBKACTAV9WEVGEMMVRZ", "DELETE, GET, HEAD, PUT, OPTIONS"),
        ("//api/auth/login", "POST, OPTIONS"),
        ("/mcp", "POST, OPTIONS"),
        ("/console", "GET, HEAD, POST, OPTIONS"),
    ] {
        let request = client.request(Method::OPTIONS, format!("{}{path}", hub.url));
        let response = request.send().await.unwrap();
        let allow = response.headers().get(header::ALLOW).and_then(|allow| allow.to_str().ok());
        assert_eq!((response.status(), allow), (StatusCode::NO_CONTENT, Some(allowed)), "{path}");
    }
    let nowhere = client.request(Method::OPTIONS, format!("{}/api/nowhere", hub.url)).send().await.unwrap();
    assert_eq!(nowhere.status(), StatusCode::NOT_FOUND);
}
