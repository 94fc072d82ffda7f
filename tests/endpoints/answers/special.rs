//! Failures that an operation has for reasons of its own.

use hub_core::{
    accounts::Provider,
    apps::MAX_INSTALLATIONS,
    network::sim::{Action, Endpoint, Fault, QrAction},
    testing::Authenticator,
};
use poem::http::Method;
use serde_json::{Value, json};

use super::Ledger;
use crate::{
    endpoints::{
        operation::{Operation, operations},
        stage::{Answer, ORIGIN, PASSWORD, Stage, script},
        table::TABLE,
    },
    support::receiver::Reply,
};

/// Failures that need an authenticator, a provider or two people at once: operation, status, and the test that
/// provokes it.
pub const ELSEWHERE: &[(&str, u16, &str)] = &[
    (
        "finishExternalLogin",
        403,
        "hub-server/src/api/external_tests.rs closed_registration_admits_only_existing_users",
    ),
    (
        "finishExternalLogin",
        409,
        "hub-server/src/api/external_link_tests.rs an_account_is_linked_by_its_user_only",
    ),
    (
        "confirmIlinkLogin",
        409,
        "tests/gateway/refused.rs uploads_are_permitted_for_one_size_and_person_and_the_sink_limits_its_clients",
    ),
    ("deletePlugin", 409, "hub-server/src/api/plugins/tests.rs a_plugin_in_use_is_not_deleted"),
];

/// The pair of RFC 7636, appendix B.
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// Sends requests to operations and records the responses.
struct Asked<'a> {
    stage: &'a Stage,
    ledger: &'a mut Ledger,
    operations: Vec<Operation>,
}

impl<'a> Asked<'a> {
    fn of(stage: &'a Stage, ledger: &'a mut Ledger) -> Self {
        Self { stage, ledger, operations: operations() }
    }

    fn operation(&self, id: &str) -> Operation {
        self.operations.iter().find(|operation| operation.id == id).unwrap().clone()
    }

    /// Calls an operation as ada, or as a program with its key, and expects this status. Returns the data.
    async fn told(&mut self, id: &str, body: Value, status: u16) -> Value {
        self.at(id, &[], "", body, status).await
    }

    /// The same about other things, and with a query.
    async fn at(
        &mut self,
        id: &str,
        others: &[(&str, &str)],
        query: &str,
        body: Value,
        status: u16,
    ) -> Value {
        let operation = self.operation(id);
        let mut ids = self.stage.ids(&operation);
        for (name, other) in others {
            ids.iter_mut().filter(|(known, _)| known == name).for_each(|(_, id)| *id = other);
        }
        let path = operation.with(&ids);
        let path = if query.is_empty() { path } else { format!("{path}?{query}") };
        let answer = self.stage.ask_saying(&operation, &path, &self.stage.ada, &body).await;
        self.ledger.expect(&operation, &answer, status, &format!("{query} {body}"));
        answer.json["data"].clone()
    }

