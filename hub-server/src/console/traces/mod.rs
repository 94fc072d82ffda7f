//! A trace: why the message did or did not arrive, its steps on a time line, and one step in full.

use std::collections::BTreeMap;

use hub_core::{
    Error, ErrorCode,
    id::TraceId,
    replay::case::plugins_that_ran,
    traces::{Explanation, StepName, Trace, TraceStatus},
};
use maud::{Markup, html};

use super::{
    page::{Answer, Ask, Page, does, handler},
    parts::{badge, code, time},
};
use crate::{console::parts::cause::cause, envelope::ApiError};

pub(super) mod explanation;
mod mending;
pub(super) mod step;
mod waterfall;

use mending::{attempt, give_up, replay};

pub(super) static PAGE: Page = Page {
    path: "/console/traces/:bot/:trace",
    shows: &["getTrace", "explainMessage"],
    command: "hub-cli traces show {trace}",
    show: handler!(show),
    actions: &[
        does!("replayTrace", replay, |words| words.traces.replayed),
        does!("attemptTrace", attempt, |words| words.traces.attempted),
        does!("cancelTrace", give_up, |words| words.traces.given_up),
    ],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = ask.words.traces;
    let trace = ask.hub.traces().get(&ask.actor, ask.id("bot")?, ask.id("trace")?).await?;
    let chosen =
        ask.query("step").map(|step| number_of(step, &trace)).transpose()?.or_else(|| most_relevant(&trace));
    let explained = explain(ask, &trace).await?;
    let live = format!("trace:{} sent:{}", trace.trace_id, trace.message_id);
    let main = html! {
        div data-region="explanation" data-live=(live) { (heading(ask, &trace, explained.as_ref())) }
        section data-region="steps" data-live=(live) aria-labelledby="steps-heading" {
            h2 #steps-heading { (words.steps) }
            @if trace.steps.is_empty() { p { (words.no_steps) } } @else { (waterfall::table(ask, &trace, chosen)) }
            (next_attempt(ask, &trace))
            @if let Some((number, step)) = chosen.and_then(|at| Some((at, trace.steps.get(at)?))) {
                (step::section(ask, &trace, number, step))
            }
        }
        (attempts(ask, &trace))
        (cases(ask, &trace))
        @if trace.channel_id.is_some() && !trace.is_of_a_send() { (mending::section(ask, &trace)) }
    };
    let above = vec![
        ("/console/messages".to_owned(), ask.words.messages.title.to_owned()),
        (
            format!("/console/messages/{}/{}", trace.bot_id, trace.message_id),
            ask.words.messages.message.to_owned(),
        ),
    ];
    Ok(Answer::page(format!("{} {}", words.trace, trace.trace_id), above, main))
}

/// The step that the query names, counted from 1.
fn number_of(step: &str, trace: &Trace) -> Result<usize, Error> {
    let number = step.parse().ok().filter(|number| (1..=trace.steps.len()).contains(number));
    number.map(|number: usize| number - 1).ok_or_else(|| Error::not_found("step"))
}

/// The step that is open by default: the last failed one, else the last request, else the last step.
fn most_relevant(trace: &Trace) -> Option<usize> {
    let last = |is: fn(&hub_core::traces::Step) -> bool| trace.steps.iter().rposition(is);
    last(|step| step.status == TraceStatus::Error)
        .or_else(|| last(|step| matches!(step.name, StepName::Request | StepName::Ai)))
        .or_else(|| trace.steps.len().checked_sub(1))
}

