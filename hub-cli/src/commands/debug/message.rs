//! The input message of a hook.

use hub_core::{plugins::debug::sample_message, time::Clock};
use serde_json::Value;

use crate::{
    args::DebugInput,
    client::Client,
    commands::{
        plugins::run::payload,
        read_file,
        recordings::{of_trace, trace_id},
        text_or_stdin,
    },
    exit::Failure,
};

/// The message of the arguments.
pub async fn of(input: &DebugInput, local: bool) -> Result<Value, Failure> {
    if let Some(trace) = &input.trace {
        return recorded(input, trace, local).await;
    }
    if let Some(file) = &input.message {
        let message = serde_json::from_str(&read_file(file)?).map_err(|error| Failure::file(file, error))?;
        return Ok(payload(message));
    }
    let text = text_or_stdin(input.text.clone().unwrap_or_else(|| "hello".to_owned()))?;
    Ok(sample_message(&text, "user_1", &input.from, Clock::system().now().as_seconds()))
}

/// The message of a trace, as its channel received it.
async fn recorded(input: &DebugInput, trace: &str, local: bool) -> Result<Value, Failure> {
    let id = trace_id(trace)?;
    let client = Client::open(&input.hub, local).await?;
    let trace = client.trace(None, id).await?;
    let recording = of_trace(&client, trace).await?;
    client.close().await;
    recording.message.ok_or_else(|| Failure::not_found("the message of this trace is no longer stored"))
}
