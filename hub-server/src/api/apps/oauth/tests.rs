//! OAuth through the whole application: Bob's app, Eve's bot, and Eve who decides.

use data_encoding::BASE64URL_NOPAD;
use hub_core::id::BotId;
use poem::http::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use url::Url;

use crate::testing::{App, Caller, Reply};

const BOT: BotId = BotId::from_u128(1);
const BOBS_BOT: BotId = BotId::from_u128(2);
const CALLBACK: &str = "https://app.example/cb?keep=1";
const VERIFIER: &str = "a-verifier-of-forty-three-characters-or-more";

struct Fixture {
    app: App,
}

struct Scene<'a> {
    fixture: &'a Fixture,
    bob: Caller<'a>,
    eve: Caller<'a>,
    client_id: String,
    client_secret: String,
    webhook_secret: String,
}

impl Fixture {
    async fn new() -> Self {
        // Many exchanges come from one address here.
        Self { app: App::with_hub(|builder| builder).await }
    }

    async fn bot(&self, bot: BotId, owner: &str) {
        let insert = format!(
            "INSERT INTO bots (id, owner_id, name, network, status, status_since, wx_id, owner_user_id,
                credentials, credentials_rev, cursor, config_rev, lease_fence, created_at)
            SELECT '{bot}', id, '<b>Shop</b>', 'sim', 'online', 0, '', '{bot}', '', 0, '', 0, 0, 0 FROM users
            WHERE username = '{owner}'"
        );
        let store = &self.app.hub.context().store;
        store.write(move |tx| Box::pin(async move { tx.channels().execute(insert).await })).await.unwrap();
    }

    async fn scene(&self) -> Scene<'_> {
        let (bob, eve) = (self.app.user("bob").await, self.app.user("eve").await);
        self.bot(BOT, "eve").await;
        self.bot(BOBS_BOT, "bob").await;
        let made = bob
            .post(
                "/api/apps",
                &json!({ "name": "Weather <i>", "redirect_uris": [CALLBACK], "description": "Tells <script>",
                    "scopes": ["message:read", "message:write", "bot:read"] }),
            )
            .await;
        let made = made.data();
        let of = |name: &str| text(made, name).to_owned();
        let (client_id, client_secret, webhook_secret) =
            (of("id"), of("client_secret"), of("webhook_secret"));
        Scene { fixture: self, bob, eve, client_id, client_secret, webhook_secret }
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} in {value}"))
}

fn challenge(verifier: &str) -> String {
    BASE64URL_NOPAD.encode(&Sha256::digest(verifier))
}

fn query(fields: &Value) -> String {
    let pairs = fields.as_object().unwrap().iter().map(|(name, value)| (name, value.as_str().unwrap()));
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

impl Scene<'_> {
    /// The parameters of a right question.
    fn question(&self) -> Value {
        json!({ "client_id": self.client_id, "redirect_uri": CALLBACK, "response_type": "code",
            "state": "s t&a=te", "bot_id": BOT.to_string(), "scope": "message:read bot:read",
            "code_challenge": challenge(VERIFIER), "code_challenge_method": "S256" })
    }

    async fn ask(&self, question: &Value) -> Reply {
        self.eve.get(&format!("/api/auth/oauth/authorize?{}", query(question))).await
    }

    async fn decide(&self, question: &Value, consent: &str, decision: &str) -> Reply {
        let mut body = question.clone();
        (body["consent"], body["decision"]) = (consent.into(), decision.into());
        self.eve.post("/api/auth/oauth/authorize", &body).await
    }

    /// The code of a right question that Eve allows.
    async fn code(&self) -> String {
        let question = self.question();
        let authorization = self.ask(&question).await;
        let decided = self.decide(&question, text(authorization.data(), "consent"), "allow").await;
        parameter(text(decided.data(), "redirect_to"), "code").unwrap()
    }

    fn exchange_body(&self, code: &str) -> Value {
        json!({ "grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK,
            "client_id": self.client_id, "code_verifier": VERIFIER })
    }

    async fn exchange(&self, body: &Value) -> Reply {
        self.fixture.app.stranger().post("/api/auth/oauth/token", body).await
    }

    async fn opens(&self, token: &str) -> u16 {
        let bearer = format!("Bearer {token}");
        let app = self.fixture.app.stranger().with("Authorization", &bearer);
        app.get("/bot/v1/bot").await.response.status().as_u16()
    }
}

