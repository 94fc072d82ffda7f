//! The whole way of a message, in one process: simulated network, hub, receiver.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, StatusCode};

use crate::{
    Hub,
    access::Actor,
    accounts::{ClientInfo, NewUser},
    bots::{BindStatus, NewBind, NewSend},
    channels::{
        NewChannel,
        sinks::{AuthMethod, AuthUpdate, Change, WebhookUpdate},
    },
    config::HubConfig,
    egress::{Egress, EgressConfig},
    id::{BotId, ChannelId},
    local_http::{Cut, LocalService},
    network::{
        ilink::{IlinkConfig, IlinkNetwork},
        sim::{SIM_HOST, SimConfig, Simulator},
    },
    page::PageRequest,
    random::Random,
    store::StoreConfig,
    time::Clock,
    traces::{StepName, TraceQuery, TraceStatus},
};

/// Answers from a script, 200 with `{}` when it is used up, and remembers what came.
#[derive(Default)]
struct Receiver {
    script: Mutex<Vec<(u16, &'static str)>>,
    seen: Mutex<Vec<Request<Bytes>>>,
}

#[async_trait]
impl LocalService for Receiver {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        self.seen.lock().unwrap().push(request);
        let mut script = self.script.lock().unwrap();
        let (status, body) = if script.is_empty() { (200, "{}") } else { script.remove(0) };
        let answer = Response::builder().status(StatusCode::from_u16(status).unwrap());
        Ok(answer.header("content-type", "application/json").body(Bytes::from(body)).unwrap())
    }
}

impl Receiver {
    fn bodies(&self) -> Vec<serde_json::Value> {
        self.seen
            .lock()
            .unwrap()
            .iter()
            .map(|request| serde_json::from_slice(request.body()).unwrap())
            .collect()
    }
}

struct World {
    folder: tempfile::TempDir,
    hub: Hub,
    sim: Simulator,
    receiver: Arc<Receiver>,
    actor: Actor,
    bot: BotId,
    wx_id: String,
    channel: ChannelId,
}

async fn hub_in(folder: &tempfile::TempDir, sim: &Simulator, receiver: &Arc<Receiver>) -> Hub {
    let (clock, random) = (Clock::system(), Random::system());
    let egress = EgressConfig {
        in_process: HashMap::from([
            (SIM_HOST.to_owned(), Arc::new(sim.clone()) as Arc<dyn LocalService>),
            ("receiver.test".to_owned(), Arc::clone(receiver) as Arc<dyn LocalService>),
        ]),
        ..EgressConfig::default()
    };
    let ilink = IlinkConfig {
        login_base_url: format!("http://{SIM_HOST}").parse().unwrap(),
        ..IlinkConfig::default()
    };
    let network =
        IlinkNetwork::new("sim", ilink, &Egress::new(egress.clone()).unwrap(), clock, random).unwrap();
    let config = HubConfig { poll_grace: Duration::ZERO, ..HubConfig::default() };
    Hub::builder()
        .store(StoreConfig::Sqlite(folder.path().join("hub.db")))
        .secret_key([7; 32])
        .network(network)
        .egress(egress)
        .config(config)
        .open()
        .await
        .unwrap()
}

impl World {
    async fn new(webhook: WebhookUpdate) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sim = Simulator::new(SimConfig::quick(), Clock::system(), Random::seeded(1));
        let receiver = Arc::new(Receiver::default());
        let hub = hub_in(&folder, &sim, &receiver).await;
        hub.start().await.unwrap();
        let user = NewUser {
            username: "ada".into(),
            password: "correct horse".into(),
            display_name: None,
            email: None,
        };
        let ada = hub.accounts().register(user, None, &ClientInfo::default()).await.unwrap();
        let actor = hub.accounts().authenticate_session(ada.token.expose()).await.unwrap();
        let bind = hub.bots().start_bind(&actor, NewBind::default()).await.unwrap();
        sim.scan(bind.qr_text.expose()).unwrap();
        let account = sim.confirm(bind.qr_text.expose(), None).unwrap();
        let bot = loop {
            let step =
                hub.bots().confirm_bind(&actor, bind.bind_id, None, Duration::from_secs(5)).await.unwrap();
            match step.status {
                BindStatus::Confirmed => break step.bot.unwrap().id,
                BindStatus::Waiting | BindStatus::Scanned => {}
                other => panic!("{other:?}"),
            }
        };
        let new = NewChannel { webhook: Some(webhook), ..NewChannel::named("orders") };
        let channel = hub.channels().create(&actor, bot, new, None).await.unwrap().channel.id;
        Self { folder, hub, sim, receiver, actor, bot, wx_id: account.wx_id, channel }
    }

    async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        for _ in 0..400 {
            if let Some(found) = look().await {
                return found;
            }
            Clock::system().sleep(Duration::from_millis(25)).await;
        }
        panic!("{what} did not happen");
    }

    async fn trace(&self, want: TraceStatus) -> crate::traces::Trace {
        self.until("the trace", async || {
            let query =
                TraceQuery { channel_id: Some(self.channel), status: Some(want), ..TraceQuery::default() };
            let page =
                self.hub.traces().list(&self.actor, self.bot, &query, &PageRequest::default()).await.unwrap();
            let id = page.items.first()?.trace_id;
            Some(self.hub.traces().get(&self.actor, self.bot, id).await.unwrap())
        })
        .await
    }
}

