//! The scenario that every client runs through. The person acts over the control API, as another process would. The
//! events of the client are compared with the records of the simulator.

use std::{collections::HashSet, io::Write};

use data_encoding::BASE64;
use hub_core::{
    network::{
        ilink::IlinkConfig,
        sim::{Account, SimConfig, ViolationKind},
    },
    time::Clock,
};
use reqwest::Method;
use serde_json::{Value, json};
use url::Url;

use super::foreign::{Foreign, SampleFiles};
use crate::{ilink::stage::Stage, support::http::Caller};

const PAIRING_CODE: &str = "407311";

/// Command and capabilities of a client.
pub struct Client {
    pub command: std::process::Command,
    pub sim: SimConfig,
    /// It knows the states of a login with a pairing code.
    pub pairs: bool,
    /// Polls that end without a message before the person writes: one, or none where a client takes the server's hold
    /// time for its own limit and loses that race.
    pub idle_polls: usize,
    pub media: Media,
    /// Notices that its token has ended.
    pub notices_expiry: bool,
    /// Announces its poller.
    pub announces: bool,
    /// Known violations of the protocol.
    pub violations: HashSet<ViolationKind>,
}

/// Media capabilities of a client.
pub enum Media {
    /// Ask for an upload, and no more.
    AskOnly,
    /// Upload, send and download; the file goes with this caption.
    Both { caption: Option<&'static str> },
}

/// The story of one client.
struct Told {
    stage: Stage,
    person: Caller,
    client: Foreign,
    samples: SampleFiles,
}

/// Tells the story and answers the stage with everything that passed.
pub async fn tell(client: Client) -> Stage {
    let Client { command, sim, pairs, idle_polls, media, notices_expiry, announces, violations } = client;
    let stage = Stage::start(sim, IlinkConfig::default(), Clock::system()).await;
    let base = format!("http://{}", stage.address);
    let samples = SampleFiles::create();
    let foreign = Foreign::start(command, &base, &samples);
    let mut told = Told { stage, person: Caller::stranger(&base), client: foreign, samples };

    let account = told.log_in(pairs).await;
    if idle_polls > 0 {
        told.stage.tap.wait_answered("getupdates", idle_polls).await;
    }
    let context_token = told.converse(&account).await;
    match media {
        Media::AskOnly => {
            let why = "this client has no upload and no download of its own";
            let _ = writeln!(std::io::stderr(), "{why}: sending and fetching media are SKIPPED");
            let allowed = told.client.expect("upload_allowed").await;
            assert!(!allowed["param"].as_str().unwrap().is_empty());
        }
        Media::Both { caption } => told.exchange_media(&account, &context_token, caption).await,
    }
    told.say_bye(&account).await;
    if notices_expiry {
        told.expire(&account).await;
    }
    told.client.expect("stopped").await;

    let Told { stage, client, .. } = told;
    client.end().await;
    for endpoint in ["notifystart", "notifystop"] {
        assert_eq!(stage.tap.requests(endpoint).len(), usize::from(announces), "{endpoint}");
    }
    let recorded = stage.sim.violations(None);
    assert_eq!(recorded.iter().map(|v| v.kind).collect::<HashSet<_>>(), violations, "{recorded:?}");
    stage
}

impl Told {
    async fn control(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let (status, answer, _) = self.person.call(method, path, body).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    async fn act(&self, name: &str, body: Value) -> Value {
        self.control(Method::POST, &format!("/_sim/{name}"), Some(body)).await
    }

    /// L2: scanned and confirmed; with a pairing code L6, where the first number is wrong.
    async fn log_in(&mut self, pairs: bool) -> Account {
        let qr = self.client.expect("qr").await;
        let text = &qr["text"];
        if pairs {
            self.act("qr", json!({"qr_text": text, "action": "require_code", "code": PAIRING_CODE})).await;
            for code in ["1", PAIRING_CODE] {
                self.client.expect("code_wanted").await;
                self.client.type_line(code).await;
            }
        } else {
            self.act("scan", json!({"qr_text": text})).await;
        }
        self.client.expect("scanned").await;
        let bound = self.act("confirm", json!({"qr_text": text})).await;
        let field = |name: &str| bound[name].as_str().unwrap().to_owned();
        let account = Account { wx_id: field("wx_id"), owner_user_id: field("owner_user_id") };
        let login = self.client.expect("logged_in").await;
        assert_eq!(login["bot_id"], account.wx_id);
        assert_eq!(login["user_id"], account.owner_user_id);
        assert_eq!(login["base_url"], format!("http://{}", self.stage.address));
        account
    }

    /// Writes as the person, and checks that the client receives exactly that.
    async fn say(&mut self, account: &Account, text: &str) -> Value {
        let ids = self.act("messages", json!({"wx_id": account.wx_id, "text": text})).await;
        let received = self.client.expect("received").await;
        assert_eq!(received["text"], text);
        assert_eq!(
            received["message_id"], ids["message_ids"][0],
            "an id above 2^53 is kept to the last digit"
        );
        assert_eq!(received["user_id"], account.owner_user_id);
        received
    }

    /// R1, S1, T1: a text in, the sign that someone is typing, a text out. Answers the permission it went with.
    async fn converse(&mut self, account: &Account) -> String {
        let received = self.say(account, "héllo, 你好 👋 \"quoted\"\nsecond line").await;
        let context_token = received["context_token"].as_str().unwrap().to_owned();
        let replied = self.client.expect("replied").await;
        let sent = self.outbound(account, 0).await.remove(0);
        assert_eq!(sent["text"], "you said: héllo, 你好 👋 \"quoted\"\nsecond line");
        assert_eq!(sent["to_user_id"], account.owner_user_id);
        assert_eq!(sent["client_id"], replied["client_id"]);
        if let Some(told) = replied.get("message_id") {
            assert_eq!(sent["message_id"], *told);
        }
        assert_right(&sent, &context_token);
        context_token
    }

    /// U1, M1, M2: the client sends a file and an image, the person sends both back.
    async fn exchange_media(&mut self, account: &Account, context_token: &str, caption: Option<&str>) {
        self.client.expect("sent_media").await;
        let count = 2 + usize::from(caption.is_some());
        let mut sent = self.outbound(account, 1).await;
        assert_eq!(sent.len(), count, "{sent:?}");
        for one in &sent {
            assert_right(one, context_token);
        }
        if let Some(caption) = caption {
            assert_eq!(sent.remove(0)["text"], caption);
        }
        let kinds: Vec<_> = sent.iter().map(|one| one["media"]["kind"].clone()).collect();
        assert_eq!(kinds, ["file", "image"]);
        assert_eq!(sent[0]["media"]["file_name"], "offer v2.pdf");
        for (one, original) in sent.iter().zip([&self.samples.file, &self.samples.image]) {
            let mut item = one["raw"]["item_list"][0].clone();
            if one["media"]["kind"] == "image" {
                self.as_newer_servers_do(&mut item["image_item"]);
            }
            self.act("messages", json!({"wx_id": account.wx_id, "items": [item]})).await;
            let downloaded = self.client.expect("downloaded").await;
            assert_eq!(downloaded["kind"], one["media"]["kind"]);
            let bytes = std::fs::read(downloaded["path"].as_str().unwrap()).unwrap();
            assert!(bytes == std::fs::read(original).unwrap(), "the same bytes come back");
        }
    }

    /// M1, M3: an image that is found by its complete URL alone, with its key in both places.
    fn as_newer_servers_do(&self, image: &mut Value) {
        let media = &mut image["media"];
        let param = media["encrypt_query_param"].as_str().unwrap();
        let mut url: Url = format!("http://{}/c2c/download", self.stage.address).parse().unwrap();
        url.query_pairs_mut().append_pair("encrypted_query_param", param);
        let key = BASE64.decode(media["aes_key"].as_str().unwrap().as_bytes()).unwrap();
        media["full_url"] = json!(url.as_str());
        media["encrypt_query_param"] = json!("not-to-be-used");
        image["aeskey"] = json!(String::from_utf8(key).unwrap());
    }

    async fn say_bye(&mut self, account: &Account) {
        self.say(account, "bye").await;
        let typing = self.control(Method::GET, &format!("/_sim/typing?wx_id={}", account.wx_id), None).await;
        let signs: Vec<_> =
            typing["items"].as_array().unwrap().iter().map(|t| (&t["user_id"], &t["on"])).collect();
        let user = &json!(account.owner_user_id);
        assert_eq!(signs, [(user, &json!(true)), (user, &json!(false))]);
    }

    /// Ends the token while a poll is held: the client is notified in that poll.
    async fn expire(&mut self, account: &Account) {
        self.act("expire", json!({"wx_id": account.wx_id})).await;
        self.client.expect("expired").await;
    }

    /// Sends of the client after a number.
    async fn outbound(&self, account: &Account, after: u64) -> Vec<Value> {
        let path = format!("/_sim/outbound?wx_id={}&after={after}", account.wx_id);
        let list = self.control(Method::GET, &path, None).await;
        list["items"].as_array().unwrap().clone()
    }
}

/// A send that the receiver sees as it was meant.
fn assert_right(sent: &Value, context_token: &str) {
    assert_eq!(sent["context_token"], context_token);
    assert_eq!(sent["shown"], true);
    assert_eq!(sent["note"], Value::Null);
    assert_eq!(sent["repeats"], 0);
    assert_ne!(sent["opened"], false);
}