fn parameter(url: &str, name: &str) -> Option<String> {
    let url = Url::parse(url).unwrap();
    url.query_pairs().find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
}

#[track_caller]
fn rfc_error(reply: &Reply, status: u16, error: &str) {
    assert_eq!(
        (reply.response.status().as_u16(), reply.json["error"].as_str()),
        (status, Some(error)),
        "{}",
        reply.json
    );
    assert!(reply.json["error_description"].is_string());
}

#[tokio::test]
async fn an_app_gets_onto_a_bot_by_its_owners_decision() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene().await;
    let question = scene.question();
    let authorization = scene.ask(&question).await;
    let authorization = authorization.data();
    assert_eq!(
        (text(&authorization["app"], "name"), text(&authorization["bot"], "id")),
        ("Weather <i>", &*BOT.to_string())
    );
    assert_eq!(
        text(&authorization["abilities"][0], "words"),
        "read the messages that people write to this bot"
    );
    // Looking installs nothing.
    let installed = || scene.eve.get("/api/bots/bot_00000000000000000000000001/apps");
    assert_eq!(installed().await.data()["items"], json!([]));
    let decided = scene.decide(&question, text(authorization, "consent"), "allow").await;
    let to = text(decided.data(), "redirect_to");
    assert!(to.starts_with("https://app.example/cb?keep=1&code=hubo_"), "{to}");
    assert_eq!(parameter(to, "state").unwrap(), "s t&a=te");
    assert_eq!(installed().await.data()["items"], json!([]));
    let granted = scene.exchange(&scene.exchange_body(&parameter(to, "code").unwrap())).await;
    assert_eq!(granted.response.status(), 200, "{}", granted.json);
    let granted = &granted.json;
    assert_eq!((text(granted, "token_type"), text(granted, "scope")), ("bearer", "message:read bot:read"));
    assert_eq!(
        (text(granted, "bot_id"), text(granted, "webhook_secret")),
        (&*BOT.to_string(), &*scene.webhook_secret)
    );
    let token = text(granted, "access_token");
    assert_eq!(scene.opens(token).await, 200);
    let there = installed().await;
    assert_eq!(there.data()["items"][0]["id"], granted["installation_id"]);
    // Asking again brings another token, and what is granted now.
    let again = scene.exchange(&scene.exchange_body(&scene.code().await)).await;
    assert_eq!(again.json["installation_id"], granted["installation_id"], "{}", again.json);
    assert_eq!((scene.opens(token).await, scene.opens(text(&again.json, "access_token")).await), (401, 200));
}

