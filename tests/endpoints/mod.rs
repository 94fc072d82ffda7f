//! Every operation of the OpenAPI document against everyone who may not use it and everything that is wrong:
//! the refusal is the documented one, in the envelope, and changes nothing.
//!
//! `table` says how each operation is called rightly; an operation without an entry fails the first test.

use poem::http::Method;
use serde_json::{Value, json};

use operation::{Operation, operations};
use stage::{Answer, ORIGIN, Stage};
use table::TABLE;

mod answers;
mod audited;
mod bounds;
mod causes;
mod matrix;
mod mcp;
mod operation;
mod parents;
mod paths;
mod stage;
mod table;

/// A refusal has the documented status and the envelope.
#[track_caller]
fn refused(operation: &Operation, answer: &Answer, status: u16, code: &str, why: &str) {
    let Answer { status: got, json } = answer;
    let id = &operation.id;
    assert_eq!((*got, json["error"]["code"].as_str()), (status, Some(code)), "{id}, {why}: {json}");
    assert!(operation.described["responses"][got.to_string()].is_object(), "{id} does not document {got}");
    assert_eq!(json["success"], false, "{id}, {why}: {json}");
    let error = &json["error"];
    assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{id}, {why}: {json}");
    assert!(error["request_id"].is_string(), "{id}, {why}: {json}");
    assert!(json.get("data").is_none(), "{id}, {why}: {json}");
}

#[test]
fn every_operation_has_an_entry_and_every_entry_an_operation() {
    let operations = operations();
    for operation in &operations {
        operation.entry();
    }
    for entry in TABLE {
        let known = operations.iter().any(|operation| operation.id == entry.operation);
        assert!(known, "{} is not in the OpenAPI document", entry.operation);
    }
}

#[tokio::test]
async fn requests_without_a_valid_credential_are_rejected() {
    let stage = Stage::new().await;
    let before = stage.stored().await;
    for operation in operations().into_iter().filter(|operation| !operation.is_open()) {
        let path = stage.path(&operation);
        let body = (operation.entry().body)(&stage);
        let send = async |name: &str, value: String| {
            stage
                .ask(&operation, &path, |request| {
                    let request = if value.is_empty() { request } else { request.header(name, value) };
                    if body.is_null() { request } else { request.body_json(&body) }
                })
                .await
        };
        refused(&operation, &send("X-Nothing", String::new()).await, 401, "UNAUTHORIZED", "no credential");
        for (name, value) in [
            ("Authorization", "Bearer hubu_unknown".to_owned()),
            ("Authorization", "Bearer hubc_unknown".to_owned()),
            ("Authorization", format!("Bearer {}", stage.ada)),
            ("X-API-Key", "hubu_unknown".to_owned()),
        ] {
            refused(&operation, &send(name, value).await, 401, "INVALID_TOKEN", "a bad credential");
        }
        let cookie = "session=hubs_unknown".to_owned();
        refused(&operation, &send("Cookie", cookie).await, 401, "UNAUTHORIZED", "an unknown session");
        // A bad credential is not made good by a cookie next to it.
        let both = stage
            .ask(&operation, &path, |request| {
                request.header("Cookie", format!("session={}", stage.ada)).header("X-API-Key", "hubu_unknown")
            })
            .await;
        refused(&operation, &both, 401, "INVALID_TOKEN", "a bad credential next to a good cookie");
    }
    assert_eq!(stage.stored().await, before, "a refusal changed something");
}

/// Headers that a browser sends for a page of another origin, and none, as a client that is not a browser.
const FORGED: [&[(&str, &str)]; 9] = [
    &[],
    &[("Origin", "https://evil.example")],
    &[("Origin", "null")],
    &[("Origin", "http://localhost:9800.evil.example")],
    &[("Origin", "http://localhost")],
    &[("Sec-Fetch-Site", "cross-site")],
    &[("Sec-Fetch-Site", "same-site"), ("Origin", ORIGIN)],
    &[("Sec-Fetch-Site", "none"), ("Origin", "https://evil.example")],
    &[("Sec-Fetch-Site", "same-origin"), ("Origin", "https://evil.example")],
];

#[tokio::test]
async fn a_page_of_another_origin_changes_nothing() {
    let stage = Stage::new().await;
    let before = stage.stored().await;
    // A page has no key of a program, and a program's calls know no cookie.
    let changing = |operation: &Operation| {
        operation.method != Method::GET && !operation.is_open() && !operation.is_for_programs()
    };
    for operation in operations().into_iter().filter(changing) {
        for headers in FORGED {
            let body = (operation.entry().body)(&stage);
            let request = stage.client.request(operation.method.clone(), stage.path(&operation));
            let mut request = request.header("Cookie", format!("session={}", stage.ada));
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            if !body.is_null() {
                request = request.body_json(&body);
            }
            let mut response = request.send().await.0;
            let status = response.status().as_u16();
            let json = response.take_body().into_json().await.unwrap();
            refused(&operation, &Answer { status, json }, 403, "FORBIDDEN", &format!("{headers:?}"));
        }
    }
    assert_eq!(stage.stored().await, before, "a refusal changed something");
}

