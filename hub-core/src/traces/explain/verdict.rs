//! The verdict on a message: the first thing on its path that went wrong.

use super::{ChannelFacts, Facts, Verdict};
use crate::{
    model::{
        bot::BotStatus,
        message::MessageStatus,
        sinks::SinkId,
        trace::{DeliveryFacts, DeliveryState, Step, StepName, Trace, TraceStatus},
    },
    sandbox::SandboxFault,
};

/// A verdict, its sentence, and the remedy.
type Judged = (Verdict, String, Option<String>);

fn judged(verdict: Verdict, sentence: impl Into<String>, remedy: impl Into<String>) -> Judged {
    (verdict, sentence.into(), Some(remedy.into()))
}

/// The verdict on a message.
pub(super) fn judge(facts: &Facts) -> Judged {
    if facts.is_sent() {
        return send(facts);
    }
    match facts.message.status {
        MessageStatus::Received => {}
        MessageStatus::Quarantined => {
            return judged(
                Verdict::Unreadable,
                "The hub could not read this message. Its original form is stored.",
                "Update the hub: a later version may read such messages. Ask the sender to write again as text.",
            );
        }
        status => {
            return judged(
                Verdict::NoUserMessage,
                format!("This is no message of a person ({status}). Such messages are not delivered."),
                "Nothing can be changed for this message; messages that people write to the bot are delivered.",
            );
        }
    }
    let Some(trace) = &facts.trace else { return without_trace(facts) };
    match trace.status {
        TraceStatus::Ok => delivered(facts, trace),
        TraceStatus::Skipped => skipped(facts, trace),
        TraceStatus::Error => failed(facts, trace),
        TraceStatus::Pending => open(facts),
    }
}

/// `--bot BOT`, and before it the channel, for commands.
fn place(facts: &Facts, channel: &ChannelFacts) -> String {
    format!("{} --bot {}", channel.id, facts.bot.id)
}

/// A command about the channel; what it needs is missing only for apps.
fn channel_command(facts: &Facts, verb: &str, options: &str) -> String {
    match &facts.channel {
        Some(channel) => format!("`hub-cli channels {verb} {}{options}`", place(facts, channel)),
        None => format!("`hub-cli apps list --bot {}`", facts.bot.id),
    }
}

fn replay(facts: &Facts) -> String {
    let trace = facts.trace.as_ref().map(|trace| trace.trace_id.to_string()).unwrap_or_default();
    format!("`hub-cli replay {trace}`")
}

/// Where the message was to go, for sentences.
fn target(facts: &Facts) -> String {
    facts
        .channel
        .as_ref()
        .map_or_else(|| "the app".to_owned(), |channel| format!("the channel {}", channel.name))
}

fn without_trace(facts: &Facts) -> Judged {
    match &facts.channel {
        None => judged(
            Verdict::NoChannel,
            "The bot had no channel when the message was received, or its traces were deleted.",
            format!("Create a channel: `hub-cli channels create orders --bot {}`.", facts.bot.id),
        ),
        Some(channel) if facts.message.created_at < channel.created_at => judged(
            Verdict::OlderThanChannel,
            format!("The channel {} was created after the message was received.", channel.name),
            "A channel receives only messages from its creation on; ask the sender to write again.",
        ),
        Some(channel) => judged(
            Verdict::NoTrace,
            format!(
                "There is no trace of the message in the channel {}: traces are deleted after a while.",
                channel.name
            ),
            "Ask the sender to write again. A hub keeps traces for 7 days unless its setting `trace_retention` differs.",
        ),
    }
}

fn delivered(facts: &Facts, trace: &Trace) -> Judged {
    let is_in_log = facts.deliveries.is_empty() && trace.channel_id.is_some();
    if is_in_log && !trace.steps.iter().any(|step| matches!(step.name, StepName::Request | StepName::Ai)) {
        let is_given = |step: &Step| matches!(step.name, StepName::Websocket | StepName::Ilink);
        let clients = trace.steps.iter().any(is_given);
        if clients {
            let sentence = format!("Clients of {} were connected and received the message.", target(facts));
            return (Verdict::Delivered, sentence, None);
        }
        return judged(
            Verdict::LogOnly,
            format!(
                "The message is in the log of {}, where clients read it; no other sink was on.",
                target(facts)
            ),
            format!(
                "Connect a client, or set a webhook: {}.",
                channel_command(facts, "set-webhook", " --url URL")
            ),
        );
    }
    let attempts = match trace.attempts {
        0 | 1 => String::new(),
        attempts => format!(", at attempt {attempts}"),
    };
    let reply = match (waiting_reply(trace), skipped_reply(trace)) {
        (Some(why), _) => format!(" A reply waits: {why}."),
        (None, Some(why)) => format!(" No reply was sent: {why}."),
        (None, None) => String::new(),
    };
    (
        Verdict::Delivered,
        format!("The message was delivered to {}{attempts}: {}.{reply}", target(facts), trace.summary),
        None,
    )
}

