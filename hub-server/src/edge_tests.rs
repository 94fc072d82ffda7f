//! The edge around endpoints that misbehave in every way.

use std::sync::Arc;

use hub_core::{Error, Result};
use poem::{Body, Endpoint, EndpointExt, Route, endpoint::make, http::Method, test::TestClient};
use poem_openapi::{
    Object, OpenApi, OpenApiService,
    param::{Path, Query},
};
use serde_json::{Value, json};

use crate::{
    credentials::User,
    edge::Edge,
    envelope::{ApiResult, Empty, ok},
    metrics_app,
    rate_limit::RateLimits,
    routes::RouteTable,
    testing::{App, Reply},
    wire::{self, Text},
};

struct Faulty;

#[derive(Object)]
#[oai(deny_unknown_fields)]
struct Note {
    text: Text<1, 5>,
    times: Option<u32>,
    /// What is inside.
    inner: Option<Inner>,
    more_inner: Option<Vec<Inner>>,
}

#[derive(Object)]
#[oai(deny_unknown_fields)]
struct Inner {
    bot: Option<hub_core::id::BotId>,
    size: Option<u8>,
}

#[expect(clippy::unused_async, reason = "poem-openapi takes async methods only")]
#[OpenApi]
impl Faulty {
    #[oai(path = "/api/bots/:id/channels/:channel_id", method = "get")]
    async fn ids(
        &self,
        _id: Path<hub_core::id::BotId>,
        _channel_id: Path<hub_core::id::ChannelId>,
    ) -> ApiResult<Empty> {
        ok(Empty {})
    }

    #[oai(path = "/api/query", method = "get")]
    async fn query(&self, limit: Query<Option<wire::Limit>>) -> ApiResult<Empty> {
        wire::page_request("things", limit.0, None)?;
        ok(Empty {})
    }

    #[oai(path = "/api/notes", method = "post")]
    async fn note(&self, note: wire::Body<Note>) -> ApiResult<Note> {
        ok(note.0)
    }

    #[oai(path = "/api/mine", method = "post")]
    async fn mine(&self, _user: User, _note: wire::Body<Note>) -> ApiResult<Empty> {
        ok(Empty {})
    }

    #[oai(path = "/api/panic", method = "get")]
    async fn panic(&self) -> ApiResult<Empty> {
        panic!("secret detail")
    }

    #[oai(path = "/api/broken", method = "get")]
    async fn broken(&self) -> ApiResult<Empty> {
        let broken: Result<()> = Err(Error::internal("secret detail"));
        broken?;
        ok(Empty {})
    }
}

fn faulty(app: &App) -> TestClient<impl Endpoint<Output = poem::Response>> {
    let limits = Arc::new(RateLimits::new(&app.settings.rate_limits, &app.hub.context().clock));
    let inner = Route::new()
        .at(
            "/text",
            make(|request| async move {
                Err::<(), _>(poem::error::BadRequest(std::io::Error::other(request.uri().to_string())))
            }),
        )
        .at(
            "/console/panic",
            make(|_| async move {
                assert!(std::hint::black_box(false), "secret detail");
                Ok::<_, poem::Error>(())
            }),
        )
        .at("/*path", OpenApiService::new(Faulty, "faulty", "0"))
        .data(app.hub.clone())
        .data(app.settings.clone())
        .data(Arc::clone(&limits));
    let routes = RouteTable::new::<Faulty>(&[]);
    TestClient::new(Edge::new(inner, app.hub.clone(), app.settings.clone(), limits, routes))
}

async fn ask<E: Endpoint>(client: &TestClient<E>, method: Method, path: &str, body: Option<Value>) -> Reply {
    let request = client.request(method, path);
    Reply::of(match body {
        Some(body) => request.body_json(&body).send().await,
        None => request.send().await,
    })
    .await
}

#[tokio::test]
async fn a_panic_of_a_page_is_a_page_without_its_detail() {
    let app = App::new().await;
    let client = faulty(&app);
    for headers in [&[][..], &[("X-Fragment", "main")]] {
        let request = client.request(Method::GET, "/console/panic");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let reply = Reply::of(request.send().await).await;
        let page = String::from_utf8(reply.bytes.clone()).unwrap();
        assert_eq!(reply.response.status(), 500, "{page}");
        assert!(
            page.contains("INTERNAL_ERROR") && page.contains(reply.header("x-request-id").unwrap()),
            "{page}"
        );
        assert!(page.contains("href=\"/console\"") && !page.contains("secret detail"), "{page}");
    }
}

const BOT: &str = "bot_01K9ZC3V5T8QK4X7M2N6P0RSWA";
const CHANNEL: &str = "ch_01K9ZC3V5T8QK4X7M2N6P0RSWA";

