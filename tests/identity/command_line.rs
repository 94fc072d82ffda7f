//! `hub-cli login`: a code on a terminal, confirmed elsewhere.

use std::{
    path::Path,
    process::{Output, Stdio},
};

use hub_core::{
    ErrorCode,
    accounts::{ClientInfo, NewApiKey, NewUser},
    egress::EgressConfig,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
};

use super::stage::Fixture;
use crate::support::{binaries, http::Caller};

fn hub_cli(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binaries::program("hub-cli"));
    command.args(arguments).env_clear().env("HOME", home).env("LANG", "C.UTF-8");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

async fn run(home: &Path, arguments: &[&str]) -> Output {
    hub_cli(home, arguments).output().await.unwrap()
}

fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Reads a drawing of half blocks as a camera would: light where a block is painted, four pixels a module.
fn decode(drawing: &[String]) -> String {
    let rows: Vec<Vec<bool>> = drawing
        .iter()
        .flat_map(|line| {
            let upper = line.chars().map(|c| matches!(c, '█' | '▀')).collect();
            let lower = line.chars().map(|c| matches!(c, '█' | '▄')).collect();
            [upper, lower]
        })
        .collect();
    let width = rows[0].len();
    let light = |x: usize, y: usize| if rows[y / 4][x / 4] { 255 } else { 0 };
    let mut image = rqrr::PreparedImage::prepare_from_greyscale(width * 4, rows.len() * 4, light);
    let grids = image.detect_grids();
    assert_eq!(grids.len(), 1, "one code is on the screen");
    grids[0].decode().unwrap().1
}

#[tokio::test]
async fn a_terminal_shows_a_code_and_gets_a_key() {
    let fixture = Fixture::open(EgressConfig::default(), |_| {}).await;
    let ada = NewUser {
        username: "ada".to_owned(),
        password: "correct horse battery".into(),
        display_name: None,
        email: None,
    };
    let ada = fixture.hub.accounts().register(ada, None, &ClientInfo::default()).await.unwrap();
    let ada = Caller::stranger(&fixture.url).with_cookie(format!("session={}", ada.token.expose()));
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let nobody = run(home, &["whoami"]).await;
    assert_eq!(nobody.status.code(), Some(4));

    let mut login = hub_cli(home, &["login", "--qr", "--server", &fixture.url]).spawn().unwrap();
    let mut lines = BufReader::new(login.stderr.take().unwrap()).lines();
    let (mut drawing, mut link, mut code) = (Vec::new(), String::new(), String::new());
    while code.is_empty() {
        let line = lines.next_line().await.unwrap().expect("a code is shown");
        if line.chars().any(|c| matches!(c, '█' | '▀' | '▄')) {
            drawing.push(line);
        } else if let Some(shown) = line.trim().strip_prefix("code: ") {
            shown.clone_into(&mut code);
        } else if line.trim().starts_with("http") {
            line.trim().clone_into(&mut link);
        }
    }
    assert_eq!(decode(&drawing), link, "what a camera reads");
    let qr_id = link.split_once("qr=").unwrap().1;
    let asker = ada.post("/api/auth/qr/open", json!({ "qr_id": qr_id })).await;
    assert!(asker["user_agent"].as_str().unwrap().starts_with("hub-cli/"), "{asker}");
    let confirm = json!({ "qr_id": qr_id, "user_code": code, "approve": true });
    assert_eq!(ada.post("/api/auth/qr/confirm", confirm).await["status"], "confirmed");
    assert!(login.wait_with_output().await.unwrap().status.success());

    let me = json_of(&run(home, &["whoami", "--json"]).await);
    assert_eq!((&me["username"], &me["role"]), (&json!("ada"), &json!("admin")));
    let listed = json_of(&run(home, &["profiles", "list", "--json"]).await);
    assert_eq!(
        (&listed["items"][0]["name"], &listed["items"][0]["current"]),
        (&json!("default"), &json!(true))
    );
    assert!(!listed.to_string().contains("hubu_"), "keys are not listed");
    let file = home.join(".config/hub/credentials.json");
    assert!(!hub_core::private_files::is_exposed(&file).unwrap());
    assert!(std::fs::read_to_string(&file).unwrap().contains("hubu_"));
    // The profile is what other commands ask with, unless another one is given.
    let listed = json_of(&run(home, &["users", "list", "--json"]).await);
    assert_eq!(listed["items"][0]["username"], "ada");
    let told = run(home, &["users", "list"]).await;
    assert_eq!(String::from_utf8_lossy(&told.stderr), "", "nothing is said of a server on this machine");
    for arguments in [&["stats", "--server", &fixture.url][..], &["audit", "list", "--profile", "default"]] {
        json_of(&run(home, &[arguments, &["--json"]].concat()).await);
    }
    let set = ["ai-config", "set", "--base-url", "https://ai.example/v1", "--model", "small", "--json"];
    let set = json_of(&run(home, &set).await);
    assert_eq!((&set["model"], &set["enabled"]), (&json!("small"), &json!(true)));
    let shown = json_of(&run(home, &["ai-config", "show", "--json"]).await);
    assert_eq!((&shown["base_url"], &shown["api_key"]), (&json!("https://ai.example/v1"), &Value::Null));
    for (arguments, exit) in [
        (&["stats", "--profile", "work"][..], 4),
        (&["stats", "--profile", "default", "--server", "https://hub.example"], 2),
        (&["stats", "--server", "https://hub.example"], 4),
        (&["stats", "--local"], 5),
        (&["stats", "--data-dir", "nowhere"], 5),
    ] {
        assert_eq!(run(home, arguments).await.status.code(), Some(exit), "{arguments:?}");
    }

    let key = stored_key(&file);
    let out = json_of(&run(home, &["logout", "--json"]).await);
    assert_eq!(out["key_ended"], true);
    assert_eq!(run(home, &["whoami"]).await.status.code(), Some(4));
    assert!(!std::fs::read_to_string(&file).unwrap().contains("hubu_"));
    let ended = fixture.hub.accounts().authenticate_api_key(&key).await.unwrap_err();
    assert_eq!(ended.code(), ErrorCode::InvalidToken, "no one who has kept the key gets in");
    fixture.close().await;
}

