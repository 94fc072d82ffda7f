//! Events that an app can subscribe to.

use std::time::Duration;

use hub_macros::FromRow;

use crate::{
    error::Error,
    id::{AppEventId, TraceId},
    model::sinks::DEFAULT_SCHEDULE_S,
    time::Timestamp,
    words::words,
};

words! {
    /// A kind of event. As JSON it is its word.
    #[derive(Hash)]
    pub enum AppEventKind {
        /// Any message; only as a subscription.
        Message = "message",
        /// A text.
        MessageText = "message.text",
        /// A picture.
        MessageImage = "message.image",
        /// A voice note.
        MessageVoice = "message.voice",
        /// A video.
        MessageVideo = "message.video",
        /// A file.
        MessageFile = "message.file",
        /// A command of the app's tools.
        Command = "command",
        /// The bot's status changed.
        BotStatus = "bot.status",
        /// The app was installed onto a bot.
        AppInstalled = "app.installed",
        /// The app was taken off a bot.
        AppUninstalled = "app.uninstalled",
    }
}

/// The subscriptions of words, each once.
///
/// # Errors
/// `INVALID_PARAMS` on the field `events`.
pub(crate) fn parse_all(words: &[String]) -> Result<Vec<AppEventKind>, Error> {
    let mut kinds = Vec::with_capacity(words.len().min(AppEventKind::ALL.len()));
    for word in words {
        let kind = AppEventKind::parse(word).ok_or_else(|| {
            let all = AppEventKind::ALL.map(AppEventKind::as_str).join(", ");
            Error::invalid("events", format!("must be of: {all}"))
        })?;
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

/// Returns the time that an event waits for a socket: the length of the default retry schedule of webhooks.
pub fn socket_wait() -> Duration {
    Duration::from_secs(DEFAULT_SCHEDULE_S.iter().map(|seconds| u64::from(*seconds)).sum())
}

words! {
    /// State of an event.
    pub enum AppEventState {
        /// Waits for delivery or for a retry.
        Pending = "pending",
        /// Delivered.
        Delivered = "delivered",
        /// Failed permanently.
        Failed = "failed",
    }
}

/// An event for an app.
#[derive(Debug, Clone, PartialEq, Eq, FromRow, hub_macros::Api)]
#[row(table = "app_events")]
pub struct AppEvent {
    /// Id of the event.
    pub id: AppEventId,
    /// Id of the trace.
    pub trace_id: Option<TraceId>,
    /// Type of the event.
    #[api(name = "event_type")]
    pub kind: String,
    /// Payload.
    #[api(with(crate::openapi::Any, crate::openapi::parsed))]
    pub event: String,
    /// State.
    #[api(name = "status")]
    pub state: AppEventState,
    /// Number of attempts.
    #[row(number)]
    pub attempts: u32,
    /// When the next attempt is due.
    pub next_attempt_at: Option<Timestamp>,
    /// When it was written to a socket of the app.
    pub written_at: Option<Timestamp>,
    /// HTTP status of the last response.
    #[row(number)]
    pub response_status: Option<u16>,
    /// Beginning of the last response: 4 KiB.
    pub response_body: String,
    /// The last error.
    #[api(cause)]
    pub error: Option<String>,
    /// Duration of the last attempt, in milliseconds.
    #[row(number)]
    pub duration_ms: u64,
    /// When it occurred.
    pub created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_word_and_kept_once() {
        let mut words: Vec<String> = AppEventKind::ALL.map(|kind| kind.to_string()).to_vec();
        words.extend(words.clone());
        assert_eq!(parse_all(&words).unwrap(), AppEventKind::ALL);
        assert!(parse_all(&["message.sticker".to_owned()]).is_err());
    }
}
