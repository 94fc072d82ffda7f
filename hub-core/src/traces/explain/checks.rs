//! The checks of an explanation, in the order of a message's path.

use super::{Check, CheckName, Facts, verdict::reply_step};
use crate::{
    model::{
        bot::BotStatus,
        message::MessageStatus,
        sinks::SinkId,
        trace::{DeliveryState, Step, StepName, Trace, TraceStatus},
    },
    time::Timestamp,
};

fn check(name: CheckName, ok: bool, why: impl Into<String>, at: impl Into<Option<Timestamp>>) -> Check {
    Check { name, ok, why: why.into(), at: at.into() }
}

/// Everything that is known of the path of a message.
pub(super) fn of(facts: &Facts) -> Vec<Check> {
    let message = &facts.message;
    let mut checks = vec![bot(facts)];
    if facts.is_sent() {
        let why = message.status_reason.as_deref().unwrap_or_else(|| message.status.as_str());
        checks.push(check(CheckName::Send, message.status == MessageStatus::Sent, why, message.created_at));
        return checks;
    }
    let is_read = message.status == MessageStatus::Received;
    checks.insert(0, check(CheckName::Received, is_read, message.status.as_str(), message.created_at));
    if let Some(channel) = &facts.channel {
        let why = if channel.enabled { "the channel is on" } else { "the channel is off" };
        checks.push(check(CheckName::Channel, channel.enabled, why, None));
    }
    if let Some(trace) = &facts.trace {
        checks.extend(filter(trace));
        checks.extend(plugins(trace));
    }
    checks.extend(sinks(facts));
    checks.extend(facts.deliveries.iter().map(|delivery| {
        let ok = matches!(delivery.state, DeliveryState::Done | DeliveryState::Skipped);
        let mut why = format!("{}: {}, attempts: {}", delivery.sink, delivery.state, delivery.attempts);
        if let Some(error) = delivery.last_error.as_ref().filter(|_| !ok) {
            why = format!("{why}: {error}");
        }
        let is_open = matches!(delivery.state, DeliveryState::Pending | DeliveryState::Parked);
        check(CheckName::Delivery, ok, why, is_open.then_some(delivery.due_at))
    }));
    checks.extend(facts.trace.as_ref().and_then(replies));
    checks
}

fn bot(facts: &Facts) -> Check {
    let bot = &facts.bot;
    let ok = bot.status == BotStatus::Online && bot.poller_node(facts.now).is_some();
    let mut why = format!("the bot is {}", bot.status);
    if let Some(reason) = &bot.status_reason {
        why = format!("{why}: {reason}");
    }
    if bot.poller_node(facts.now).is_none() {
        why.push_str("; no node works for it");
    }
    check(CheckName::Bot, ok, why, bot.status_since)
}

fn filter(trace: &Trace) -> Option<Check> {
    let step = trace.steps.iter().rfind(|step| step.name == StepName::Filter)?;
    let ok = step.status == TraceStatus::Ok;
    let why = step.detail.reason.as_deref().unwrap_or("passed");
    Some(check(CheckName::Filter, ok, why, step.started_at))
}

/// The plugins of the last attempt as one check: the first that failed, or how many ran.
fn plugins(trace: &Trace) -> Option<Check> {
    let is_hook = |step: &&Step| matches!(step.name, StepName::PluginOnRequest | StepName::PluginOnResponse);
    let steps: Vec<&Step> = trace.steps.iter().filter(is_hook).collect();
    let last = steps.last()?;
    let failed = steps.iter().rfind(|step| step.status == TraceStatus::Error);
    let name = |step: &Step| step.detail.plugin.clone().unwrap_or_default();
    Some(match failed {
        Some(step) => {
            let error = step.detail.error.as_ref().map_or("failed", |error| &error.message);
            check(CheckName::Plugins, false, format!("{}: {error}", name(step)), step.started_at)
        }
        None => check(CheckName::Plugins, true, format!("{} ran last", name(last)), last.started_at),
    })
}

/// Whether the sinks of the deliveries are on; without deliveries, whether any sink is.
fn sinks(facts: &Facts) -> Vec<Check> {
    let Some(channel) = &facts.channel else { return Vec::new() };
    let state = |sink: SinkId| {
        let is_on = channel.is_on(sink);
        let why = match &channel.webhook_disabled {
            Some(why) if sink == SinkId::Webhook => format!("{sink}: switched off by the hub: {why}"),
            _ => format!("{sink}: {}", if is_on { "on" } else { "off" }),
        };
        check(CheckName::Sink, is_on, why, None)
    };
    if facts.deliveries.is_empty() {
        let all = SinkId::ALL.map(state);
        return all
            .into_iter()
            .filter(|check| check.ok)
            .chain(
                (!channel.webhook_on && !channel.ai_on)
                    .then(|| check(CheckName::Sink, false, "neither webhook nor model is on", None)),
            )
            .collect();
    }
    facts.deliveries.iter().map(|delivery| state(delivery.sink)).collect()
}

fn replies(trace: &Trace) -> Option<Check> {
    let step = reply_step(trace)?;
    let error = step.detail.error.as_ref().map(|error| &*error.message);
    let skipped = step.detail.reason.as_deref().filter(|_| step.status == TraceStatus::Skipped);
    let why = error.or(skipped).or(step.detail.state.as_deref()).unwrap_or("accepted");
    // What waits has a reason, or is about to be sent.
    let ok = match step.status {
        TraceStatus::Error | TraceStatus::Skipped => false,
        TraceStatus::Pending => error.is_none(),
        TraceStatus::Ok => true,
    };
    Some(check(CheckName::Reply, ok, why, step.started_at))
}
