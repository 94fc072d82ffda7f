//! Life cycle: headers of a long run, and what is in the log.

use std::{
    collections::HashSet,
    io,
    sync::{Arc, Mutex},
};

use hub_core::network::{
    LoginStep, Network,
    ilink::IlinkConfig,
    sim::{Action, Endpoint, Fault, QrAction, SimConfig},
};
use hub_core::time::Clock;
use tracing::subscriber::DefaultGuard;

use super::stage::{Stage, reply_to, within};

/// Log output of this thread, at every level.
pub struct Log {
    text: Arc<Mutex<Vec<u8>>>,
    _guard: DefaultGuard,
}

impl Log {
    pub fn start() -> Self {
        let text: Arc<Mutex<Vec<u8>>> = Arc::default();
        let writer = text.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(move || Writer(writer.clone()))
            .finish();
        Self { text, _guard: tracing::subscriber::set_default(subscriber) }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }
}

struct Writer(Arc<Mutex<Vec<u8>>>);

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn e5_every_request_of_a_long_run_has_its_headers() {
    let config = IlinkConfig { client_version: "2.4.9".into(), ..IlinkConfig::default() };
    let sim = SimConfig { strict_headers: true, ..SimConfig::quick() };
    let stage = Stage::start(sim, config, Clock::system()).await;
    let (bot, message) = stage.bind_and_greet().await;
    for n in 0..50 {
        bot.connection.start().await.unwrap();
        bot.connection.typing(&message.from_user_id, message.context_token.as_ref(), true).await.unwrap();
        bot.connection.send(&reply_to(&message, &format!("hub-{n}"), "hi")).await;
        bot.connection.stop().await;
    }
    let seen = stage.tap.all();
    assert!(seen.len() >= 200);
    assert!(seen.iter().all(|request| request.headers()["ilink-app-clientversion"] == "132105"));
    let numbers: Vec<_> = seen.iter().filter_map(|request| request.headers().get("x-wechat-uin")).collect();
    let distinct: HashSet<_> = numbers.iter().collect();
    assert_eq!(distinct.len(), numbers.len());
    assert_eq!(stage.sim.violations(None), []);
}

#[tokio::test]
async fn e6_no_secret_is_logged() {
    let log = Log::start();
    let stage = Stage::quick().await;
    let prompt = stage.network.begin_login(&["earlier:token".into()]).await.unwrap();
    let qr_text = prompt.qr_text.expose().to_owned();
    let mut state = prompt.state;
    let mut secrets = vec!["earlier:token".to_owned(), qr_text.rsplit('/').next().unwrap().to_owned()];
    stage.sim.qr(&qr_text, QrAction::RequireCode { code: "90210467".into() }).unwrap();
    within(stage.step(&mut state, Some("11223344"))).await;
    within(stage.step(&mut state, Some("90210467"))).await;
    let account = stage.sim.confirm(&qr_text, None).unwrap();
    let LoginStep::Confirmed(credentials) = within(stage.step(&mut state, None)).await else {
        panic!("the login was confirmed");
    };
    let connection = stage.network.connect(&credentials);
    connection.start().await.unwrap();
    stage.sim.say(&account.wx_id, None, "a private word").unwrap();
    let message = within(connection.receive("")).await.unwrap().messages.remove(0);
    connection.typing(&message.from_user_id, message.context_token.as_ref(), true).await.unwrap();
    for endpoint in [Endpoint::SendMessage, Endpoint::GetUpdates, Endpoint::SendTyping, Endpoint::NotifyStop]
    {
        let odd = Action::Error { ret: Some(4711), errcode: None, errmsg: Some("odd".into()), effect: false };
        stage.sim.add_fault(Fault::on(endpoint, odd)).unwrap();
        stage.sim.add_fault(Fault::on(endpoint, Action::Cut { effect: false })).unwrap();
    }
    for _ in 0..3 {
        connection.send(&reply_to(&message, "hub-1", "a private answer")).await;
        let _ = within(connection.receive("")).await;
        let _ = connection.typing(&message.from_user_id, message.context_token.as_ref(), false).await;
        connection.stop().await;
    }
    let token = credentials.token.expose();
    secrets.extend([token.to_owned(), token.rsplit(':').next().unwrap().to_owned()]);
    secrets.push(message.context_token.unwrap().expose().to_owned());
    secrets.extend(["90210467", "11223344", "a private"].map(ToOwned::to_owned));
    let text = log.text();
    assert!(text.contains("4711"), "the log was captured");
    for secret in secrets {
        assert!(!text.contains(&secret), "the log shows {secret}");
    }
}
