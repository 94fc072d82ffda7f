//! Access to pages and forms: the same as in the API, and no data of another user is shown.

use super::*;
use crate::console::page::Page;

/// Fields with which the actions of the pages would do something; each takes those that it knows.
const FIELDS: [(&str, &str); 14] = [
    ("name", "stolen"),
    ("display_name", "stolen"),
    ("content", "stolen"),
    ("text", "stolen"),
    ("remark", "stolen"),
    ("to_user_id", "ada@im.wechat"),
    ("user", "ada@im.wechat"),
    ("url", "https://stolen.example/"),
    ("enabled", "false"),
    ("keywords", "stolen"),
    ("status", "500"),
    ("sink", "webhook"),
    ("plugin_id", "plg_01KAJ6Z8QH0000000000000000"),
    ("plugin", "plg_01KAJ6Z8QH0000000000000000"),
];

/// An id that no thing has, in place of each id of an address.
fn unknown(address: &str) -> String {
    let part = |part: &str| match part.split_once('_') {
        Some((kind, _)) => format!("{kind}_01BX5ZZKBKACTAV9WEVGEMMVRZ"),
        None => part.to_owned(),
    };
    address.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Removes from a page the parts that differ between two requests.
fn stable(reply: &Reply) -> String {
    let page = text(reply).replace(reply.header("x-request-id").unwrap(), "");
    let mut parts = page.split("name=\"once\" value=\"");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |page, part| page + part.split_once('"').unwrap().1)
}

/// All pages of a user as they are now.
async fn seen_by(caller: &Caller<'_>, addresses: &[String]) -> Vec<String> {
    let mut pages = Vec::new();
    for address in addresses {
        let reply = caller.get(address).await;
        assert_eq!(reply.response.status(), 200, "{address}");
        pages.push(stable(&reply));
    }
    pages
}

async fn act(caller: &Caller<'_>, address: &str, action: &str, more: &[(&str, &str)]) -> Reply {
    let fields: Vec<_> = [("do", action)].into_iter().chain(more.iter().copied()).chain(FIELDS).collect();
    submit(caller, address, &fields).await
}

/// The pages about one thing of a user, with their addresses.
fn owned(addresses: &[String]) -> Vec<(&'static Page, &String)> {
    let all = PAGES.iter().copied().zip(addresses);
    all.filter(|(page, _)| page.path.contains("/:")).collect()
}

#[tokio::test]
async fn pages_and_forms_of_a_user_exist_for_no_one_else() {
    let (app, simulator) = App::with_playground().await;
    let ann = app.user("ann").await;
    let bob = app.user("bob").await;
    let admin = app.operator_admin("rita").await;
    let addresses = addresses(&app, &ann, &simulator).await;
    let before = seen_by(&ann, &addresses).await;
    let pages = owned(&addresses);
    assert!(pages.len() >= 10, "{pages:?}");
    let mut cells = 0;
    for (page, address) in pages {
        let absent = unknown(address);
        assert_ne!(&absent, address);
        let reply = app.stranger().get(address).await;
        assert_eq!(reply.response.status(), 303, "{address}");
        assert!(reply.header("location").unwrap().starts_with("/login?redirect="), "{address}");
        assert!(reply.bytes.is_empty());
        for caller in [&bob, &admin] {
            let (theirs, none) = (caller.get(address).await, caller.get(&absent).await);
            assert_eq!(theirs.response.status(), 404, "{address}");
            assert_eq!(stable(&theirs), stable(&none), "{address}");
            cells += 2;
        }
        for action in page.actions {
            let visitor = app.stranger().with("Origin", "http://localhost:9800");
            let reply = act(&visitor, address, action.name, &[]).await;
            assert_eq!(reply.response.status(), 401, "{} of {address}", action.name);
            for caller in [&bob, &admin] {
                let theirs = act(caller, address, action.name, &[]).await;
                let none = act(caller, &absent, action.name, &[]).await;
                assert_eq!(theirs.response.status(), 404, "{} of {address}: {}", action.name, text(&theirs));
                assert_eq!(stable(&theirs), stable(&none), "{} of {address}", action.name);
                cells += 2;
            }
        }
    }
    assert!(cells > 80, "{cells}");
    assert!(before == seen_by(&ann, &addresses).await, "a refused form changed something");
}

#[tokio::test]
async fn forms_about_things_of_another_user_find_nothing() {
    let app = App::new().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let admin = app.operator_admin("rita").await;
    let created = ann.post("/api/user/api-keys", &serde_json::json!({ "name": "nightly" })).await;
    let key = created.json.to_string();
    let key = format!("key_{}", key.split_once("\"key_").unwrap().1.split('"').next().unwrap());
    let sessions = ann.get("/api/auth/sessions").await;
    let session = sessions.data()["items"][0]["id"].as_str().unwrap().to_owned();
    for (path, action, id) in [
        ("/console/account/keys", "revoke", key.as_str()),
        ("/console/account/sessions", "end", session.as_str()),
        ("/console/account/security", "delete_passkey", "pky_01KAJ6Z8QH0000000000000000"),
        ("/console/account/security", "unlink", "github"),
    ] {
        for caller in [&bob, &admin] {
            let theirs = act(caller, path, action, &[("id", id)]).await;
            let none = act(caller, path, action, &[("id", &unknown(id))]).await;
            assert_eq!(theirs.response.status(), 404, "{action}: {}", text(&theirs));
            assert_eq!(stable(&theirs), stable(&none), "{action}");
        }
    }
    assert_eq!(ann.get("/api/user/api-keys").await.data()["items"].as_array().unwrap().len(), 1);
    assert_eq!(ann.get("/console").await.response.status(), 200, "her session goes on");
}

#[tokio::test]
async fn pages_of_the_signed_in_user_show_their_own_things() {
    let (app, simulator) = App::with_playground().await;
    let ann = app.user("ann").await;
    let addresses = addresses(&app, &ann, &simulator).await;
    let bob = app.user("bob").await;
    let name = bind(&ann, &simulator, Some("carol")).await["id"].as_str().unwrap().to_owned();
    for (page, address) in PAGES.iter().zip(&addresses).filter(|(page, _)| !page.path.contains("/:")) {
        let reply = bob.get(address).await;
        assert_eq!(reply.response.status(), 200, "{page:?}");
        let shown = text(&reply);
        for secret in [name.as_str(), "orders", "order 42", "carol"] {
            assert!(!shown.contains(secret), "{page:?} shows {secret}");
        }
        let hers = text(&ann.get(address).await);
        assert!(!hers.contains("bob"), "{page:?}");
    }
}
