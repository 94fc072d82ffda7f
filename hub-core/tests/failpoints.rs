//! At every commit, claim, send and record the hub fails, panics, stalls or dies, while messages go both ways.
//! Afterwards nothing is lost, made up, reordered or repeated without a reason.
//!
//! The points are one registry per process, so these tests are a separate program. Crates are not built again when the
//! whole workspace is named:
//!
//! ```text
//! cargo test --workspace --test failpoints
//! HUB_TEST_POINTS=outbox. cargo test …                       # only the points whose name has this in it
//! ```
//!
//! To die is played inside the process: the task stays at the point permanently, then everything else of the hub is
//! ended where it is, which leaves the file as a killed process does. Real kills are in `tests/crash`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    collections::HashSet,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Response, StatusCode, header};
use hub_core::{
    access::Actor,
    bots::{BindStatus, NewBind, NewSend},
    channels::sinks::{AuthMethod, AuthUpdate, Change, RetrySettings, WebhookUpdate},
    error::ErrorCode,
    failpoints::{self, Act, POINTS},
    local_http::{Cut, LocalService},
    store::StoreConfig,
    testing::{
        TestBot, TestHub,
        ledger::{Ledger, Receipt, Repeats, Reported},
    },
    time::{Clock, ManualClock, Timestamp},
};
use serde_json::{Value, json};
use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};

/// The clock of the hub moves by this much at a time.
const STEP: Duration = Duration::from_millis(100);
/// How long a stalled step takes, in real time.
const STALL: Duration = Duration::from_millis(100);
/// Deliveries in flight: one per conversation and channel.
const IN_FLIGHT: usize = 16;
const CHANNELS: [&str; 2] = ["answering", "flaky"];
/// Looks until a wait has failed: at least 15 s of real time.
const LOOKS: u32 = 3_000;
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

#[tokio::test]
async fn every_point_may_fail() {
    visit_all(Act::Fail).await;
}

#[tokio::test]
async fn every_point_may_panic() {
    visit_all(Act::Panic).await;
}

#[tokio::test]
async fn every_point_may_stall() {
    visit_all(Act::Stall(STALL)).await;
}

#[tokio::test]
async fn the_process_may_die_at_every_point() {
    visit_all(Act::Freeze).await;
}

/// There is one registry.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn visit_all(act: Act) {
    let _alone = ALONE.lock().await;
    let wanted = std::env::var("HUB_TEST_POINTS").unwrap_or_default();
    let mut stage = Stage::open().await;
    for point in POINTS.iter().filter(|point| point.contains(&wanted)) {
        stage.visit(point, act).await;
    }
    stage.close().await;
}

struct Stage {
    hub: TestHub,
    clock: ManualClock,
    ada: Actor,
    bot: TestBot,
    sinks: Arc<Sinks>,
    rounds: usize,
    /// Whether what the armed point did was taken note of.
    noted: bool,
}

/// The receivers, and both directions' books.
struct Sinks {
    clock: ManualClock,
    refused: Mutex<HashSet<String>>,
    /// Whether everything is refused.
    shut: AtomicBool,
    books: Mutex<(Ledger, Ledger)>,
}

impl Sinks {
    fn books(&self) -> MutexGuard<'_, (Ledger, Ledger)> {
        self.books.lock().unwrap()
    }

    fn note_crash(&self) {
        let mut books = self.books();
        books.0.crashed(self.clock.now());
        books.1.crashed(self.clock.now());
    }
}