/// Why the response was not used as a reply; `None` when it has none, or another reply is sent.
fn skipped_reply(trace: &Trace) -> Option<&str> {
    let step = reply_step(trace)?;
    step.detail.reason.as_deref().filter(|_| step.status == TraceStatus::Skipped)
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

/// Why the last reply was not sent yet; `None` when it is sent, or about to be.
fn waiting_reply(trace: &Trace) -> Option<&str> {
    let step = reply_step(trace)?;
    let error = step.detail.error.as_ref().filter(|_| step.status == TraceStatus::Pending)?;
    Some(&error.message)
}

fn skipped(facts: &Facts, trace: &Trace) -> Judged {
    let filter =
        trace.steps.iter().rfind(|step| step.name == StepName::Filter && step.status == TraceStatus::Skipped);
    if let Some(step) = filter {
        let reason = step.detail.reason.as_deref().unwrap_or_default();
        return match reason {
            "disabled" => judged(
                Verdict::ChannelOff,
                format!("{} was off when the message was received.", capital(&target(facts))),
                format!("Enable it: {}.", channel_command(facts, "edit", " --enabled true")),
            ),
            "handle" => judged(
                Verdict::NotAddressed,
                format!("The message does not mention the handle of {}.", target(facts)),
                format!(
                    "Mention the handle at the start of the message, or remove it: {}.",
                    channel_command(facts, "edit", " --no-handle")
                ),
            ),
            reason if reason.starts_with("the filter does not work") => judged(
                Verdict::FilterBroken,
                format!("The filter of {} does not work, so that nothing passes: {reason}.", target(facts)),
                format!(
                    "Set the filter again: {}.",
                    channel_command(facts, "set-filter", " --expression EXPRESSION")
                ),
            ),
            reason => judged(
                Verdict::Filtered,
                format!("The filter of {} did not match: {reason}.", target(facts)),
                format!("Change the filter: {}.", channel_command(facts, "set-filter", " --keywords WORDS")),
            ),
        };
    }
    let skips = |step: &&Step| step.name == StepName::PluginOnRequest && step.detail.skipped == Some(true);
    if let Some(step) = trace.steps.iter().rfind(skips) {
        let plugin = step.detail.plugin.as_deref().unwrap_or_default();
        return judged(
            Verdict::SkippedByPlugin,
            format!("The plugin {plugin} skipped the message."),
            format!("Change the plugin, or disable it: {}.", plugin_command(facts, "disable", plugin)),
        );
    }
    judged(
        Verdict::IgnoredBySink,
        format!("The sink of {} ignores this message: {}.", target(facts), trace.summary),
        format!(
            "Set a sink that takes such messages: {}.",
            channel_command(facts, "set-webhook", " --url URL")
        ),
    )
}

/// A command about a plugin of the channel.
fn plugin_command(facts: &Facts, verb: &str, plugin: &str) -> String {
    let channel = facts.channel.as_ref().map(|channel| channel.id.to_string()).unwrap_or_default();
    format!("`hub-cli channels plugins {verb} {plugin} --bot {} --channel {channel}`", facts.bot.id)
}

fn failed(facts: &Facts, trace: &Trace) -> Judged {
    let last = trace.steps.iter().rfind(|step| step.status == TraceStatus::Error);
    if let Some(step) = last.filter(|step| step.name == StepName::Reply) {
        let error = step.detail.error.as_ref().map_or("no reason is known", |error| &error.message);
        return judged(
            Verdict::ReplyFailed,
            format!("The receiver has the message, and a reply could not be sent: {error}."),
            format!("Check whether the bot can send: `hub-cli bots status {}`.", facts.bot.id),
        );
    }
    let (verdict, cause, remedy) = cause(facts, last, &trace.summary);
    let attempts =
        if trace.attempts == 1 { "1 attempt".to_owned() } else { format!("{} attempts", trace.attempts) };
    let sentence = format!("The delivery to {} failed after {attempts}: {cause}.", target(facts));
    judged(verdict, sentence, format!("{remedy} Then replay the message: {}.", replay(facts)))
}

/// Why an attempt failed: verdict, cause and remedy.
fn cause(facts: &Facts, step: Option<&Step>, summary: &str) -> (Verdict, String, String) {
    let webhook = || channel_command(facts, "set-webhook", " --url URL");
    if let Some(channel) = facts.channel.as_ref()
        && let Some(delivery) = facts.delivery()
        && !channel.is_on(delivery.sink)
    {
        let why = channel.webhook_disabled.as_deref().filter(|_| delivery.sink == SinkId::Webhook);
        let cause = why.map_or_else(
            || format!("the sink {} is off", delivery.sink),
            |why| format!("the hub switched the webhook off: {why}"),
        );
        let verdict =
            if why.is_some_and(|why| why.contains("410")) { Verdict::Gone } else { Verdict::SinkOff };
        let verb = if delivery.sink == SinkId::Webhook { "set-webhook" } else { "set-ai" };
        return (verdict, cause, format!("Enable the sink: {}.", channel_command(facts, verb, " --on")));
    }
    let Some(step) = step else {
        let remedy = format!("See the steps: `hub-cli traces show {}`.", trace_id(facts));
        return (Verdict::Failed, summary.to_owned(), remedy);
    };
    let detail = &step.detail;
    let error = detail.error.clone().unwrap_or_default();
    match (step.name, detail.status, &error.class) {
        (StepName::PluginOnRequest | StepName::PluginOnResponse, ..) => {
            let plugin = detail.plugin.as_deref().unwrap_or_default();
            let remedy = if detail.paused.is_some() {
                let enable = plugin_command(facts, "enable", plugin);
                format!("Install a version that works, or enable it again: {enable}.")
            } else if error.kind.as_deref() == Some(SandboxFault::Unfiltered.as_str()) {
                "Run the hub where system calls can be filtered, or set `sandbox_filter` to `optional`."
                    .to_owned()
            } else {
                format!(
                    "Correct the plugin: `hub-cli debug request --trace {}` runs it again.",
                    trace_id(facts)
                )
            };
            let error = if error.message.is_empty() { summary } else { &error.message };
            (Verdict::PluginFailed, format!("the plugin {plugin} failed: {error}"), remedy)
        }
        (StepName::Response, Some(410), _) => (
            Verdict::Gone,
            "the receiver responded with 410: it accepts no more messages".to_owned(),
            format!("Set another URL: {}.", webhook()),
        ),
        (StepName::Response, Some(status), _) => (
            Verdict::ReceiverError,
            format!("the receiver responded with status {status}"),
            of_status(status, &webhook()),
        ),
        (StepName::Request, _, Some(class)) => {
            (Verdict::Unreachable, format!("{class}: {}", error.message), of_fault(class, &webhook()))
        }
        (StepName::Ai, ..) => (
            Verdict::Failed,
            summary.to_owned(),
            format!(
                "Check the model: {}, or `hub-cli ai-config test` for the global endpoint.",
                channel_command(facts, "show", "")
            ),
        ),
        _ => {
            let remedy = format!("See the steps: `hub-cli traces show {}`.", trace_id(facts));
            (Verdict::Failed, summary.to_owned(), remedy)
        }
    }
}

fn trace_id(facts: &Facts) -> String {
    facts.trace.as_ref().map(|trace| trace.trace_id.to_string()).unwrap_or_default()
}

fn of_status(status: u16, webhook: &str) -> String {
    match status {
        401 | 403 => {
            format!("Set the secret that the receiver expects: {webhook} with --method and --secret-file.")
        }
        404 | 405 => format!("Set the URL that the receiver serves: {webhook}."),
        300..400 => format!("Redirects are not followed; set the final URL: {webhook}."),
        429 => "Lower the rate of requests: set `rate_limit_per_s` of the webhook.".to_owned(),
        400..500 => "Correct the receiver so that it accepts the request, which the trace shows.".to_owned(),
        _ => "Correct the receiver: its log has the cause.".to_owned(),
    }
}

fn of_fault(class: &str, webhook: &str) -> String {
    match class {
        "blocked_address" => {
            "Use a public address, or permit this one with the setting egress_allow.".to_owned()
        }
        "dns" => format!("Correct the name of the host: {webhook}."),
        "tls" => "Renew or correct the certificate of the receiver.".to_owned(),
        "timeout" => format!("Respond faster, or raise the timeout: {webhook} with --timeout-ms."),
        "too_large" => "Respond with fewer headers.".to_owned(),
        _ => format!("Start the receiver, or correct its address: {webhook}."),
    }
}

fn open(facts: &Facts) -> Judged {
    let Some(delivery) = facts.delivery() else {
        return judged(
            Verdict::Queued,
            format!("The delivery to {} has not ended.", target(facts)),
            format!("Wait, or see the steps: `hub-cli traces show {}`.", trace_id(facts)),
        );
    };
    let status = format!("`hub-cli bots status {}`", facts.bot.id);
    if facts.bot.poller_node(facts.now).is_none() {
        return judged(
            Verdict::NoNode,
            "No node of the hub works for the bot, so that its deliveries wait.",
            format!("Start a node of the hub, and check the bot: {status}."),
        );
    }
    match (delivery.attempts, &delivery.last_error) {
        (0, Some(reason)) => judged(
            Verdict::Waiting,
            format!("The delivery to {} waits: {reason}.", target(facts)),
            "Configure the model: `hub-cli ai-config set`, or an endpoint of the channel with `hub-cli channels set-ai`.",
        ),
        (0, None) => judged(
            Verdict::Queued,
            format!(
                "The message waits for its first attempt at {}, behind others of its conversation or channel.",
                target(facts)
            ),
            "Wait, or raise `max_concurrency` of the webhook.",
        ),
        (attempts, _) => retrying(facts, delivery, attempts),
    }
}

fn retrying(facts: &Facts, delivery: &DeliveryFacts, attempts: u64) -> Judged {
    let trace = facts.trace.as_ref();
    let last = trace.and_then(|trace| trace.steps.iter().rfind(|step| step.status == TraceStatus::Error));
    let summary = delivery.last_error.as_deref().unwrap_or("no reason is known");
    let (_, cause, remedy) = cause(facts, last, summary);
    let most =
        trace.and_then(|trace| trace.max_attempts).map_or_else(String::new, |most| format!(" of {most}"));
    let place =
        if delivery.state == DeliveryState::Parked { "; later messages do not wait for it" } else { "" };
    let sentence = format!(
        "Attempt {attempts}{most} at {} failed: {cause}. The next one is at {}{place}.",
        target(facts),
        delivery.due_at
    );
    let is_parked = delivery.state == DeliveryState::Parked;
    let now = trace
        .filter(|_| is_parked)
        .map(|trace| format!(" `hub-cli traces attempt {}` tries at once.", trace.trace_id));
    judged(Verdict::Retrying, sentence, format!("{remedy}{}", now.unwrap_or_default()))
}

fn send(facts: &Facts) -> Judged {
    let message = &facts.message;
    let reason = message.status_reason.as_deref();
    let because = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    let again = format!("`hub-cli send --bot {}`", facts.bot.id);
    match message.status {
        MessageStatus::Sent => (Verdict::Sent, "The chat network has the message.".to_owned(), None),
        MessageStatus::Unconfirmed => judged(
            Verdict::SendUnknown,
            "The chat network accepted the message without an id: the person may not see it.",
            format!("Check the phone of the account, or send again: {again}."),
        ),
        MessageStatus::Unknown => judged(
            Verdict::SendUnknown,
            format!("It is unknown whether the chat network has the message{because}."),
            format!("Check the phone of the account before you send again: {again}."),
        ),
        MessageStatus::Expired => judged(
            Verdict::SendExpired,
            format!("The message waited too long and was not sent{because}."),
            format!("Send again after the person wrote: {again}."),
        ),
        MessageStatus::Failed => judged(
            Verdict::SendFailed,
            format!("The chat network refused the message{because}."),
            format!("Correct what the reason names and send again: {again}."),
        ),
        _ if facts.bot.status == BotStatus::Expired => judged(
            Verdict::LoginExpired,
            "The message waits: the chat network requires a new login of the bot.",
            "Bind the same account again: `hub-cli bots bind`.",
        ),
        _ if facts.window_closed.is_some() => judged(
            Verdict::WindowClosed,
            format!("The message waits: {}.", facts.window_closed.as_deref().unwrap_or_default()),
            "The person has to write to the bot; the message is sent then.",
        ),
        _ => judged(
            Verdict::Sending,
            format!("The message waits for the chat network{because}."),
            format!("Wait, or check the bot: `hub-cli bots status {}`.", facts.bot.id),
        ),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
