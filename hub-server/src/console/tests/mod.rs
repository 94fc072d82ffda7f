use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::atomic::Ordering,
};

use hub_core::network::sim::Simulator;
use poem::http::Method;
use serde_json::Value;

mod authorisation;
mod foreign;
mod mending;
mod messages;
mod refused;
mod replays;

use super::PAGES;
use crate::{
    appearance::Language,
    testing::{App, Caller, Reply, bind},
};

/// A page as text.
pub(super) fn text(reply: &Reply) -> String {
    String::from_utf8(reply.bytes.clone()).unwrap()
}

/// Sends a form as a browser on our own pages does.
pub(super) async fn submit(caller: &Caller<'_>, path: &str, fields: &[(&str, &str)]) -> Reply {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let form = "application/x-www-form-urlencoded";
    caller.send(Method::POST, path, |request| request.header("Content-Type", form).body(body)).await
}

/// The value of a hidden field.
pub(super) fn hidden<'p>(page: &'p str, name: &str) -> &'p str {
    let start = format!("name=\"{name}\" value=\"");
    page.split_once(&start).expect(name).1.split('"').next().unwrap()
}

/// The addresses of all pages, with the ids of things that are there.
async fn addresses(app: &App, caller: &Caller<'_>, simulator: &Simulator) -> Vec<String> {
    let seen = messages::seen(app, caller, simulator).await;
    let replayed = caller.post("/api/replays", &serde_json::json!({ "trace_ids": [seen.trace] })).await;
    let ids = [
        (":replay", replayed.data()["id"].as_str().unwrap()),
        (":bot", seen.bot.as_str()),
        (":channel", &seen.channel),
        (":message", &seen.message),
        (":trace", &seen.trace),
        (":user", "ada@im.wechat"),
    ];
    let filled = |page: &&super::Page| {
        ids.iter().fold(page.path.to_owned(), |path, (name, id)| path.replace(name, id))
    };
    PAGES.iter().map(filled).collect()
}

#[test]
fn every_operation_of_a_page_is_documented() {
    let known: BTreeSet<(String, String)> = super::commands::operations().into_iter().collect();
    for page in PAGES {
        for operation in page.shows {
            assert!(known.contains(&("get".to_owned(), (*operation).to_owned())), "{operation} of {page:?}");
        }
        for action in page.actions {
            let is_known = known.iter().any(|(method, known)| known == action.operation && method != "get");
            assert!(is_known, "{} of {page:?}", action.operation);
        }
    }
    // Pages may share an action; its notice of success is looked up by the operation alone.
    let mut seen = BTreeMap::new();
    for action in PAGES.iter().flat_map(|page| page.actions) {
        let said = (action.name, (action.done)(super::words::of(Language::English)));
        assert_eq!(
            *seen.entry(action.operation).or_insert(said),
            said,
            "{} has two actions",
            action.operation
        );
    }
}

/// Connections that one answer takes for reading: for the session, for the frame of the page, and for the page itself.
const MAX_READS: u64 = 10;

#[tokio::test]
async fn pages_read_the_same_number_of_times_however_much_there_is() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let addresses = addresses(&app, &ann, &simulator).await;
    let stats = app.hub.context().store.stats();
    let reads = async |address: &str| {
        let before = stats.reads.load(Ordering::Relaxed);
        assert_eq!(ann.get(address).await.response.status(), 200, "{address}");
        stats.reads.load(Ordering::Relaxed) - before
    };
    let mut counted = Vec::new();
    for address in &addresses {
        counted.push((address, reads(address).await));
    }
    for (name, first) in [("bert", 100), ("carl", 200), ("dora", 300)] {
        let bot = bind(&ann, &simulator, Some(name)).await;
        messages::more(&app, bot["id"].as_str().unwrap(), first).await;
    }
    for (address, before) in counted {
        assert!((1..=MAX_READS).contains(&before), "{address} reads {before} times");
        assert_eq!(reads(address).await, before, "{address} reads once per row");
    }
}

