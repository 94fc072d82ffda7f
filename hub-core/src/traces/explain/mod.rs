//! Why a message did or did not arrive: a verdict from what is stored, with the checks that led to it and a remedy.

mod checks;
#[cfg(test)]
mod tests;
mod verdict;

use super::Traces;
use crate::{
    access::Actor,
    error::{Error, Result},
    id::{BotId, ChannelId, MessageId, TraceId},
    model::{
        bot::BotRecord,
        channel::ChannelRecord,
        message::{Direction, Message},
        sinks::SinkId,
        trace::{DeliveryFacts, DeliveryState, StepKind, Trace, TraceStatus},
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
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
#[api(example = { "at": "2025-11-21T09:30:00.000Z", "name": "filter", "ok": false, "why": "keywords" })]
pub struct Check {
    /// What was checked.
    pub name: CheckName,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found.
    pub why: String,
    /// When that was, or is due.
    pub at: Option<Timestamp>,
}

/// Why a message did or did not arrive in a channel.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
#[api(example = {
    "channel_id": "ch_01KAG00000E008000000000002",
    "checks": [{"at": "2025-11-21T09:30:00.000Z", "name": "filter", "ok": false, "why": "keywords"}],
    "message_id": "msg_01KAG00000E008000000000004",
    "remedy": "Change the filter: `hub-cli channels set-filter orders --bot demo --keywords order`.",
    "sentence": "The filter of the channel orders did not match: keywords.",
    "trace_id": "tr_01KAG00000E008000000000003",
    "verdict": "filtered",
})]
pub struct Explanation {
    /// Id of the message.
    pub message_id: MessageId,
    /// Id of the explained channel; absent if the message has no channel.
    pub channel_id: Option<ChannelId>,
    /// Id of the newest trace of the message in the channel; absent if it has no trace.
    pub trace_id: Option<TraceId>,
    /// The verdict.
    pub verdict: Verdict,
    /// The verdict as a sentence.
    pub sentence: String,
    /// The checks, in the order of the path of the message.
    pub checks: Vec<Check>,
    /// The command or the setting that solves the problem; absent if the message was delivered or sent.
    pub remedy: Option<String>,
}

/// What is known of a message and a channel.
#[derive(Debug)]
struct Facts {
    now: Timestamp,
    bot: BotRecord,
    message: Message,
    channel: Option<ChannelFacts>,
    trace: Option<Trace>,
    deliveries: Vec<DeliveryFacts>,
    /// Why the chat network takes no message to the person now.
    window_closed: Option<String>,
}

/// What is known of a channel.
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
        let (verdict, sentence, remedy) = verdict::judge(self);
        debug_assert_eq!(remedy.is_none(), verdict.is_success(), "{verdict}");
        Explanation {
            message_id: self.message.id,
            channel_id: self.channel.as_ref().map(|channel| channel.id),
            trace_id: self.trace.as_ref().map(|trace| trace.trace_id),
            verdict,
            sentence,
            checks: checks::of(self),
            remedy,
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
            SinkId::Webhook => StepKind::Webhook,
            SinkId::Ai => StepKind::Ai,
        };
        let last = trace.steps.iter().rfind(|step| step.kind == kind);
        let last = last.filter(|step| step.status == TraceStatus::Ok)?;
        let attempts = last.attempt.map_or(trace.attempts, u64::from);
        let state = DeliveryState::Done;
        Some(DeliveryFacts { sink, state, attempts, due_at: last.started_at, last_error: None })
    };
    let has_none = |sink: &SinkId| others.iter().all(|other| other.sink != *sink);
    SinkId::ALL.into_iter().filter(has_none).filter_map(of).collect()
}

impl Traces<'_> {
    /// Why a message did or did not arrive in a channel. Without a channel: in the one where it went worst, of the
    /// newest traces.
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
