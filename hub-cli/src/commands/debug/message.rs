//! The message that a hook is tried with.

use hub_core::{
    access::Actor,
    bots::{Bots, MessageFilter},
    page::{MAX_LIMIT, PageRequest},
    plugins::debug::sample_message,
    time::Clock,
};
use serde_json::{Value, json};

use crate::{
    args::DebugInput,
    commands::{read_file, text_or_stdin},
    exit::Failure,
    local::{self, Open},
};

/// Messages that are looked through for the one of a trace.
const MAX_MESSAGES: usize = 2_000;

/// The message of the arguments.
pub async fn of(input: &DebugInput) -> Result<Value, Failure> {
    if let Some(trace) = &input.trace {
        return recorded(input, trace).await;
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
async fn recorded(input: &DebugInput, trace: &str) -> Result<Value, Failure> {
    let missing = || {
        Failure::not_found(format!("there is no trace {trace}")).with_hint("hub-cli traces list --bot BOT")
    };
    let id = trace.parse().map_err(|_| missing())?;
    let hub = local::open(&input.hub.local, Open::Existing).await?;
    let found = hub.traces().find(&Actor::Operator, None, id).await?.ok_or_else(missing)?;
    let filter = MessageFilter::default();
    let list = Bots::message_list(found.bot_id, &filter);
    let (mut cursor, mut seen) = (None, 0);
    let message = loop {
        let page = PageRequest::parse(&list, Some(MAX_LIMIT), cursor.as_deref())?;
        let page = hub.bots().messages(&Actor::Operator, found.bot_id, &filter, &page).await?;
        seen += page.items.len();
        if let Some(message) = page.items.into_iter().find(|message| message.id == found.message_id) {
            break message;
        }
        cursor = page.next_cursor;
        if cursor.is_none() || seen >= MAX_MESSAGES {
            return Err(missing());
        }
    };
    hub.shutdown().await;
    let sent = message.created_at.as_seconds();
    let mut payload = sample_message(&message.content, &message.from_user_id, &message.user_name, sent);
    payload["msg_type"] = json!(message.kind.msg_type());
    payload["sessionID"] = json!(message.session_id);
    payload["bot_id"] = json!(found.bot_id);
    if let Some(channel) = found.channel_id {
        payload["channel_id"] = json!(channel);
    }
    Ok(payload)
}
