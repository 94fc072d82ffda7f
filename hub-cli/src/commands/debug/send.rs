//! `--send`: sends the request, and runs the response hook on the response.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use hub_core::{
    egress::{Call, CheckedHeaders, Egress, EgressConfig},
    plugins::{
        Manifest,
        debug::{DebugResponse, DebugRun, Debugged, debug_with},
        outcome::millis,
    },
    sandbox::{FetchGate, PluginRequest, Sandbox},
    time::Stopwatch,
};
use serde_json::{Value, json};

use super::Tried;
use crate::{
    exit::{Exit, Failure},
    screen,
};

/// Timeout of the request: the default of a channel.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of the response, in bytes.
const MAX_ANSWER: usize = 1 << 20;
/// Maximum width of the shown part of the response, in columns.
const MAX_BODY_COLUMNS: usize = 200;

/// A plugin with what runs it.
pub struct Plugin<'p> {
    pub sandbox: &'p Sandbox,
    pub gate: &'p dyn FetchGate,
    pub source: &'p str,
    pub manifest: &'p Manifest,
}

/// Sends the request as the request hook left it, without the channel's authentication, and runs the response hook on
/// the response. Nothing is sent when the hook failed or skipped.
pub async fn send(
    plugin: Plugin<'_>,
    message: &Value,
    debugged: Debugged,
    tried: &mut Tried,
    draw: impl Fn(&Debugged) -> String,
) -> Result<(), Failure> {
    let Some(request) = debugged.request else {
        tried.say("  sent  nothing");
        tried.document["sent"] = Value::Null;
        return Ok(());
    };
    let watch = Stopwatch::start();
    let response = post(&request).await?;
    let took = millis(u64::try_from(watch.elapsed().as_micros()).unwrap_or(u64::MAX));
    let body = screen::fit(&screen::clean(&response.body.replace('\n', " ")), MAX_BODY_COLUMNS);
    tried.say(&format!("  sent  status {} in {took} ms  {body}", response.status));
    let run = DebugRun {
        script: plugin.source.to_owned(),
        message: message.clone(),
        url: request.url.clone(),
        request: Some(request),
        response: Some(response.clone()),
        state: debugged.state,
    };
    let answered = debug_with(plugin.sandbox, "cli", run, plugin.manifest, plugin.gate).await?;
    tried.document["sent"] = json!({
        "status": response.status,
        "headers": response.headers,
        "body": response.body,
        "duration_ms": took,
        "answered": answered.present.then(|| answered.document()),
    });
    if answered.present || answered.error.is_some() {
        tried.say(&draw(&answered));
    }
    if answered.error.is_some() {
        tried.exit = Exit::Failed;
    }
    Ok(())
}

async fn post(request: &PluginRequest) -> Result<DebugResponse, Failure> {
    // The user named the address, so private addresses are allowed.
    let egress = Egress::new(EgressConfig::default())?.trusted();
    let pairs = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let call = Call {
        method: request.method.parse().map_err(|_| Failure::usage("not a method"))?,
        url: egress.check_url(&request.url)?,
        headers: CheckedHeaders::parse(pairs)?.into_map(),
        body: Bytes::from(request.body.text().to_owned()),
        deadline: REQUEST_TIMEOUT,
        max_answer: MAX_ANSWER,
    };
    let answer = egress.send(call).await.map_err(|error| {
        let mut failure = Failure::unreachable(format!("no response from {}", request.url));
        failure.causes.push(error.to_string());
        failure
    })?;
    let mut headers = BTreeMap::new();
    for (name, value) in &answer.headers {
        headers.insert(name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned());
    }
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    Ok(DebugResponse { status: answer.status.as_u16(), headers, body })
}
