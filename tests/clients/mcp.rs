//! mcp 2.3.0, the official Python client of the Model Context Protocol, against `/mcp` over a socket: with the handshake
//! of the older versions of the protocol, and without it as in the newest.

use std::{process::Stdio, time::Duration};

use hub_core::{
    apps::{AppCall, AppPatch, Apps, Install, NewApp, NewInstallation},
    id::AppId,
    page::PageRequest,
};
use serde_json::{Value, json};

use super::installed;
use crate::sockets::stage::Stage;

const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// An app on the stage's bot: its id and its token.
async fn app(stage: &Stage, name: &str, scopes: &[&str]) -> (AppId, String) {
    let (apps, owner) = (stage.world.hub.apps(), &stage.world.owner);
    let scopes = Some(scopes.iter().map(|word| (*word).to_owned()).collect());
    let rest = AppPatch { scopes, ..AppPatch::default() };
    let made = apps.create(owner, NewApp { name: name.to_owned(), slug: None, rest }, None).await.unwrap();
    let new = NewInstallation { app_id: made.app.id, scopes: None, handle: None, config: None };
    let installed = apps.install(owner, stage.bot.id, new, None).await.unwrap();
    let Install::Done(installed) = installed else { panic!("{installed:?}") };
    (made.app.id, installed.app_token.expose().to_owned())
}

/// API calls of an app, newest first.
async fn calls(stage: &Stage, app: AppId) -> Vec<AppCall> {
    let page = PageRequest::parse(&Apps::call_list(stage.bot.id, app), Some(200), None).unwrap();
    stage.world.hub.apps().calls(&stage.world.owner, stage.bot.id, app, &page).await.unwrap().items
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} in {value}"))
}

/// Runs the client, and returns its output as events.
async fn listen(command: std::process::Command) -> Vec<Value> {
    let mut command = tokio::process::Command::from(command);
    let output = command.kill_on_drop(true).stderr(Stdio::inherit()).output();
    let output = tokio::time::timeout(TEST_TIMEOUT, output).await.expect("it ends").unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told}");
    told.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn the_official_mcp_client_uses_every_tool() {
    let Some(mut command) = installed::mcp() else { return };
    let stage = Stage::new().await;
    stage.say("hello");
    stage
        .world
        .until("the message", async || (!stage.world.traces(&stage.bot).await.is_empty()).then_some(()))
        .await;
    let (id, token) = app(&stage, "assistant", &["message:write", "contact:read", "bot:read"]).await;
    let (_, narrow) = app(&stage, "narrow", &["bot:read"]).await;
    command.arg(format!("http://{}/mcp", stage.address)).args([&token, &narrow]);
    let told = listen(command).await;

    let (legacy, newest) = told.split_at(told.len() / 2);
    for (mode, version, told) in [("legacy", "2025-11-25", legacy), ("auto", "2026-07-28", newest)] {
        let mut told = told.iter();
        let mut next = |event: &str| {
            let one = told.next().unwrap_or_else(|| panic!("{mode}: nothing after the last"));
            assert_eq!(one["event"], event, "{mode}: {one}");
            one
        };
        let hello = next("hello");
        assert_eq!((text(hello, "mode"), text(hello, "version")), (mode, version));
        assert_eq!(text(hello, "server"), "message-hub");
        assert_eq!(next("tools")["names"], json!(["send_message", "list_contacts", "get_bot_info"]));
        let mut answered = |tool: &str, is_error: bool| {
            let one = next("answered");
            assert_eq!(
                (text(one, "tool"), one["is_error"].as_bool()),
                (tool, Some(is_error)),
                "{mode}: {one}"
            );
            one
        };
        assert_eq!(answered("get_bot_info", false)["structured"]["bot_id"], stage.bot.id.to_string());
        let contacts = &answered("list_contacts", false)["structured"]["contacts"];
        assert_eq!(contacts.as_array().map(Vec::len), Some(1), "{contacts}");
        let sent = answered("send_message", false)["structured"].clone();
        assert!(text(&sent, "message_id").starts_with("msg_"), "{sent}");
        assert!(text(answered("send_message", true), "text").starts_with("WINDOW_CLOSED: "));
        assert!(text(answered("send_message", true), "text").starts_with("INVALID_PARAMS: "));
        let unknown = next("refused");
        assert_eq!((text(unknown, "what"), &unknown["code"]), ("unknown tool", &json!(-32602)));
        assert_eq!(text(next("refused"), "what"), "oversize");
        // After that it goes on as before.
        let mut answered = |tool: &str, is_error: bool| {
            let one = next("answered");
            assert_eq!(
                (text(one, "tool"), one["is_error"].as_bool()),
                (tool, Some(is_error)),
                "{mode}: {one}"
            );
            one
        };
        answered("get_bot_info", false);
        assert!(text(answered("list_contacts", true), "text").starts_with("FORBIDDEN: "));
        assert_eq!(text(next("refused"), "what"), "wrong token");
        assert!(told.next().is_none());
    }
    // What was sent has arrived, and the calls stand in the app's log.
    let sent = stage.world.wait_sent(&stage.bot, 2).await;
    let said: Vec<_> = sent.iter().map(|one| &*one.text).collect();
    assert_eq!(said, ["from legacy", "from auto"]);
    let log = stage
        .world
        .until("the log", async || Some(calls(&stage, id).await).filter(|calls| calls.len() >= 18))
        .await;
    assert!(log.iter().all(|call| call.path == "/mcp"), "{log:?}");
    assert_eq!(log.iter().filter(|call| call.trace_id.is_some()).count(), 2, "both that were sent");
}