#[tokio::test]
async fn foreign_absent_and_malformed_ids_are_not_found() {
    let stage = Stage::new().await;
    let before = stage.stored().await;
    for operation in operations() {
        let parameters = operation.parameters();
        // A code is a credential of its own.
        if parameters.is_empty() || operation.is_token_endpoint() {
            continue;
        }
        let others = stage.ask_as(&operation, &stage.path(&operation), &stage.bob).await;
        if operation.is_administration() {
            refused(&operation, &others, 403, "FORBIDDEN", "no administrator");
        } else {
            refused(&operation, &others, 404, "NOT_FOUND", "another user's");
        }
        for parameter in parameters {
            let ids = stage.ids(&operation);
            let right = ids.iter().find(|(name, _)| *name == parameter).unwrap().1;
            let (kind, _) = right.split_once('_').unwrap_or((right, ""));
            // No such thing, another kind of thing, no id at all, what breaks out of a path or a statement.
            for wrong in [
                format!("{kind}_01BX5ZZKBKACTAV9WEVGEMMVRZ"),
                "usr_01BX5ZZKBKACTAV9WEVGEMMVRZ".to_owned(),
                right.to_lowercase() + "0",
                "0".to_owned(),
                "%27%20OR%201=1--".to_owned(),
                "%00".to_owned(),
            ] {
                let mut ids = ids.clone();
                for (name, id) in &mut ids {
                    if *name == parameter {
                        *id = &wrong;
                    }
                }
                let absent = stage.ask_as(&operation, &stage.path_of(&operation, &ids, ""), &stage.ada).await;
                refused(&operation, &absent, 404, "NOT_FOUND", &format!("{parameter} is {wrong}"));
                if operation.is_administration() {
                    continue;
                }
                // Whether it exists does not show: the same words for what is another user's.
                assert_eq!(
                    (&absent.json["error"]["details"], absent.status),
                    (&others.json["error"]["details"], others.status),
                    "{}",
                    operation.id
                );
            }
        }
    }
    assert_eq!(stage.stored().await, before, "a refusal changed something");
}

#[tokio::test]
async fn administration_is_for_administrators() {
    let stage = Stage::new().await;
    let before = stage.stored().await;
    for operation in operations().into_iter().filter(Operation::is_administration) {
        let answer = stage.ask_as(&operation, &stage.path(&operation), &stage.bob).await;
        refused(&operation, &answer, 403, "FORBIDDEN", "no administrator");
    }
    assert_eq!(stage.stored().await, before, "a refusal changed something");
}

#[tokio::test]
async fn bad_bodies_are_refused_with_the_field_that_is_wrong() {
    let stage = Stage::new().await;
    let before = stage.stored().await;
    let json_type = "application/json";
    for operation in operations().into_iter().filter(Operation::takes_body) {
        for text in ["{", "[]", "\"text\"", "{\"a\":}", "\u{feff}{}", "nul"] {
            let answer = stage.ask_with(&operation, json_type, text).await;
            refused(&operation, &answer, 400, "INVALID_PARAMS", text);
        }
        let answer = stage
            .ask_with(&operation, json_type, [b"{\"x\":\"".as_slice(), &[0xff, 0xfe], b"\"}"].concat())
            .await;
        refused(&operation, &answer, 400, "INVALID_PARAMS", "no UTF-8");
        if operation.body_is_required() {
            let answer = stage.ask_with(&operation, json_type, "").await;
            refused(&operation, &answer, 400, "INVALID_PARAMS", "no body");
        }
        // An app's call that is right would be done, and nothing is to change here.
        if !(operation.is_for_apps() && operation.entry().answers == 200) {
            let mut unknown = (operation.entry().body)(&stage);
            unknown["no_such_field"] = json!(1);
            let answer = stage.ask_with(&operation, json_type, unknown.to_string()).await;
            let told = answer.json["error"].to_string();
            if operation.is_for_programs() || operation.is_token_endpoint() {
                assert!(
                    !told.contains("no_such_field"),
                    "{} does not ignore the field: {told}",
                    operation.id
                );
            } else {
                refused(&operation, &answer, 400, "INVALID_PARAMS", "an unknown field");
                assert!(told.contains("no_such_field"), "{} does not name the field: {told}", operation.id);
            }
        }
        let body = (operation.entry().body)(&stage).to_string();
        let others = ["text/plain", "application/x-www-form-urlencoded"];
        for wrong in others.into_iter().filter(|wrong| !operation.takes(wrong)) {
            let answer = stage.ask_with(&operation, wrong, body.clone()).await;
            refused(&operation, &answer, 415, "UNSUPPORTED_MEDIA_TYPE", wrong);
        }
        let form = "multipart/form-data; boundary=x";
        let answer = stage.ask_with(&operation, form, body.clone()).await;
        if operation.takes("multipart/form-data") {
            refused(&operation, &answer, 400, "INVALID_PARAMS", "a form that is JSON");
        } else {
            refused(&operation, &answer, 415, "UNSUPPORTED_MEDIA_TYPE", form);
        }
        let huge = format!("{{\"x\":\"{}\"}}", "x".repeat(1024 * 1024));
        let answer = stage.ask_with(&operation, json_type, huge).await;
        refused(&operation, &answer, 413, "PAYLOAD_TOO_LARGE", "more than 1 MiB");
    }
    assert_eq!(stage.stored().await, before, "a refusal changed something");
}

