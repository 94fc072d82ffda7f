//! Hubs in temporary folders, without a server.

use std::{path::Path, sync::Arc, time::Duration};

use hub_core::{
    Hub,
    access::Actor,
    accounts::NewUser,
    config::HubConfig,
    data_dir,
    demo::{ADA, DemoReceiver, RECEIVER_HOST, connector, seed},
    egress::EgressConfig,
    network::sim::{SimConfig, Simulator},
    page::PageRequest,
    random::Random,
    store::StoreConfig,
    time::{Clock, ManualClock, Timestamp},
    traces::TraceQuery,
};
use tempfile::TempDir;

use crate::program::{ends, run_with_input};

pub fn temp() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// A hub with the admin ada.
pub fn hub() -> TempDir {
    let folder = temp();
    let arguments = ["users", "create-admin", "ada", "--password-file", "-"];
    ends(&run_with_input(folder.path(), &arguments, "correct horse\n"), 0);
    folder
}

/// A hub with a demo bot to which Ada wrote.
pub fn hub_with_demo() -> TempDir {
    let folder = temp();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let (hub, simulator, receiver) = open(folder.path(), Clock::system()).await;
        let demo = seed(&hub, &simulator, &receiver).await.unwrap().unwrap();
        hub.start().await.unwrap();
        simulator.say(&demo.wx_id, Some(ADA), "order 42").unwrap();
        assert_eq!(simulator.wait_outbound(None, 0, Duration::from_secs(20)).await.len(), 1);
        hub.shutdown().await;
    });
    folder
}

/// The same with the admin ada, at a fixed time: everything takes 0 ms.
pub fn hub_at_a_fixed_time() -> TempDir {
    let folder = temp();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let clock = ManualClock::new(Timestamp::from_millis(1_704_164_645_678));
        let (hub, simulator, receiver) = open(folder.path(), clock.into()).await;
        hub.accounts().create_admin(&Actor::Operator, user("ada")).await.unwrap();
        let demo = seed(&hub, &simulator, &receiver).await.unwrap().unwrap();
        hub.start().await.unwrap();
        simulator.say(&demo.wx_id, Some(ADA), "order 42").unwrap();
        let query = TraceQuery::default();
        let page = PageRequest::parse(&query.list_name(demo.bot_id), None, None).unwrap();
        for _ in 0..1_000 {
            let traces = hub.traces().list(&Actor::Operator, demo.bot_id, &query, &page).await.unwrap();
            let steps = match traces.items.first() {
                Some(trace) => {
                    hub.traces().get(&Actor::Operator, demo.bot_id, trace.trace_id).await.unwrap().steps
                }
                None => Vec::new(),
            };
            if steps.last().is_some_and(|step| serde_json::json!(step)["detail"]["state"] == "sent") {
                hub.shutdown().await;
                return;
            }
            Clock::system().sleep(Duration::from_millis(20)).await;
        }
        panic!("the answer was not sent");
    });
    folder
}

/// Someone to be registered.
pub fn user(name: &str) -> NewUser {
    NewUser { username: name.to_owned(), password: "tr0mbone solo".into(), display_name: None, email: None }
}

/// A new hub in a folder, with a simulator for its bots and the demo's receiver.
async fn open(folder: &Path, clock: Clock) -> (Hub, Simulator, DemoReceiver) {
    let random = Random::system();
    let simulator = Simulator::new(SimConfig::quick(), clock.clone(), random.clone());
    let receiver = DemoReceiver::new(clock.clone());
    let mut egress = EgressConfig::default();
    egress.in_process.insert(RECEIVER_HOST.to_owned(), Arc::new(receiver.clone()));
    let mut config = HubConfig::default();
    // No one waits for the result of the pending long poll.
    config.poll_grace = Duration::ZERO;
    let hub = Hub::builder()
        .config(config)
        .clock(clock.clone())
        .store(StoreConfig::Sqlite(data_dir::database(folder)))
        .secret_key(data_dir::load_key(folder, &random).unwrap())
        .network(connector(&simulator, clock, random).unwrap())
        .egress(egress);
    (hub.open().await.unwrap(), simulator, receiver)
}
