//! Explains the outcome of a message: a verdict from stored data, with its cause, the checks that led to it, and
//! remedies. All of them are values; [`Explanation::sentence`] and `Display` render them in plain English.

mod checks;
mod finding;
mod remedy;
mod sentence;
#[cfg(test)]
mod tests;
mod verdict;

pub use finding::Finding;
pub use remedy::{OfBot, OfChannel, OfHub, OfPlugin, OfSink, OfTrace, Remedy, WebhookField, WebhookSetting};

use serde::Deserialize;

use self::verdict::Judged;
use super::Traces;
use crate::{
    access::Actor,
    error::{Error, Result},
    id::{BotId, ChannelId, MessageId, TraceId},
    model::{
        bot::BotRecord,
        channel::ChannelRecord,
        message::{Direction, Message, MessageStatus},
        sinks::{SinkId, SinkKind},
        trace::{DeliveryFacts, DeliveryState, Step, StepKind, StepName, Trace, TraceStatus},
    },
    time::Timestamp,
    words::words,
};

words! {
    /// What happened to a message in a channel.
    pub enum Verdict {
        /// The receiver or the model has it.
        Delivered = "delivered",
        /// It is in the channel's log, for clients; no other sink was on.
        LogOnly = "log_only",
        /// It could not be read.
        Unreadable = "unreadable",
        /// It is no message of a person.
        NoUserMessage = "no_user_message",
        /// The bot had no channel.
        NoChannel = "no_channel",
        /// The channel was created later.
        OlderThanChannel = "older_than_channel",
        /// Its trace was deleted.
        NoTrace = "no_trace",
        /// The channel was off.
        ChannelOff = "channel_off",
        /// It did not mention the channel's handle.
        NotAddressed = "not_addressed",
        /// The filter did not match.
        Filtered = "filtered",
        /// The stored filter does not work.
        FilterBroken = "filter_broken",
        /// A plugin skipped it.
        SkippedByPlugin = "skipped_by_plugin",
        /// The sink ignores such messages.
        IgnoredBySink = "ignored_by_sink",
        /// A plugin failed.
        PluginFailed = "plugin_failed",
        /// The sink is off.
        SinkOff = "sink_off",
        /// The receiver accepts no more messages.
        Gone = "gone",
        /// The receiver responded with an error.
        ReceiverError = "receiver_error",
        /// There was no response.
        Unreachable = "unreachable",
        /// The delivery failed for another reason.
        Failed = "failed",
        /// The receiver has it, and the reply could not be sent.
        ReplyFailed = "reply_failed",
        /// An attempt failed, and another one follows.
        Retrying = "retrying",
        /// The delivery waits for a setting.
        Waiting = "waiting",
        /// It waits for its first attempt.
        Queued = "queued",
        /// It waits, and no node works for the bot.
        NoNode = "no_node",
        /// The chat network has the sent message.
        Sent = "sent",
        /// The sent message waits for the chat network.
        Sending = "sending",
        /// The sent message waits until the person writes again.
        WindowClosed = "window_closed",
        /// The sent message waits for a new login of the bot.
        LoginExpired = "login_expired",
        /// The chat network refused the sent message.
        SendFailed = "send_failed",
        /// The outcome of the send is unknown.
        SendUnknown = "send_unknown",
        /// The sent message waited too long.
        SendExpired = "send_expired",
    }
}

impl Verdict {
    /// Whether nothing has to be corrected.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Delivered | Self::Sent)
    }
}

words! {
    /// What is checked, in the order of the path of a message.
    pub enum CheckName {
        /// Whether the hub stored a message of a person.
        Received = "received",
        /// Whether the bot is connected and a node works for it.
        Bot = "bot",
        /// Whether the channel is on.
        Channel = "channel",
        /// What the channel's handle and filter decided.
        Filter = "filter",
        /// What the plugins did.
        Plugins = "plugins",
        /// Whether the sink is on.
        Sink = "sink",
        /// How the attempts ended.
        Delivery = "delivery",
        /// How replies were sent.
        Reply = "reply",
        /// How the message was sent.
        Send = "send",
    }
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, hub_macros::Api)]
#[api(example = {
    "at": "2025-11-21T09:30:00.000Z",
    "finding": {"code": "filter", "reason": "keyword"},
    "name": "filter",
    "ok": false,
    "why": "keyword",
})]
pub struct Check {
    /// What was checked.
    pub name: CheckName,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found, with its values.
    #[api(and(why: String = |check: &Check| check.finding.to_string(), "What was found."))]
    pub finding: Finding,
    /// When that was, or is due.
    pub at: Option<Timestamp>,
}

