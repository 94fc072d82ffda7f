//! The verdict on a message: the first thing on its path that went wrong.

use super::{
    ChannelFacts, Facts, Finding, OfBot, OfChannel, OfHub, OfPlugin, OfSink, OfTrace, Remedy, Verdict,
    WebhookField, WebhookSetting,
};
use crate::{
    egress::EgressFault,
    error::Setting,
    model::{
        bot::BotStatus,
        cause::{Cause, Sentence},
        message::{Message, MessageStatus},
        sinks::SinkId,
        trace::{DeliveryFacts, DeliveryState, Step, StepName, Trace, TraceStatus},
    },
    sandbox::SandboxFault,
};

/// A verdict, its cause, and the remedies.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    pub(super) cause: Option<Finding>,
    pub(super) remedies: Vec<Remedy>,
}

fn judged(
    verdict: Verdict,
    cause: impl Into<Option<Finding>>,
    remedies: impl IntoIterator<Item = Remedy>,
) -> Judged {
    Judged { verdict, cause: cause.into(), remedies: remedies.into_iter().collect() }
}

fn reason(text: impl Into<String>) -> Finding {
    Finding::Reason { reason: text.into() }
}

/// The verdict on a message.
pub(super) fn judge(facts: &Facts) -> Judged {
    if facts.is_sent() {
        return send(facts);
    }
    match facts.message.status {
        MessageStatus::Received => {}
        MessageStatus::Quarantined => {
            return judged(Verdict::Unreadable, None, [Remedy::UpdateHub, Remedy::WriteText]);
        }
        _ => return judged(Verdict::NoUserMessage, facts.status(), [Remedy::Write]),
    }
    let Some(trace) = &facts.trace else { return without_trace(facts) };
    match trace.status {
        TraceStatus::Ok => delivered(facts, trace),
        TraceStatus::Skipped => skipped(facts, trace),
        TraceStatus::Error => failed(facts, trace),
        TraceStatus::Pending => open(facts, trace),
    }
}

fn without_trace(facts: &Facts) -> Judged {
    match &facts.channel {
        None => judged(Verdict::NoChannel, None, [Remedy::CreateChannel(facts.of_bot())]),
        Some(channel) if facts.message.created_at < channel.created_at => {
            judged(Verdict::OlderThanChannel, None, [Remedy::Write])
        }
        Some(_) => {
            let retention = Remedy::ChangeSetting(OfHub { setting: Setting::TraceRetention });
            judged(Verdict::NoTrace, None, [Remedy::Write, retention])
        }
    }
}

fn delivered(facts: &Facts, trace: &Trace) -> Judged {
    let is_in_log = facts.deliveries.is_empty() && trace.channel_id.is_some();
    if is_in_log && !trace.steps.iter().any(|step| matches!(step.name, StepName::Request | StepName::Ai)) {
        let is_given = |step: &Step| matches!(step.name, StepName::Websocket | StepName::Ilink);
        if trace.steps.iter().any(is_given) {
            return judged(Verdict::Delivered, Finding::Clients, []);
        }
        let client = facts.in_channel(Remedy::ConnectClient);
        return judged(Verdict::LogOnly, None, [client, facts.webhook(WebhookField::Url)]);
    }
    let is_off = |step: &Step| {
        matches!(step.detail.reason.cause(), Some(Cause::NoAutoReply | Cause::NoAutoReplyIn { .. }))
    };
    let auto_reply =
        reply_step(trace).filter(|step| is_off(step)).map(|_| facts.webhook(WebhookField::AutoReply));
    judged(Verdict::Delivered, reason(&trace.summary), auto_reply)
}

/// The last reply; if all were skipped, that of the last response.
pub(super) fn reply_step(trace: &Trace) -> Option<&Step> {
    let replies = || trace.steps.iter().filter(|step| step.name == StepName::Reply);
    let is_skipped = |step: &&Step| step.status == TraceStatus::Skipped;
    let response = trace.steps.iter().rfind(|step| step.name == StepName::Response);
    let attempt = response.and_then(|step| step.attempt);
    replies()
        .rfind(|step| !is_skipped(step))
        .or_else(|| replies().rfind(|step| is_skipped(step) && step.attempt == attempt))
}