#[tokio::test]
async fn every_page_is_whole_in_both_languages_and_its_buttons_are_its_actions() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    for address in addresses(&app, &ann, &simulator).await {
        let page = PAGES.iter().find(|page| {
            page.path.split('/').count() == address.split('/').count()
                && page
                    .path
                    .split('/')
                    .zip(address.split('/'))
                    .all(|(part, found)| part.starts_with(':') || part == found)
        });
        let page = page.unwrap();
        for (language, lang) in [("en", "en"), ("zh", "zh-CN")] {
            let reply = ann.clone().with("Accept-Language", language).get(&address).await;
            let text = text(&reply);
            assert_eq!(reply.response.status(), 200, "{address}: {text}");
            assert!(text.contains(&format!("<html lang=\"{lang}\"")), "{address}");
            assert_eq!(text.matches("<h1>").count(), 1, "{address}");
            assert_eq!(reply.header("cache-control"), Some("no-store"));
            assert_eq!(reply.header("referrer-policy"), Some("same-origin"));
            assert!(!reply.header("content-security-policy").unwrap().contains("unsafe"));
            assert!(!text.contains(" style=") && !text.contains(" onclick="), "{address}");
            for part in text.split("name=\"do\" value=\"").skip(1) {
                let name = part.split('"').next().unwrap();
                let is_known = ["look", "sign_out"].contains(&name)
                    || page.actions.iter().any(|action| action.name == name);
                assert!(is_known, "{name} is not an action of {address}");
            }
        }
        let fragment = ann.clone().with("X-Fragment", "main").get(&address).await;
        assert!(!text(&fragment).contains("class=\"rail\""), "{address}");
    }
}

#[tokio::test]
async fn visitors_sign_in_and_come_back_and_keep_what_they_typed() {
    let app = App::new().await;
    let reply = app.stranger().get("/console/bots?cursor=x").await;
    let location = reply.header("location").unwrap();
    assert_eq!(
        (reply.response.status().as_u16(), location),
        (303, "/login?redirect=%2Fconsole%2Fbots%3Fcursor%3Dx")
    );

    let fields = [("do", "create"), ("name", "nightly"), ("keywords", "order"), ("auth.secret", "hunter2")];
    let browser = app.stranger().with("Origin", "http://localhost:9800");
    let reply = submit(&browser, "/console/account/keys", &fields).await;
    let page = text(&reply);
    assert_eq!(reply.response.status(), 401);
    assert!(page.contains("value=\"nightly\"") && page.contains("value=\"order\""), "{page}");
    assert!(page.contains("value=\"create\""), "{page}");
    assert!(!page.contains("hunter2"), "{page}");
}

#[tokio::test]
async fn a_form_of_another_site_changes_nothing() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let bot = bind(&ann, &simulator, None).await;
    let address = format!("/console/bots/{}", bot["id"].as_str().unwrap());
    let cookie = ann.headers.iter().find(|(name, _)| name == "Cookie").unwrap().1.clone();
    let fields = [("do", "rename"), ("name", "Evil")];
    for origin in [None, Some("null"), Some("https://evil.example")] {
        let caller = app.stranger().with("Cookie", &cookie);
        let caller = origin.into_iter().fold(caller, |caller, origin| caller.with("Origin", origin));
        let reply = submit(&caller, &address, &fields).await;
        assert_eq!(reply.response.status(), 403, "{origin:?}");
        assert!(text(&reply).contains("<h1>Not allowed</h1>"), "{origin:?}");
    }
    let after = ann.get(&format!("/api/bots/{}", bot["id"].as_str().unwrap())).await;
    assert_eq!(after.data()["name"], "Shop");
}

