//! The reference pages that are written by hand, held to the code.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use hub_core::{
    Error, ErrorCode,
    apps::{AppPatch, NewApp, NewInstallation},
    channels::sinks::{AuthMethod, AuthUpdate, Change, WebhookUpdate},
    local_http::{Cut, LocalService},
    testing::{Receiver, TestHub},
};
use serde_json::{Value, json};

use super::{markdown::rows, read};

fn plain(cell: &str) -> String {
    cell.trim_matches('`').to_owned()
}

#[test]
fn every_error_code_is_documented_with_its_status() {
    let table = rows(&read("openapi/ERRORS.md"), "# Error codes");
    let written: Vec<_> = table.iter().map(|row| (plain(&row[0]), row[1].clone(), row[3] == "yes")).collect();
    let real = ErrorCode::ALL.map(|code| {
        let status = hub_server::envelope::status(code).as_u16().to_string();
        (code.as_str().to_owned(), status, Error::new(code, "").is_retryable())
    });
    assert_eq!(written.iter().collect::<BTreeSet<_>>(), real.iter().collect::<BTreeSet<_>>());
    assert_eq!(written.len(), real.len(), "a code is duplicated");
}

/// The paths of all values of an object, where arrays and what may be absent count as one value.
fn paths(value: &Value, prefix: &str, found: &mut BTreeSet<String>) {
    let Value::Object(fields) = value else { return };
    for (name, value) in fields {
        let path = format!("{prefix}{name}");
        match value {
            Value::Object(_) if !matches!(path.as_str(), "quoted" | "event.data") => {
                paths(value, &format!("{path}."), found);
            }
            _ => drop(found.insert(path)),
        }
    }
}

fn written_fields(heading: &str) -> BTreeSet<String> {
    let page = read("openapi/WEBHOOKS.md");
    let fields = rows(&page, heading).into_iter().filter(|row| row.len() == 3);
    // Tables of fields say a type in the middle, those of headers say when.
    let types = ["string", "number", "array", "object"];
    fields.filter(|row| types.contains(&row[1].as_str())).map(|row| plain(&row[0])).collect()
}

/// The headers that the page says are always there, or with this.
fn written_headers(heading: &str, with: &[&str]) -> BTreeSet<String> {
    let rows = rows(&read("openapi/WEBHOOKS.md"), heading).into_iter();
    rows.filter(|row| row[1] == "always" || with.contains(&row[1].as_str()))
        .map(|row| plain(&row[0]))
        .collect()
}

/// The headers of a request, without those of any HTTP request.
fn own_headers(request: &http::Request<bytes::Bytes>) -> BTreeSet<String> {
    let usual = ["accept", "content-length", "content-type", "host", "user-agent"];
    let names = request.headers().keys().map(|name| name.as_str().to_owned());
    names.filter(|name| !usual.contains(&name.as_str())).collect()
}

fn sent_fields(request: &http::Request<bytes::Bytes>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    paths(&serde_json::from_slice(request.body()).unwrap(), "", &mut found);
    found
}

#[tokio::test]
async fn the_page_shows_what_a_channel_s_webhook_gets() {
    let heading = "## To a channel's webhook";
    let receiver = Receiver::new();
    let hub = TestHub::builder().receiver("shop.test", &receiver).start().await;
    let ada = hub.register("ada").await;
    let bot = hub.bind(&ada).await;
    for method in [AuthMethod::Hmac, AuthMethod::Bearer, AuthMethod::Header] {
        let auth = AuthUpdate { method, header_name: None, secret: Change::Set("0123456789abcdef".into()) };
        let webhook =
            WebhookUpdate { url: format!("http://shop.test/{method:?}"), auth, ..WebhookUpdate::default() };
        hub.webhook_channel(&ada, bot.id, &format!("{method:?}"), webhook).await;
    }
    hub.say(&bot, "hello");
    let requests = hub
        .until("three requests", async || Some(receiver.requests()).filter(|requests| requests.len() == 3))
        .await;
    let optional = ["items", "media", "quoted"].map(str::to_owned);
    for request in &requests {
        let method = match request.uri().path() {
            "/Hmac" => "method `hmac`",
            "/Bearer" => "method `bearer`",
            _ => "method `header`",
        };
        assert_eq!(own_headers(request), written_headers(heading, &["with a secret", method]), "{method}");
        let mut written = written_fields(heading);
        for field in &optional {
            assert!(written.remove(field), "{field} is not written down");
        }
        assert_eq!(sent_fields(request), written);
    }
}

/// The fields of the objects in an array of some bodies, or of an object.
fn fields_of(bodies: &[Value], name: &str) -> BTreeSet<String> {
    let objects = bodies.iter().flat_map(|body| match &body[name] {
        Value::Array(parts) => parts.clone(),
        one => vec![one.clone()],
    });
    objects.flat_map(|one| one.as_object().cloned().unwrap_or_default()).map(|(field, _)| field).collect()
}

