//! The message that a hook is tried with.

use hub_core::{plugins::debug::sample_message, time::Clock};
use serde_json::Value;

use crate::{
    args::DebugInput,
    commands::{read_file, recordings::of_trace, text_or_stdin, traces},
    exit::Failure,
    reach::Reach,
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
    Ok(sample_message(&text, "user_1", &input.from, now()))
}

/// A payload with everything that a file may leave out.
pub fn payload(given: Value) -> Value {
    let mut payload = sample_message("", "user_1", "Ada", now());
    if let (Value::Object(payload), Value::Object(given)) = (&mut payload, given) {
        payload.extend(given);
    }
    payload
}

fn now() -> i64 {
    Clock::system().now().as_seconds()
}

/// The message of a trace, as its channel got it.
async fn recorded(input: &DebugInput, trace: &str, local: bool) -> Result<Value, Failure> {
    let id = traces::id(trace)?;
    let reach = Reach::open(&input.hub, local).await?;
    let trace = reach.trace(None, id).await?;
    let recording = of_trace(&reach, trace).await?;
    reach.close().await;
    recording.message.ok_or_else(|| Failure::not_found("the message of this trace is not known any more"))
}