fn stored_key(file: &Path) -> String {
    let stored: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    stored["profiles"]["default"]["key"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_key_from_elsewhere_stays_valid_after_logout() {
    let fixture = Fixture::open(EgressConfig::default(), |_| {}).await;
    let ada = NewUser {
        username: "ada".to_owned(),
        password: "correct horse battery".into(),
        display_name: None,
        email: None,
    };
    let accounts = fixture.hub.accounts();
    let signed_in = accounts.register(ada, None, &ClientInfo::default()).await.unwrap();
    let ada = accounts.authenticate_session(signed_in.token.expose()).await.unwrap();
    let new = NewApiKey { name: "ci".to_owned(), expires_in_days: None };
    let key = accounts.create_api_key(&ada, new, None).await.unwrap().secret;
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let log_in = async || {
        let mut command = hub_cli(home, &["login", "--server", &fixture.url, "--with-token", "--json"]);
        let mut login = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = login.stdin.take().unwrap();
        stdin.write_all(format!("{}\n", key.expose()).as_bytes()).await.unwrap();
        drop(stdin);
        json_of(&login.wait_with_output().await.unwrap());
    };
    log_in().await;
    let out = json_of(&run(home, &["logout", "--json"]).await);
    assert_eq!(out["key_ended"], false);
    accounts.authenticate_api_key(key.expose()).await.expect("it may be in use elsewhere");
    // Where no one answers, the profile is forgotten all the same.
    log_in().await;
    fixture.close().await;
    assert_eq!(run(home, &["whoami"]).await.status.code(), Some(7));
    json_of(&run(home, &["logout", "--json"]).await);
    assert_eq!(run(home, &["whoami"]).await.status.code(), Some(4));
}

#[tokio::test]
async fn a_refused_login_is_reported_in_the_terminal() {
    let fixture = Fixture::open(EgressConfig::default(), |_| {}).await;
    let ada = NewUser {
        username: "ada".to_owned(),
        password: "correct horse battery".into(),
        display_name: None,
        email: None,
    };
    let ada = fixture.hub.accounts().register(ada, None, &ClientInfo::default()).await.unwrap();
    let ada = Caller::stranger(&fixture.url).with_cookie(format!("session={}", ada.token.expose()));
    let home = tempfile::tempdir().unwrap();
    let mut login = hub_cli(home.path(), &["login", "--server", &fixture.url]).spawn().unwrap();
    let mut lines = BufReader::new(login.stderr.take().unwrap()).lines();
    let link = loop {
        let line = lines.next_line().await.unwrap().expect("a link is shown");
        if line.trim().starts_with("http") {
            break line.trim().to_owned();
        }
    };
    let qr_id = link.split_once("qr=").unwrap().1;
    ada.post("/api/auth/qr/confirm", json!({ "qr_id": qr_id, "approve": false })).await;
    assert_eq!(login.wait().await.unwrap().code(), Some(4));
    fixture.close().await;
}
