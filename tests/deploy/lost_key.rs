//! A key file that is lost: neither the server nor a restore makes a new one in its place.

use serde_json::json;

use super::restore::{hub_cli, succeed};
use crate::support::{
    binaries,
    http::Caller,
    hub_process::{HubProcess, NetworkProcess},
    process::Process,
};

#[tokio::test]
async fn a_lost_key_is_named_and_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let [here, there] = ["here", "there"].map(|name| folder.path().join(name));
    let network = NetworkProcess::start().await;
    let hub = HubProcess::start(&here, &network, &[]).await;
    let mut ada = Caller::stranger(&hub.url);
    ada.sign_in("/api/auth/register", json!({ "username": "ada", "password": "tr0mbone solo" })).await;
    // A bot's login is sealed.
    network.bind(&ada).await;
    hub.process.terminate().await;
    let backup = folder.path().join("hub.tar");
    let backup = backup.to_str().unwrap();
    let made = succeed(&here, &["db", "backup", "--to", backup, "--no-key"]);
    let key_id = made["key_id"].as_str().unwrap();
    let (key, kept) = (here.join("secret.key"), folder.path().join("kept.key"));
    std::fs::rename(&key, &kept).unwrap();

    let data_dir = here.display().to_string();
    let environment = [
        ("HUB_DATA_DIR", &*data_dir),
        ("HUB_SIM_URL", &network.url),
        ("HUB_NETWORK", "sim"),
        ("HUB_DEMO", "false"),
    ];
    let server = binaries::program("hub-server");
    let (ended, log) = Process::start(&server, &["--listen", "127.0.0.1:0"], &environment).wait().await;
    assert!(!ended.success());
    let key = key.to_str().unwrap();
    for part in [key_id, key, "does not exist", "hub-cli db restore"] {
        assert!(log.contains(part), "{part} is missing: {log}");
    }
    assert!(!std::fs::exists(key).unwrap(), "a new key is no remedy");

    let restore = ["db", "restore", backup, "--yes"];
    let refused = hub_cli(&there, &restore);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && error.contains("HUB_SECRET_KEY"), "{error}");
    assert!(!there.join("hub.db").exists() && !there.join("secret.key").exists());

    for folder in [&here, &there] {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::copy(&kept, folder.join("secret.key")).unwrap();
    }
    assert_eq!(succeed(&there, &restore)["key_id"], key_id);
    for folder in [&here, &there] {
        HubProcess::start(folder, &network, &[]).await.process.terminate().await;
    }
}
