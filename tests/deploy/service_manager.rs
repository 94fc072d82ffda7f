//! Notifications of the server to a service manager, over its socket.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use hub_core::tasks::Tasks;
use reqwest::Method;
use tokio::net::UnixDatagram;

use crate::support::{
    http::{Caller, until},
    hub_process::{HubProcess, NetworkProcess},
};

/// The receiving side: a socket, and every message received.
struct Manager {
    path: String,
    heard: Arc<Mutex<Vec<String>>>,
    _listening: Tasks,
}

impl Manager {
    fn new(folder: &Path) -> Self {
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let (heard, listening) = (Arc::<Mutex<Vec<String>>>::default(), Tasks::new());
        let kept = Arc::clone(&heard);
        listening.spawn("service manager", async move {
            let mut message = [0; 4096];
            while let Ok(length) = socket.recv(&mut message).await {
                kept.lock().unwrap().push(String::from_utf8(message[..length].to_vec()).unwrap());
            }
        });
        Self { path: path.display().to_string(), heard, _listening: listening }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// Waits for so many messages with this line.
    async fn hears(&self, line: &str, count: usize) {
        let has = |message: &&String| message.lines().any(|found| found == line);
        until(line, async || (self.heard().iter().filter(has).count() >= count).then_some(())).await;
    }
}

#[tokio::test]
async fn the_service_manager_is_notified_of_start_readiness_reload_and_stop() {
    let folder = tempfile::tempdir().unwrap();
    let (network, manager) = (NetworkProcess::start().await, Manager::new(folder.path()));
    let settings = [("NOTIFY_SOCKET", manager.path.as_str()), ("WATCHDOG_USEC", "100000")];
    let hub = HubProcess::start(folder.path(), &network, &settings).await;
    manager.hears("READY=1", 1).await;
    let heard = manager.heard();
    assert_eq!(heard[0], "STATUS=Opening the database\n");
    let ready = heard.iter().find(|message| message.starts_with("READY=1")).unwrap();
    assert_eq!(*ready, format!("READY=1\nSTATUS=Serving {}/\n", hub.url));
    manager.hears("WATCHDOG=1", 5).await;
    let (ended, _) = hub.process.terminate().await;
    assert!(ended.success());
    manager.hears("STOPPING=1", 1).await;
    assert!(manager.heard().contains(&"STOPPING=1\nSTATUS=Finishing work in flight\n".to_owned()));
}

#[tokio::test]
async fn a_watchdog_of_another_process_is_not_fed() {
    let folder = tempfile::tempdir().unwrap();
    let (network, manager) = (NetworkProcess::start().await, Manager::new(folder.path()));
    // The variables are inherited, for example from a shell that is a service itself.
    let settings =
        [("NOTIFY_SOCKET", manager.path.as_str()), ("WATCHDOG_USEC", "1000"), ("WATCHDOG_PID", "1")];
    let hub = HubProcess::start(folder.path(), &network, &settings).await;
    hub.process.terminate().await;
    manager.hears("STOPPING=1", 1).await;
    assert!(!manager.heard().concat().contains("WATCHDOG"), "{:?}", manager.heard());
}

#[tokio::test]
async fn a_service_manager_that_is_gone_keeps_no_hub_from_serving() {
    let folder = tempfile::tempdir().unwrap();
    let network = NetworkProcess::start().await;
    let hub = HubProcess::start(folder.path(), &network, &[("NOTIFY_SOCKET", "/nowhere/notify")]).await;
    let (status, ..) = Caller::stranger(&hub.url).call(Method::GET, "/readyz", None).await;
    assert!(status.is_success());
    let (ended, log) = hub.process.terminate().await;
    assert!(ended.success() && log.contains("the service manager could not be notified"), "{log}");
}