#[tokio::test]
async fn https_responses_have_strict_transport_security() {
    let secure = App::at("https://hub.example").await;
    for path in ["/login", "/api/auth/me", "/nothing", "/healthz"] {
        let reply = secure.stranger().get(path).await;
        assert_eq!(reply.header("strict-transport-security"), Some("max-age=31536000"), "{path}");
    }
    let plain = App::new().await;
    assert_eq!(plain.stranger().get("/login").await.header("strict-transport-security"), None);
}

#[tokio::test]
async fn swapped_or_foreign_ids_name_nothing() {
    let app = App::new().await;
    let client = faulty(&app);
    let at = |bot: &str, channel: &str| format!("/api/bots/{bot}/channels/{channel}");
    ask(&client, Method::GET, &at(BOT, CHANNEL), None).await.data();
    for path in [at(CHANNEL, BOT), at(BOT, BOT), at("1", CHANNEL), at(&BOT.to_lowercase(), CHANNEL)] {
        let reply = ask(&client, Method::GET, &path, None).await;
        let message = reply.error(404, "NOT_FOUND")["message"].as_str().unwrap();
        assert!(["bot not found", "channel not found"].contains(&message), "{message}");
    }
    let reply = ask(&client, Method::PUT, &at(BOT, CHANNEL), None).await;
    reply.error(405, "METHOD_NOT_ALLOWED");
    assert_eq!(reply.header("allow"), Some("GET, HEAD"));
}

#[tokio::test]
async fn a_bad_query_names_the_parameter() {
    let app = App::new().await;
    let client = faulty(&app);
    for limit in ["0", "201", "x", "-1"] {
        let reply = ask(&client, Method::GET, &format!("/api/query?limit={limit}"), None).await;
        let details = &reply.error(400, "INVALID_PARAMS")["details"];
        assert_eq!(*details, json!([{"field": "limit", "reason": "must be between 1 and 200"}]));
    }
    ask(&client, Method::GET, "/api/query?limit=200", None).await.data();
}

#[tokio::test]
async fn a_bad_body_names_every_broken_field() {
    let app = App::new().await;
    let client = faulty(&app);
    let fields = |reply: &Reply| -> Vec<String> {
        let details = reply.error(400, "INVALID_PARAMS")["details"].as_array().unwrap().clone();
        details.iter().map(|detail| detail["field"].as_str().unwrap().to_owned()).collect()
    };
    for (body, expected) in [
        (json!({"text": 1}), vec!["text"]),
        (json!({"text": true, "times": "x"}), vec!["text", "times"]),
        (json!({"times": 1}), vec!["text"]),
        (json!({"text": "a", "more": 1}), vec!["more"]),
        (json!({"text": "abcdef"}), vec!["text"]),
        (json!({"text": ""}), vec!["text"]),
        (json!({"text": "a", "times": -1}), vec!["times"]),
        (json!({"text": "a", "times": 1.5}), vec!["times"]),
        (json!({"text": "a", "times": 4_294_967_296_u64}), vec!["times"]),
        (json!({"texts": "a", "times": 1.5}), vec!["text", "times", "texts"]),
        (json!({"text": "a", "inner": {"bot": "b", "size": 256}}), vec!["inner.bot", "inner.size"]),
        (json!({"text": "a", "inner": {"size": "b", "other": 1}}), vec!["inner.size", "inner.other"]),
        (json!({"text": "", "inner": {"size": 1}}), vec!["text"]),
        (json!({"text": "a", "more_inner": [{}, {"size": -1}]}), vec!["more_inner[1].size"]),
        (json!([]), vec!["body"]),
        (json!("text"), vec!["body"]),
    ] {
        let reply = ask(&client, Method::POST, "/api/notes", Some(body.clone())).await;
        assert_eq!(fields(&reply), expected, "{body}");
        assert!(!reply.json.to_string().contains("occurred while parsing"), "{}", reply.json);
    }
    let good = ask(&client, Method::POST, "/api/notes", Some(json!({"text": "abc", "times": null}))).await;
    assert_eq!(good.data()["text"], "abc");
}