#[tokio::test]
async fn the_page_names_app_bot_and_abilities_and_its_form_answers() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene().await;
    let path = format!("/api/auth/oauth/authorize?{}", query(&scene.question()));
    let browser = scene.eve.clone().with("Accept", "text/html");
    let page = browser.get(&path).await;
    let policy = page.header("content-security-policy").unwrap();
    assert_eq!(
        policy,
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self' https://app.example; \
         frame-ancestors 'none'"
    );
    assert_eq!(page.header("referrer-policy"), Some("same-origin"));
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let html = String::from_utf8(page.bytes).unwrap();
    for shown in [
        "Weather &lt;i&gt;",
        "Tells &lt;script&gt;",
        "&lt;b&gt;Shop&lt;/b&gt;",
        "bob",
        "see this bot's name and status",
        "https://app.example",
    ] {
        assert!(html.contains(shown), "{shown}: {html}");
    }
    for bad in ["<script", "<i>", "<b>", " on", "javascript:", "send messages as this bot"] {
        assert!(!html.contains(bad) || (bad == " on" && !html.contains(" onclick")), "{bad}: {html}");
    }
    // Deny is as easy as allow.
    assert_eq!(html.matches("<button type=\"submit\" name=\"decision\"").count(), 2);
    let hidden = |name: &str| {
        let rest = html.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap();
        rest.split('"').next().unwrap().replace("&amp;", "&")
    };
    let mut form = scene.question();
    assert_eq!(hidden("state"), "s t&a=te");
    form["consent"] = hidden("consent").into();
    let mut submit = async |decision: &str| {
        form["decision"] = decision.into();
        let body = query(&form);
        browser
            .send(Method::POST, "/api/auth/oauth/authorize", |request| {
                request.content_type("application/x-www-form-urlencoded").body(body)
            })
            .await
    };
    let denied = submit("deny").await;
    assert_eq!(denied.response.status(), 303, "{}", denied.json);
    let to = denied.header("location").unwrap();
    assert_eq!(
        (parameter(to, "error").as_deref(), parameter(to, "state").as_deref()),
        (Some("access_denied"), Some("s t&a=te"))
    );
    assert_eq!(parameter(to, "code"), None);
    let allowed = submit("allow").await;
    assert!(parameter(allowed.header("location").unwrap(), "code").unwrap().starts_with("hubo_"));
    // A browser without a session is redirected to the sign-in page and back.
    let stranger = fixture.app.stranger().with("Accept", "text/html").get(&path).await;
    assert_eq!(stranger.response.status(), 303);
    let sign_in = Url::parse("http://hub.test").unwrap().join(stranger.header("location").unwrap()).unwrap();
    assert_eq!(
        (sign_in.path(), parameter(sign_in.as_str(), "redirect").as_deref()),
        ("/login", Some(&*path))
    );
    fixture.app.stranger().get(&path).await.error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn the_page_speaks_chinese_to_who_prefers_it() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene().await;
    let browser =
        scene.eve.clone().with("Accept", "text/html").with("Accept-Language", "zh-CN,zh;q=0.9,en;q=0.8");
    let mut question = scene.question();
    let ask = async |question: &Value| {
        let page = browser.get(&format!("/api/auth/oauth/authorize?{}", query(question))).await;
        assert_eq!(page.header("vary"), Some("Accept-Language"));
        String::from_utf8(page.bytes).unwrap()
    };
    let html = ask(&question).await;
    for shown in [
        "lang=\"zh-CN\"",
        "要将 Weather &lt;i&gt; 安装到您的机器人吗？",
        "查看此机器人的名称和状态",
        "拒绝",
        "允许",
    ] {
        assert!(html.contains(shown), "{shown}: {html}");
    }
    for english in ["Let ", "Deny", "Allow", "see this bot"] {
        assert!(!html.contains(english), "{english}: {html}");
    }
    question["redirect_uri"] = "https://evil.example".into();
    assert!(ask(&question).await.contains("此授权请求无效"));
}

#[tokio::test]
async fn a_bot_is_chosen_when_the_app_names_none() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene().await;
    let mut question = scene.question();
    question["bot_id"] = "".into();
    let authorization = scene.ask(&question).await;
    let bots = authorization.data()["bots"].as_array().unwrap();
    assert_eq!((bots.len(), text(&bots[0], "id")), (1, &*BOT.to_string()));
    let consent = text(authorization.data(), "consent").to_owned();
    let none = scene.decide(&question, &consent, "allow").await;
    assert_eq!(none.error(400, "INVALID_PARAMS")["details"][0]["field"], "bot_id");
    question["bot_id"] = BOBS_BOT.to_string().into();
    scene.decide(&question, &consent, "allow").await.error(404, "NOT_FOUND");
    question["bot_id"] = BOT.to_string().into();
    let allowed = scene.decide(&question, &consent, "allow").await;
    assert!(parameter(text(allowed.data(), "redirect_to"), "code").is_some());
}