    /// A call with these headers alone.
    async fn with(&mut self, id: &str, query: &str, headers: &[(&str, &str)], body: Value, status: u16) {
        let operation = self.operation(id);
        let path = operation.with(&self.stage.ids(&operation));
        let mut request = self.stage.client.request(operation.method.clone(), format!("{path}?{query}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if operation.method != Method::GET {
            request = request.body_json(&body);
        }
        let answer = Answer::of(request.send().await.0).await;
        self.ledger.expect(&operation, &answer, status, &format!("{query} {headers:?} {body}"));
    }
}

pub async fn all(ledger: &mut Ledger) {
    Box::pin(right_calls(ledger)).await;
    Box::pin(accounts(ledger)).await;
    Box::pin(ways_to_sign_in(ledger)).await;
    Box::pin(providers(ledger)).await;
    Box::pin(bots(ledger)).await;
    Box::pin(plugins(ledger)).await;
    Box::pin(apps(ledger)).await;
    Box::pin(questions(ledger)).await;
    Box::pin(storage(ledger)).await;
    Box::pin(administration(ledger)).await;
}

/// Valid calls get responses that match the documented schema, without an additional field.
async fn right_calls(ledger: &mut Ledger) {
    let stage = Stage::new().await;
    let asked = Asked::of(&stage, ledger);
    let mut succeeded = 0;
    for entry in TABLE {
        let operation = asked.operation(entry.operation);
        let cookie = match &*operation.id {
            _ if operation.is_open() => "",
            "logout" => &stage.spare,
            _ => &stage.ada,
        };
        let answer = stage.ask_as(&operation, &stage.path(&operation), cookie).await;
        succeeded += usize::from(answer.status == 200);
        asked.ledger.expect(&operation, &answer, entry.answers, "a right call");
    }
    assert!(succeeded > 100, "{succeeded} calls succeeded");
}

async fn accounts(ledger: &mut Ledger) {
    let stage = Stage::new().await;
    let mut asked = Asked::of(&stage, ledger);
    let taken = json!({ "username": "ada", "password": PASSWORD });
    asked.with("register", "", &[], taken.clone(), 409).await;
    asked.with("login", "", &[], taken, 401).await;
    let invited = json!({ "username": "carol", "password": PASSWORD, "setup_token": stage.code("hubt") });
    asked.with("register", "", &[], invited, 401).await;
    let bad_key = [("X-API-Key", "hubu_unknown")];
    asked.with("beginPasskeyRegistration", "", &bad_key, json!({}), 401).await;
    asked.with("beginPasskeyRegistration", "", &[], json!({ "username": "ada" }), 409).await;
    asked.with("getQrLoginStatus", "qr_id=hubq_x&poll_secret=hubp_x", &[], Value::Null, 401).await;
    // A name that was given away meanwhile.
    let begun = json!({ "username": "zoe" });
    let begin = stage.client.post("/api/auth/passkey/register/begin").body_json(&begun).send().await.0;
    let cookie = begin.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let begun = Answer::of(begin).await.json["data"].clone();
    let mut key = Authenticator::new(ORIGIN, 1).create(&begun["publicKey"]);
    key["flow_id"] = begun["flow_id"].clone();
    asked.with("register", "", &[], json!({ "username": "zoe", "password": PASSWORD }), 200).await;
    asked.with("finishPasskeyRegistration", "", &[("Cookie", &cookie)], key, 409).await;
    // Two at once: the other was first.
    let change = asked.operation("changePassword");
    let new = json!({ "old_password": "correct horse battery", "new_password": "a better passphrase" });
    let twice = async || stage.ask_saying(&change, "/api/user/password", &stage.ada, &new).await;
    let (one, other) = tokio::join!(twice(), twice());
    let refused = if one.status == 200 { other } else { one };
    asked.ledger.expect(&change, &refused, 409, "two at once");
}

async fn ways_to_sign_in(ledger: &mut Ledger) {
    let stage = Stage::new().await;
    let mut asked = Asked::of(&stage, ledger);
    // The last one stays.
    stage.run("UPDATE users SET password_hash = NULL").await;
    asked.told("unlinkAccount", Value::Null, 200).await;
    asked.told("deletePasskey", Value::Null, 409).await;
    stage
        .run(
            "INSERT INTO external_accounts (provider, subject, user_id, username, avatar_url, created_at)
                SELECT 'github', '1', user_id, 'ada', '', 0 FROM passkeys;
             DELETE FROM passkeys",
        )
        .await;
    asked.told("unlinkAccount", Value::Null, 409).await;
}

async fn providers(ledger: &mut Ledger) {
    let absent = Provider::openid("github", "http://nobody.test", "hub", Some("shh".into()));
    let stage = Box::pin(Stage::configured(|config| config.providers = vec![absent])).await;
    let mut asked = Asked::of(&stage, ledger);
    asked.with("startExternalLogin", "", &[], Value::Null, 502).await;
    asked.with("startExternalLogin", "link=true", &[], Value::Null, 401).await;
    let cookie = format!("session={}", stage.ada);
    let forged = [("Cookie", &*cookie), ("Origin", "https://evil.example")];
    asked.with("startExternalLogin", "link=true", &forged, Value::Null, 403).await;
    let bad_key = [("X-API-Key", "hubu_unknown")];
    asked.with("finishExternalLogin", "code=c&state=s", &bad_key, Value::Null, 401).await;
}

async fn bots(ledger: &mut Ledger) {
    let stage = Stage::new().await;
    let mut asked = Asked::of(&stage, ledger);
    let file = |size: u64| format!("filename=a.png&content_type=image/png&size={size}");
    asked.at("getUploadUrl", &[], &file(1 << 30), Value::Null, 413).await;
    let unknown = "bnd_01BX5ZZKBKACTAV9WEVGEMMVRZ";
    asked.told("confirmBind", json!({ "bind_id": unknown, "wait_ms": 0 }), 404).await;
    asked.at("getChannelLogin", &[], &format!("bind_id={unknown}&wait_ms=0"), Value::Null, 404).await;
    asked.told("createChannel", json!({ "name": "first", "handle": "taken" }), 200).await;
    asked.told("updateChannel", json!({ "handle": "taken" }), 409).await;
    asked.told("replayTrace", json!({ "sink": "ai" }), 409).await;
    // A file that cannot be fetched.
    stage.hub.receiver.always("/broken", Reply::status(500));
    stage.run("UPDATE contacts SET window_opened_at = 1790000000000").await;
    let url = "http://receiver.test/broken";
    let send = json!({ "to_user_id": "ann", "media": { "url": url } });
    asked.told("sendMessage", send.clone(), 502).await;
    asked.told("sendChannelMessage", send, 502).await;
    for id in ["sendAppMessage", "sendAppMessageOlder"] {
        asked.told(id, json!({ "to_user_id": "ann", "type": "image", "url": url }), 502).await;
    }
    stage.run("UPDATE bots SET status = 'expired'").await;
    asked.told("reconnectBot", Value::Null, 409).await;
    // A person writes to a bot that no one polls for.
    for account in stage.hub.sim.accounts() {
        let message = json!({ "wx_id": account.account.wx_id, "text": "hello" });
        for count in [1_000, 1] {
            while stage.hub.sim.inject_all(vec![message.clone(); count]).is_ok() {}
        }
    }
    asked.told("sendSimMessage", json!({ "text": "hello" }), 409).await;
    asked.told("setChannelTyping", json!({ "to_user_id": "ann", "status": "typing" }), 409).await;
    // A network that gives no code, neither the first nor a fresh one.
    let sim = &stage.hub.sim;
    let bind = asked.told("startBind", json!({ "network": "sim" }), 200).await;
    let login = asked.told("startChannelLogin", Value::Null, 200).await;
    for code in [&bind["qr_text"], &login["qr_text"]] {
        sim.qr(code.as_str().unwrap(), QrAction::Expire).unwrap();
    }
    let broken = Action::Html { status: 502, effect: false };
    sim.add_fault(Fault::on(Endpoint::GetBotQrcode, broken).always()).unwrap();
    asked.told("startBind", json!({ "network": "sim" }), 502).await;
    asked.told("startChannelLogin", Value::Null, 502).await;
    asked.told("confirmBind", json!({ "bind_id": bind["bind_id"], "wait_ms": 0 }), 502).await;
    let query = format!("bind_id={}&wait_ms=0", login["bind_id"].as_str().unwrap());
    asked.at("getChannelLogin", &[], &query, Value::Null, 502).await;
}

async fn plugins(ledger: &mut Ledger) {
    let stage = Stage::new().await;
    let mut asked = Asked::of(&stage, ledger);
    asked.told("submitPlugin", json!({ "script": script("another") }), 200).await;
    asked.told("submitPlugin", json!({ "script": script("another") }), 409).await;
    let pending = asked.told("getPlugin", Value::Null, 200).await;
    asked.told("rejectPlugin", json!({ "reason": "no" }), 200).await;
    asked.told("rejectPlugin", json!({ "reason": "no" }), 409).await;
    asked.told("approvePlugin", json!({}), 409).await;
    asked.told("changeChannelPlugin", json!({ "version": pending["version_id"] }), 409).await;
    asked.told("uninstallPlugin", Value::Null, 200).await;
    asked.told("installPlugin", json!({ "plugin_id": stage.plugin }), 409).await;
}

async fn apps(ledger: &mut Ledger) {
    let stage = Stage::new().await;
    let mut asked = Asked::of(&stage, ledger);
    asked.told("requestAppListing", Value::Null, 200).await;
    asked.told("requestAppListing", Value::Null, 409).await;
    asked.told("approveApp", Value::Null, 200).await;
    asked.told("approveApp", Value::Null, 409).await;
    asked.told("rejectApp", json!({ "reason": "no" }), 200).await;
    asked.told("rejectApp", json!({ "reason": "no" }), 409).await;
    let bare = asked.told("createApp", json!({ "name": "Bare" }), 200).await;
    let bare = bare["id"].as_str().unwrap().to_owned();
    asked.at("verifyAppUrl", &[("id", &bare)], "", Value::Null, 409).await;
    asked.told("installApp", json!({ "app_id": bare, "handle": "taken" }), 200).await;
    asked.told("changeInstalledApp", json!({ "handle": "taken" }), 409).await;
}

/// An app that asks for a bot by way of its owner.
async fn questions(ledger: &mut Ledger) {
    let stage = Stage::new().await;
    let mut asked = Asked::of(&stage, ledger);
    let bot = stage.known("bot").to_owned();
    let question = |app: &str| {
        json!({ "client_id": app, "redirect_uri": "http://localhost:3000/cb", "code_challenge": CHALLENGE,
            "code_challenge_method": "S256", "bot_id": bot, "state": "s" })
    };
    let query = |question: &Value| {
        let pairs = question.as_object().unwrap().iter();
        pairs.map(|(name, value)| format!("{name}={}", value.as_str().unwrap())).collect::<Vec<_>>().join("&")
    };
    let unknown = question("app_01BX5ZZKBKACTAV9WEVGEMMVRZ");
    asked.at("authorizeApp", &[], &query(&unknown), Value::Null, 404).await;
    let decided = |mut question: Value, consent: &Value| {
        question["consent"] = consent.clone();
        question["decision"] = "allow".into();
        question
    };
    asked.told("decideApp", decided(unknown, &json!("x")), 404).await;
    let code = json!({ "grant_type": "authorization_code", "code": stage.code("hubo"),
        "redirect_uri": "http://localhost:3000/cb", "client_id": "app_01BX5ZZKBKACTAV9WEVGEMMVRZ",
        "code_verifier": "v".repeat(43) });
    asked.with("exchangeAppCode", "", &[], code.clone(), 401).await;
    let nobody = [("id", "app_01BX5ZZKBKACTAV9WEVGEMMVRZ")];
    asked.at("exchangeAppCodeOlder", &nobody, "", code, 404).await;
    // The bot gets as many apps as it may have: ada's two, as many more as a user may have, and then bob's.
    asked.told("installApp", json!({ "app_id": stage.spare_app }), 200).await;
    for number in 2..MAX_INSTALLATIONS {
        let app = asked.told("createApp", json!({ "name": format!("App {number}") }), 200).await;
        asked.told("installApp", json!({ "app_id": app["id"] }), 200).await;
    }
    let create = asked.operation("createApp");
    let new =
        json!({ "name": "One more", "redirect_uris": ["http://localhost:3000/cb"], "scopes": ["bot:read"] });
    let another = stage.ask_saying(&create, "/api/apps", &stage.bob, &new).await.json["data"].clone();
    let last = question(another["id"].as_str().unwrap());
    let seen = asked.at("authorizeApp", &[], &query(&last), Value::Null, 200).await;
    let led = asked.told("decideApp", decided(last.clone(), &seen["consent"]), 200).await;
    let code = led["redirect_to"].as_str().and_then(|to| to.split_once("code=")).unwrap().1;
    let code = json!({ "grant_type": "authorization_code", "code": code.split('&').next(),
        "redirect_uri": "http://localhost:3000/cb", "client_id": last["client_id"], "code_verifier": VERIFIER });
    asked.with("exchangeAppCode", "", &[], code.clone(), 409).await;
    let app = [("id", last["client_id"].as_str().unwrap())];
    asked.at("exchangeAppCodeOlder", &app, "", code, 409).await;
}

/// No room for another file.
async fn storage(ledger: &mut Ledger) {
    let stage = Stage::configured(|config| config.media.max_per_owner = 1).await;
    let mut asked = Asked::of(&stage, ledger);
    let file = "filename=a.png&content_type=image/png&size=5";
    asked.at("getUploadUrl", &[], file, Value::Null, 409).await;
}

async fn administration(ledger: &mut Ledger) {
    let stage = Stage::new().await;
    let mut asked = Asked::of(&stage, ledger);
    asked.told("testAiConfig", Value::Null, 409).await;
    // Ada is the last administrator.
    let me = asked.told("getMe", Value::Null, 200).await;
    let me = me["id"].as_str().unwrap().to_owned();
    stage.run(&format!("UPDATE users SET role = 'member' WHERE id <> '{me}'")).await;
    asked.at("updateUser", &[("id", &me)], "", json!({ "role": "member" }), 409).await;
    asked.at("deleteUser", &[("id", &me)], "", Value::Null, 409).await;
    asked.at("streamEvents", &[], "bot_id=bot_01BX5ZZKBKACTAV9WEVGEMMVRZ", Value::Null, 404).await;
    let bob = format!("session={}", stage.bob);
    let own_page = [("Cookie", &*bob), ("Origin", ORIGIN)];
    asked.with("getSimReceiver", "", &own_page, Value::Null, 404).await;
    asked.with("setSimReceiver", "", &own_page, json!({ "mode": "answer" }), 404).await;
    asked.with("streamEvents", "scope=all", &[("Cookie", &bob)], Value::Null, 403).await;
}
