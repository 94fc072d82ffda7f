//! Hubs on which nothing runs, in folders of their own.

use std::{path::Path, sync::Arc, time::Duration};

use hub_core::{
    Hub,
    access::Actor,
    accounts::NewUser,
    data_dir,
    demo::{ADA, DemoReceiver, RECEIVER_HOST, connector, seed},
    egress::EgressConfig,
    network::sim::{SimConfig, Simulator},
    random::Random,
    store::StoreConfig,
    time::Clock,
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
        let (hub, simulator, receiver) = open(folder.path()).await;
        let demo = seed(&hub, &simulator, &receiver).await.unwrap().unwrap();
        hub.start().await.unwrap();
        simulator.say(&demo.wx_id, Some(ADA), "order 42").unwrap();
        assert_eq!(simulator.wait_outbound(None, 0, Duration::from_secs(20)).await.len(), 1);
        hub.shutdown().await;
    });
    folder
}

/// A hub with the admin ada and her bot `demo`, to which nobody wrote.
pub fn hub_with_quiet_demo() -> TempDir {
    let folder = temp();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let (hub, simulator, receiver) = open(folder.path()).await;
        hub.accounts().create_admin(&Actor::Operator, user("ada")).await.unwrap();
        seed(&hub, &simulator, &receiver).await.unwrap().unwrap();
        hub.shutdown().await;
    });
    folder
}

/// Somebody to be registered.
pub fn user(name: &str) -> NewUser {
    NewUser { username: name.to_owned(), password: "tr0mbone solo".into(), display_name: None, email: None }
}

/// A new hub in a folder, with a simulator for its bots and the demo's receiver.
async fn open(folder: &Path) -> (Hub, Simulator, DemoReceiver) {
    let (clock, random) = (Clock::system(), Random::system());
    let simulator = Simulator::new(SimConfig::quick(), clock.clone(), random.clone());
    let receiver = DemoReceiver::new(clock.clone());
    let mut egress = EgressConfig::default();
    egress.in_process.insert(RECEIVER_HOST.to_owned(), Arc::new(receiver.clone()));
    let hub = Hub::builder()
        .store(StoreConfig::Sqlite(data_dir::database(folder)))
        .secret_key(data_dir::load_key(folder, &random).unwrap())
        .network(connector(&simulator, clock, random).unwrap())
        .egress(egress);
    (hub.open().await.unwrap(), simulator, receiver)
}
