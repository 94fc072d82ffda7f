//! Signing in at a provider that lies: the hub is asked by browsers, the provider is in the same process.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use hub_core::{
    accounts::{MAX_RETURN_PATH, OAuthEndpoints, Provider, ProviderKind},
    config::{HubConfig, Registration},
    egress::EgressConfig,
    local_http::{Cut, LocalService},
};
use poem::http;
use serde_json::{Value, json};

use crate::testing::{App, Caller, Reply};

/// A provider that answers what the test tells it to.
#[derive(Clone, Default)]
pub(super) struct Fake(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    token: Option<(u16, String)>,
    profile: Option<(u16, String)>,
    discovery: Option<String>,
    /// Bodies of the token requests.
    requests: Vec<String>,
}

impl Fake {
    fn change(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.0.lock().unwrap());
    }

    /// Who signs in next.
    pub(super) fn person(&self, id: &Value, login: &str) {
        let profile = json!({ "id": id, "login": login, "name": login, "email": "ada@example.org" });
        self.change(|script| script.profile = Some((200, profile.to_string())));
    }
}

#[async_trait]
impl LocalService for Fake {
    async fn call(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, Cut> {
        let mut script = self.0.lock().unwrap();
        let (status, body) = match request.uri().path() {
            "/token" => {
                script.requests.push(String::from_utf8_lossy(request.body()).into_owned());
                let granted = json!({ "access_token": "at", "token_type": "bearer" }).to_string();
                script.token.clone().unwrap_or((200, granted))
            }
            "/profile" => {
                script.profile.clone().unwrap_or((200, json!({ "id": 1, "login": "ada" }).to_string()))
            }
            "/jwks" => (200, json!({ "keys": [] }).to_string()),
            "/.well-known/openid-configuration" => (200, script.discovery.clone().unwrap_or_default()),
            _ => (404, String::new()),
        };
        let response = http::Response::builder().status(status).header("content-type", "application/json");
        Ok(response.body(body.into()).unwrap())
    }
}

fn provider(name: &str) -> Provider {
    let url = |path: &str| format!("http://{name}.test/{path}").parse().unwrap();
    Provider {
        name: name.to_owned(),
        display_name: name.to_owned(),
        client_id: "hub".to_owned(),
        client_secret: Some("shh".into()),
        scopes: vec!["read".to_owned()],
        kind: ProviderKind::OAuth(Box::new(OAuthEndpoints {
            authorize_url: url("authorize"),
            token_url: url("token"),
            profile_url: url("profile"),
        })),
    }
}

async fn app_with(change: impl FnOnce(&mut HubConfig)) -> (App, Fake) {
    let fake = Fake::default();
    let service: Arc<dyn LocalService> = Arc::new(fake.clone());
    let in_process =
        ["one.test", "two.test", "open.test"].map(|host| (host.to_owned(), Arc::clone(&service)));
    let mut config = HubConfig::default();
    let open = Provider::openid("open", "http://open.test", "hub", Some("shh".into()));
    config.providers = vec![provider("one"), provider("two"), open];
    change(&mut config);
    let egress = EgressConfig { in_process: in_process.into(), ..EgressConfig::default() };
    (App::with_hub(|builder| builder.config(config).egress(egress)).await, fake)
}

pub(super) async fn app() -> (App, Fake) {
    app_with(|_| {}).await
}

/// The browser at the provider: what it was sent with.
pub(super) struct Away {
    query: Vec<(String, String)>,
    pub(super) cookie: String,
}

impl Away {
    fn get(&self, name: &str) -> &str {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map_or_else(|| panic!("no {name} in {:?}", self.query), |(_, value)| value)
    }

