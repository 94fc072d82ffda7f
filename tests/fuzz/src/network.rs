//! Responses of the chat network to polls, logins and sends. The connector is called as the hub calls it, with a
//! server inside the process.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use hub_core::{
    bots::qr::{qr_svg, qr_text_art},
    egress::{Egress, EgressConfig},
    id::MessageId,
    local_http::{Cut, LocalService},
    network::{
        Batch, Connection, Credentials, InboundMessage, LoginStep, MessageClass, Network, Outgoing,
        SendOutcome,
        ilink::{IlinkConfig, IlinkNetwork},
    },
    random::Random,
    secret::Secret,
    time::{ManualClock, Timestamp},
};
use serde_json::Value;

/// Statuses that mean something to the connector; the first byte of an input picks one.
const STATUSES: [u16; 10] = [200, 204, 302, 400, 401, 404, 429, 500, 502, 524];
/// Dedupe keys stand in an index. They are hashed when they are longer than 200 bytes, with a count behind.
const MAX_KEY: usize = 220;
/// A limit of the hub's own on texts of the network that go into errors and logs: 200 characters and a code.
const MAX_REASON: usize = 260;

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime without I/O")
});

/// Returns the prepared responses, in order.
#[derive(Default)]
struct Script(Mutex<VecDeque<(u16, Bytes)>>);

#[async_trait::async_trait]
impl LocalService for Script {
    async fn call(&self, _request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let (status, body) = next.ok_or(Cut)?;
        Response::builder().status(status).body(body).map_err(|_| Cut)
    }
}

/// A network, and the server that returns the prepared responses. One for all inputs: a client takes milliseconds to
/// make.
struct Stage {
    script: Arc<Script>,
    network: IlinkNetwork,
}

static STAGE: LazyLock<Mutex<Stage>> = LazyLock::new(|| {
    let script = Arc::new(Script::default());
    let service: Arc<dyn LocalService> = script.clone();
    let in_process = HashMap::from([("sim.local".to_owned(), service)]);
    let egress = Egress::new(EgressConfig { in_process, ..EgressConfig::default() });
    let login_base_url = "http://sim.local".parse().expect("a URL");
    let config = IlinkConfig { login_base_url, ..IlinkConfig::default() };
    let clock = ManualClock::new(Timestamp::from_millis(1_790_000_000_000)).into();
    let egress = egress.expect("a client without settings");
    let network = IlinkNetwork::new("sim", config, &egress, clock, Random::seeded(1));
    Mutex::new(Stage { script, network: network.expect("a network") })
});

impl Stage {
    /// The stage with these answers, for one input at a time: tests run in parallel.
    fn set(answers: impl IntoIterator<Item = (u16, Bytes)>) -> MutexGuard<'static, Self> {
        let stage = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
        *stage.answers() = answers.into_iter().collect();
        stage
    }

    fn answers(&self) -> MutexGuard<'_, VecDeque<(u16, Bytes)>> {
        self.script.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connection(&self) -> Arc<dyn Connection> {
        self.network.connect(&Credentials::new("token", "bot@im.bot", "owner@im.wechat"))
    }
}

fn status(data: &[u8]) -> (u16, &[u8]) {
    let (first, rest) = data.split_first().unwrap_or((&b'0', &[]));
    (STATUSES[usize::from(first.wrapping_sub(b'0')) % STATUSES.len()], rest)
}

/// The answer of a poll: every message of it arrives, under keys that a repeat has too, in texts that every
/// database takes.
pub fn batch(data: &[u8]) {
    let (status, body) = status(data);
    let answer = (status, Bytes::copy_from_slice(body));
    let stage = Stage::set([answer.clone(), answer]);
    let receive = || RUNTIME.block_on(stage.connection().receive("cursor"));
    let (Ok(first), Ok(second)) = (receive(), receive()) else { return };
    let keys = |batch: &Batch| batch.messages.iter().map(|m| m.dedupe_key.clone()).collect::<Vec<_>>();
    assert_eq!(keys(&first), keys(&second), "a repeated message looks like a new one");
    assert_eq!(first.cursor, second.cursor);
    if !first.answered {
        return;
    }
    let parsed: Option<Value> = serde_json::from_str(&String::from_utf8_lossy(body)).ok();
    if let Some(messages) = parsed.as_ref().and_then(|answer| answer["msgs"].as_array()) {
        assert_eq!(first.messages.len(), messages.len(), "a message was lost, or made up");
    }
    assert!(first.cursor.as_deref().is_none_or(|cursor| !cursor.is_empty() && storable(cursor)));
    for message in first.messages {
        check_message(message);
    }
}