#[tokio::test]
async fn nothing_leads_to_an_address_that_was_not_registered() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene().await;
    let browser = scene.eve.clone().with("Accept", "text/html");
    for uri in [
        "https://app.example/cb",
        "https://app.example/cb?keep=1&x=2",
        "https://app.example/cb/?keep=1",
        "https://app.example/CB?keep=1",
        "https://APP.example/cb?keep=1",
        "https://app.example:443/cb?keep=1",
        "http://app.example/cb?keep=1",
        "https://user@app.example/cb?keep=1",
        "https://app.example/cb?keep=1#x",
        "https://app.example/x/../cb?keep=1",
        "https://app.example.evil.example/cb?keep=1",
        "https://evil.example/cb?keep=1",
        "//evil.example",
        "javascript:alert(1)",
    ] {
        let mut question = scene.question();
        question["redirect_uri"] = uri.into();
        let path = format!("/api/auth/oauth/authorize?{}", query(&question));
        let refused = scene.bob.get(&path).await;
        assert_eq!(refused.error(400, "INVALID_PARAMS")["details"][0]["field"], "redirect_uri", "{uri}");
        assert_eq!(refused.header("location"), None);
        // To others the unlisted app does not exist.
        assert_eq!(scene.ask(&question).await.error(404, "NOT_FOUND")["message"], "app not found", "{uri}");
        let page = browser.get(&path).await;
        assert_eq!((page.response.status().as_u16(), page.header("location")), (404, None), "{uri}");
        assert!(page.header("content-type").unwrap().starts_with("text/html"));
        scene.decide(&question, "x", "deny").await.error(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn an_unlisted_app_does_not_exist_for_people_without_a_bot() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene().await;
    let fay = fixture.app.user("fay").await;
    let mut question = scene.question();
    question.as_object_mut().unwrap().remove("bot_id");
    let path = format!("/api/auth/oauth/authorize?{}", query(&question));
    assert_eq!(fay.get(&path).await.error(404, "NOT_FOUND")["message"], "app not found");
    let own = format!("/api/apps/{}/oauth/authorize", scene.client_id);
    let parameters = query(&json!({ "state": "s", "code_challenge": challenge(VERIFIER) }));
    fay.get(&format!("{own}?{parameters}")).await.error(404, "NOT_FOUND");
    scene.ask(&question).await.data();
    scene.bob.get(&path).await.data();
}

#[tokio::test]
async fn a_question_that_is_not_right_is_refused() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene().await;
    for (field, value) in [
        ("code_challenge_method", "plain"),
        ("code_challenge_method", "s256"),
        ("code_challenge_method", ""),
        ("code_challenge", "short"),
        ("code_challenge", &*"A".repeat(44)),
        ("code_challenge", ""),
        ("response_type", "token"),
        ("scope", "message:read contact:read"),
        ("scope", "everything"),
        ("state", &*"x".repeat(513)),
    ] {
        let mut question = scene.question();
        question[field] = value.into();
        let refused = scene.ask(&question).await;
        assert_eq!(refused.error(400, "INVALID_PARAMS")["details"][0]["field"], field, "{value}");
    }
    for missing in ["code_challenge", "code_challenge_method"] {
        let mut question = scene.question();
        question.as_object_mut().unwrap().remove(missing);
        scene.ask(&question).await.error(400, "INVALID_PARAMS");
    }
    for (field, value) in [
        ("client_id", "app_01BX5ZZKBKACTAV9WEVGEMMVRZ".to_owned()),
        ("client_id", "x".to_owned()),
        ("bot_id", BOBS_BOT.to_string()),
        ("bot_id", "bot_01BX5ZZKBKACTAV9WEVGEMMVRZ".to_owned()),
    ] {
        let mut question = scene.question();
        question[field] = value.into();
        scene.ask(&question).await.error(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn only_who_has_seen_the_question_answers_it() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene().await;
    let question = scene.question();
    let authorization = scene.ask(&question).await;
    let consent = text(authorization.data(), "consent").to_owned();
    scene.decide(&question, "", "allow").await.error(403, "FORBIDDEN");
    // More than was shown, another address, another state.
    for (field, value) in [
        ("scope", "message:read message:write bot:read"),
        ("state", "other"),
        ("code_challenge", &*challenge("another")),
    ] {
        let mut changed = question.clone();
        changed[field] = value.into();
        scene.decide(&changed, &consent, "allow").await.error(403, "FORBIDDEN");
    }
    // Another user, and a page of another site.
    let mut body = question.clone();
    (body["consent"], body["decision"]) = (consent.clone().into(), "allow".into());
    let path = "/api/auth/oauth/authorize";
    scene.bob.post(path, &body).await.error(404, "NOT_FOUND");
    let mut evil = scene.eve.clone();
    evil.headers.retain(|(name, _)| name != "Origin");
    evil.clone().with("Origin", "https://evil.example").post(path, &body).await.error(403, "FORBIDDEN");
    evil.with("Sec-Fetch-Site", "cross-site").post(path, &body).await.error(403, "FORBIDDEN");
    scene.decide(&question, &consent, "allow").await.data();
}

#[tokio::test]
async fn a_code_is_good_for_its_app_its_address_and_its_verifier_for_a_minute() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene().await;
    let other = scene.bob.post("/api/apps", &json!({ "name": "Other", "redirect_uris": [CALLBACK] })).await;
    let other = text(other.data(), "id").to_owned();
    let code = scene.code().await;
    let with = |field: &str, value: &str| {
        let mut body = scene.exchange_body(&code);
        body[field] = value.into();
        body
    };
    let without = |field: &str| {
        let mut body = scene.exchange_body(&code);
        body.as_object_mut().unwrap().remove(field);
        body
    };
    for field in ["grant_type", "code", "redirect_uri", "client_id", "code_verifier"] {
        rfc_error(&scene.exchange(&without(field)).await, 400, "invalid_request");
    }
    rfc_error(&scene.exchange(&with("grant_type", "password")).await, 400, "unsupported_grant_type");
    rfc_error(
        &scene.exchange(&with("client_id", "app_01BX5ZZKBKACTAV9WEVGEMMVRZ")).await,
        401,
        "invalid_client",
    );
    rfc_error(&scene.exchange(&with("client_secret", "huby_wrong")).await, 401, "invalid_client");
    // What does not belong to the code uses it up.
    for (field, value) in [
        ("client_id", &*other),
        ("redirect_uri", "https://app.example/cb"),
        ("code_verifier", &*"v".repeat(43)),
    ] {
        let burnt = scene.code().await;
        let mut body = scene.exchange_body(&burnt);
        body[field] = value.into();
        rfc_error(&scene.exchange(&body).await, 400, "invalid_grant");
        let right = scene.exchange(&scene.exchange_body(&burnt)).await;
        rfc_error(&right, 400, "invalid_grant");
        assert!(
            right.json["error_description"].as_str().unwrap().contains("used"),
            "{field}: {}",
            right.json
        );
    }
    rfc_error(&scene.exchange(&with("code_verifier", "short")).await, 400, "invalid_request");
    rfc_error(&scene.exchange(&with("code_verifier", &"v".repeat(129))).await, 400, "invalid_request");
    rfc_error(&scene.exchange(&with("code", "hubo_unknown")).await, 400, "invalid_grant");
    // A request that is not complete has not used it up; a form and HTTP Basic do as well.
    let mut form = scene.exchange_body(&code);
    form.as_object_mut().unwrap().remove("client_id");
    form["resource"] = "ignored".into();
    let basic =
        data_encoding::BASE64.encode(format!("{}:{}", scene.client_id, scene.client_secret).as_bytes());
    let server = fixture.app.stranger().with("Authorization", &format!("Basic {basic}"));
    let body = query(&form);
    let granted = server
        .send(Method::POST, "/api/auth/oauth/token", |request| {
            request.content_type("application/x-www-form-urlencoded").body(body)
        })
        .await;
    assert_eq!(granted.response.status(), 200, "{}", granted.json);
    // To the second, by the hub's clock alone: what the app's says is not asked.
    let last = scene.code().await;
    fixture.app.clock.advance(std::time::Duration::from_secs(59));
    assert_eq!(scene.exchange(&scene.exchange_body(&last)).await.response.status(), 200);
    let late = scene.code().await;
    fixture.app.clock.advance(std::time::Duration::from_secs(60));
    rfc_error(&scene.exchange(&scene.exchange_body(&late)).await, 400, "invalid_grant");
}

#[tokio::test]
async fn of_twenty_exchanges_one_wins_and_a_replay_ends_its_token() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene().await;
    let body = scene.exchange_body(&scene.code().await);
    let first = scene.exchange(&body).await;
    let token = text(&first.json, "access_token").to_owned();
    assert_eq!(scene.opens(&token).await, 200);
    rfc_error(&scene.exchange(&body).await, 400, "invalid_grant");
    assert_eq!(scene.opens(&token).await, 401, "a reused code leaves no token");
    let body = scene.exchange_body(&scene.code().await);
    let all = futures_util::future::join_all((0..20).map(|_| scene.exchange(&body))).await;
    let (won, lost): (Vec<_>, Vec<_>) = all.iter().partition(|reply| reply.response.status() == 200);
    assert_eq!((won.len(), lost.len()), (1, 19));
    for reply in lost {
        rfc_error(reply, 400, "invalid_grant");
    }
    assert_eq!(scene.opens(text(&won[0].json, "access_token")).await, 401, "and the other 19 have ended it");
    // A token that came later by another code is not touched by an old code.
    let fresh = scene.exchange(&scene.exchange_body(&scene.code().await)).await;
    rfc_error(&scene.exchange(&body).await, 400, "invalid_grant");
    assert_eq!(scene.opens(text(&fresh.json, "access_token")).await, 200);
}

