//! A test of a webhook: the phases with their outcomes, the request, and the response of the receiver.

use hub_core::{
    delivery::ping::ping,
    egress::EgressFault,
    traces::{Step, StepDetail, StepPhases, Trace, TraceStatus},
};
use maud::{Markup, html};

use super::Open;
use crate::{
    console::{
        page::Ask,
        parts::{
            badge::{Tone, badge},
            cause::cause,
            list,
        },
    },
    envelope::ApiError,
};

/// Characters of a body that are shown.
const MAX_BODY: usize = 2000;

/// Sends the test and shows its outcome.
pub(super) async fn run(ask: &Ask, open: &Open) -> Result<Markup, ApiError> {
    let sent = Box::pin(ping(ask.hub.context(), &ask.actor, open.bot.id, open.channel.id));
    Ok(outcome(ask, &ask.client_gone.while_connected(sent).await?))
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
                ((words.milliseconds)(trace.duration_ms)) " · " (cause(ask.words, &trace.summary))
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
            td { ((words.step)(step.name)) @if let Some(plugin) = &step.detail.plugin { " " bdi { (plugin) } } }
            td { (badge(tone(step.status), (words.status)(step.status))) }
            td { ((words.milliseconds)(step.duration_ms)) }
            td { (said(ask, &step.detail)) }
        }
    }
}

/// Renders the details of a step; the reason for a failure comes first.
fn said(ask: &Ask, detail: &StepDetail) -> Markup {
    let error = detail.error.as_ref();
    let fault = error.and_then(|error| EgressFault::parse(error.class.as_deref()?));
    let phase = error.and_then(|error| error.phase);
    let message = error.map(|error| &error.message).or(detail.reason.as_ref());
    html! {
        @if let Some(fault) = fault {
            strong { ((ask.words.webhooks.fault)(fault)) }
            @if let Some(phase) = phase.filter(|_| fault == EgressFault::Timeout) { " (" ((ask.words.webhooks.in_phase)(phase)) ")" }
            br;
        }
        @if let Some(message) = message { (cause(ask.words, message)) }
        @if let (Some(method), Some(url)) = (&detail.method, &detail.url) {
            @if message.is_some() { br; }
            bdi { (method) " " (url) }
        }
        @if let Some(status) = detail.status { "HTTP " (status) }
        @if let Some(phases) = detail.phases.as_ref().filter(|phases| **phases != StepPhases::default()) { br; (measured(ask, phases)) }
    }
}

/// Renders the time of DNS, of the connection, and until the first byte.
fn measured(ask: &Ask, phases: &StepPhases) -> Markup {
    let words = &ask.words.webhooks;
    let parts = [
        (words.dns, phases.dns_ms),
        (words.connect, phases.connect_ms),
        (words.first_byte, phases.first_byte_ms),
    ];
    let parts = parts.into_iter().filter_map(|(text, ms)| Some((text, ms?)));
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
    let headers = detail.headers.as_deref().unwrap_or_default();
    let body = detail.body.as_deref().unwrap_or_default();
    let shown: String = body.chars().take(MAX_BODY).collect();
    html! {
        @if !headers.is_empty() || !body.is_empty() {
            details open[step.status == TraceStatus::Error] {
                summary { ((ask.words.webhooks.step)(step.name)) }
                pre tabindex="0" {
                    @for (name, value) in headers { (name) ": " (value) "\n" }
                    "\n" (shown) @if shown.len() < body.len() { "…" }
                }
            }
        }
    }
}
