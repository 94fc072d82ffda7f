//! Failures that all operations of a kind share, provoked in the same way on each.

use std::num::NonZeroU32;

use hub_core::{random::Random, tasks::Tasks, time::Clock};
use hub_server::{
    rate_limit::RateLimitSettings,
    serve::{ServeLimits, Server, bind},
};
use poem::http::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::Ledger;
use crate::endpoints::{
    operation::{Operation, operations},
    stage::{Answer, Stage},
};

const NOWHERE: &str = "01BX5ZZKBKACTAV9WEVGEMMVRZ";

fn tag(operation: &Operation) -> &str {
    operation.described["tags"][0].as_str().unwrap()
}

/// No one, someone without the right, and a page of another site.
pub async fn callers(stage: &Stage, ledger: &mut Ledger) {
    for operation in operations() {
        let (path, body) = (stage.path(&operation), (operation.entry().body)(stage));
        let ask = async |name: &str, value: &str, origin: &str| {
            let request = stage.client.request(operation.method.clone(), &path);
            let mut request = request.header(name, value).header("Origin", origin);
            if !body.is_null() {
                request = request.body_json(&body);
            }
            Answer::of(request.send().await.0).await
        };
        if !operation.is_open() {
            let answer = stage.ask(&operation, &path, |request| request).await;
            ledger.expect(&operation, &answer, 401, "nobody");
        }
        if operation.is_administration() {
            let answer = stage.ask_as(&operation, &path, &stage.bob).await;
            ledger.expect(&operation, &answer, 403, "no administrator");
        }
        let changes = operation.method != Method::GET;
        if changes && !operation.is_for_programs() && (!operation.is_open() || tag(&operation) == "Auth") {
            let cookie = format!("session={}", stage.ada);
            let answer = ask("Cookie", &cookie, "https://evil.example").await;
            ledger.expect(&operation, &answer, 403, "a page of another site");
        }
    }
}

/// Bodies that are none, of another type, and too large; ids that nothing has.
pub async fn requests(stage: &Stage, ledger: &mut Ledger) {
    for operation in operations() {
        if operation.takes_body() {
            for (status, content_type, body) in [
                (400, "application/json", "{".to_owned()),
                (415, "text/plain", "{}".to_owned()),
                (413, "application/json", format!("{{\"x\":\"{}\"}}", "x".repeat(1024 * 1024))),
            ] {
                let answer = stage.ask_with(&operation, content_type, body).await;
                ledger.expect(&operation, &answer, status, "a body");
            }
        }
        let mut ids = stage.ids(&operation);
        let names = operation.parameters();
        // A code is a credential of its own.
        if let Some(last) = names.last().filter(|_| !operation.is_token_endpoint()) {
            let absent = match ids.iter().find(|(name, _)| name == last).unwrap().1.split_once('_') {
                Some((kind, _)) => format!("{kind}_{NOWHERE}"),
                None => "nobody".to_owned(),
            };
            for (name, id) in &mut ids {
                if name == last {
                    *id = &absent;
                }
            }
            let answer = stage.ask_as(&operation, &stage.path_of(&operation, &ids, ""), &stage.ada).await;
            ledger.expect(&operation, &answer, 404, "an id that nothing has");
        }
    }
}

/// A key used again, for the same request and for another.
pub async fn repetitions(stage: &Stage, ledger: &mut Ledger) {
    for operation in operations() {
        if !operation.described["parameters"].to_string().contains("Idempotency-Key") {
            continue;
        }
        let first = (operation.entry().body)(stage);
        let mut second = first.clone();
        for (field, other) in
            [("name", json!("another")), ("content", json!("another")), ("text", json!("another"))]
        {
            if let Some(value) = second.get_mut(field) {
                *value = other;
            }
        }
        if let Some(script) = second.get_mut("script") {
            *script = crate::endpoints::stage::script("third").into();
        }
        if let Some(ids) = second.get_mut("trace_ids") {
            *ids = json!([format!("tr_{NOWHERE}")]);
        }
        if let Some(app) = second.get_mut("app_id") {
            *app = stage.known("app").into();
        }
        let mut path = stage.path(&operation);
        let mut other_path = path.clone();
        match operation.id.as_str() {
            "createInvite" => second = json!({ "expires_in_days": 1 }),
            "replayTrace" => second = json!({ "url": "http://receiver.test/other" }),
            "createResetLink" => other_path = path.replace(stage.known("user"), &stage.other_user),
            // The replaced credential stays valid for the operations that follow.
            "regenerateChannelKey" | "regenerateAppToken" => {
                path = stage.path_with(&operation, "grace_hours=2");
                other_path = stage.path_with(&operation, "grace_hours=1");
            }
            _ => {}
        }
        let mut answers = Vec::new();
        for (path, body, status) in [
            (&path, &first, operation.entry().answers),
            (&path, &first, operation.entry().answers),
            (&other_path, &second, 409),
        ] {
            let answer = stage.ask_once(&operation, path, body).await;
            ledger.expect(&operation, &answer, status, "a key that was used");
            answers.push(answer.json["data"].clone());
        }
        assert_eq!(answers[0], answers[1], "{}: the first response again", operation.id);
    }
}