#[tokio::test]
async fn the_page_shows_items_files_and_quotes() {
    let receiver = Receiver::new();
    let hub = TestHub::builder().receiver("shop.test", &receiver).start().await;
    let ada = hub.register("ada").await;
    let bot = hub.bind(&ada).await;
    let webhook = WebhookUpdate { url: "http://shop.test/".to_owned(), ..WebhookUpdate::default() };
    hub.webhook_channel(&ada, bot.id, "all", webhook).await;
    let quoted = json!({ "message_item": { "type": 4, "file_item": { "file_name": "a.pdf" } } });
    let by_id = json!({ "svr_id": hub.say(&bot, "hello") });
    // There is nothing at these references, so that the files fail.
    let mut file = hub.sim().store_file(&bot.wx_id, b"%PDF-1.7").unwrap().file("b.pdf");
    file["ref_msg"] = quoted;
    // There is nothing at this reference.
    let nothing =
        json!({ "encrypt_query_param": "none", "aes_key": "MDAxMTIyMzM0NDU1NjY3Nzg4OTlhYWJiY2NkZGVlZmY=" });
    let mut voice = json!({ "type": 3, "voice_item": { "media": nothing, "text": "hm", "playtime": 1_200 } });
    voice["ref_msg"] = by_id;
    for item in [voice, file] {
        hub.sim().inject(json!({ "wx_id": bot.wx_id, "items": [item] })).unwrap();
    }
    let bodies: Vec<Value> = hub
        .until("three requests", async || {
            let requests = receiver.requests();
            let bodies = requests.iter().map(|request| serde_json::from_slice(request.body()).unwrap());
            Some(bodies.collect::<Vec<_>>()).filter(|bodies| bodies.len() == 3)
        })
        .await;
    for (heading, name) in [("### Items\n", "items"), ("### Media\n", "media"), ("### Quoted\n", "quoted")] {
        let page = read("openapi/WEBHOOKS.md");
        let section = page.split_once(heading).unwrap().1.split("\n#").next().unwrap();
        let written: BTreeSet<String> = rows(section, "").iter().map(|row| plain(&row[0])).collect();
        assert_eq!(fields_of(&bodies, name), written, "{heading}");
    }
}

/// An app's server: echoes challenges and keeps events.
#[derive(Debug, Default)]
struct AppServer(Mutex<Vec<http::Request<bytes::Bytes>>>);

#[async_trait::async_trait]
impl LocalService for AppServer {
    async fn call(&self, request: http::Request<bytes::Bytes>) -> Result<http::Response<bytes::Bytes>, Cut> {
        let body: Value = serde_json::from_slice(request.body()).unwrap();
        let echo = json!({ "challenge": body["challenge"] });
        if body["type"] == "event" {
            self.0.lock().unwrap().push(request);
        }
        Ok(http::Response::new(echo.to_string().into()))
    }
}

#[tokio::test]
async fn the_page_shows_what_an_app_gets() {
    let heading = "## To an app";
    let server = Arc::new(AppServer::default());
    let hub = TestHub::builder().receiver("app.test", &server).start().await;
    let ada = hub.register("ada").await;
    let bot = hub.bind(&ada).await;
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
    let rest = AppPatch {
        webhook_url: Some("http://app.test/".to_owned()),
        events: words(&["message"]),
        scopes: words(&["message:read"]),
        ..AppPatch::default()
    };
    let new = NewApp { name: "Clerk".to_owned(), slug: None, rest };
    let app = hub.hub().apps().create(&ada, new, None).await.unwrap().app;
    let new = NewInstallation { app_id: app.id, scopes: None, handle: None, config: None };
    hub.hub().apps().install(&ada, bot.id, new, None).await.unwrap();
    hub.say(&bot, "hello");
    let is_message = |request: &http::Request<bytes::Bytes>| {
        serde_json::from_slice::<Value>(request.body()).unwrap()["event"]["type"] == "message.text"
    };
    let told = async || server.0.lock().unwrap().iter().find(|one| is_message(one)).cloned();
    let request = hub.advance_until("an event", std::time::Duration::from_millis(200), told).await;
    let body: Value = serde_json::from_slice(request.body()).unwrap();
    let page = read("openapi/WEBHOOKS.md");
    let row =
        rows(&page, "## Data of events").into_iter().find(|row| row[0].contains("message.text")).unwrap();
    for field in body["event"]["data"].as_object().unwrap().keys() {
        assert!(row[1].contains(&format!("`{field}")), "{field} is not written down: {}", row[1]);
    }
    assert_eq!(own_headers(&request), written_headers(heading, &[]));
    assert_eq!(sent_fields(&request), written_fields(heading));
}