/// Why a message did or did not arrive in a channel.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, hub_macros::Api)]
#[api(example = {
    "attempts": 0,
    "cause": {"code": "filter", "reason": "keyword"},
    "channel_id": "ch_01KAG00000E008000000000002",
    "channel_name": "orders",
    "checks": [{
        "at": "2025-11-21T09:30:00.000Z",
        "finding": {"code": "filter", "reason": "keyword"},
        "name": "filter",
        "ok": false,
        "why": "keyword",
    }],
    "message_id": "msg_01KAG00000E008000000000004",
    "remedies": [{
        "action": "set_filter",
        "bot_id": "bot_01KAG00000E008000000000001",
        "channel_id": "ch_01KAG00000E008000000000002",
    }],
    "remedy": "Change the filter.",
    "sentence": "The filter of the channel orders did not match: keyword.",
    "trace_id": "tr_01KAG00000E008000000000003",
    "verdict": "filtered",
})]
pub struct Explanation {
    /// Id of the message.
    pub message_id: MessageId,
    /// Id of the explained channel; absent if the message has no channel.
    pub channel_id: Option<ChannelId>,
    /// Name of the explained channel; absent if the message has no channel.
    pub channel_name: Option<String>,
    /// Id of the newest trace of the message in the channel; absent if it has no trace.
    pub trace_id: Option<TraceId>,
    /// The verdict.
    #[api(and(sentence: String = Explanation::sentence, "The verdict as a sentence."))]
    pub verdict: Verdict,
    /// The finding that decided; absent if the verdict says everything.
    pub cause: Option<Finding>,
    /// Attempts made.
    pub attempts: u64,
    /// Attempts after which the webhook gives up; absent when it has none to make.
    pub max_attempts: Option<u64>,
    /// When the next attempt is due; absent when none is.
    pub next_attempt_at: Option<Timestamp>,
    /// State of the delivery that decided; absent if there is none.
    pub delivery_state: Option<DeliveryState>,
    /// The checks, in the order of the path of the message.
    pub checks: Vec<Check>,
    /// What solves the problem, in this order; empty if there is nothing to do.
    #[api(and(
        remedy: Option<String> = Explanation::remedy,
        "The remedies as sentences; absent if there is nothing to do."
    ))]
    pub remedies: Vec<Remedy>,
}

/// Reason why a reply to a delivered message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyDelay<'a> {
    /// It waits, for this reason.
    Waits(&'a str),
    /// It is not sent, for this reason.
    Skipped(&'a str),
}

impl Explanation {
    /// Returns the reason why the reply was not sent; `None` if there is no reply, or it was sent or is about to be.
    pub fn reply(&self) -> Option<ReplyDelay<'_>> {
        self.checks.iter().find_map(|check| match &check.finding {
            Finding::Reply { outcome: TraceStatus::Pending, reason: Some(why) } if !check.ok => {
                Some(ReplyDelay::Waits(why))
            }
            Finding::Reply { outcome: TraceStatus::Skipped, reason: Some(why) } => {
                Some(ReplyDelay::Skipped(why))
            }
            _ => None,
        })
    }

    /// The reason that the chat network or the hub gave for the status of a sent message.
    pub fn reason(&self) -> Option<&str> {
        match &self.cause {
            Some(Finding::Message { reason, .. }) => reason.as_deref(),
            _ => None,
        }
    }

    /// Whether the network accepted a sent message without an id.
    pub fn is_unconfirmed(&self) -> bool {
        matches!(self.cause, Some(Finding::Message { message_status: MessageStatus::Unconfirmed, .. }))
    }
}

/// Stored data about a message and a channel.
#[derive(Debug)]
struct Facts {
    now: Timestamp,
    bot: BotRecord,
    message: Message,
    channel: Option<ChannelFacts>,
    trace: Option<Trace>,
    deliveries: Vec<DeliveryFacts>,
    /// Reason why the chat network accepts no message to the person now.
    window_closed: Option<String>,
}

#[derive(Debug)]
struct ChannelFacts {
    id: ChannelId,
    name: String,
    enabled: bool,
    webhook_on: bool,
    webhook_disabled: Option<String>,
    ai_on: bool,
    created_at: Timestamp,
}

impl ChannelFacts {
    fn of(record: ChannelRecord) -> Result<Self> {
        Ok(Self {
            webhook_on: record.webhook()?.enabled,
            ai_on: record.ai()?.enabled,
            id: record.id,
            name: record.name,
            enabled: record.enabled,
            webhook_disabled: record.webhook_disabled,
            created_at: record.created_at,
        })
    }

    fn is_on(&self, sink: SinkId) -> bool {
        match sink {
            SinkId::Webhook => self.webhook_on,
            SinkId::Ai => self.ai_on,
        }
    }
}

