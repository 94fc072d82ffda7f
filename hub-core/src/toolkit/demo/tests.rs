//! The demo from seeding to the reply, and its outcome.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};

use super::*;
use crate::{
    access::Actor,
    accounts::NewUser,
    bots::Bots,
    egress::EgressConfig,
    error::ErrorCode,
    hub::Hub,
    local_http::LocalService,
    model::session::ClientInfo,
    network::sim::{SimConfig, Simulator},
    page::PageRequest,
    random::Random,
    secret::Secret,
    signing::{Method, Signing, headers},
    store::StoreConfig,
    time::{Clock, ManualClock, Timestamp},
};

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

struct World {
    hub: Hub,
    simulator: Simulator,
    receiver: DemoReceiver,
}

/// A hub on a folder, with a simulator that knows nothing.
async fn open(folder: &tempfile::TempDir) -> World {
    let (clock, random) = (Clock::system(), Random::system());
    let simulator = Simulator::new(SimConfig::quick(), clock.clone(), random.clone());
    let receiver = DemoReceiver::new(clock.clone());
    let mut egress = EgressConfig::default();
    egress.in_process.insert(RECEIVER_HOST.to_owned(), Arc::new(receiver.clone()));
    let hub = Hub::builder()
        .store(StoreConfig::Sqlite(folder.path().join("hub.db")))
        .secret_key([7; 32])
        .network(connector(&simulator, clock, random).unwrap())
        .egress(egress);
    World { hub: hub.open().await.unwrap(), simulator, receiver }
}

impl World {
    async fn seed(&self) -> Option<Demo> {
        seed(&self.hub, &self.simulator, &self.receiver).await.unwrap()
    }

    /// Ada says something and reads the answer.
    async fn ask(&self, demo: &Demo, text: &str) -> String {
        let before = self.simulator.outbound(None, 0).last().map_or(0, |sent| sent.n);
        self.simulator.say(&demo.wx_id, Some(ADA), text).unwrap();
        let answers = self.simulator.wait_outbound(Some(&demo.wx_id), before, TEST_TIMEOUT).await;
        answers.first().expect("an answer").text.clone()
    }

    async fn register(&self, name: &str) -> Actor {
        let new = NewUser {
            username: name.to_owned(),
            password: "correct horse".into(),
            display_name: None,
            email: None,
        };
        let user = self.hub.accounts().register(new, None, &ClientInfo::default()).await.unwrap().me.user;
        Actor::User(crate::access::UserActor::embedded(user.id, user.role))
    }

    async fn stop(self) {
        self.hub.shutdown().await;
    }
}

#[tokio::test]
async fn the_demo_answers_and_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(&folder).await;
    let demo = first.seed().await.unwrap();
    assert!(demo.created);
    first.hub.start().await.unwrap();
    assert_eq!(first.ask(&demo, "order 42").await, "42 is on its way");
    let received = first.receiver.received();
    assert_eq!(received.len(), 1);
    assert!(received[0].verdict.verified, "{:?}", received[0]);
    assert_eq!(received[0].verdict.reason, "X-Signature, webhook-signature");
    first.stop().await;

    let second = open(&folder).await;
    assert_eq!(renew_logins(&second.hub, &second.simulator).await.unwrap(), 1);
    let again = second.seed().await.unwrap();
    assert_eq!((again.bot_id, again.channel_id, again.created), (demo.bot_id, demo.channel_id, false));
    second.hub.start().await.unwrap();
    assert_eq!(second.ask(&again, "order 43").await, "43 is on its way");
    second.stop().await;
}

#[tokio::test]
async fn a_reset_of_the_network_leaves_a_demo_that_answers() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(&folder).await;
    let demo = world.seed().await.unwrap();
    world.hub.start().await.unwrap();
    assert_eq!(world.ask(&demo, "order 42").await, "42 is on its way");
    world.receiver.behave(Behaviour::Fail, None);
    let listener = DemoListener {
        simulator: world.simulator.clone(),
        receiver: world.receiver.clone(),
        hub: Some(world.hub.clone()),
        mock: None,
    };
    let reset = Request::post("http://sim.local/_sim/reset").body(Bytes::new()).unwrap();
    assert_eq!(listener.call(reset).await.unwrap().status(), StatusCode::OK);
    assert!(world.simulator.outbound(None, 0).is_empty(), "everything that was said is forgotten");
    let bot = world.hub.bots().get(&Actor::Operator, demo.bot_id).await.unwrap();
    let again = Demo { wx_id: bot.wx_id, ..demo };
    assert_eq!(world.ask(&again, "order 43").await, "43 is on its way");
    world.stop().await;
}

#[tokio::test]
async fn people_get_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(&folder).await;
    let demo = world.seed().await.unwrap();
    world.hub.start().await.unwrap();
    greet(&world.simulator, &demo).unwrap();
    name_contacts(&world.hub, &demo).await.unwrap();
    let page = PageRequest::parse(&Bots::contact_list(demo.bot_id), None, None).unwrap();
    let contacts = world.hub.bots().contacts(&Actor::Operator, demo.bot_id, &page).await.unwrap();
    let names: Vec<_> = contacts.items.iter().map(|contact| contact.remark.as_str()).collect();
    assert!(names.contains(&"Ada") && names.contains(&"Bob"), "{names:?}");
    world.stop().await;
}

