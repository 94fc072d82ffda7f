use std::collections::{HashMap, HashSet};

use poem::{EndpointExt, http::StatusCode, test::TestClient};

use super::*;
use crate::{
    metrics_app,
    metrics_page::CONTENT_TYPE,
    testing::{App, Reply},
};

const TOKEN: &str = "0123456789abcdef";

/// One line of the format: name, labels, value.
type Sample = (String, Vec<(String, String)>, f64);

/// A strict reader of the OpenMetrics text format, as far as it is used here.
fn parse(page: &str) -> (HashMap<String, String>, Vec<Sample>) {
    let (mut kinds, mut samples) = (HashMap::new(), Vec::new());
    let body = page.strip_suffix("# EOF\n").expect("it ends with EOF");
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let (keyword, rest) = comment.split_once(' ').unwrap();
            let (name, text) = rest.split_once(' ').unwrap();
            assert!(["HELP", "TYPE", "UNIT"].contains(&keyword) && !text.is_empty(), "{line}");
            if keyword == "TYPE" {
                assert!(kinds.insert(name.to_owned(), text.to_owned()).is_none(), "twice: {line}");
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect(line);
        let (name, labels) = series
            .split_once('{')
            .map_or((series, ""), |(name, rest)| (name, rest.strip_suffix('}').expect(line)));
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{line}");
        let labels = labels.split("\",").filter(|label| !label.is_empty()).map(|label| {
            let (key, value) = label.split_once("=\"").expect(line);
            (key.to_owned(), value.trim_end_matches('"').to_owned())
        });
        samples.push((name.to_owned(), labels.collect(), value.parse().expect(line)));
    }
    (kinds, samples)
}

fn value(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> f64 {
    let fits = |sample: &&Sample| {
        let has =
            |(key, value): &(&str, &str)| sample.1.iter().any(|(found, text)| found == key && text == value);
        sample.0 == name && labels.iter().all(has)
    };
    samples.iter().find(fits).unwrap_or_else(|| panic!("no {name} {labels:?}")).2
}

#[tokio::test]
async fn the_page_is_off_without_a_token() {
    let app = App::new().await;
    app.stranger().get(PATH).await.error(404, "NOT_FOUND");
}

#[tokio::test]
async fn the_page_asks_for_its_token() {
    let app = App::with(|values| values.metrics_token = Some(TOKEN.into())).await;
    app.stranger().get(PATH).await.error(401, "UNAUTHORIZED");
    app.stranger().with("Authorization", "Basic x").get(PATH).await.error(401, "UNAUTHORIZED");
    for wrong in ["Bearer 0123456789abcdeg", "Bearer ", "Bearer 0123456789abcdef0"] {
        app.stranger().with("Authorization", wrong).get(PATH).await.error(401, "INVALID_TOKEN");
    }
    let ada = app.user("ada").await;
    ada.get(PATH).await.error(401, "UNAUTHORIZED");
    let reply = app.stranger().with("Authorization", &format!("Bearer {TOKEN}")).get(PATH).await;
    assert_eq!(reply.response.status(), StatusCode::OK);
    assert_eq!(reply.header("content-type"), Some(CONTENT_TYPE));
    let refused = app.stranger().post(PATH, &serde_json::json!({})).await;
    refused.error(405, "METHOD_NOT_ALLOWED");
    assert_eq!(refused.header("allow"), Some("GET, HEAD"));
}

#[tokio::test]
async fn the_page_says_what_happened_in_the_format_of_prometheus() {
    let app = App::new().await;
    for path in ["/healthz", "/healthz", "/api/bots/bot_1/secret", "/api/nothing?key=s3cret", "/invented/1"] {
        app.stranger().get(path).await;
    }
    app.user("ada").await.get("/api/auth/me").await.data();
    let own = TestClient::new(metrics_app(app.hub.clone(), app.settings.clone(), None).boxed());
    let text = own.get(PATH).send().await.0.into_body().into_string().await.unwrap();
    let (kinds, samples) = parse(&text);
    for (name, labels, found) in &samples {
        let family = ["_total", "_bucket", "_sum", "_count"]
            .into_iter()
            .find_map(|end| name.strip_suffix(end).filter(|base| kinds.contains_key(*base)))
            .unwrap_or(name);
        let kind = kinds.get(family).unwrap_or_else(|| panic!("{name} has no type"));
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
        assert!(name.starts_with("hub_") && *found >= 0.0, "{name} {found}");
        for (key, value) in labels {
            assert!(
                !value.contains("bot_1") && !value.contains("s3cret") && !value.contains("invented"),
                "{key}={value}"
            );
        }
    }
    let series: HashSet<_> = samples.iter().map(|(name, labels, _)| (name, labels)).collect();
    assert_eq!(series.len(), samples.len(), "no series is duplicated");
    let healthy = [("route", "/healthz"), ("method", "GET"), ("status", "200")];
    assert!((value(&samples, "hub_http_requests_total", &healthy) - 2.0).abs() < 0.1);
    let unknown = [("route", "-"), ("status", "404")];
    assert!((value(&samples, "hub_http_requests_total", &unknown) - 3.0).abs() < 0.1);
    assert!((value(&samples, "hub_http_request_seconds_count", &healthy[..1]) - 2.0).abs() < 0.1);
    assert!(value(&samples, "hub_store_reads_total", &[]) >= 1.0);
    let commits = value(&samples, "hub_store_commits_total", &[]);
    assert!(commits >= 1.0, "registering was committed");
    assert!((value(&samples, "hub_store_commit_seconds_bucket", &[("le", "+Inf")]) - commits).abs() < 0.1);
    assert!(value(&samples, "hub_invariant_violations_total", &[]).abs() < 0.1);
    value(&samples, "hub_store_commit_seconds_bucket", &[("le", "0.025")]);
    for (name, labels) in [
        ("hub_messages_in_total", ("result", "received")),
        ("hub_delivery_attempts_total", ("class", "2xx")),
        ("hub_ai_calls_total", ("class", "answered")),
        ("hub_ai_tokens_total", ("kind", "completion")),
        ("hub_deliveries_total", ("outcome", "dead")),
        ("hub_delivery_retries_total", ("state", "parked")),
        ("hub_sends_total", ("outcome", "sent")),
        ("hub_plugin_runs_total", ("outcome", "timeout")),
        ("hub_build_info", ("version", env!("CARGO_PKG_VERSION"))),
    ] {
        value(&samples, name, &[labels]);
    }
    Reply::of(own.get("/healthz").send().await).await.error(404, "NOT_FOUND");
}

#[tokio::test]
async fn the_listener_of_its_own_asks_for_the_token_too() {
    let app = App::new().await;
    let own = metrics_app(app.hub.clone(), app.settings.clone(), Some(TOKEN.into()));
    let own = TestClient::new(own.boxed());
    Reply::of(own.get(PATH).send().await).await.error(401, "UNAUTHORIZED");
    let sent = own.get(PATH).header("X-API-Key", TOKEN).send().await;
    assert_eq!(sent.0.status(), StatusCode::OK);
}