fn hook(auth: AuthMethod) -> WebhookUpdate {
    WebhookUpdate {
        url: "http://receiver.test/hook".to_owned(),
        auth: AuthUpdate {
            method: auth,
            secret: Change::Set("a-secret-of-some-length".into()),
            ..AuthUpdate::default()
        },
        auto_reply: true,
        ..WebhookUpdate::default()
    }
}

#[tokio::test]
async fn a_message_goes_through_the_webhook_and_its_answer_to_the_chat() {
    let world = World::new(hook(AuthMethod::Hmac)).await;
    world.receiver.script.lock().unwrap().push((200, r#"{"reply":"42 is on its way"}"#));
    world.sim.say(&world.wx_id, None, "order 42").unwrap();
    let sent = world.sim.wait_outbound(Some(&world.wx_id), 0, Duration::from_secs(10)).await;
    assert_eq!(sent[0].text, "42 is on its way");
    let bodies = world.receiver.bodies();
    assert_eq!(bodies[0]["content"], "order 42");
    assert_eq!(bodies[0]["type"], "message");
    assert!(world.receiver.seen.lock().unwrap()[0].headers().contains_key("x-signature"));
    let trace = world
        .until("the reply in the trace", async || {
            let trace = world.trace(TraceStatus::Ok).await;
            (trace.steps.last()?.kind == "outbox").then_some(trace)
        })
        .await;
    let names: Vec<StepName> = trace.steps.iter().map(|step| step.name).collect();
    let expected = [
        StepName::Received,
        StepName::Filter,
        StepName::Request,
        StepName::Response,
        StepName::Reply,
        StepName::Reply,
    ];
    assert_eq!(names, expected, "{trace:#?}");
    assert_eq!(trace.steps[5].status, TraceStatus::Ok);
    let text = serde_json::to_string(&trace.steps).unwrap();
    assert!(!text.contains("AARz"), "no context token in {text}");
    world.hub.shutdown().await;
}

#[tokio::test]
async fn a_failing_receiver_gets_the_same_delivery_again() {
    let mut webhook = hook(AuthMethod::Bearer);
    webhook.retry.schedule_s = vec![1, 1];
    let world = World::new(webhook).await;
    *world.receiver.script.lock().unwrap() = vec![(500, "no"), (200, "{}")];
    world.sim.say(&world.wx_id, None, "first").unwrap();
    world.sim.say(&world.wx_id, None, "second").unwrap();
    let trace = world
        .until("both", async || {
            let query = TraceQuery { status: Some(TraceStatus::Ok), ..TraceQuery::default() };
            let page = world
                .hub
                .traces()
                .list(&world.actor, world.bot, &query, &PageRequest::default())
                .await
                .unwrap();
            (page.items.len() == 2).then(|| page.items[1].clone())
        })
        .await;
    assert_eq!(trace.attempts, 2);
    let seen = world.receiver.seen.lock().unwrap();
    let ids: Vec<_> = seen.iter().map(|request| request.headers()["webhook-id"].clone()).collect();
    assert_eq!(ids.len(), 3);
    assert_eq!(ids[0], ids[1], "the second message waits behind the first");
    assert_ne!(ids[1], ids[2]);
    assert_eq!(seen[1].headers()["x-hub-attempt"], "2");
}

#[tokio::test]
async fn a_replay_and_a_send_of_ones_own_find_their_way() {
    let world = World::new(hook(AuthMethod::None)).await;
    world.sim.say(&world.wx_id, None, "hello").unwrap();
    let trace = world.trace(TraceStatus::Ok).await;
    let replay = world.hub.traces().replay(&world.actor, world.bot, trace.trace_id, None).await.unwrap();
    world
        .until("the replay", async || {
            let trace = world.hub.traces().get(&world.actor, world.bot, replay).await.unwrap();
            (trace.status == TraceStatus::Ok).then_some(())
        })
        .await;
    assert_eq!(world.receiver.bodies().len(), 2);
    let new = NewSend { content: "from the owner".into(), ..NewSend::default() };
    world.hub.bots().send(&world.actor, world.bot, new, None).await.unwrap();
    let sent = world.sim.wait_outbound(Some(&world.wx_id), 0, Duration::from_secs(10)).await;
    assert_eq!(sent[0].text, "from the owner");
}

#[tokio::test]
async fn what_was_accepted_before_a_stop_is_delivered_after_the_next_start() {
    let mut webhook = hook(AuthMethod::None);
    webhook.retry.schedule_s = vec![1; 10];
    let world = World::new(webhook).await;
    *world.receiver.script.lock().unwrap() = vec![(500, "no"); 2];
    world.sim.say(&world.wx_id, None, "kept").unwrap();
    world.until("an attempt", async || (!world.receiver.bodies().is_empty()).then_some(())).await;
    world.hub.shutdown().await;
    let attempts = world.receiver.bodies().len();
    let hub = hub_in(&world.folder, &world.sim, &world.receiver).await;
    hub.start().await.unwrap();
    world
        .until("the delivery", async || {
            let query = TraceQuery { status: Some(TraceStatus::Ok), ..TraceQuery::default() };
            let page =
                hub.traces().list(&world.actor, world.bot, &query, &PageRequest::default()).await.unwrap();
            (page.items.len() == 1).then_some(())
        })
        .await;
    assert!(world.receiver.bodies().len() > attempts);
    hub.shutdown().await;
}