#[tokio::test]
async fn a_bot_is_renamed_and_a_refused_name_is_kept_next_to_its_problem() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let bot = bind(&ann, &simulator, None).await;
    let address = format!("/console/bots/{}", bot["id"].as_str().unwrap());

    let reply = submit(&ann, &address, &[("do", "rename"), ("name", "<b>Shop</b>")]).await;
    let location = reply.header("location").unwrap().to_owned();
    assert_eq!((reply.response.status().as_u16(), &*location), (303, &*format!("{address}?done=renameBot")));
    let page = text(&ann.get(&location).await);
    assert!(page.contains("The bot was renamed.") && page.contains("&lt;b&gt;Shop&lt;/b&gt;"), "{page}");
    assert!(!page.contains("<b>"), "{page}");

    let long = "x".repeat(65);
    let reply =
        submit(&ann.clone().with("Accept-Language", "zh"), &address, &[("do", "rename"), ("name", &long)])
            .await;
    let page = text(&reply);
    assert_eq!(reply.response.status(), 400);
    assert!(page.contains(&format!("value=\"{long}\"")) && page.contains("aria-invalid=\"true\""), "{page}");
    assert!(page.contains("id=\"rename-name-problem\"") && page.contains("最多 64 个字符"), "{page}");

    let reply = submit(&ann, &address, &[("do", "delete")]).await;
    assert_eq!(reply.header("location"), Some("/console/bots?done=deleteBot"));
    assert!(text(&ann.get("/console/bots?done=deleteBot").await).contains("The bot was deleted."));
    assert_eq!(ann.get(&address).await.response.status(), 404);
}

#[tokio::test]
async fn objects_of_other_users_look_absent() {
    let (app, simulator) = App::with_simulator().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let bot = bind(&ann, &simulator, None).await;
    let bot = bot["id"].as_str().unwrap();
    let without_id = |reply: &Reply| text(reply).replace(reply.header("x-request-id").unwrap(), "");
    let foreign = bob.get(&format!("/console/bots/{bot}")).await;
    let unknown = bob.get("/console/bots/bot_01JZZZZZZZZZZZZZZZZZZZZZZZ").await;
    assert_eq!(foreign.response.status(), 404);
    assert_eq!(without_id(&foreign), without_id(&unknown));
    let reply = submit(&bob, &format!("/console/bots/{bot}"), &[("do", "delete")]).await;
    assert_eq!(reply.response.status(), 404);
    assert_eq!(ann.get(&format!("/api/bots/{bot}")).await.response.status(), 200);
}

