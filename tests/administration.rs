//! Administration from outside: the command line against a running server, over its API and over its files, and
//! what ends on one node against what goes on on another.

use std::{process::Output, time::Duration};

use hub_core::{
    Hub,
    access::Actor,
    accounts::{ClientInfo, NewApiKey, NewUser, UserStatus},
    admin::UserPatch,
    revocation::Revoked,
    store::StoreConfig,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    binaries,
    http::{Caller, until},
    hub_process::{HubProcess, NetworkProcess},
    postgres,
};

const PASSWORD: &str = "correct horse battery";

/// Runs the command line with an API key and a server in the environment.
async fn hub_cli(server: &str, token: &str, arguments: &[&str]) -> Output {
    let mut command = tokio::process::Command::new(binaries::program("hub-cli"));
    command.env_clear().env("HUB_SERVER", server).env("HUB_TOKEN", token);
    command.args(arguments).output().await.unwrap()
}

#[tokio::test]
async fn the_command_line_administers_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let network = NetworkProcess::start().await;
    let server = HubProcess::start(folder.path(), &network, &[]).await;
    let mut ada = Caller::stranger(&server.url);
    ada.sign_in("/api/auth/register", json!({ "username": "ada", "password": PASSWORD })).await;
    let mut bob = Caller::stranger(&server.url);
    let bob_id = bob.sign_in("/api/auth/register", json!({ "username": "bob", "password": PASSWORD })).await;
    let bob_id = bob_id["id"].as_str().unwrap().to_owned();
    let key = async |caller: &Caller| {
        let made = caller.post("/api/user/api-keys", json!({ "name": "cli" })).await;
        made["key"].as_str().unwrap().to_owned()
    };
    let (admin, member) = (key(&ada).await, key(&bob).await);
    let document = async |arguments: &[&str]| -> Value {
        let output = hub_cli(&server.url, &admin, &[arguments, &["--json"]].concat()).await;
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {told}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let users = document(&["users", "list", "--status", "active"]).await;
    assert_eq!(users["items"].as_array().unwrap().len(), 2);
    let shown = document(&["users", "show", "Bob"]).await;
    assert_eq!((&shown["id"], &shown["api_keys"]), (&json!(bob_id), &json!(1)));
    assert_eq!(document(&["stats"]).await["users"]["total"], 2);
    assert!(document(&["users", "invite"]).await["invite"].as_str().unwrap().starts_with("hubi_"));
    let sessions = document(&["users", "sessions", "list", "bob"]).await;
    let session = sessions["items"][0]["id"].as_str().unwrap().to_owned();
    bob.get("/api/auth/me").await;
    let one = document(&["users", "sessions", "revoke", "bob", "--session", &session, "--yes"]).await;
    assert_eq!(one, json!({ "user": "bob", "ended": 1 }));
    let (status, ..) = bob.call(Method::GET, "/api/auth/me", None).await;
    assert_eq!(status.as_u16(), 401);
    bob.sign_in("/api/auth/login", json!({ "username": "bob", "password": PASSWORD })).await;
    assert_eq!(document(&["users", "sessions", "revoke", &bob_id, "--yes"]).await["ended"], 1);
    bob.sign_in("/api/auth/login", json!({ "username": "bob", "password": PASSWORD })).await;
    bob.get("/api/auth/me").await;
    assert_eq!(document(&["users", "disable", "bob"]).await["status"], "disabled");
    let (status, ..) = bob.call(Method::GET, "/api/auth/me", None).await;
    assert_eq!(status.as_u16(), 401);
    document(&["users", "enable", "bob"]).await;
    let log = document(&["audit", "list", "--action", "user.updated"]).await;
    assert_eq!((log["items"].as_array().unwrap().len(), &log["items"][0]["actor_name"]), (2, &json!("ada")));
    assert!(log["items"][0]["credential"].as_str().unwrap().starts_with("key_"));
    // The same over the files, while the server runs: it counts from the next request on.
    let mut local = tokio::process::Command::new(binaries::program("hub-cli"));
    local.env_clear().env("HUB_DATA_DIR", folder.path()).args(["users", "edit", "bob", "--role", "admin"]);
    assert!(local.output().await.unwrap().status.success());
    let of_bob = hub_cli(&server.url, &member, &["users", "list"]).await;
    assert_eq!(of_bob.status.code(), Some(0));
    document(&["users", "edit", "bob", "--role", "member"]).await;
    for (token, arguments, exit) in [
        (&*member, &["users", "list"][..], 4),
        ("hubu_garbage", &["stats"], 4),
        (&admin, &["users", "show", "nobody"], 5),
        (&admin, &["users", "sessions", "list", "nobody"], 5),
        (&admin, &["users", "sessions", "revoke", "bob", "--session", &session, "--yes"], 5),
        (&member, &["users", "sessions", "revoke", "ada", "--yes"], 4),
        (&admin, &["users", "show", "usr_01BX5ZZKBKACTAV9WEVGEMMVRZ"], 5),
        (&admin, &["users", "edit", "ada", "--role", "member"], 6),
        (&admin, &["users", "edit", "bob", "--display-name", " "], 2),
        (&admin, &["users", "delete", "bob"], 2),
        (&admin, &["users", "delete", "bob", "--yes"], 0),
        (&admin, &["users", "show", "bob"], 5),
        (&member, &["stats"], 4),
    ] {
        let output = hub_cli(&server.url, token, arguments).await;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {told}");
        assert_eq!(output.stdout.is_empty(), exit != 0, "{arguments:?}");
        assert!(!told.contains("hubu_"), "{told}");
    }
}