#[async_trait]
impl LocalService for Sinks {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let sink = request.uri().path().trim_start_matches('/').to_owned();
        let id = request.headers()["webhook-id"].to_str().unwrap().to_owned();
        let body: Value = serde_json::from_slice(request.body()).unwrap();
        let payload = body["content"].as_str().unwrap().to_owned();
        // One message of three is refused at first.
        let refused = self.shut.load(Ordering::Relaxed)
            || (sink == "flaky"
                && payload.ends_with("second")
                && self.refused.lock().unwrap().insert(payload.clone()));
        let mut answer = json!({});
        let mut books = self.books();
        if sink == "answering" && !refused {
            let person = body["sender"]["user_id"].as_str().unwrap();
            let reply = format!("re {payload}");
            books.1.sent(&format!("replies to {person}"), &reply, &["people"], Repeats::Never);
            answer = json!({ "reply": reply });
        }
        let at = self.clock.now();
        books.0.received(Receipt { at, sink, payload, id, taken: !refused });
        let status = if refused { StatusCode::BAD_GATEWAY } else { StatusCode::OK };
        let answer = Response::builder()
            .status(status)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Bytes::from(answer.to_string()));
        Ok(answer.unwrap())
    }
}

impl Stage {
    async fn open() -> Self {
        let clock = ManualClock::new(hub_core::testing::START);
        let sinks = Arc::new(Sinks {
            clock: clock.clone(),
            refused: Mutex::default(),
            shut: AtomicBool::new(false),
            books: Mutex::new((Ledger::new("inbound"), Ledger::new("to people"))),
        });
        let folder = tempfile::tempdir().unwrap().keep();
        let hub = TestHub::builder()
            .store(StoreConfig::Sqlite(folder.join("hub.db")))
            .clock(clock.clone())
            .config(|config| config.lease = YEAR)
            .receiver("sinks.test", &sinks)
            .start()
            .await;
        let ada = hub.register("ada").await;
        let bot = hub.bind(&ada).await;
        for name in CHANNELS {
            let secret = Change::Set("a-secret-of-some-length".into());
            let webhook = WebhookUpdate {
                auth: AuthUpdate { method: AuthMethod::Hmac, secret, ..AuthUpdate::default() },
                url: format!("http://sinks.test/{name}"),
                auto_reply: true,
                retry: RetrySettings { schedule_s: vec![1; 20] },
                ..WebhookUpdate::default()
            };
            hub.webhook_channel(&ada, bot.id, name, webhook).await;
        }
        Self { hub, clock, ada, bot, sinks, rounds: 0, noted: false }
    }

    /// A conversation during which one point acts once.
    async fn visit(&mut self, point: &str, act: Act) {
        self.rounds += 1;
        let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{act:?} at {point}\n").as_bytes());
        let person = format!("person {}", self.rounds);
        self.noted = false;
        failpoints::arm(point, act, 0);
        self.say(&person, point, &["first", "second", "third"]);
        self.go_on(act, async |stage: &mut Self| stage.settle(&person, point).await).await;
        // What only happens at a login, or at the end or the beginning of a hub, is reached by these.
        if !failpoints::has_fired() {
            self.go_on(act, async |stage: &mut Self| stage.bind_another().await).await;
        }
        if !failpoints::has_fired() {
            self.go_on(act, async |stage: &mut Self| stage.leave_a_backlog(&person, point).await).await;
            self.go_on(act, async |stage: &mut Self| stage.settle(&person, point).await).await;
        }
        if !failpoints::has_fired() {
            self.go_on(act, async |stage: &mut Self| stage.say_slowly(&person, point).await).await;
        }
        if !failpoints::has_fired() {
            self.go_on(act, async |stage: &mut Self| stage.say_again(&person, point).await).await;
        }
        assert!(failpoints::has_fired(), "{point} is never reached");
        self.settle(&person, point).await;
        assert_eq!(self.hub.hub().context().node.violations.count(), 0, "an invariant is broken at {point}");
    }

    fn say(&self, person: &str, point: &str, words: &[&str]) {
        for word in words {
            let text = format!("{point} {word}");
            self.sinks.books().0.sent(person, &text, &CHANNELS, Repeats::AfterCrashes);
            self.hub.sim().say(&self.bot.wx_id, Some(person), &text).unwrap();
        }
    }