/// One request is all that anyone has.
pub async fn too_many(ledger: &mut Ledger) {
    let one = NonZeroU32::MIN;
    let limits = RateLimitSettings { default: one, ..RateLimitSettings::default() };
    let stage = Stage::with(|_| (), limits).await;
    for operation in operations().into_iter().filter(|operation| tag(operation) != "Health") {
        let mut answer = stage.ask_as(&operation, &stage.path(&operation), &stage.ada).await;
        // One for the address, which pays until the credential has proved to be valid, and one for the credential.
        for _ in 0..2 {
            if answer.status != 429 {
                answer = stage.ask_as(&operation, &stage.path(&operation), &stage.ada).await;
            }
        }
        ledger.expect(&operation, &answer, 429, "too many requests");
    }
}

/// Every right call, of a hub that is broken in some way. What shows a code that cannot be shows one of the right form
/// instead, for which the hub has to look.
async fn each(stage: &Stage, ledger: &mut Ledger, status: u16, why: &str) {
    for operation in operations() {
        let path = stage.path(&operation);
        let mut answer = stage.ask_as(&operation, &path, &stage.ada).await;
        if answer.status != status && operation.is_open() {
            let path = match &*operation.id {
                "getQrLoginStatus" => {
                    let code = |kind| stage.code(kind);
                    format!("{path}?qr_id={}&poll_secret={}", code("hubq"), code("hubp"))
                }
                _ => path,
            };
            let mut body = ledger.example(&operation);
            for text in body.as_object_mut().into_iter().flatten().map(|(_, value)| value) {
                if let Some((kind, _)) = text.as_str().and_then(|text| text.split_once('_'))
                    && kind.len() == 4
                    && kind.starts_with("hub")
                {
                    *text = stage.code(kind).into();
                }
            }
            let cookies = format!("{}; flow={}", stage.ada, stage.code("hubw"));
            answer = stage.ask_saying(&operation, &path, &cookies, &body).await;
        }
        // What asks no store goes on.
        if answer.status == status || operation.described["responses"].get("500").is_some() {
            ledger.expect(&operation, &answer, status, why);
        }
    }
}

/// Nothing is where the hub looks for it.
pub async fn faults(ledger: &mut Ledger) {
    let stage = Stage::new().await;
    stage.hide_tables().await;
    each(&stage, ledger, 500, "a store without tables").await;
}

/// The store is closed.
pub async fn outage(ledger: &mut Ledger) {
    let stage = Stage::new().await;
    stage.hub.stop().await;
    each(&stage, ledger, 503, "a store that is closed").await;
}

/// A channel and an app that are switched off.
pub async fn switched_off(stage: &Stage, ledger: &mut Ledger) {
    stage.run("UPDATE channels SET enabled = 0; UPDATE app_installations SET enabled = 0").await;
    stage.run("UPDATE users SET status = 'disabled'").await;
    for operation in operations().into_iter().filter(Operation::is_for_programs) {
        let answer = stage.ask_as(&operation, &stage.path(&operation), &stage.ada).await;
        ledger.expect(&operation, &answer, 403, "what is switched off");
    }
}

/// Requests that the listener rejects before they reach the application: an ambiguous head, a head or target that is
/// too long, and a connection above the limit.
pub async fn heads(stage: &Stage, ledger: &mut Ledger) {
    let (tasks, clock) = (Tasks::default(), Clock::system());
    let serve = async |limits: ServeLimits| {
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::new(limits, tasks.clone(), clock.clone(), Random::seeded(3));
        server.serve(vec![listener], stage.endpoint());
        address
    };
    let open = serve(ServeLimits::default()).await;
    let full = serve(ServeLimits { connections: 0, ..ServeLimits::default() }).await;
    let large = format!("Host: localhost\r\nX-Large: {}\r\n", "x".repeat(40 * 1024));
    let long = format!("?x={}", "x".repeat(9 * 1024));
    for operation in operations() {
        let method = &operation.method;
        let path = stage.path(&operation);
        let bare = path.split('?').next().unwrap();
        let responses = &operation.described["responses"];
        let mut heads = vec![(400, open, format!("{method} {path} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"))];
        if responses.get("414").is_some() {
            heads.push((414, open, format!("{method} {bare}{long} HTTP/1.1\r\nHost: localhost\r\n\r\n")));
        }
        if responses.get("default").is_some() {
            heads.push((431, open, format!("{method} {path} HTTP/1.1\r\n{large}\r\n")));
        }
        // A rejected request is not read: unread bytes would end the connection before the answer.
        heads.push((503, full, String::new()));
        for (status, address, head) in heads {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut text = Vec::new();
            stream.read_to_end(&mut text).await.unwrap();
            ledger.expect(&operation, &read(&String::from_utf8(text).unwrap()), status, "a head");
        }
    }
    tasks.stop();
}

fn read(text: &str) -> Answer {
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let json = text.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok());
    Answer { status, json: json.unwrap_or(Value::Null) }
}