    /// The path by which the browser comes back.
    pub(super) fn back(&self, provider: &str) -> String {
        format!("/api/auth/callback/{provider}?code=c&state={}", self.get("state"))
    }
}

fn flow_cookie(reply: &Reply) -> String {
    let cookie = reply.header("set-cookie").expect("the browser gets a cookie");
    cookie.split(';').next().unwrap().to_owned()
}

pub(super) async fn start(caller: &Caller<'_>, path: &str) -> Away {
    let reply = caller.get(path).await;
    assert_eq!(reply.response.status(), 303, "{}", reply.json);
    let url: url::Url = reply.header("location").unwrap().parse().unwrap();
    Away { query: url.query_pairs().into_owned().collect(), cookie: flow_cookie(&reply) }
}

async fn back(app: &App, away: &Away, path: &str) -> Reply {
    // The provider is another site, and browsers say so.
    app.stranger().with("Cookie", &away.cookie).with("Sec-Fetch-Site", "cross-site").get(path).await
}

/// Signs in the user that the provider reports, and returns the session cookie.
pub(super) async fn enter(app: &App, provider: &str) -> String {
    let away = start(&app.stranger(), &format!("/api/auth/oauth/{provider}")).await;
    let reply = back(app, &away, &away.back(provider)).await;
    assert_eq!(
        (reply.response.status().as_u16(), reply.header("location")),
        (303, Some("/")),
        "{}",
        reply.json
    );
    flow_cookie(&reply)
}

pub(super) async fn me(app: &App, cookie: &str) -> Value {
    app.stranger().with("Cookie", cookie).get("/api/auth/me").await.data().clone()
}

#[tokio::test]
async fn a_person_signs_in_and_is_the_same_the_next_time() {
    let (app, fake) = app().await;
    fake.person(&json!(583_231), "Octo.Cat");
    let first = me(&app, &enter(&app, "one").await).await;
    assert_eq!((&first["username"], &first["oauth_accounts"]), (&json!("octocat"), &json!(["one"])));
    assert_eq!(
        (&first["email"], &first["has_password"]),
        (&json!(""), &json!(false)),
        "no e-mail is taken over"
    );
    fake.person(&json!(583_231), "renamed");
    assert_eq!(me(&app, &enter(&app, "one").await).await["id"], first["id"]);
    // The same number elsewhere, and the same name, are other people.
    fake.person(&json!(583_231), "octocat");
    let other = me(&app, &enter(&app, "two").await).await;
    assert_ne!(other["id"], first["id"]);
    assert_eq!(other["username"], "octocat-2");
    let requests = fake.0.lock().unwrap().requests.clone();
    let verifier = requests[0].split('&').find_map(|pair| pair.strip_prefix("code_verifier=")).unwrap();
    assert!(verifier.len() >= 43 && requests[0].contains("client_secret=shh"), "{}", requests[0]);
    assert!(requests[0].contains("redirect_uri=http%3A%2F%2Flocalhost%3A9800%2Fapi%2Fauth%2Fcallback%2Fone"));
}

#[tokio::test]
async fn the_way_there_carries_state_and_challenge_and_our_own_address() {
    let (app, _) = app().await;
    let evil = app.stranger().with("Host", "evil.example").with("X-Forwarded-Host", "evil.example");
    let away = start(&evil, "/api/auth/oauth/one").await;
    assert_eq!(away.get("redirect_uri"), "http://localhost:9800/api/auth/callback/one");
    assert_eq!((away.get("code_challenge_method"), away.get("response_type")), ("S256", "code"));
    assert_eq!((away.get("client_id"), away.get("scope")), ("hub", "read"));
    assert_eq!((away.get("code_challenge").len(), away.get("state").len() > 40), (43, true));
    evil.get("/api/auth/oauth/unknown").await.error(404, "NOT_FOUND");
    let names = app.stranger().get("/api/auth/oauth/providers").await.data()["items"].to_string();
    assert!(names.contains("one") && names.contains("open") && !names.contains("shh"), "{names}");
}

#[tokio::test]
async fn state_is_of_one_browser_one_provider_and_one_use() {
    let (app, _) = app().await;
    let away = start(&app.stranger(), "/api/auth/oauth/one").await;
    let other = start(&app.stranger(), "/api/auth/oauth/one").await;
    app.stranger().get(&away.back("one")).await.error(401, "INVALID_TOKEN");
    back(&app, &other, &away.back("one")).await.error(401, "INVALID_TOKEN");
    for path in [
        "/api/auth/callback/one",
        "/api/auth/callback/one?code=c",
        "/api/auth/callback/one?code=c&state=hubf_x",
    ] {
        back(&app, &away, path).await.error(401, "INVALID_TOKEN");
    }
    let path = away.back("one");
    let tries = (0..50).map(|_| back(&app, &away, &path));
    let done = futures_util::future::join_all(tries).await;
    assert_eq!(done.iter().filter(|reply| reply.response.status() == 303).count(), 1);
    assert_eq!(done.iter().filter(|reply| reply.response.status() == 401).count(), 49);
    // A state of one provider at another's callback, where its code would go to the wrong one.
    let away = start(&app.stranger(), "/api/auth/oauth/one").await;
    back(&app, &away, &away.back("two")).await.error(401, "INVALID_TOKEN");
    back(&app, &away, &away.back("one")).await.error(401, "INVALID_TOKEN");
    let late = start(&app.stranger(), "/api/auth/oauth/one").await;
    app.clock.advance(std::time::Duration::from_secs(600));
    back(&app, &late, &late.back("one")).await.error(401, "INVALID_TOKEN");
    // A person is not shown an envelope.
    let person = app.stranger().with("Accept", "text/html,*/*").with("Cookie", &late.cookie);
    let reply = person.get(&late.back("one")).await;
    assert_eq!(reply.header("location"), Some("/login?error=expired"));
}

#[tokio::test]
async fn no_redirect_leads_to_another_host() {
    let (app, _) = app().await;
    let to = async |redirect: &str| {
        let query: String = url::form_urlencoded::byte_serialize(redirect.as_bytes()).collect();
        let away = start(&app.stranger(), &format!("/api/auth/oauth/one?redirect={query}")).await;
        back(&app, &away, &away.back("one")).await.header("location").unwrap().to_owned()
    };
    for path in ["/", "/bots", "/bots?x=//evil.example", "/a/b#c"] {
        assert_eq!(to(path).await, path);
    }
    // The request of an app, with its scopes, its state and its own way back, is as long as this; longer ones are
    // refused before anything begins.
    let start = "/api/auth/oauth/authorize?state=";
    let long = start.to_owned() + &"s".repeat(MAX_RETURN_PATH - start.len());
    assert_eq!(to(&long).await, long);
    let reply = app.stranger().get(&format!("/api/auth/oauth/one?redirect={long}s")).await;
    assert_eq!(reply.error(400, "INVALID_PARAMS")["details"][0]["field"], "redirect");
    for evil in [
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https://evil.example/",
        "javascript:alert(1)",
        "/\t/evil.example",
        "/\n/evil.example",
        "evil",
        "",
        " /",
        "/ x",
        "/\u{0}",
        "http:evil",
        "/\u{2028}",
        "//localhost:9800@evil.example",
        "/%0d%0aSet-Cookie: a=b\r\n",
    ] {
        assert_eq!(to(evil).await, "/", "{evil:?}");
    }
}

#[tokio::test]
async fn a_failing_provider_signs_no_one_in() {
    let (app, fake) = app().await;
    let fails = async |what: &str| {
        let away = start(&app.stranger(), "/api/auth/oauth/one").await;
        let reply = back(&app, &away, &away.back("one")).await;
        assert_eq!(reply.header("location"), Some("/login?error=provider_failed"), "{what}");
        assert!(reply.header("set-cookie").is_none(), "{what}");
    };
    let huge = format!("{{\"id\":1,\"x\":\"{}\"}}", "x".repeat(300 * 1024));
    for (status, body) in [
        (500, "{}"),
        (200, ""),
        (200, "<html>"),
        (200, "{}"),
        (200, "[]"),
        (200, r#"{"access_token":1}"#),
        (200, r#"{"error":"bad_verification_code"}"#),
        (302, "{}"),
        (200, huge.as_str()),
    ] {
        fake.change(|script| script.token = Some((status, body.to_owned())));
        fails(&format!("token: {status} {}", &body[..body.len().min(40)])).await;
    }
    fake.change(|script| script.token = None);
    for (status, body) in
        [(401, "{}"), (200, "null"), (200, r#"{"id":null}"#), (200, huge.as_str()), (200, "[1]")]
    {
        fake.change(|script| script.profile = Some((status, body.to_owned())));
        fails(&format!("profile: {status} {}", &body[..body.len().min(40)])).await;
    }
    let away = start(&app.stranger(), "/api/auth/oauth/one").await;
    let said_no = format!("/api/auth/callback/one?error=access_denied&state={}", away.get("state"));
    assert_eq!(back(&app, &away, &said_no).await.header("location"), Some("/login?error=declined"));
    assert!(!app.hub.context().store.read().await.unwrap().accounts().has_admin().await.unwrap());
}

/// What an issuer says about itself.
fn discovery(issuer: &str) -> String {
    json!({
        "issuer": issuer, "authorization_endpoint": "http://open.test/authorize",
        "token_endpoint": "http://open.test/token", "jwks_uri": "http://open.test/jwks",
        "response_types_supported": ["code"], "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    })
    .to_string()
}

/// The code of one issuer is not taken to another.
#[tokio::test]
async fn an_answer_of_another_issuer_is_not_used() {
    let (app, fake) = app().await;
    fake.change(|script| script.discovery = Some(discovery("http://open.test")));
    for (iss, exchanges) in
        [("http%3A%2F%2Fevil.test", 0), ("http%3A%2F%2Fopen.test%2F", 0), ("http%3A%2F%2Fopen.test", 1)]
    {
        let away = start(&app.stranger(), "/api/auth/oauth/open").await;
        let reply = back(&app, &away, &format!("{}&iss={iss}", away.back("open"))).await;
        // Rightly named it is asked, and has no ID token to show here.
        assert_eq!(reply.header("location"), Some("/login?error=provider_failed"), "{iss}");
        assert_eq!(fake.0.lock().unwrap().requests.len(), exchanges, "{iss}");
    }
}

#[tokio::test]
async fn an_issuer_has_to_be_who_it_says() {
    let (app, fake) = app().await;
    for found in
        [String::new(), "{}".to_owned(), discovery("http://evil.test"), discovery("http://open.test/")]
    {
        fake.change(|script| script.discovery = Some(found.clone()));
        app.stranger().get("/api/auth/oauth/open").await.error(502, "UPSTREAM_ERROR");
    }
}

#[tokio::test]
async fn closed_registration_admits_only_existing_users() {
    let (app, fake) = app_with(|config| config.registration = Registration::Closed).await;
    fake.person(&json!(1), "ada");
    let away = start(&app.stranger(), "/api/auth/oauth/one").await;
    back(&app, &away, &away.back("one")).await.error(403, "FORBIDDEN");
    let away = start(&app.stranger(), "/api/auth/oauth/one").await;
    let person = app.stranger().with("Accept", "text/html").with("Cookie", &away.cookie);
    assert_eq!(person.get(&away.back("one")).await.header("location"), Some("/login?error=forbidden"));
}

#[tokio::test]
async fn of_fifty_who_come_with_one_new_account_all_are_the_same_user() {
    let (app, fake) = app().await;
    fake.person(&json!(7), "ada");
    let all = futures_util::future::join_all((0..50).map(|_| enter(&app, "one"))).await;
    let mut ids = Vec::new();
    for cookie in all {
        ids.push(me(&app, &cookie).await["id"].to_string());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
}

/// A way back is walked once, however many walk it at the same time.
#[tokio::test]
async fn of_fifty_who_come_back_with_one_state_one_is_signed_in() {
    let (app, fake) = app().await;
    fake.person(&json!(7), "ada");
    let away = start(&app.stranger(), "/api/auth/oauth/one").await;
    let path = away.back("one");
    let all = futures_util::future::join_all((0..50).map(|_| back(&app, &away, &path))).await;
    let (inside, outside): (Vec<_>, Vec<_>) =
        all.iter().partition(|reply| reply.header("set-cookie").is_some());
    let [one] = inside[..] else { panic!("{} were signed in", inside.len()) };
    assert_eq!(one.header("location"), Some("/"));
    for reply in outside {
        reply.error(401, "INVALID_TOKEN");
    }
    let sessions = app.stranger().with("Cookie", &flow_cookie(one)).get("/api/auth/sessions").await;
    assert_eq!(sessions.data()["items"].as_array().unwrap().len(), 1);
}

/// A return address with every spelling of another origin that browsers know.
#[tokio::test]
async fn no_spelling_leads_to_another_host() {
    let (app, _) = app().await;
    let starts =
        ["", "/", "//", "///", "/\\", "\\", "\\/", "/\t/", "/\r\n/", " //", "/ /", "/%09/", "/.//", "/..//"];
    let hosts = [
        "evil.example",
        "evil.example/path",
        "localhost:9800@evil.example",
        "evil.example%2f..",
        "ｅｖｉｌ.example",
        "[::1]",
        "127.1",
        "evil.example:80",
        "@evil.example",
        ".evil.example",
        "evil.example#/",
        "evil.example?/",
    ];
    let schemes = ["http:", "https://", "HTTPS:", "javascript:", "data:text/html,", "//user:pass@", "blob:"];
    let spelled = starts.iter().flat_map(|start| hosts.iter().map(move |host| format!("{start}{host}")));
    let schemed = schemes.iter().flat_map(|scheme| hosts.iter().map(move |host| format!("{scheme}{host}")));
    let all: Vec<String> = spelled.chain(schemed).collect();
    assert!(all.len() >= 200, "{}", all.len());
    let ours: url::Url = "http://localhost:9800/login".parse().unwrap();
    for redirect in &all {
        let query: String = url::form_urlencoded::byte_serialize(redirect.as_bytes()).collect();
        let away = start(&app.stranger(), &format!("/api/auth/oauth/one?redirect={query}")).await;
        let reply = back(&app, &away, &away.back("one")).await;
        let to = ours.join(reply.header("location").unwrap()).unwrap();
        assert_eq!(to.origin(), ours.origin(), "{redirect:?} leads to {to}");
    }
}