impl Facts {
    fn explain(&self) -> Explanation {
        let Judged { verdict, cause, remedies } = verdict::judge(self);
        debug_assert!(verdict.is_success() || !remedies.is_empty(), "{verdict}");
        let (trace, channel) = (self.trace.as_ref(), self.channel.as_ref());
        let delivery = self.delivery();
        let next = delivery.filter(|_| verdict == Verdict::Retrying);
        Explanation {
            message_id: self.message.id,
            channel_id: channel.map(|channel| channel.id),
            channel_name: channel.map(|channel| channel.name.clone()),
            trace_id: trace.map(|trace| trace.trace_id),
            verdict,
            cause,
            attempts: next.map_or_else(|| trace.map_or(0, |trace| trace.attempts), |next| next.attempts),
            max_attempts: trace.and_then(|trace| trace.max_attempts),
            next_attempt_at: next.map(|next| next.due_at),
            delivery_state: delivery.map(|delivery| delivery.state),
            checks: checks::of(self),
            remedies,
        }
    }

    /// The delivery that decides: one that is open, or else one that failed, or else the last one.
    fn delivery(&self) -> Option<&DeliveryFacts> {
        let weight = |delivery: &&DeliveryFacts| match delivery.state {
            DeliveryState::Pending | DeliveryState::Parked => 2,
            DeliveryState::Dead => 1,
            DeliveryState::Done | DeliveryState::Skipped => 0,
        };
        self.deliveries.iter().max_by_key(weight)
    }

    fn is_sent(&self) -> bool {
        self.message.direction == Direction::Outbound
    }
}

/// The deliveries of a trace that ended well: of each sink that attempted one and has none of these `others`.
fn successes(trace: &Trace, others: &[DeliveryFacts]) -> Vec<DeliveryFacts> {
    let of = |sink| {
        let kind = match sink {
            SinkKind::Webhook => StepKind::Webhook,
            SinkKind::Ai => StepKind::Ai,
            SinkKind::App => StepKind::App,
        };
        // A step of an app is also the request by which it sent something.
        let is_attempt =
            |step: &&Step| step.kind == kind && (sink != SinkKind::App || step.name == StepName::Response);
        let last = trace.steps.iter().rfind(is_attempt);
        let last = last.filter(|step| step.status == TraceStatus::Ok)?;
        let attempts = last.attempt.map_or(trace.attempts, u64::from);
        let state = DeliveryState::Done;
        Some(DeliveryFacts { sink, state, attempts, due_at: last.started_at, last_error: None })
    };
    let has_none = |sink: &SinkKind| others.iter().all(|other| other.sink != *sink);
    SinkKind::ALL.into_iter().filter(has_none).filter_map(of).collect()
}

impl Traces<'_> {
    /// Explains why a message did or did not arrive in a channel. Without a channel: in the one with the worst
    /// outcome among the newest traces.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the bot is the actor's and has the message and the channel.
    pub async fn explain(
        &self,
        actor: &Actor,
        bot_id: BotId,
        message_id: MessageId,
        channel_id: Option<ChannelId>,
    ) -> Result<Explanation> {
        let scope = actor.scope()?;
        let mut read = self.ctx.store.read().await?;
        let bot = read.bots().find(scope.owner(), bot_id).await?.ok_or_else(|| Error::not_found("bot"))?;
        let message = read.messages().find(bot_id, message_id).await?;
        let message = message.ok_or_else(|| Error::not_found("message"))?;
        let mut outcomes = read.traces().outcomes(&[message_id]).await?;
        outcomes.retain(|outcome| channel_id.is_none_or(|wanted| outcome.channel_id == Some(wanted)));
        let weight = |status| match status {
            TraceStatus::Error => 3,
            TraceStatus::Pending => 2,
            TraceStatus::Skipped => 1,
            TraceStatus::Ok => 0,
        };
        let chosen = outcomes.iter().max_by_key(|outcome| weight(outcome.status));
        let (mut trace, mut deliveries) = (None, Vec::new());
        if let Some(outcome) = chosen {
            trace = read.traces().find(scope, Some(bot_id), outcome.trace_id).await?.map(Trace::from);
            deliveries = read.deliveries().of_trace(message_id, outcome.trace_id).await?;
            deliveries
                .extend(trace.iter().flat_map(|trace| successes(trace, &deliveries)).collect::<Vec<_>>());
        }
        let channel = match channel_id.or_else(|| chosen.and_then(|outcome| outcome.channel_id)) {
            None => None,
            Some(id) => {
                let record = read.channels().find(scope, bot_id, id).await?;
                Some(ChannelFacts::of(record.ok_or_else(|| Error::not_found("channel"))?)?)
            }
        };
        let now = self.ctx.store.now();
        let mut window_closed = None;
        if message.direction == Direction::Outbound {
            let contact = read.contacts().find(bot_id, &message.to_user_id).await?;
            let rules = self.ctx.networks.get(&bot.network);
            let rules = rules.map(|network| self.ctx.config.window_rules(&**network)).unwrap_or_default();
            let window = contact.map(|contact| contact.window).unwrap_or_default();
            window_closed = window.check(&rules, now).err().map(|closed| closed.to_string());
        }
        drop(read);
        Ok(Facts { now, bot, message, channel, trace, deliveries, window_closed }.explain())
    }
}