fn check_message(message: InboundMessage) {
    assert!(!message.dedupe_key.is_empty() && message.dedupe_key.len() <= MAX_KEY);
    let ids = [&message.dedupe_key, &message.from_user_id, &message.to_user_id, &message.user_name];
    let texts = [&message.session_id, &message.group_id, &message.content];
    let parts = message.items.iter().flat_map(|item| [&item.text, &item.file_name]).flatten();
    assert!(ids.into_iter().chain(texts).chain(parts).all(|text| storable(text)));
    assert!(message.network_id.as_deref().is_none_or(storable));
    assert!(message.class == MessageClass::Quarantined || !message.from_user_id.is_empty());
    // Printable: a time that is not is an error of formatting somewhere else.
    assert_eq!(message.sent_at.to_string().parse::<Timestamp>().ok(), Some(message.sent_at));
    if let Some(mut quote) = message.quote {
        let texts = [&quote.network_id, &quote.text, &quote.title, &quote.file_name];
        assert!(texts.into_iter().flatten().all(|text| storable(text)));
        let sent = quote.text.clone();
        quote.resolve(MessageId::from_u128(1), message.kind, &message.content);
        let whole = sent.or(quote.text.clone()).or(quote.file_name.clone()).or(quote.title.clone());
        let meant = quote.meant().unwrap_or_default();
        assert!(whole.unwrap_or_default().contains(meant), "a quote of something else");
    }
}

/// PostgreSQL takes no NUL.
fn storable(text: &str) -> bool {
    !text.contains('\0')
}

/// The two answers of a login, separated by a NUL: nothing sends the hub to a stranger's host, and every text
/// that is short enough can be drawn as a code.
pub fn login(data: &[u8]) {
    let (code, state) = super::halves(data, 0);
    let (status, state) = status(state);
    let good = br#"{"ret":0,"qrcode":"q","qrcode_img_content":"https://weixin.qq.com/x"}"#;
    let code = (200, Bytes::copy_from_slice(code));
    let stage = Stage::set([code, (200, Bytes::from_static(good)), (status, Bytes::copy_from_slice(state))]);
    if let Ok(prompt) = RUNTIME.block_on(stage.network.begin_login(&[])) {
        let text = prompt.qr_text.expose();
        assert_eq!(qr_svg(text).is_ok(), qr_text_art(text).is_ok());
        assert!(text.len() > 2_000 || qr_svg(text).is_ok());
    }
    let Ok(prompt) = RUNTIME.block_on(stage.network.begin_login(&[])) else {
        panic!("a good answer was not read")
    };
    let step = stage.network.login_step(&prompt.state, Some("1234"), Duration::from_secs(1));
    let Ok(progress) = RUNTIME.block_on(step) else { return };
    if let LoginStep::Confirmed(credentials) = &progress.step {
        assert!(!credentials.token.expose().is_empty() && !credentials.account_id.is_empty());
        assert!(storable(&credentials.account_id) && storable(&credentials.owner_user_id));
        assert!(may_be_called(&credentials.base_url), "the token would go to {}", credentials.base_url);
    }
    // The login state names the host of the next request.
    let notes: Value = serde_json::from_str(progress.state.0.expose()).expect("notes are JSON");
    assert!(
        may_be_called(notes["base"].as_str().unwrap_or_default()),
        "the login goes on at {}",
        notes["base"]
    );
    assert!(stage.answers().is_empty(), "an answer was not asked for");
}

/// The rule for hosts (`hub-core/docs/ilink.md#hosts`), implemented a second time: nothing, the server on which the
/// login began, or the network's own hosts over TLS, without a user part.
fn may_be_called(base: &str) -> bool {
    if base.is_empty() {
        return true;
    }
    let Some((scheme, rest)) = base.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.split(':').next().unwrap_or_default();
    let own = ["weixin.qq.com", "wechat.com"]
        .iter()
        .any(|domain| host == *domain || host.strip_suffix(domain).is_some_and(|below| below.ends_with('.')));
    !authority.contains('@') && ((scheme, authority) == ("http", "sim.local") || (scheme == "https" && own))
}

/// The answer to a send: what is taken for sent has an id, what reports an error is never taken for sent, and
/// no text of the network breaks a line or goes on for ever.
pub fn send(data: &[u8]) {
    let (status, body) = status(data);
    let stage = Stage::set([(status, Bytes::copy_from_slice(body))]);
    let outgoing = Outgoing {
        to_user_id: "a@im.wechat".to_owned(),
        context_token: Secret::new("AARz"),
        client_id: "c1".to_owned(),
        text: "hello".to_owned(),
        media: None,
    };
    let outcome = RUNTIME.block_on(stage.connection().send(&outgoing));
    let answer: Value = serde_json::from_str(&String::from_utf8_lossy(body)).unwrap_or_default();
    let refused = |name: &str| answer[name].as_i64().is_some_and(|code| code != 0);
    match outcome {
        SendOutcome::Sent { network_id } => {
            assert!(!network_id.is_empty() && network_id != "0" && storable(&network_id));
            assert!((200..300).contains(&status) && !refused("ret") && !refused("errcode"));
        }
        SendOutcome::AcceptedUnconfirmed => {
            assert!((200..300).contains(&status) && !refused("ret") && !refused("errcode"));
        }
        SendOutcome::Throttled { message, retry_after } => {
            assert!(retry_after.is_none_or(|pause| pause <= Duration::from_secs(3600)));
            assert_plain(&message);
        }
        SendOutcome::WindowClosed(reason)
        | SendOutcome::LoginExpired(reason)
        | SendOutcome::Rejected(reason)
        | SendOutcome::Unknown(reason) => assert_plain(&reason),
        SendOutcome::NotSent(reason) => panic!("an answer came, and the message was not sent: {reason}"),
    }
}

fn assert_plain(reason: &str) {
    let length = reason.chars().count();
    assert!(length <= MAX_REASON && !reason.contains(char::is_control), "{length} characters: {reason:?}");
}