#[tokio::test]
async fn bad_pages_are_refused() {
    let stage = Stage::new().await;
    let lists = operations()
        .into_iter()
        .filter(|operation| operation.described["parameters"].to_string().contains("\"cursor\""));
    let mut count = 0;
    for operation in lists {
        count += 1;
        for query in [
            "limit=0",
            "limit=201",
            "limit=-1",
            "limit=x",
            "limit=1.5",
            "limit=1e2",
            "limit=1e9",
            "limit=99999999999999999999",
            "cursor=x",
            "cursor=AAAA",
            "cursor=%00",
        ] {
            let path = stage.path_with(&operation, query);
            let answer = stage.ask_as(&operation, &path, &stage.ada).await;
            refused(&operation, &answer, 400, "INVALID_PARAMS", query);
        }
        let path = stage.path_with(&operation, "limit=1");
        let page = stage.ask_as(&operation, &path, &stage.ada).await;
        assert_eq!(page.status, 200, "{}: {}", operation.id, page.json);
        // The bot API answers with bare objects.
        let (page, items) =
            if operation.is_for_apps() { (&page.json, "contacts") } else { (&page.json["data"], "items") };
        assert!(page[items].is_array(), "{}: {page}", operation.id);
        assert!(page.get("next_cursor").is_some(), "{}: {page}", operation.id);
    }
    assert!(count >= 5, "lists were found");
}

#[tokio::test]
async fn right_calls_are_answered_as_documented() {
    let stage = Stage::new().await;
    let operations = operations();
    for entry in TABLE {
        let operation = operations.iter().find(|operation| operation.id == entry.operation).unwrap();
        // A new sign-in revokes the previous session; here it is still needed.
        let cookie = match &*operation.id {
            _ if operation.is_open() => "",
            "logout" => &stage.spare,
            _ => &stage.ada,
        };
        let answer = stage.ask_as(operation, &stage.path(operation), cookie).await;
        assert_eq!(answer.status, entry.answers, "{}: {}", operation.id, answer.json);
        assert!(operation.described["responses"][entry.answers.to_string()].is_object(), "{}", operation.id);
        if operation.path.starts_with("/api/")
            && !["exchangeAppCode", "streamEvents"].contains(&&*operation.id)
        {
            assert_eq!(
                answer.json["success"],
                json!(entry.answers < 300),
                "{}: {}",
                operation.id,
                answer.json
            );
        }
    }
    // The last of them ended the session.
    let me = operations.iter().find(|operation| operation.id == "getMe").unwrap();
    let answer = stage.ask_as(me, "/api/auth/me", &stage.ada).await;
    refused(me, &answer, 401, "UNAUTHORIZED", "after the change of the password");
    stage.hub.stop().await;
}

#[tokio::test]
async fn unknown_paths_and_methods_are_refused_in_the_envelope() {
    let stage = Stage::new().await;
    for path in ["/api/nothing", "/api/bots/x/y/z/w", "/api", "/bot/v1/nothing", "/nothing"] {
        let mut response = stage.client.get(path).send().await.0;
        let json: Value = response.take_body().into_json().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &json["error"]["code"]),
            (404, &json!("NOT_FOUND")),
            "{path}: {json}"
        );
    }
    for operation in operations() {
        let mut response = stage.client.request(Method::PATCH, stage.path(&operation)).send().await.0;
        let json: Value = response.take_body().into_json().await.unwrap();
        let id = &operation.id;
        assert_eq!(
            (response.status().as_u16(), &json["error"]["code"]),
            (405, &json!("METHOD_NOT_ALLOWED")),
            "{id}: {json}"
        );
        let allow = response.headers()["allow"].to_str().unwrap();
        assert!(allow.contains(operation.method.as_str()), "{id}: {allow}");
    }
}
