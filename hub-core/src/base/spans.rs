//! Spans for a tracing system: what runs for how long, with the ids of traces and logs. They never contain a text, an
//! address, a secret, or the name of a person. They cost nothing without a subscriber to [`TARGET`].

use tracing::{Span, field::Empty, trace_span};

use crate::id::{BotId, ChannelId, DeliveryId, InstallationId, MessageId, TraceId};

/// The target of all these spans; they have the level `TRACE`, so that no log shows them by accident.
pub const TARGET: &str = "hub_spans";

/// A batch of messages that came from a network: from its arrival to its commit.
pub(crate) fn poll_batch(bot: BotId, messages: usize) -> Span {
    trace_span!(target: TARGET, "poll batch", otel.kind = "consumer", hub.bot_id = %bot, hub.messages = messages)
}

/// One attempt at a sink, with the commit of its outcome, which is recorded as `hub.outcome`.
pub(crate) fn delivery_attempt(
    trace: Option<TraceId>,
    delivery: DeliveryId,
    bot: BotId,
    (channel, installation): (Option<ChannelId>, Option<InstallationId>),
    attempt: u32,
) -> Span {
    trace_span!(
        target: TARGET,
        "delivery attempt",
        otel.kind = "producer",
        hub.trace_id = trace.map(tracing::field::display),
        hub.delivery_id = %delivery,
        hub.bot_id = %bot,
        hub.channel_id = channel.map(tracing::field::display),
        hub.installation_id = installation.map(tracing::field::display),
        hub.attempt = attempt,
        hub.outcome = Empty,
    )
}

/// One attempt to send to a person; `hub.outcome` is what the network made of it.
pub(crate) fn outbox_send(bot: BotId, message: MessageId, trace: Option<TraceId>) -> Span {
    trace_span!(
        target: TARGET,
        "outbox send",
        otel.kind = "client",
        hub.bot_id = %bot,
        hub.message_id = %message,
        hub.trace_id = trace.map(tracing::field::display),
        hub.outcome = Empty,
    )
}
