//! The same at the command line, against the server.

use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tokio::process::Command;

use super::{SCRIPT, Scene};
use crate::support::binaries;

/// Someone with a key at a terminal.
struct Terminal {
    folder: tempfile::TempDir,
    server: String,
    key: String,
}

impl Terminal {
    async fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(binaries::program("hub-cli"));
        command
            .env_clear()
            .env("LANG", "C.UTF-8")
            .env("HUB_TOKEN", &self.key)
            .env("HUB_SERVER", &self.server);
        command.stdin(Stdio::null()).kill_on_drop(true).current_dir(self.folder.path());
        command.args(arguments).output().await.unwrap()
    }

    async fn document(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat()).await;
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {told}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    async fn exit(&self, arguments: &[&str]) -> Option<i32> {
        self.run(arguments).await.status.code()
    }
}

#[tokio::test]
async fn an_author_and_a_reviewer_work_on_a_server_from_their_terminals() {
    let scene = Scene::open().await;
    let terminal = async |caller: &crate::support::http::Caller| {
        let key = caller.post("/api/user/api-keys", json!({ "name": "terminal" })).await;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("bridge.js"), SCRIPT).unwrap();
        Terminal { folder, server: scene.server.url.clone(), key: key["key"].as_str().unwrap().to_owned() }
    };
    let (ada, bob) = (terminal(&scene.ada).await, terminal(&scene.bob).await);
    let submitted = bob.document(&["plugins", "submit", "bridge.js"]).await;
    assert_eq!(submitted["status"], "pending");
    // The line for files works too, for the user who is signed in.
    let named = ["plugins", "submit", "bridge.js", "--author"];
    let again = bob.document(&[&named[..], &["bob"]].concat()).await;
    assert_eq!(again["id"], submitted["id"]);
    assert_eq!(bob.exit(&[&named[..], &["ada"]].concat()).await, Some(2));
    assert_eq!(
        bob.document(&["plugins", "list", "--author", "bob"]).await["items"][0]["name"],
        "command-bridge"
    );
    assert_eq!(bob.exit(&["plugins", "pending"]).await, Some(4));
    assert_eq!(bob.exit(&["plugins", "approve", "command-bridge"]).await, Some(4));
    assert_eq!(bob.document(&["plugins", "list", "--mine"]).await["items"][0]["name"], "command-bridge");
    let waits = ada.document(&["plugins", "pending"]).await["items"][0].clone();
    let hash = waits["content_hash"].as_str().unwrap();
    let done = ada.document(&["plugins", "approve", "command-bridge", "--content-hash", hash]).await;
    assert_eq!(done["items"][0]["approved_version"], "1.3.0");
    // The same name is another version, and the reviewer sees what changed.
    let newer = SCRIPT.replace("1.3.0", "1.4.0");
    std::fs::write(bob.folder.path().join("bridge.js"), newer).unwrap();
    assert_eq!(bob.document(&["plugins", "submit", "bridge.js"]).await["id"], submitted["id"]);
    let shown = ada.document(&["plugins", "show", "command-bridge"]).await;
    assert!(shown["diff"].as_str().unwrap().contains("+// @version      1.4.0"), "{shown}");
    ada.document(&["plugins", "reject", "command-bridge", "--reason", "not yet"]).await;
    let versions = bob.document(&["plugins", "versions", "command-bridge"]).await;
    assert_eq!(versions["items"][0]["reason"], "not yet");
    assert_eq!(ada.exit(&["plugins", "show", "nothing-of-the-kind"]).await, Some(5));
    // A run there and a run here come to the same.
    let beside = ["debug", "request", "bridge.js", "--text", "/order 42", "--remote", &scene.channel];
    let tried = ada.document(&beside).await;
    assert_eq!(tried["remote"]["same"], true, "{}", tried["remote"]);
    assert_eq!(tried["request"]["headers"]["X-Command"], "order");
    assert_eq!(bob.exit(&beside).await, Some(5), "the channel is not his");
    assert_eq!(bob.exit(&["plugins", "withdraw", "command-bridge", "1.3.0", "--yes"]).await, Some(0));
    assert!(bob.document(&["plugins", "list"]).await["items"].as_array().unwrap().is_empty());
    bob.document(&["plugins", "delete", "command-bridge", "--yes"]).await;
}
