//! `send`: accepts a message into the outbox, and with `--wait` waits until it is sent.

use std::{fs::File, io::Read as _, path::Path, time::Duration};

use hub_core::{
    access::Actor,
    apps::token_prefix,
    id::{AppId, BotId, TraceId},
    secret::Secret,
    traces::{Trace, TraceStatus},
};
use serde_json::{Value, json};

use super::text_or_stdin;
use crate::{
    args::SendArgs,
    client::{Body, Client, Form, InstallationRef, Request, id_of},
    context::Context,
    document::cell,
    exit::{Exit, Failure},
    poll::within,
};

/// Maximum size of a file, in bytes: what a hub accepts.
const MAX_FILE: u64 = 50 << 20;
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The operation with which an app sends.
const BOT_API_SEND: &str = "/bot/v1/messages/send";
/// Source of an app's token: arguments are visible to every user of the machine.
const APP_TOKEN: &str = "HUB_APP_TOKEN";

pub async fn run(args: SendArgs, cx: &Context) -> Result<(), Failure> {
    let content = args.text.map(text_or_stdin).transpose()?.unwrap_or_default();
    let content = content.trim_end_matches('\n');
    let file = args.file.as_deref().map(read).transpose()?;
    let client = cx.hub(&args.hub).await?;
    let bot = client.bot(&args.bot).await?;
    if args.wait {
        client.expect_running_server().await?;
    }
    let mut body = json!({ "to_user_id": args.to, "content": content });
    if let Some(id) = args.reply_to {
        body["reply_to"] = json!(id);
    }
    let form = if let Some((name, bytes)) = file { Some(Form::new(&body, name, bytes).await?) } else { None };
    let body = form.as_ref().map_or(Body::Json(&body), Body::Form);
    let sent = match &args.via_app {
        Some(app) => send_as_app(&client, app, bot, body).await?,
        None => client.post_body(&format!("/api/bots/{bot}/send"), body).await?,
    };
    let status = if args.wait {
        let named = format!("message {} (trace {})", cell(&sent, "message_id"), cell(&sent, "trace_id"));
        let trace = wait(&client, bot, trace_of(&sent)?, Duration::from_secs(args.timeout)).await?;
        match trace {
            Some(trace) if trace.status == TraceStatus::Ok => "sent".to_owned(),
            Some(trace) => {
                let what = format!("{named} was not sent: {}", trace.summary);
                return Err(Failure::new(Exit::Failed, "UPSTREAM_ERROR", what));
            }
            None => {
                let what = format!("{named} was not sent within {} s", args.timeout);
                return Err(Failure::timed_out(what).with_hint("is a server running for this hub?"));
            }
        }
    } else {
        cell(&sent, "status")
    };
    let text = format!("{}\t{}\t{status}", cell(&sent, "message_id"), cell(&sent, "trace_id"));
    let document = json!({
        "message_id": sent["message_id"], "trace_id": sent["trace_id"], "bot_id": bot, "status": status,
    });
    cx.printer.one(document, &text)
}

/// The name and the content of a file.
fn read(path: &Path) -> Result<(String, Vec<u8>), Failure> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| Failure::file(path, error))?;
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|error| Failure::file(path, error))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(Failure::file(path, "must be at most 50 MiB"));
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok((name.unwrap_or_default(), bytes))
}

/// Sends as an app on a bot, through the bot API: with its token to a server; on files the operator acts for the app,
/// and the call is in the app's log all the same.
async fn send_as_app(client: &Client, app: &str, bot: BotId, body: Body<'_>) -> Result<Value, Failure> {
    let app: AppId = id_of(&client.app(app).await?)?;
    let request = Request { method: "POST", path: BOT_API_SEND, query: &[], body };
    let mut sent = if let Some(hub) = client.hub() {
        let app = hub.apps().acting(&Actor::Operator, bot, app).await?;
        client.acting_as(app).exchange(request).await?
    } else {
        let installation = client.installation(InstallationRef { bot, app }).await?;
        let token = app_token(&installation["app_token_prefix"])?;
        let server = client.server().ok_or_else(|| Failure::usage("there is no local hub"))?;
        server.with_token(Some(token))?.exchange(request).await?
    };
    sent["status"] = "queued".into();
    Ok(sent)
}

/// The token in the environment, when it is the one whose prefix the bot's list shows.
fn app_token(prefix: &Value) -> Result<Secret, Failure> {
    let rotate = "replace a lost one with hub-cli apps rotate-token";
    let token = std::env::var(APP_TOKEN).ok().filter(|token| !token.is_empty()).ok_or_else(|| {
        Failure::usage(format!("--via-app: a server needs the app's token in {APP_TOKEN}")).with_hint(rotate)
    })?;
    let token = Secret::new(token);
    if *prefix != token_prefix(&token.last4()) {
        return Err(Failure::usage(format!("--via-app: {APP_TOKEN} is not the app's token on this bot"))
            .with_hint(rotate));
    }
    Ok(token)
}

fn trace_of(sent: &Value) -> Result<TraceId, Failure> {
    let id = sent["trace_id"].as_str().and_then(|id| id.parse().ok());
    id.ok_or_else(|| Failure::unreachable("the server's response contains no trace"))
}

/// The trace of a completed send; `None` when that takes longer than `limit`.
async fn wait(client: &Client, bot: BotId, id: TraceId, limit: Duration) -> Result<Option<Trace>, Failure> {
    within(POLL_INTERVAL, limit, async || match client.trace(Some(bot), id).await {
        // A server creates it when it starts to process the message.
        Err(failure) if failure.exit == Exit::NotFound => Ok(None),
        found => Ok(Some(found?).filter(|trace| trace.status != TraceStatus::Pending)),
    })
    .await
}
