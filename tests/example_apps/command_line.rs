//! The command line as someone uses it who writes an app: a hub of their own, apps on a server, and a token by OAuth
//! from a terminal.

use serde_json::{Value, json};
use tokio::process::Command;

use super::Browser;
use crate::{
    sockets::client::open,
    support::{
        binaries,
        http::{Caller, until},
        process::Process,
    },
};

/// `hub-cli sim app`, and Ada, who administers it.
struct Place {
    _process: Process,
    url: String,
    cookie: String,
    key: String,
    mock: Caller,
    home: tempfile::TempDir,
}

impl Place {
    async fn new(arguments: &[&str]) -> Self {
        let all = [&["sim", "app", "--listen", "127.0.0.1:0"], arguments].concat();
        let mut process = Process::start(&binaries::program("hub-cli"), &all, &[]);
        let url = process.wait_line("ready ").await;
        let mock = Caller::stranger(&url);
        let body = json!({ "username": "ada", "password": "tr0mbone solo" });
        let (_, _, cookie) = mock.call(reqwest::Method::POST, "/api/auth/register", Some(body)).await;
        let cookie = cookie.unwrap();
        let ada = mock.clone().with_cookie(cookie.clone());
        let key = ada.post("/api/user/api-keys", json!({ "name": "terminal" })).await;
        let key = key["key"].as_str().unwrap().to_owned();
        Self { _process: process, url, cookie, key, mock, home: tempfile::tempdir().unwrap() }
    }

    fn environment(&self) -> Vec<(&str, &str)> {
        let home = self.home.path().to_str().unwrap();
        vec![("HUB_SERVER", &self.url), ("HUB_TOKEN", &self.key), ("HOME", home), ("LANG", "C.UTF-8")]
    }

    async fn ends(&self, arguments: &[&str], exit: i32) -> (String, String) {
        let mut command = Command::new(binaries::program("hub-cli"));
        command.env_clear().envs(self.environment()).stdin(std::process::Stdio::null()).args(arguments);
        let output = command.output().await.unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {err}");
        (out, err)
    }

