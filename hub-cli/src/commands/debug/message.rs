//! The input message of a hook.

use hub_core::{plugins::debug::sample_message, time::Clock};
use serde_json::Value;

use crate::{
    args::DebugInput,
    commands::{
        plugins::run::payload,
        read_file,
        recordings::{of_trace, trace_id},
        text_or_stdin,
    },
    context::Context,
    exit::Failure,
};

/// The message of the arguments.
pub async fn of(input: &DebugInput, cx: &Context) -> Result<Value, Failure> {
    if let Some(trace) = &input.trace {
        return recorded(input, trace, cx).await;
    }
    if let Some(file) = &input.message {
        let message = serde_json::from_str(&read_file(file)?).map_err(|error| Failure::file(file, error))?;
        return Ok(payload(message));
    }
    let text = text_or_stdin(input.text.clone().unwrap_or_else(|| "hello".to_owned()))?;
    Ok(sample_message(&text, "user_1", &input.from, Clock::system().now().as_seconds()))
}

/// The message of a trace, as its channel received it.
async fn recorded(input: &DebugInput, trace: &str, cx: &Context) -> Result<Value, Failure> {
    let id = trace_id(trace)?;
    let client = cx.hub(&input.hub).await?;
    let trace = client.trace(None, id).await?;
    let recording = of_trace(&client, trace).await?;
    recording.message.ok_or_else(|| Failure::not_found("the message of this trace is no longer stored"))
}
