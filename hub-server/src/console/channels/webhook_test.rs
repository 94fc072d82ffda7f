//! A test of a webhook: the phases with their outcomes, what was sent, and what the receiver answered.

use hub_core::{
    delivery::ping::ping,
    egress::{EgressFault, Phase},
    traces::{Step, Trace, TraceStatus},
};
use maud::{Markup, html};
use serde_json::Value;

use super::Open;
use crate::{
    console::{
        page::Ask,
        parts::{
            badge::{Tone, badge},
            list,
        },
    },
    envelope::ApiError,
};

/// Characters of a body that are shown.
const MAX_BODY: usize = 2000;

/// Sends the test and shows its outcome.
pub(super) async fn run(ask: &Ask, open: &Open) -> Result<Markup, ApiError> {
    let sent = ping(ask.hub.context(), &ask.actor, open.bot.id, open.channel.id);
    Ok(outcome(ask, &Box::pin(sent).await?))
}

fn tone(status: TraceStatus) -> Tone {
    match status {
        TraceStatus::Ok => Tone::Ok,
        TraceStatus::Error => Tone::Error,
        TraceStatus::Skipped => Tone::Skipped,
        TraceStatus::Pending => Tone::Warn,
    }
}

fn outcome(ask: &Ask, trace: &Trace) -> Markup {
    let words = &ask.words.webhooks;
    let rows = html! { @for step in &trace.steps { (row(ask, step)) } };
    let columns = [words.phase, words.outcome, words.duration, words.details];
    html! {
        div.tested role="status" {
            p {
                (badge(tone(trace.status), (words.verdict)(trace.status))) " "
                ((words.milliseconds)(trace.duration_ms)) " · " span lang="en" { (trace.summary) }
            }
        }
        (list::table(words.test, &columns, &rows))
        @for step in &trace.steps { (exchange(ask, step)) }
    }
}

fn row(ask: &Ask, step: &Step) -> Markup {
    let words = &ask.words.webhooks;
    html! {
        tr {
            td { ((words.step)(step.name)) @if let Some(plugin) = step.detail["plugin"].as_str() { " " bdi { (plugin) } } }
            td { (badge(tone(step.status), (words.status)(step.status))) }
            td { ((words.milliseconds)(step.duration_ms)) }
            td { (said(ask, &step.detail)) }
        }
    }
}

/// What a step says of itself: the reason for its failure first.
fn said(ask: &Ask, detail: &Value) -> Markup {
    let error = &detail["error"];
    let fault = error["class"].as_str().and_then(EgressFault::parse);
    let phase = error["phase"].as_str().and_then(Phase::parse);
    let message = error["message"].as_str().or_else(|| error.as_str()).or_else(|| detail["reason"].as_str());
    html! {
        @if let Some(fault) = fault {
            strong { ((ask.words.webhooks.fault)(fault)) }
            @if let Some(phase) = phase.filter(|_| fault == EgressFault::Timeout) { " (" ((ask.words.webhooks.in_phase)(phase)) ")" }
            br;
        }
        @if let Some(message) = message { span lang="en" { (message) } }
        @if let (Some(method), Some(url)) = (detail["method"].as_str(), detail["url"].as_str()) {
            @if message.is_some() { br; }
            bdi { (method) " " (url) }
        }
        @if let Some(status) = detail["status"].as_u64() { "HTTP " (status) }
        @if let Some(phases) = detail["phases"].as_object().filter(|phases| !phases.is_empty()) { br; (measured(ask, phases)) }
    }
}

/// How long the parts of the request took.
fn measured(ask: &Ask, phases: &serde_json::Map<String, Value>) -> Markup {
    let words = &ask.words.webhooks;
    let parts = [("dns_ms", words.dns), ("connect_ms", words.connect), ("first_byte_ms", words.first_byte)];
    let parts = parts.into_iter().filter_map(|(name, text)| Some((text, phases.get(name)?.as_u64()?)));
    html! {
        span.muted {
            @for (at, (text, ms)) in parts.enumerate() {
                @if at > 0 { " · " }
                (text) " " data value=(ms) data-computed { ((words.milliseconds)(ms)) }
            }
        }
    }
}

/// Headers and body, as they were sent or received; secrets are replaced.
fn exchange(ask: &Ask, step: &Step) -> Markup {
    let detail = &step.detail;
    let headers = detail["headers"].as_array().map_or(&[][..], Vec::as_slice);
    let body = detail["body"].as_str().unwrap_or_default();
    let shown: String = body.chars().take(MAX_BODY).collect();
    html! {
        @if !headers.is_empty() || !body.is_empty() {
            details open[step.status == TraceStatus::Error] {
                summary { ((ask.words.webhooks.step)(step.name)) }
                pre tabindex="0" {
                    @for header in headers {
                        (header[0].as_str().unwrap_or_default()) ": " (header[1].as_str().unwrap_or_default()) "\n"
                    }
                    "\n" (shown) @if shown.len() < body.len() { "…" }
                }
            }
        }
    }
}