#[tokio::test]
async fn a_repeated_name_is_refused_at_every_depth() {
    let app = App::new().await;
    let client = faulty(&app);
    for (text, expected) in [
        (r#"{"text":"a","text":"a"}"#, vec!["text"]),
        (r#"{"text":"a","times":1,"t\u0069mes":2,"times":3}"#, vec!["times"]),
        (r#"{"text":"a","inner":{"size":1,"size":1}}"#, vec!["inner.size"]),
        (r#"{"text":"","more_inner":[{},{"size":1,"size":1}]}"#, vec!["text", "more_inner[1].size"]),
    ] {
        let request = client.post("/api/notes").content_type("application/json").body(text);
        let reply = Reply::of(request.send().await).await;
        let details = reply.error(400, "INVALID_PARAMS")["details"].as_array().unwrap().clone();
        let fields: Vec<_> = details.iter().map(|detail| detail["field"].as_str().unwrap()).collect();
        assert_eq!(fields, expected, "{text}");
        assert_eq!(details.last().unwrap()["reason"], "appears more than once", "{text}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_json_has_an_error_of_its_own() {
    let app = App::new().await;
    let client = faulty(&app);
    let post = |kind: &'static str, text: &'static str| {
        client.post("/api/notes").header("content-type", kind).body(text).send()
    };
    Reply::of(post("text/plain", "{\"text\":\"a\"}").await).await.error(415, "UNSUPPORTED_MEDIA_TYPE");
    Reply::of(post("application/x-www-form-urlencoded", "text=a").await)
        .await
        .error(415, "UNSUPPORTED_MEDIA_TYPE");
    for text in ["{", "{\"text\":\"a\"} x", "\u{feff}{}", "{\"text\":NaN}"] {
        Reply::of(post("application/json", text).await).await.error(400, "INVALID_PARAMS");
    }
    Reply::of(client.post("/api/notes").send().await).await.error(400, "INVALID_PARAMS");
}

#[tokio::test]
async fn a_body_of_unknown_length_stops_at_the_cap() {
    let app = App::with(|values| values.max_body = 1000).await;
    let client = faulty(&app);
    let chunked = |chunks: usize| {
        let chunk = || Ok::<_, std::io::Error>(vec![b' '; 100]);
        let stream = futures_util::stream::iter((0..chunks).map(move |_| chunk()));
        client
            .post("/api/notes")
            .content_type("application/json")
            .body(Body::from_bytes_stream(stream))
            .send()
    };
    Reply::of(chunked(11).await).await.error(413, "PAYLOAD_TOO_LARGE");
    // Within the cap it is read, and found not to be JSON.
    Reply::of(chunked(10).await).await.error(400, "INVALID_PARAMS");
}

#[tokio::test]
async fn strangers_are_refused_before_their_body_is_read() {
    let app = App::new().await;
    let client = faulty(&app);
    let post = || client.post("/api/mine").body_json(&json!({"nonsense": 1}));
    Reply::of(post().send().await).await.error(401, "UNAUTHORIZED");
    for (name, value) in [("authorization", "Bearer x"), ("x-api-key", "x")] {
        let reply = Reply::of(post().header(name, value).header("cookie", "session=x").send().await).await;
        reply.error(401, "INVALID_TOKEN");
    }
    let cookie = Reply::of(post().header("cookie", "session=x").send().await).await;
    cookie.error(401, "UNAUTHORIZED");
    let basic = post().header("authorization", "Basic x").header("cookie", "session=x");
    let basic = Reply::of(basic.send().await).await;
    assert_eq!(
        basic.error(401, "UNAUTHORIZED")["message"],
        cookie.json["error"]["message"],
        "it is passed over"
    );
}

#[tokio::test]
async fn faults_of_ours_show_nothing_but_the_request_id() {
    let app = App::new().await;
    let client = faulty(&app);
    for path in ["/api/panic", "/api/broken"] {
        let reply = ask(&client, Method::GET, path, None).await;
        reply.error(500, "INTERNAL_ERROR");
        assert!(!reply.json.to_string().contains("secret detail"), "{}", reply.json);
    }
    ask(&client, Method::GET, "/text", None).await.error(400, "INVALID_PARAMS");
    let page = TestClient::new(metrics_app(app.hub.clone(), app.settings.clone(), None));
    let counted = page.get("/metrics").send().await.0.into_body().into_string().await.unwrap();
    assert!(counted.contains("\nhub_http_panics_total 1\n"), "{counted}");
}

#[tokio::test]
async fn a_session_counts_on_our_own_pages_until_it_ends() {
    let app = App::new().await;
    let client = faulty(&app);
    let ada = app.user("ada").await;
    let post = |headers: Vec<(String, String)>| {
        let request = client.post("/api/mine").body_json(&json!({"text": "a"}));
        headers.into_iter().fold(request, |request, (name, value)| request.header(name, value)).send()
    };
    Reply::of(post(ada.headers.clone()).await).await.data();
    let cookie_only = vec![ada.headers[0].clone()];
    Reply::of(post(cookie_only.clone()).await).await.error(403, "FORBIDDEN");
    let mut cross_site = cookie_only.clone();
    cross_site.push(("sec-fetch-site".to_owned(), "cross-site".to_owned()));
    Reply::of(post(cross_site).await).await.error(403, "FORBIDDEN");
    let mut with_key = ada.headers.clone();
    with_key.push(("x-api-key".to_owned(), "bad".to_owned()));
    Reply::of(post(with_key).await).await.error(401, "INVALID_TOKEN");
    app.clock.advance(std::time::Duration::from_secs(8 * 24 * 60 * 60));
    Reply::of(post(ada.headers.clone()).await).await.error(401, "UNAUTHORIZED");
}