#[tokio::test]
async fn the_first_admin_gets_the_demo() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(&folder).await;
    let demo = world.seed().await.unwrap();
    let ada = world.register("ada").await;
    assert_eq!(ada.user().unwrap().role, crate::access::Role::Admin);
    assert_eq!(world.hub.bots().get(&ada, demo.bot_id).await.unwrap().name, NAME);
    let bob = world.register("bob").await;
    let refused = world.hub.bots().get(&bob, demo.bot_id).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::NotFound);
    let mut read = world.hub.context().store.read().await.unwrap();
    let left = read.accounts().find_user_by_name(crate::store::demo::DEMO_USER).await.unwrap();
    assert_eq!(left, None);
    drop(read);
    // Who deletes the demo does not want it back.
    world.hub.bots().delete(&ada, demo.bot_id).await.unwrap();
    assert_eq!(world.seed().await, None);
    world.stop().await;
}

#[tokio::test]
async fn a_hub_with_an_admin_gives_the_demo_to_them() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(&folder).await;
    let ada = world.register("ada").await;
    let demo = world.seed().await.unwrap();
    assert_eq!(world.hub.bots().get(&ada, demo.bot_id).await.unwrap().id, demo.bot_id);
    world.stop().await;
}

/// Signed by the hub's own code.
fn signed(secret: &str, at: i64, body: &'static [u8], method: &Method) -> HeaderMap {
    let secret = Secret::new(secret).into();
    headers(&Signing {
        method,
        secret: Some(&secret),
        previous: None,
        id: "dlv_1",
        at: Timestamp::from_millis(at),
        attempt: 1,
        body,
    })
    .unwrap()
}

fn delivery(headers: HeaderMap, body: &'static [u8]) -> Request<Bytes> {
    let mut request = Request::post("http://receiver.local/hook").body(Bytes::from_static(body)).unwrap();
    *request.headers_mut() = headers;
    request
}

#[tokio::test]
async fn only_what_the_hub_signed_is_believed() {
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const NOW: i64 = 1_790_000_000_000;
    const BODY: &[u8] = br#"{"content":"order 7"}"#;
    let receiver = DemoReceiver::new(Clock::from(ManualClock::new(Timestamp::from_millis(NOW))));
    let status = async |headers, body| receiver.call(delivery(headers, body)).await.unwrap().status();
    let (ok, refused) = (StatusCode::OK, StatusCode::UNAUTHORIZED);
    let good = || signed(SECRET, NOW, BODY, &Method::Hmac);
    assert_eq!(status(good(), BODY).await, refused, "without a secret no signature is accepted");
    receiver.set_secret(SECRET.into());
    assert_eq!(status(good(), BODY).await, ok);
    assert_eq!(status(signed(SECRET, NOW, BODY, &Method::None), BODY).await, ok, "one of the two is enough");
    assert_eq!(status(good(), br#"{"content":"order 8"}"#).await, refused);
    assert_eq!(status(signed("another secret here", NOW, BODY, &Method::Hmac), BODY).await, refused);
    assert_eq!(status(signed(SECRET, NOW - 301_000, BODY, &Method::None), BODY).await, refused);
    assert_eq!(status(signed(SECRET, NOW + 301_000, BODY, &Method::None), BODY).await, refused);
    assert_eq!(status(HeaderMap::new(), BODY).await, refused);
    let mut stripped = good();
    stripped.remove("webhook-id");
    assert_eq!(status(stripped, BODY).await, refused);
    let reasons: Vec<_> = receiver.received().into_iter().map(|one| one.verdict.reason).collect();
    assert_eq!(reasons[3], "X-Signature does not fit the body");
    assert_eq!(reasons[7], "the request is not signed");
}

#[tokio::test]
async fn the_receiver_misbehaves_as_configured_and_drops_the_oldest() {
    let receiver = DemoReceiver::new(Clock::system());
    let call = async |path: &str, body: &'static [u8]| {
        let uri = format!("http://receiver.local{path}");
        let request = Request::post(uri).header("content-type", "application/json");
        receiver.call(request.body(Bytes::from_static(body)).unwrap()).await
    };
    let fail = br#"{"mode":"fail","times":2}"#;
    assert_eq!(call("/receiver/behaviour", fail).await.unwrap().status(), StatusCode::OK);
    for status in [500, 500, 401] {
        assert_eq!(call("/hook", b"{}").await.unwrap().status().as_u16(), status);
    }
    let bad = call("/receiver/behaviour", br#"{"mode":"explode"}"#).await.unwrap();
    assert_eq!(bad.status(), StatusCode::BAD_REQUEST);
    for (name, value, status) in
        [("origin", "https://evil.example", 403), ("content-type", "text/plain", 415)]
    {
        let foreign = Request::post("http://receiver.local/receiver/behaviour").header(name, value);
        let answer = receiver.call(foreign.body(Bytes::from_static(fail)).unwrap()).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{value}");
    }
    assert_eq!(receiver.behaviour(), (Behaviour::Answer, None), "as before");
    receiver.behave(Behaviour::Cut, None);
    for _ in 0..60 {
        assert!(call("/hook", b"{}").await.is_err());
    }
    assert_eq!(receiver.received().len(), 50);
    assert!(receiver.received().iter().all(|one| one.behaviour == Behaviour::Cut));
}