/// The explanation of the message in the channel of the trace. Without one the trace is that of an app, or the message
/// or the channel was deleted.
async fn explain(ask: &Ask, trace: &Trace) -> Result<Option<Explanation>, Error> {
    let traces = ask.hub.traces();
    match traces.explain(&ask.actor, trace.bot_id, trace.message_id, trace.channel_id).await {
        Ok(explained) => Ok(Some(explained)),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn heading(ask: &Ask, trace: &Trace, explained: Option<&Explanation>) -> Markup {
    let words = ask.words.traces;
    let is_newest = |explained: &&Explanation| explained.trace_id == Some(trace.trace_id);
    let newer = explained.and_then(|explained| explained.trace_id).filter(|newest| *newest > trace.trace_id);
    html! {
        @if let Some(explained) = explained.filter(is_newest) {
            (explanation::section(ask, explained))
        } @else {
            p { (badge::trace(ask.words, trace.status)) " " (cause(ask.words, &trace.summary)) }
            @if let Some(newer) = newer { p { (words.newer) " " (link(trace, newer)) } }
        }
        dl.facts {
            dt { (words.trace) } dd { (code::id_to_copy(ask.words, trace.trace_id, "y")) }
            dt { (ask.words.messages.channel) }
            dd { bdi { (trace.channel_name.as_deref().unwrap_or(ask.words.messages.app_or_send)) } }
            dt { (ask.words.messages.person) }
            dd { @if trace.user_name.is_empty() { code.id { bdi { (trace.user_id) } } } @else { bdi { (trace.user_name) } } }
            dt { (ask.words.messages.message) }
            dd { a href={ "/console/messages/" (trace.bot_id) "/" (trace.message_id) } {
                @if trace.preview.trim().is_empty() { (code::id(trace.message_id)) } @else { bdi { (trace.preview) } }
            } }
            dt { (words.summary) } dd { (cause(ask.words, &trace.summary)) }
            dt { (words.started) } dd { (time::time(Some(trace.started_at), "")) }
            dt { (words.took) } dd { data value=(trace.duration_ms) { (time::duration(trace.duration_ms)) } }
            @if let Some(of) = trace.replay_of { dt { (words.replay_of) } dd { (link(trace, of)) } }
        }
    }
}

fn link(trace: &Trace, to: TraceId) -> Markup {
    html! { a href={ "/console/traces/" (trace.bot_id) "/" (to) } { (code::id(to)) } }
}

fn next_attempt(ask: &Ask, trace: &Trace) -> Markup {
    html! {
        @if let Some(at) = trace.next_attempt_at {
            p.warn data-computed {
                ((ask.words.traces.next_attempt)(trace.attempts + 1, trace.max_attempts)) " " (time::time(Some(at), ""))
            }
        }
    }
}

/// Attempts in their table. The others are among the steps.
const MAX_ATTEMPTS: usize = 20;

/// The attempts at the sinks, if there were several.
fn attempts(ask: &Ask, trace: &Trace) -> Markup {
    let words = ask.words.traces;
    let is_attempt = |name| matches!(name, StepName::Request | StepName::Ai);
    let tried: Vec<_> = trace.steps.iter().enumerate().filter(|(_, step)| is_attempt(step.name)).collect();
    let earlier = tried.len().saturating_sub(MAX_ATTEMPTS);
    let rows = html! {
        @for (number, (at, step)) in tried.iter().enumerate().skip(earlier) {
            @let response = trace.steps[at + 1..].iter().take_while(|step| !is_attempt(step.name))
                .find(|step| step.name == StepName::Response);
            tr {
                td { (waterfall::step_link(ask, *at, &(words.attempt_of)(step.attempt.map_or(number as u64 + 1, u64::from)))) }
                td { (time::time(Some(step.started_at), "")) }
                td { data value=(step.duration_ms) { (time::duration(step.duration_ms)) } }
                td { (badge::trace(ask.words, response.map_or(step.status, |step| step.status))) }
                td { (waterfall::detail(ask, response.unwrap_or(step))) }
            }
        }
    };
    let columns = [words.attempts, words.started, words.took, words.result, words.detail];
    html! {
        @if tried.len() > 1 {
            div.stacked data-region="attempts" data-live={ "trace:" (trace.trace_id) } {
                h2 { (words.attempts) }
                @if earlier > 0 { p.muted data-computed { ((words.earlier_attempts)(earlier)) } }
                (super::parts::list::table(words.attempts, &columns, &rows))
            }
        }
    }
}

/// Links that download a test case of each plugin that ran, once the trace has ended.
fn cases(ask: &Ask, trace: &Trace) -> Markup {
    let words = ask.words.traces;
    let is_pending = trace.status == TraceStatus::Pending;
    let plugins = if is_pending { BTreeMap::new() } else { plugins_that_ran(&trace.steps) };
    html! {
        div data-region="cases" data-live={ "trace:" (trace.trace_id) } {
            @if !plugins.is_empty() {
                h2 { (words.make_case) }
                p { (words.make_case_help) }
                ul {
                    @for plugin in plugins.keys() {
                        @let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("plugin", plugin).finish();
                        li {
                            a href={ "/api/bots/" (trace.bot_id) "/traces/" (trace.trace_id) "/case?" (query) }
                                download={ (trace.trace_id) ".json" } { bdi { (plugin) } }
                        }
                    }
                }
            }
        }
    }
}