fn skipped(facts: &Facts, trace: &Trace) -> Judged {
    let filter =
        trace.steps.iter().rfind(|step| step.name == StepName::Filter && step.status == TraceStatus::Skipped);
    if let Some(step) = filter {
        let reason = step.detail.reason.clone().unwrap_or_default();
        let cause = |reason| Finding::Filter { reason: Some(reason) };
        return match Cause::read(&reason) {
            Cause::Disabled => judged(Verdict::ChannelOff, None, [facts.in_channel(Remedy::EnableChannel)]),
            Cause::NotAddressed => {
                let remove = facts.in_channel(Remedy::RemoveHandle);
                judged(Verdict::NotAddressed, None, [Remedy::MentionHandle, remove])
            }
            Cause::FilterFails { .. } => {
                let again = facts.in_channel(Remedy::SetExpression);
                judged(Verdict::FilterBroken, cause(reason), [again])
            }
            _ => judged(Verdict::Filtered, cause(reason), [facts.in_channel(Remedy::SetFilter)]),
        };
    }
    let skips = |step: &&Step| step.name == StepName::PluginOnRequest && step.detail.skipped == Some(true);
    if let Some(step) = trace.steps.iter().rfind(skips) {
        let plugin = step.detail.plugin.clone().unwrap_or_default();
        let disable = facts.plugin(Remedy::DisablePlugin, &plugin);
        return judged(Verdict::SkippedByPlugin, Finding::PluginSkipped { plugin }, [disable]);
    }
    judged(Verdict::IgnoredBySink, reason(&trace.summary), [facts.webhook(WebhookField::Url)])
}

fn failed(facts: &Facts, trace: &Trace) -> Judged {
    let last = trace.steps.iter().rfind(|step| step.status == TraceStatus::Error);
    if let Some(step) = last.filter(|step| step.name == StepName::Reply) {
        let cause = step.detail.error.as_ref().map(|error| reason(&error.message));
        return judged(Verdict::ReplyFailed, cause, [Remedy::OpenBot(facts.of_bot())]);
    }
    let mut failure = failure(facts, trace, last, &trace.summary);
    failure.remedies.push(Remedy::Replay(facts.of(trace)));
    failure
}

/// Returns the verdict on a failed attempt.
fn failure(facts: &Facts, trace: &Trace, step: Option<&Step>, summary: &str) -> Judged {
    if let (Some(channel), Some(delivery)) = (&facts.channel, facts.delivery())
        && let Some(sink) = delivery.sink.of_channel()
        && !channel.is_on(sink)
    {
        let cause = channel.sink(sink);
        let is_gone = channel.webhook_disabled.cause() == Some(Cause::GoneReceiver);
        let verdict = if is_gone && sink == SinkId::Webhook { Verdict::Gone } else { Verdict::SinkOff };
        return judged(
            verdict,
            cause,
            [facts.in_channel(|place| Remedy::EnableSink(OfSink { place, sink }))],
        );
    }
    let unknown = || judged(Verdict::Failed, reason(summary), [Remedy::OpenTrace(facts.of(trace))]);
    let Some(step) = step else { return unknown() };
    let error = step.detail.error.as_ref();
    match (step.name, step.detail.status) {
        (StepName::PluginOnRequest | StepName::PluginOnResponse, _) => of_plugin(facts, trace, step, summary),
        (StepName::Response, Some(http_status)) => {
            let verdict = if http_status == 410 { Verdict::Gone } else { Verdict::ReceiverError };
            judged(verdict, Finding::Response { http_status }, of_status(facts, trace, http_status))
        }
        (StepName::Request, _) => match error.and_then(|error| EgressFault::parse(error.class.as_deref()?)) {
            Some(fault) => {
                let reason = error.map(|error| error.message.clone()).unwrap_or_default();
                judged(Verdict::Unreachable, Finding::NoResponse { fault, reason }, of_fault(facts, fault))
            }
            None => unknown(),
        },
        (StepName::Ai, _) => judged(Verdict::Failed, reason(summary), [facts.in_channel(Remedy::TestModel)]),
        _ => unknown(),
    }
}

fn of_plugin(facts: &Facts, trace: &Trace, step: &Step, summary: &str) -> Judged {
    let plugin = step.detail.plugin.clone().unwrap_or_default();
    let error = step.detail.error.clone().unwrap_or_default();
    let remedy = if step.detail.paused.is_some() {
        facts.plugin(Remedy::EnablePlugin, &plugin)
    } else if error.kind.as_deref() == Some(SandboxFault::Unfiltered.as_str()) {
        Remedy::ChangeSetting(OfHub { setting: Setting::SandboxFilter })
    } else {
        Remedy::DebugPlugin(facts.of(trace))
    };
    let reason = if error.message.is_empty() { summary.to_owned() } else { error.message };
    judged(Verdict::PluginFailed, Finding::PluginFailed { plugin, reason }, [remedy])
}

fn of_status(facts: &Facts, trace: &Trace, status: u16) -> Vec<Remedy> {
    match status {
        401 | 403 => vec![facts.webhook(WebhookField::Auth)],
        300..400 | 404 | 405 | 410 => vec![facts.webhook(WebhookField::Url)],
        429 => vec![facts.webhook(WebhookField::RateLimitPerS)],
        400..500 => vec![Remedy::CorrectReceiver, Remedy::OpenTrace(facts.of(trace))],
        _ => vec![Remedy::CorrectReceiver],
    }
}