    async fn document(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ends(&[arguments, &["--json"]].concat(), 0).await.0).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_to_develop_an_app_against() {
    let place = Place::new(&["--app-slug", "my-app", "--command", "weather"]).await;
    let config = place.mock.control("/mock/config", None).await;
    assert_eq!((&config["app_slug"], &config["hub_url"]), (&json!("my-app"), &json!(place.url)));
    // The bot API is the server's, at the same address.
    let app = Caller::stranger(&place.url).with_bearer(config["app_token"].as_str().unwrap());
    let asked = async |path: &str| app.control(path, None).await;
    let bot = asked("/bot/v1/bot").await;
    assert_eq!((&bot["ok"], &bot["bot_id"]), (&json!(true), &config["bot_id"]), "{bot}");
    let known = asked("/bot/v1/contacts").await;
    let mut people: Vec<_> =
        known["contacts"].as_array().unwrap().iter().map(|one| one["user_id"].as_str().unwrap()).collect();
    people.sort_unstable();
    assert_eq!(people, ["user_alice", "user_bob", "user_test"]);
    let said =
        place.mock.control("/mock/event", Some(json!({ "sender": "user_bob", "content": "/weather" }))).await;
    assert_eq!((&said["ok"], &said["sender"]), (&json!(true), &json!("user_bob")));
    let (bot, app) = (config["bot_id"].as_str().unwrap(), config["app_id"].as_str().unwrap());
    until("the event", async || {
        let events = place.document(&["apps", "events", "my-app", "--bot", bot]).await;
        (events["items"][0]["event_type"] == "command").then_some(())
    })
    .await;
    let calls = place.document(&["apps", "api-logs", app, "--bot", "mock"]).await;
    assert_eq!(calls["items"].as_array().unwrap().len(), 2, "{calls}");
    let (said, _) = place.ends(&["sim", "say", "hi", "--as", "user_alice@x", "--sim", &place.url], 0).await;
    assert!(!said.trim().is_empty());
    place.ends(&["sim", "app", "--listen", place.url.trim_start_matches("http://")], 2).await;
    place.ends(&["sim", "app", "--listen", "127.0.0.1:0", "--app-slug", "A b"], 2).await;
}

/// Repeats the calls of the published check suite for app authors, with the token and the bot id that it expects.
#[tokio::test(flavor = "multi_thread")]
async fn a_published_check_suite_of_apps_passes() {
    const TOKEN: &str = "test-runner-token";
    let place = Place::new(&["--app-token", TOKEN, "--bot-id", "mock-bot", "--app-slug", "runner"]).await;
    let control = async |path: &str, body: Option<Value>| place.mock.control(path, body).await;
    assert_eq!(control("/mock/reset", Some(json!({}))).await["ok"], true);
    let config = control("/mock/config", None).await;
    assert_eq!((&config["app_token"], &config["bot_id"]), (&json!(TOKEN), &json!("mock-bot")));
    let empty = control("/mock/messages", None).await;
    assert_eq!((&empty["store_messages"], &empty["provider_messages"]), (&json!([]), &json!([])));

    #[expect(clippy::disallowed_methods, reason = "the suite calls the hub from outside, over a real socket")]
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let call = async |method: reqwest::Method, path: &str, token: &str, body: Value| {
        let request = client.request(method, format!("{}{path}", place.url)).bearer_auth(token);
        let response = request.json(&body).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let (get, put, post) = (reqwest::Method::GET, reqwest::Method::PUT, reqwest::Method::POST);
    let tools = json!({ "tools": [
        { "name": "echo", "description": "Echo", "command": "echo",
            "parameters": { "type": "object", "properties": { "args": { "type": "string" } } } },
        { "name": "date", "description": "Date", "command": "date" },
    ] });
    let (_, set) = call(put, "/bot/v1/installation/tools", TOKEN, tools).await;
    assert_eq!((&set["ok"], &set["tool_count"]), (&json!(true), &json!(2)), "{set}");
    let (_, info) = call(get.clone(), "/bot/v1/info", TOKEN, Value::Null).await;
    assert_eq!((&info["ok"], &info["bot"]["status"]), (&json!(true), &json!("connected")), "{info}");
    let (_, contacts) = call(get.clone(), "/bot/v1/contact", TOKEN, Value::Null).await;
    assert!(contacts["ok"] == true && contacts["contacts"].is_array(), "{contacts}");
    let message = json!({ "to": "user_test", "content": "hello from test" });
    let (_, sent) = call(post, "/bot/v1/message/send", TOKEN, message).await;
    assert!(sent["ok"] == true && sent["client_id"].is_string(), "{sent}");
    assert_eq!(call(get, "/bot/v1/info", "wrong-token", Value::Null).await.0, 401);

    control("/mock/reset", Some(json!({}))).await;
    let address = place.url.trim_start_matches("http://").parse().unwrap();
    let target = format!("/bot/v1/ws?token={TOKEN}");
    let mut socket = open(address, &target, &[]).await.unwrap_or_else(|refused| panic!("{}", refused.json));
    socket.hear("init").await;
    let said = json!({ "sender": "user_alice", "content": "/echo hello world" });
    assert_eq!(control("/mock/event", Some(said)).await["ok"], true);
    let data = socket.hear("event").await["event"]["data"].clone();
    assert_eq!((&data["command"], &data["text"]), (&json!("echo"), &json!("hello world")), "{data}");
    let reply = json!({ "type": "send", "req_id": "1", "to": data["sender"]["id"], "content": data["text"] });
    socket.say(&reply).await;
    let got = control("/mock/messages?wait_ms=10000", None).await;
    let (to, text) = (&got["provider_messages"][0]["to"], &got["provider_messages"][0]["text"]);
    assert_eq!((to, text), (&json!("user_alice"), &json!("hello world")), "{got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_to_develop_an_app_against_finds_a_free_port_and_prints_the_next_command() {
    let usual = std::net::TcpListener::bind("127.0.0.1:9801");
    let mut process = Process::start(&binaries::program("hub-cli"), &["sim", "app"], &[]);
    let token = process.wait_line("app_token ").await.trim().to_owned();
    let next = process.wait_line("  HUB_URL=").await;
    let url = process.wait_line("ready ").await;
    assert!(!url.ends_with(":9801"), "someone else is there: {url}");
    assert!(next.starts_with(&format!("{url} APP_TOKEN={token} WEBHOOK_SECRET=")), "{next}");
    drop(usual);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_by_oauth_from_a_terminal() {
    let place = Place::new(&[]).await;
    let create = ["apps", "create", "Weather", "--scope", "bot:read", "--scope", "message:write"];
    let made = place.document(&create).await;
    assert_eq!(made["owner_name"], "ada");
    let (_, told) = place.ends(&["apps", "authorize", "weather", "--bot", "mock"], 2).await;
    assert!(told.contains("no http redirect URI") && told.contains("--redirect-uri"), "{told}");
    // Free for the moment.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let uri = format!("http://127.0.0.1:{port}/callback");
    place.document(&["apps", "edit", "weather", "--redirect-uri", &uri]).await;
    let browser = Browser::new(&place.url, &place.cookie);
    let begin = async |more: &[&str]| {
        let all = [&["apps", "authorize", "weather", "--json", "--scope", "bot:read"], more].concat();
        let mut process = Process::start(&binaries::program("hub-cli"), &all, &place.environment());
        let question = process.wait_line("  http").await;
        (process, format!("http{question}"))
    };

    let (process, question) = begin(&["--bot", "mock"]).await;
    assert!(
        question.contains("code_challenge_method=S256") && question.contains("scope=bot%3Aread"),
        "{question}"
    );
    // An answer of another user does not count.
    assert_eq!(browser.status_of(&format!("{uri}?code=x&state=another")).await, 404);
    let answer = browser.decide(&question, "allow").await;
    assert_eq!(browser.status_of(&answer).await, 200);
    let (status, log) = process.wait().await;
    assert!(status.success(), "{log}");
    let granted = log.lines().find_map(|line| serde_json::from_str::<Value>(line).ok()).unwrap();
    assert!(granted["app_token"].as_str().unwrap().starts_with("huba_"), "{granted}");
    assert!(granted["webhook_secret"].is_string() && granted["installation_id"].is_string());
    let on_bot = place.document(&["apps", "list", "--bot", "mock"]).await;
    assert_eq!(on_bot["items"][0]["scopes"], json!(["bot:read"]), "{on_bot}");

    let (process, question) = begin(&["--bot", "mock"]).await;
    let answer = browser.decide(&question, "deny").await;
    assert!(answer.contains("error=access_denied"), "{answer}");
    assert_eq!(browser.status_of(&answer).await, 200);
    let (status, log) = process.wait().await;
    assert_eq!(status.code(), Some(4), "{log}");
    assert!(log.contains("owner rejected it"), "{log}");

    let (_, told) = place.ends(&["apps", "authorize", "weather", "--timeout", "1"], 8).await;
    assert!(told.contains("--timeout"), "{told}");
    let taken = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    place.ends(&["apps", "authorize", "weather"], 2).await;
    drop(taken);
    place.ends(&["apps", "authorize", "weather", "--redirect-uri", "http://127.0.0.1:1/other"], 2).await;
    place.ends(&["apps", "authorize", "nothing"], 5).await;
    place.document(&["apps", "rotate-token", "weather", "--bot", "mock"]).await;
    place.document(&["apps", "uninstall", "weather", "--bot", "mock", "--yes"]).await;
    place.document(&["apps", "delete", "weather", "--yes"]).await;
    place.ends(&["apps", "create", "Weather", "--owner", "eve"], 2).await;
}