async fn open(config: &StoreConfig) -> Hub {
    let hub = Hub::builder().store(config.clone()).secret_key([7; 32]).open().await.unwrap();
    hub.start().await.unwrap();
    hub
}

/// The other node is notified of a revocation, and rejects the credential.
#[tokio::test]
async fn a_revocation_on_one_node_reaches_the_other() {
    let Some(server) = postgres::server() else { return };
    let config = server.create_database().await;
    let (here, there) = (open(&config).await, open(&config).await);
    let new = |name: &str| NewUser {
        username: name.to_owned(),
        password: PASSWORD.into(),
        display_name: None,
        email: None,
    };
    let client = ClientInfo::default();
    here.accounts().register(new("ada"), None, &client).await.unwrap();
    let bob = here.accounts().register(new("bob"), None, &client).await.unwrap();
    let second = here.accounts().login("bob", PASSWORD.into(), &client).await.unwrap();
    let holds = async |token: &str| there.accounts().authenticate_session(token).await;
    let (first_actor, second_actor) =
        (holds(bob.token.expose()).await.unwrap(), holds(second.token.expose()).await.unwrap());
    let key = NewApiKey { name: "ci".to_owned(), expires_in_days: None };
    let key = here.accounts().create_api_key(&first_actor, key, None).await.unwrap();
    let key_actor = there.accounts().authenticate_api_key(key.secret.expose()).await.unwrap();
    let mut heard = there.revocations();
    let mut next = async || {
        let waited = tokio::time::timeout(Duration::from_secs(30), heard.recv()).await;
        waited.expect("nothing is heard").unwrap()
    };
    here.accounts().logout(&first_actor).await.unwrap();
    let ended = next().await;
    assert!(ended.concerns(&first_actor) && !ended.concerns(&second_actor) && !ended.concerns(&key_actor));
    holds(bob.token.expose()).await.unwrap_err();
    here.accounts().delete_api_key(&second_actor, key.key.id).await.unwrap();
    assert_eq!(next().await, Revoked::Key(key.key.id));
    there.accounts().authenticate_api_key(key.secret.expose()).await.unwrap_err();
    let off = UserPatch { status: Some(UserStatus::Disabled), ..UserPatch::default() };
    here.admin().update_user(&Actor::Operator, bob.me.user.id, off).await.unwrap();
    assert!(next().await.concerns(&second_actor));
    holds(second.token.expose()).await.unwrap_err();
    // What was counted on one node shows on the other.
    here.context().node.counters.messages.count("received");
    here.shutdown().await;
    until("the count", async || {
        let stats = there.admin().stats(&Actor::Operator).await.unwrap();
        (stats.totals.messages_in == 1).then_some(())
    })
    .await;
    there.shutdown().await;
    server.drop_database(&config).await;
}