    /// Work during which the point may act. A panic is noted; after a death another hub takes over.
    async fn go_on(&mut self, act: Act, work: impl AsyncFnOnce(&mut Self)) {
        let (sinks, noted) = (Arc::clone(&self.sinks), self.noted);
        let acted = async {
            while noted || !failpoints::has_fired() {
                Clock::system().sleep(Duration::from_millis(2)).await;
            }
            if matches!(act, Act::Panic | Act::Freeze) {
                sinks.note_crash();
            }
            if act != Act::Freeze {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = acted => {}
            () = work(&mut *self) => {}
        }
        self.noted = failpoints::has_fired();
        if act == Act::Freeze && self.noted && !noted {
            self.hub.kill().await;
            self.start_again().await;
        }
    }

    /// A message whose reply can be sent at once, since nothing else waits for the person.
    async fn say_again(&mut self, person: &str, point: &str) {
        self.settle(person, point).await;
        for _ in 0..10 {
            self.pass_time().await;
        }
        self.say(person, point, &["again"]);
        self.settle(person, point).await;
    }

    /// Messages while the clock does not move, so that most are committed alone and go to the commit log, which is flushed
    /// soon.
    async fn say_slowly(&self, person: &str, point: &str) {
        self.sinks.shut.store(true, Ordering::Relaxed);
        for n in 0..LOOKS {
            if failpoints::has_fired() {
                break;
            }
            if n % 50 == 0 {
                self.say(person, point, &[&format!("slowly {n}")]);
            }
            Clock::system().sleep(Duration::from_millis(5)).await;
        }
        self.sinks.shut.store(false, Ordering::Relaxed);
    }

    /// Waits until everything that was said and sent is where it has to be.
    async fn settle(&mut self, person: &str, point: &str) {
        self.insist(person, &format!("send {point}")).await;
        for _ in 0..LOOKS {
            let people: HashSet<String> = self.sent_to_people().into_iter().map(|one| one.0).collect();
            {
                let books = self.sinks.books();
                let heard = self.hub.sim().accounts().iter().all(|account| account.pending == 0);
                let read = books.1.missing().iter().all(|entry| people.contains(&entry.payload));
                if heard && read && books.0.missing().is_empty() {
                    return;
                }
            }
            self.pass_time().await;
        }
        let books = self.sinks.books();
        panic!("{point}: not received: {:?}; perhaps not read: {:?}", books.0.missing(), books.1.missing());
    }

    async fn pass_time(&self) {
        Clock::system().sleep(Duration::from_millis(5)).await;
        self.clock.advance(STEP);
    }

    /// Sends until it is accepted, always under the same key.
    async fn insist(&mut self, person: &str, text: &str) {
        self.sinks.books().1.sent(person, text, &["people"], Repeats::Never);
        let (key, mut last) = (text.replace(' ', "_"), String::new());
        for _ in 0..LOOKS {
            let new = NewSend {
                to_user_id: Some(person.to_owned()),
                content: text.to_owned(),
                ..NewSend::default()
            };
            let bots = self.hub.hub().bots();
            let sent = bots.send(&self.ada, self.bot.id, new, Some(&key));
            match AssertUnwindSafe(sent).catch_unwind().await {
                Ok(Ok(_)) => return self.sinks.books().1.acknowledged(text),
                // The person was not heard yet, or the point acted.
                Ok(Err(error)) => {
                    let expected = [ErrorCode::WindowClosed, ErrorCode::Unavailable, ErrorCode::Internal];
                    assert!(expected.contains(&error.code()), "{text}: {error}");
                    last = error.to_string();
                }
                Err(_) => {}
            }
            self.pass_time().await;
        }
        panic!("{text} is never accepted: {last}; {:?}", self.hub.sim().accounts());
    }

    async fn bind_another(&mut self) {
        for _ in 0..LOOKS {
            if let Ok(Some(())) = AssertUnwindSafe(self.try_bind()).catch_unwind().await {
                return;
            }
            self.pass_time().await;
        }
        panic!("no one can be bound any more");
    }

    async fn try_bind(&self) -> Option<()> {
        let bots = self.hub.hub().bots();
        let bind = bots.start_bind(&self.ada, NewBind::default()).await.ok()?;
        self.hub.sim().confirm(bind.qr_text.expose(), None).unwrap();
        let step = bots.confirm_bind(&self.ada, bind.bind_id, None, Duration::ZERO).await.ok()?;
        (step.status == BindStatus::Confirmed).then_some(())
    }

    /// A hub that ends with work in its store, and another one that finds it.
    async fn leave_a_backlog(&mut self, person: &str, point: &str) {
        self.sinks.shut.store(true, Ordering::Relaxed);
        self.say(person, point, &["fourth"]);
        for _ in 0..LOOKS {
            if self.hub.sim().accounts().iter().all(|account| account.pending == 0) {
                break;
            }
            self.pass_time().await;
        }
        self.shut_down().await;
        self.start_again().await;
    }

    /// Time passes while the hub ends: it does not wait for ever for what is stuck.
    async fn shut_down(&mut self) {
        let clock = self.clock.clone();
        let time = async {
            loop {
                Clock::system().sleep(Duration::from_millis(5)).await;
                clock.advance(STEP);
            }
        };
        tokio::select! {
            () = self.hub.shutdown() => {}
            () = time => {}
        }
    }

    async fn start_again(&mut self) {
        self.sinks.shut.store(false, Ordering::Relaxed);
        let mut last = String::new();
        for _ in 0..LOOKS {
            match AssertUnwindSafe(self.hub.try_restart()).catch_unwind().await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => last = error.to_string(),
                Err(_) => {}
            }
            self.pass_time().await;
        }
        panic!("the hub does not start any more: {last}");
    }

