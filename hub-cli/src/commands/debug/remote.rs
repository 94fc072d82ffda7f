//! `--remote`: the same run on a server, for comparison.

use hub_core::plugins::debug::DebugRun;
use serde_json::{Value, json};

use super::Tried;
use crate::{
    args::HubArgs,
    client::Client,
    commands::plugins::cases::compare,
    context::Context,
    exit::{Exit, Failure},
    printer::{Printer, Tone},
    screen,
};

/// The fields that are compared; times are not.
const COMPARED_FIELDS: [&str; 7] = ["matched", "present", "request", "replies", "skipped", "state", "logs"];

/// A channel of a server.
pub struct Server {
    client: Client,
    channel: String,
}

impl Server {
    /// The server of the arguments.
    pub fn open(hub: &HubArgs, channel: &str, cx: &Context) -> Result<Self, Failure> {
        let client = Client::server_of(hub, cx.local)?;
        let client = client.ok_or_else(|| {
            Failure::usage("--remote needs a server").with_hint("name it with --server, its key in HUB_TOKEN")
        })?;
        Ok(Self { client, channel: channel.to_owned() })
    }

    /// Runs the hook on the server, and sets `run` to the same input: the channel's webhook, the message as the
    /// server completed it.
    pub async fn ask(&self, run: &mut DebugRun) -> Result<Value, Failure> {
        let said = &run.message;
        let message = json!({
            "content": said["content"],
            "sender": { "user_id": said["sender"]["user_id"], "user_name": said["sender"]["user_name"] },
            "msg_type": said["msg_type"],
        });
        let mut body = json!({ "script": run.script, "message": message });
        let hook = match &run.response {
            None => "request",
            Some(response) => {
                body["response"] =
                    json!({ "status": response.status, "headers": response.headers, "body": response.body });
                if let Some(state) = &run.state {
                    body["state"] = json!(state);
                }
                "response"
            }
        };
        let path = format!("/api/webhooks/{}/debug/{hook}", self.channel);
        let theirs = self.client.post(&path, &body).await?;
        if let Some(url) = theirs["before"]["url"].as_str() {
            url.clone_into(&mut run.url);
        }
        if theirs["before"]["body"].is_object() {
            run.message = theirs["before"]["body"].clone();
        }
        Ok(theirs)
    }
}

/// Prints the differences of the two runs.
pub fn compare_runs(theirs: &Value, tried: &mut Tried, printer: &Printer) {
    let mut differences = Vec::new();
    for name in COMPARED_FIELDS {
        compare(name, &untimed(&theirs[name]), &untimed(&tried.document[name]), &mut differences);
    }
    for name in ["kind", "message", "line", "column"] {
        let (here, there) = (&tried.document["error"][name], &theirs["error"][name]);
        compare(&format!("error.{name}"), there, here, &mut differences);
    }
    let took = format!("{} ms on the server", theirs["duration_ms"]);
    let (here, there) = (env!("CARGO_PKG_VERSION"), theirs["hub_version"].as_str().unwrap_or("unknown"));
    if here != there {
        let there = screen::clean(there);
        let warning = format!("the server has version {there}, this program {here}");
        tried.say(&format!("  {} {warning}", printer.paint("remote", Tone::Doubtful)));
    }
    if differences.is_empty() {
        tried.say(&format!("  {} no differences, {took}", printer.paint("remote", Tone::Good)));
    } else {
        tried.exit = Exit::CheckFailed;
        let hint = "does the channel have another webhook?";
        tried.say(&format!("  {} differs, {took}: {hint}", printer.paint("remote", Tone::Bad)));
    }
    for difference in &differences {
        tried.say(&format!("    {}", screen::clean(difference)));
    }
    tried.document["remote"] = json!({
        "same": differences.is_empty(), "differences": differences, "duration_ms": theirs["duration_ms"],
        "version": theirs["hub_version"],
    });
}

/// A value without the times of log lines.
fn untimed(value: &Value) -> Value {
    match value {
        Value::Array(items) => items
            .iter()
            .cloned()
            .map(|mut item| {
                if let Some(line) = item.as_object_mut() {
                    line.remove("at_ms");
                }
                item
            })
            .collect(),
        other => other.clone(),
    }
}
