//! The checks of an explanation, in the order of a message's path.

use super::{Check, CheckName, Facts, Finding, verdict::reply_step};
use crate::{
    model::{
        bot::BotStatus,
        cause::Cause,
        message::MessageStatus,
        sinks::SinkId,
        trace::{DeliveryState, Step, StepName, Trace, TraceStatus},
    },
    time::Timestamp,
};

fn check(name: CheckName, ok: bool, finding: Finding, at: impl Into<Option<Timestamp>>) -> Check {
    Check { name, ok, finding, at: at.into() }
}

/// Everything that is known of the path of a message.
pub(super) fn of(facts: &Facts) -> Vec<Check> {
    let message = &facts.message;
    let mut checks = vec![bot(facts)];
    if facts.is_sent() {
        let is_sent = message.status == MessageStatus::Sent;
        checks.push(check(CheckName::Send, is_sent, facts.status(), message.created_at));
        return checks;
    }
    let is_read = message.status == MessageStatus::Received;
    let status = Finding::Message { message_status: message.status, reason: None };
    checks.insert(0, check(CheckName::Received, is_read, status, message.created_at));
    if let Some(channel) = &facts.channel {
        let enabled = channel.enabled;
        checks.push(check(CheckName::Channel, enabled, Finding::Channel { enabled }, None));
    }
    if let Some(trace) = &facts.trace {
        checks.extend(filter(trace));
        checks.extend(plugins(trace));
    }
    checks.extend(sinks(facts));
    checks.extend(facts.deliveries.iter().map(|delivery| {
        let ok = matches!(delivery.state, DeliveryState::Done | DeliveryState::Skipped);
        let finding = Finding::Delivery {
            sink: delivery.sink,
            state: delivery.state,
            attempts: delivery.attempts,
            reason: delivery.last_error.clone().filter(|_| !ok),
        };
        let is_open = matches!(delivery.state, DeliveryState::Pending | DeliveryState::Parked);
        check(CheckName::Delivery, ok, finding, is_open.then_some(delivery.due_at))
    }));
    checks.extend(facts.trace.as_ref().and_then(replies));
    checks
}

fn bot(facts: &Facts) -> Check {
    let bot = &facts.bot;
    let has_node = bot.poller_node(facts.now).is_some();
    let ok = bot.status == BotStatus::Online && has_node;
    let finding = Finding::Bot { bot_status: bot.status, reason: bot.status_reason.clone(), has_node };
    check(CheckName::Bot, ok, finding, bot.status_since)
}

fn filter(trace: &Trace) -> Option<Check> {
    let step = trace.steps.iter().rfind(|step| step.name == StepName::Filter)?;
    let ok = step.status == TraceStatus::Ok;
    Some(check(
        CheckName::Filter,
        ok,
        Finding::Filter { reason: step.detail.reason.clone() },
        step.started_at,
    ))
}

/// The plugins of the last attempt as one check: the first that failed, or the last that ran.
fn plugins(trace: &Trace) -> Option<Check> {
    let is_hook = |step: &&Step| matches!(step.name, StepName::PluginOnRequest | StepName::PluginOnResponse);
    let steps: Vec<&Step> = trace.steps.iter().filter(is_hook).collect();
    let last = steps.last()?;
    let failed = steps.iter().rfind(|step| step.status == TraceStatus::Error);
    let plugin = failed.unwrap_or(last).detail.plugin.clone().unwrap_or_default();
    Some(match failed {
        Some(step) => {
            let error = step.detail.error.as_ref().map(|error| error.message.clone());
            let reason = error.unwrap_or_else(|| Cause::NotKnown.to_string());
            let finding = Finding::PluginFailed { plugin, reason };
            check(CheckName::Plugins, false, finding, step.started_at)
        }
        None => check(CheckName::Plugins, true, Finding::PluginRan { plugin }, last.started_at),
    })
}

/// Whether the sinks of the deliveries are on; without deliveries, whether any sink is.
fn sinks(facts: &Facts) -> Vec<Check> {
    let Some(channel) = &facts.channel else { return Vec::new() };
    let state = |sink| check(CheckName::Sink, channel.is_on(sink), channel.sink(sink), None);
    if !facts.deliveries.is_empty() {
        return facts
            .deliveries
            .iter()
            .filter_map(|delivery| delivery.sink.of_channel())
            .map(state)
            .collect();
    }
    let mut on: Vec<_> = SinkId::ALL.into_iter().filter(|sink| channel.is_on(*sink)).map(state).collect();
    if on.is_empty() {
        on.push(check(CheckName::Sink, false, Finding::NoSink, None));
    }
    on
}

fn replies(trace: &Trace) -> Option<Check> {
    let step = reply_step(trace)?;
    let error = step.detail.error.as_ref().map(|error| &error.message);
    let skipped = step.detail.reason.as_ref().filter(|_| step.status == TraceStatus::Skipped);
    let reason = error.or(skipped).or(step.detail.state.as_ref()).cloned();
    // What waits has a reason, or is about to be sent.
    let ok = match step.status {
        TraceStatus::Error | TraceStatus::Skipped => false,
        TraceStatus::Pending => error.is_none(),
        TraceStatus::Ok => true,
    };
    Some(check(CheckName::Reply, ok, Finding::Reply { outcome: step.status, reason }, step.started_at))
}