    /// What people got: text, id, time.
    fn sent_to_people(&self) -> Vec<(String, String, Timestamp)> {
        let mut found = Vec::new();
        let mut after = 0;
        loop {
            let page = self.hub.sim().outbound(None, after);
            let Some(last) = page.last() else { return found };
            after = last.n;
            found.extend(page.into_iter().map(|one| (one.text, one.client_id, one.at)));
        }
    }

    /// Closes the books.
    async fn close(mut self) {
        self.shut_down().await;
        let StoreConfig::Sqlite(path) = self.hub.store().clone() else { panic!("it is a file") };
        let mut file =
            SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(path)).await.unwrap();
        let sound: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut file).await.unwrap();
        assert_eq!(sound, "ok");
        let deliveries: Vec<(String, String, String)> = sqlx::query_as(
            "SELECT c.name, m.content, t.status FROM traces t JOIN messages m ON m.id = t.message_id
             JOIN channels c ON c.id = t.channel_id",
        )
        .fetch_all(&mut file)
        .await
        .unwrap();
        let sends: Vec<(String, String)> =
            sqlx::query_as("SELECT content, status FROM messages WHERE direction = 'outbound'")
                .fetch_all(&mut file)
                .await
                .unwrap();
        let people = self.sent_to_people();
        let mut books = self.sinks.books();
        let outcome = |status: &str| match status {
            "ok" | "sent" => Reported::Delivered,
            "unknown" => Reported::Unknown,
            "pending" | "queued" => Reported::Open,
            _ => Reported::GivenUp,
        };
        for (sink, payload, status) in deliveries {
            books.0.acknowledged(&payload);
            if sink == "answering" {
                books.1.acknowledged(&format!("re {payload}"));
            }
            books.0.reported(&sink, &payload, outcome(&status));
        }
        for (payload, status) in sends {
            books.1.reported("people", &payload, outcome(&status));
        }
        for (payload, id, at) in people {
            books.1.received(Receipt { at, sink: "people".to_owned(), payload, id, taken: true });
        }
        let (inbound, outbound) = (books.0.findings(), books.1.findings());
        assert!(books.0.unacknowledged().is_empty(), "{:?}", books.0.unacknowledged());
        inbound.assert_clean(IN_FLIGHT);
        outbound.assert_clean(0);
    }
}
