//! Findings on the path of a message, with their values.

use std::fmt;

use serde::Deserialize;

use crate::{
    egress::EgressFault,
    model::{
        bot::BotStatus,
        message::MessageStatus,
        sinks::{SinkId, SinkKind},
        trace::{DeliveryState, TraceStatus},
    },
};

/// What was found on the path of a message: a code, and the values that the code has.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, hub_macros::Api)]
#[serde(tag = "code", rename_all = "snake_case")]
#[api(tag = "code", example = {
    "code": "filter",
    "reason": "keyword",
    "reason_cause": { "code": "not_matched", "parts": ["keyword"] },
})]
pub enum Finding {
    /// The status of the message.
    Message {
        /// Status of the message.
        message_status: MessageStatus,
        /// The reason, in English.
        #[api(cause)]
        reason: Option<String>,
    },
    /// The status of the bot.
    Bot {
        /// Status of the bot.
        bot_status: BotStatus,
        /// The reason, in English.
        #[api(cause)]
        reason: Option<String>,
        /// Whether a node of the hub works for the bot.
        has_node: bool,
    },
    /// Whether the channel is on.
    Channel {
        /// Whether it is on.
        enabled: bool,
    },
    /// The decision of the handle and the filter of the channel; without a reason, the message passed.
    Filter {
        /// The reason, in English.
        #[api(cause)]
        reason: Option<String>,
    },
    /// A plugin ran last.
    PluginRan {
        /// Name of the plugin.
        plugin: String,
    },
    /// A plugin skipped the message.
    PluginSkipped {
        /// Name of the plugin.
        plugin: String,
    },
    /// A plugin failed.
    PluginFailed {
        /// Name of the plugin.
        plugin: String,
        /// The reason, in English.
        #[api(cause)]
        reason: String,
    },
    /// Whether a sink is on; with a reason, the hub switched it off.
    Sink {
        /// The sink.
        sink: SinkId,
        /// Whether it is on.
        enabled: bool,
        /// The reason, in English.
        #[api(cause)]
        reason: Option<String>,
    },
    /// Neither webhook nor model is on.
    NoSink,
    /// The state of a delivery.
    Delivery {
        /// The sink.
        sink: SinkKind,
        /// State of the delivery.
        state: DeliveryState,
        /// Attempts made.
        attempts: u64,
        /// The reason, in English.
        #[api(cause)]
        reason: Option<String>,
    },
    /// Connected clients received the message.
    Clients,
    /// The receiver responded with an HTTP status.
    Response {
        /// HTTP status of the response.
        http_status: u16,
    },
    /// A request brought no response.
    NoResponse {
        /// The class of the failure.
        fault: EgressFault,
        /// The reason, in English.
        #[api(cause)]
        reason: String,
    },
    /// The outcome of a reply.
    Reply {
        /// Outcome of the reply.
        outcome: TraceStatus,
        /// The reason, in English.
        #[api(cause)]
        reason: Option<String>,
    },
    /// Another reason.
    Reason {
        /// The reason, in English.
        #[api(cause)]
        reason: String,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message { message_status, reason } => {
                f.write_str(reason.as_deref().unwrap_or_else(|| message_status.as_str()))
            }
            Self::Bot { bot_status, reason, has_node } => {
                write!(f, "the bot is {bot_status}{}", Because(reason.as_deref()))?;
                f.write_str(if *has_node { "" } else { "; no node works for it" })
            }
            Self::Channel { enabled: true } => f.write_str("the channel is on"),
            Self::Channel { enabled: false } => f.write_str("the channel is off"),
            Self::Filter { reason } => f.write_str(reason.as_deref().unwrap_or("passed")),
            Self::PluginRan { plugin } => write!(f, "the plugin {plugin} ran last"),
            Self::PluginSkipped { plugin } => write!(f, "the plugin {plugin} skipped the message"),
            Self::PluginFailed { plugin, reason } => write!(f, "the plugin {plugin} failed: {reason}"),
            Self::Sink { sink, reason: Some(reason), .. } => {
                write!(f, "the hub switched the {sink} off: {reason}")
            }
            Self::Sink { sink, enabled, .. } => {
                write!(f, "the sink {sink} is {}", if *enabled { "on" } else { "off" })
            }
            Self::NoSink => f.write_str("neither webhook nor model is on"),
            Self::Delivery { sink, state, attempts, reason } => {
                write!(f, "{sink}: {state}, attempts: {attempts}{}", Because(reason.as_deref()))
            }
            Self::Clients => f.write_str("clients were connected"),
            Self::Response { http_status: 410 } => {
                f.write_str("the receiver responded with 410: it accepts no more messages")
            }
            Self::Response { http_status: status @ 300..400 } => {
                write!(f, "the receiver responded with status {status}, and redirects are not followed")
            }
            Self::Response { http_status } => write!(f, "the receiver responded with status {http_status}"),
            Self::NoResponse { fault, reason } => write!(f, "{fault}: {reason}"),
            Self::Reply { reason, .. } => f.write_str(reason.as_deref().unwrap_or("accepted")),
            Self::Reason { reason } => f.write_str(reason),
        }
    }
}

/// A reason behind a colon, if there is one.
pub(super) struct Because<'a>(pub(super) Option<&'a str>);

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}