#[tokio::test]
async fn a_large_body_is_refused_before_it_is_read() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene().await;
    // The client is unauthenticated until the code is verified.
    let mut body = scene.exchange_body(&scene.code().await);
    body["resource"] = "x".repeat(20_000).into();
    scene.exchange(&body).await.error(413, "PAYLOAD_TOO_LARGE");
    body["resource"] = "x".into();
    assert_eq!(scene.exchange(&body).await.response.status(), 200, "the code is as good as before");
    let mut question = scene.question();
    question["scope"] = "message:read ".repeat(400).into();
    let refused = scene.ask(&question).await;
    assert_eq!(refused.error(400, "INVALID_PARAMS")["details"][0]["field"], "scope");
    let consent = text(scene.ask(&scene.question()).await.data(), "consent").to_owned();
    let mut question = scene.question();
    question["state"] = "x".repeat(2_000_000).into();
    scene.decide(&question, &consent, "allow").await.error(413, "PAYLOAD_TOO_LARGE");
}

#[tokio::test]
async fn published_apps_find_both_under_their_own_paths() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene().await;
    let path = format!("/api/apps/{}/oauth", scene.client_id);
    let parameters =
        query(&json!({ "bot_id": BOT.to_string(), "state": "s", "code_challenge": challenge(VERIFIER) }));
    let authorization = scene.eve.get(&format!("{path}/authorize?{parameters}")).await;
    assert_eq!(text(authorization.data(), "redirect_uri"), CALLBACK);
    let mut decision = scene.question();
    decision["state"] = "s".into();
    decision["scope"] = "message:read message:write bot:read".into();
    let decided = scene.decide(&decision, text(authorization.data(), "consent"), "allow").await;
    let code = parameter(text(decided.data(), "redirect_to"), "code").unwrap();
    let exchange = format!("{path}/exchange");
    let server = fixture.app.stranger();
    let wrong = json!({ "code": code, "code_verifier": "v".repeat(43) });
    server.post(&exchange, &wrong).await.error(401, "INVALID_TOKEN");
    let right = json!({ "code": scene.code().await, "code_verifier": VERIFIER });
    let granted = server.post(&exchange, &right).await;
    let (bare, granted) = (&granted.json, granted.data());
    assert_eq!(
        (text(granted, "bot_id"), text(granted, "webhook_secret")),
        (&*BOT.to_string(), &*scene.webhook_secret)
    );
    for field in ["installation_id", "app_token", "bot_id", "webhook_secret"] {
        assert_eq!(text(bare, field), text(granted, field), "published apps read bare fields");
    }
    let token = text(granted, "app_token").to_owned();
    assert_eq!(scene.opens(&token).await, 200);
    server.post(&exchange, &right).await.error(401, "INVALID_TOKEN");
    assert_eq!(scene.opens(&token).await, 401);
}