#[tokio::test]
async fn a_key_is_shown_once_uncompressed_and_created_once() {
    let app = App::new().await;
    let ann = app.user("ann").await.with("Accept-Encoding", "gzip");
    let plain = app.user("bob").await;
    let page = text(&plain.get("/console/account/keys").await);
    assert_eq!(ann.get("/console/account/keys").await.header("content-encoding"), Some("gzip"));
    let once = hidden(&page, "once");
    let fields = [("do", "create"), ("name", "nightly"), ("expires_in_days", ""), ("once", once)];
    let created = submit(&ann, "/console/account/keys", &fields).await;
    assert_eq!((created.response.status().as_u16(), created.header("content-encoding")), (200, None));
    let page = text(&created);
    let key = page.split("<code data-computed>").nth(1).unwrap().split('<').next().unwrap();
    assert!(key.starts_with("hubu_"), "{page}");
    let again = submit(&ann, "/console/account/keys", &fields).await;
    assert!(text(&again).contains(key));
    let keys = ann.get("/api/user/api-keys").await;
    assert_eq!(keys.data()["items"].as_array().unwrap().len(), 1, "{}", keys.json);
    let key_id = keys.data()["items"][0]["id"].as_str().unwrap();
    let reply = submit(&ann, "/console/account/keys", &[("do", "revoke"), ("id", key_id)]).await;
    assert_eq!(reply.header("location"), Some("/console/account/keys?done=deleteApiKey"));
    assert_eq!(ann.get("/api/user/api-keys").await.data()["items"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn language_and_theme_are_kept_by_the_browser() {
    let app = App::new().await;
    let ann = app.user("ann").await;
    let reply = submit(&ann, "/console/bots", &[("do", "look"), ("language", "zh"), ("theme", "dark")]).await;
    assert_eq!((reply.response.status().as_u16(), reply.header("location")), (303, Some("/console/bots")));
    assert!(reply.header("set-cookie").unwrap().starts_with("look=zh.dark; Path=/"));
    let cookie =
        format!("look=zh.dark; {}", ann.headers.iter().find(|(name, _)| name == "Cookie").unwrap().1);
    let page = text(&app.stranger().with("Cookie", &cookie).get("/console").await);
    assert!(page.contains("<html lang=\"zh-CN\" data-theme=\"dark\">"), "{page}");
}

#[tokio::test]
async fn the_root_leads_to_the_console_and_that_to_sign_in() {
    let app = App::new().await;
    let root = app.stranger().get("/").await;
    assert_eq!((root.response.status().as_u16(), root.header("location")), (303, Some("/console")));
    let console = app.stranger().get("/console").await;
    assert_eq!(console.header("location"), Some("/login?redirect=%2Fconsole"));
    assert!(root.bytes.is_empty() && console.bytes.is_empty());
    for path in ["/favicon.ico", "/favicon.svg"] {
        assert_eq!(app.stranger().get(path).await.header("content-type"), Some("image/svg+xml"));
    }
}

#[tokio::test]
async fn an_old_session_is_confirmed_before_it_changes_how_its_user_signs_in() {
    let app = App::new().await;
    let ann = app.user("ann").await;
    app.clock.advance(std::time::Duration::from_secs(16 * 60));
    let change = [("do", "delete_passkey"), ("id", "pky_01KAJ6Z8QH0000000000000000")];
    let refused = submit(&ann, "/console/account/security", &change).await;
    let page = text(&refused);
    assert_eq!(refused.response.status(), 403, "{page}");
    let confirm = "/console/confirm?back=/console/account/security";
    assert!(page.contains(confirm), "{page}");

    let wrong = submit(&ann, confirm, &[("do", "confirm"), ("password", "wrong")]).await;
    let page = text(&wrong);
    assert_eq!(wrong.response.status(), 400, "{page}");
    assert!(page.contains("id=\"confirm-password-problem\"") && !page.contains("value=\"wrong\""), "{page}");
    let right = [("do", "confirm"), ("password", crate::testing::PASSWORD)];
    let confirmed = submit(&ann, confirm, &right).await;
    assert_eq!(confirmed.header("location"), Some("/console/account/security"));
    let cookie = confirmed.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let fresh = app.stranger().with("Cookie", &cookie).with("Origin", "http://localhost:9800");
    assert_eq!(submit(&fresh, "/console/account/security", &change).await.response.status(), 404);
    assert_eq!(ann.get("/console").await.response.status(), 303, "the old session is over");
}

#[tokio::test]
async fn signing_out_ends_the_session() {
    let app = App::new().await;
    let ann = app.user("ann").await;
    let reply = submit(&ann, "/console", &[("do", "sign_out")]).await;
    assert_eq!(reply.header("location"), Some("/login"));
    assert!(reply.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(ann.get("/console").await.response.status(), 303);
}

#[tokio::test]
async fn failures_are_pages_with_the_code_and_the_id_of_the_request() {
    let app = App::new().await;
    let ann = app.user("ann").await;
    for (method, path, status, code) in [
        (Method::GET, "/console/nowhere", 404, "NOT_FOUND"),
        (Method::GET, "/console/assets/old/page.js", 404, "NOT_FOUND"),
        (Method::DELETE, "/console/bots", 405, "METHOD_NOT_ALLOWED"),
        (Method::POST, "/console/bots", 415, "UNSUPPORTED_MEDIA_TYPE"),
        (Method::GET, "/console/bots?cursor=x", 400, "INVALID_PARAMS"),
    ] {
        let reply = ann.send(method.clone(), path, |request| request).await;
        let page = text(&reply);
        assert_eq!(reply.response.status(), status, "{method} {path}: {page}");
        let is_asset = path.contains("assets");
        assert_eq!(reply.header("content-type").unwrap().starts_with("text/html"), !is_asset, "{path}");
        assert!(page.contains(code) && page.contains(reply.header("x-request-id").unwrap()), "{page}");
    }
}

#[tokio::test]
async fn assets_are_immutable_under_an_address_with_their_hash() {
    let app = App::new().await;
    let ann = app.user("ann").await;
    let page = text(&ann.get("/console").await);
    for name in ["console.css", "page.js", "live.js"] {
        let address = super::assets::path(name);
        assert!(page.contains(&address), "{page}");
        let reply = app.stranger().get(&address).await;
        assert_eq!(reply.header("cache-control"), Some("public, max-age=31536000, immutable"));
        let small = app.stranger().with("Accept-Encoding", "br, gzip").get(&address).await;
        assert_eq!(small.header("content-encoding"), Some("gzip"));
        assert!(small.bytes.len() < reply.bytes.len(), "{name}");
    }
}

#[tokio::test]
async fn a_browser_without_script_signs_in_and_registers() {
    let app = App::new().await;
    let browser = app.stranger().with("Origin", "http://localhost:9800");
    let fields = [("do", "register"), ("username", "ann"), ("password", "ann"), ("ticket", "")];
    let refused = submit(&browser, "/login", &fields).await;
    assert_eq!(refused.response.status(), 400);
    let page = text(&refused);
    assert!(
        page.contains("value=\"ann\"") && page.contains("Password: must be 8 to 256 characters"),
        "{page}"
    );

    let fields = [("do", "register"), ("username", "ann"), ("password", "tr0mbone solo"), ("ticket", "")];
    let registered = submit(&browser, "/login?redirect=/console/bots", &fields).await;
    assert_eq!(
        (registered.response.status().as_u16(), registered.header("location")),
        (303, Some("/console/bots"))
    );
    let cookie = registered.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    assert_eq!(app.stranger().with("Cookie", &cookie).get("/console").await.response.status(), 200);

    let wrong = [("do", "sign_in"), ("username", "ann"), ("password", "wrong")];
    let refused = submit(&browser.clone().with("Accept-Language", "zh"), "/login", &wrong).await;
    assert_eq!(refused.response.status(), 401);
    assert!(text(&refused).contains("用户名或密码不正确。"));
    let right = [("do", "sign_in"), ("username", "ann"), ("password", "tr0mbone solo")];
    let elsewhere = submit(&browser, "/login?redirect=//evil.example", &right).await;
    assert_eq!(elsewhere.header("location"), Some("/console"));
    let foreign = app.stranger().with("Origin", "https://evil.example");
    assert_eq!(submit(&foreign, "/login", &right).await.response.status(), 403);
}

#[tokio::test]
async fn forms_of_sign_in_count_as_sign_ins() {
    let app = App::new().await;
    let browser = app.stranger().with("Origin", "http://localhost:9800");
    let fields = [("do", "sign_in"), ("username", "nobody"), ("password", "wrong")];
    let mut statuses = Vec::new();
    for _ in 0..12 {
        statuses.push(submit(&browser, "/login", &fields).await.response.status().as_u16());
    }
    assert_eq!(statuses.first(), Some(&401), "{statuses:?}");
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
}

/// The files of a folder and of those in it.
fn sources(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else {
            found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

#[test]
fn markup_is_escaped_and_scripts_cannot_write_markup() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console");
    let sources = sources(&here);
    assert!(sources.len() > 15);
    let is_test = |name: &str| ["tests.rs", "tests/mod.rs"].iter().any(|end| name.ends_with(end));
    for (name, text) in sources.iter().filter(|(name, _)| !is_test(name)) {
        let draws = ["parts/icon.rs", "parts/qr.rs"].iter().any(|end| name.ends_with(end));
        assert!(draws || !text.contains("PreEscaped"), "{name} writes markup as text");
        if name.contains("/parts/") || name.contains("/words/") {
            assert!(!text.contains("poem") && !text.contains("crate::api"), "{name} knows of HTTP");
        }
        if Path::new(name).extension().is_none_or(|end| end != "js") {
            continue;
        }
        for bad in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "DOMParser",
            "http:",
            "https:",
        ] {
            assert!(!text.contains(bad), "{name}: {bad}");
        }
        assert!(text.lines().count() <= 400 && text.lines().all(|line| line.len() <= 200), "{name}");
        let is_live = name.ends_with("live.js");
        assert!(is_live || !(text.contains("XMLHttpRequest") || text.contains("EventSource")), "{name}");
        assert!(name.ends_with("passkey.js") || !text.contains("fetch("), "{name}");
    }
}