fn of_fault(facts: &Facts, fault: EgressFault) -> Vec<Remedy> {
    let url = || facts.webhook(WebhookField::Url);
    match fault {
        EgressFault::BlockedAddress => {
            vec![url(), Remedy::ChangeSetting(OfHub { setting: Setting::EgressAllow })]
        }
        EgressFault::Dns => vec![url()],
        EgressFault::Tls => vec![Remedy::RenewCertificate],
        EgressFault::Timeout => vec![facts.webhook(WebhookField::TimeoutMs)],
        EgressFault::TooLarge => vec![Remedy::CorrectReceiver],
        EgressFault::Connect | EgressFault::Broken => vec![Remedy::StartReceiver, url()],
    }
}

fn open(facts: &Facts, trace: &Trace) -> Judged {
    let steps = Remedy::OpenTrace(facts.of(trace));
    let Some(delivery) = facts.delivery() else {
        return judged(Verdict::Queued, None, [Remedy::Wait, steps]);
    };
    if facts.bot.poller_node(facts.now).is_none() {
        return judged(Verdict::NoNode, None, [Remedy::StartNode, Remedy::OpenBot(facts.of_bot())]);
    }
    match (delivery.attempts, &delivery.last_error) {
        (0, Some(why)) => judged(Verdict::Waiting, reason(why), [facts.in_channel(Remedy::SetModel)]),
        (0, None) => {
            judged(Verdict::Queued, None, [Remedy::Wait, facts.webhook(WebhookField::MaxConcurrency)])
        }
        _ => retrying(facts, trace, delivery),
    }
}

fn retrying(facts: &Facts, trace: &Trace, delivery: &DeliveryFacts) -> Judged {
    let last = trace.steps.iter().rfind(|step| step.status == TraceStatus::Error);
    let summary = delivery.last_error.clone().unwrap_or_else(|| Cause::NotKnown.to_string());
    let Judged { cause, mut remedies, .. } = failure(facts, trace, last, &summary);
    if delivery.state == DeliveryState::Parked {
        remedies.push(Remedy::Attempt(facts.of(trace)));
    }
    Judged { verdict: Verdict::Retrying, cause, remedies }
}

fn send(facts: &Facts) -> Judged {
    let (status, again) = (facts.status(), Remedy::Send(facts.of_bot()));
    match facts.message.status {
        MessageStatus::Sent => judged(Verdict::Sent, None, []),
        MessageStatus::Unconfirmed | MessageStatus::Unknown => {
            judged(Verdict::SendUnknown, status, [Remedy::CheckPhone, again])
        }
        MessageStatus::Expired => judged(Verdict::SendExpired, status, [Remedy::Write, again]),
        MessageStatus::Failed => judged(Verdict::SendFailed, status, [again]),
        _ if facts.bot.status == BotStatus::Expired => {
            judged(Verdict::LoginExpired, None, [Remedy::BindBot(facts.of_bot())])
        }
        _ => match &facts.window_closed {
            Some(why) => judged(Verdict::WindowClosed, reason(why), [Remedy::Write]),
            None => judged(Verdict::Sending, status, [Remedy::Wait, Remedy::OpenBot(facts.of_bot())]),
        },
    }
}

/// The values of findings and remedies.
impl Facts {
    /// The status of the message, as the store has it.
    pub(super) fn status(&self) -> Finding {
        let Message { status, status_reason, .. } = &self.message;
        Finding::Message { message_status: *status, reason: status_reason.clone() }
    }

    fn of_bot(&self) -> OfBot {
        OfBot { bot_id: self.bot.id }
    }

    fn of(&self, trace: &Trace) -> OfTrace {
        OfTrace { bot_id: self.bot.id, trace_id: trace.trace_id }
    }

    /// A remedy in the channel; deliveries without one are those to apps.
    fn in_channel(&self, remedy: impl FnOnce(OfChannel) -> Remedy) -> Remedy {
        match &self.channel {
            Some(channel) => remedy(OfChannel { bot_id: self.bot.id, channel_id: channel.id }),
            None => Remedy::OpenApps(self.of_bot()),
        }
    }

    fn webhook(&self, field: WebhookField) -> Remedy {
        self.in_channel(|place| Remedy::SetWebhook(WebhookSetting { place, field }))
    }

    fn plugin(&self, remedy: impl FnOnce(OfPlugin) -> Remedy, plugin: &str) -> Remedy {
        self.in_channel(|place| remedy(OfPlugin { place, plugin: plugin.to_owned() }))
    }
}

impl ChannelFacts {
    /// Whether a sink is on, and why the hub switched it off.
    pub(super) fn sink(&self, sink: SinkId) -> Finding {
        let reason = self.webhook_disabled.clone().filter(|_| sink == SinkId::Webhook);
        Finding::Sink { sink, enabled: self.is_on(sink), reason }
    }
}
