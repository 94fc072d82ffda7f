//! One step in full: data sent and received, changes by a plugin, and its logs.

use hub_core::traces::{Step, StepChanges, StepError, StepLog, Trace};
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::console::{
    page::Ask,
    parts::{badge, cause::cause, json, list, time},
};

/// The step with this position in the trace.
pub(super) fn section(ask: &Ask, trace: &Trace, at: usize, step: &Step) -> Markup {
    let words = ask.words.traces;
    let detail = &step.detail;
    html! {
        section #step .step aria-labelledby="step-heading" {
            h2 #step-heading {
                span data-computed { (at + 1) "/" (trace.steps.len()) ": " } ((words.step)(step.name)) " "
                (badge::step(ask.words, step))
            }
            @if let Some(error) = &detail.error { (failure(ask, error)) }
            dl.facts {
                dt { (words.component) } dd { (step.kind) }
                @if let Some(attempt) = step.attempt { dt { (words.attempt) } dd { data value=(attempt) { (attempt) } } }
                dt { (words.started) } dd { (time::time(Some(step.started_at), "")) }
                dt { (words.took) } dd { data value=(step.duration_ms) { (time::duration(step.duration_ms)) } }
                @if let Some(at) = detail.next_attempt_at { (label(ask, "next_attempt_at")) dd { (time::time(Some(at), "")) } }
                @for (name, value) in facts(step) { (label(ask, &name)) dd { (fact(ask, &name, &value)) } }
            }
            @if let Some(changes) = &detail.changes { (self::changes(ask, changes)) }
            @if let Some(headers) = &detail.headers { (self::headers(ask, headers)) }
            @for body in [&detail.body, &detail.answer].into_iter().flatten() {
                h3 { (words.body) } (json::body(ask.words, body))
            }
            @if let Some(logs) = &detail.logs { (self::logs(ask, logs)) }
            @if let Some(fetches) = &detail.fetches { h3 { (words.fetches) } (json::tree(ask.words, &json!(fetches))) }
        }
    }
}

/// Fields that have their own part of the page.
pub(in crate::console) const SHOWN_APART: [&str; 8] =
    ["error", "next_attempt_at", "changes", "headers", "body", "answer", "logs", "fetches"];

/// The other fields that are known.
fn facts(step: &Step) -> Vec<(String, Value)> {
    let detail = json!(step.detail);
    let all = detail.as_object().into_iter().flatten();
    all.filter(|(name, _)| !SHOWN_APART.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The name of a field in words; one without words as it is.
fn label(ask: &Ask, name: &str) -> Markup {
    html! {
        @match (ask.words.traces.fact)(name) {
            Some(words) => dt { (words) },
            None => dt lang="en" { (name) },
        }
    }
}

/// A value of a line; anything longer as a tree.
fn fact(ask: &Ask, name: &str, value: &Value) -> Markup {
    html! {
        @match value {
            Value::String(text) if matches!(name, "reason" | "paused") => (cause(ask.words, text)),
            Value::String(text) => bdi { (text) },
            Value::Array(_) | Value::Object(_) => (json::tree(ask.words, value)),
            other => data value=(other) { (other) },
        }
    }
}

/// Renders an error: class and message, and for a plugin the place in its source and the stack.
fn failure(ask: &Ask, error: &StepError) -> Markup {
    let place = error.line.map(|line| (line, error.column.unwrap_or(1)));
    html! {
        div.refused {
            p { strong { (ask.words.traces.error) ": " } @if let Some(class) = error.class.as_ref().or(error.kind.as_ref()) { code { (class) } } }
            p { (cause(ask.words, &error.message)) }
            @if let Some((line, column)) = place { p { code data-computed { (line) ":" (column) } } }
            @if let Some(stack) = error.stack.as_ref().or(error.told.as_ref()).filter(|text| !text.is_empty()) { pre tabindex="0" { code { (stack) } } }
        }
    }
}

/// Renders the changes of a plugin to the request as differences.
fn changes(ask: &Ask, changes: &StepChanges) -> Markup {
    let pairs = [&changes.method, &changes.url].into_iter().flatten();
    let lines = pairs.map(|[before, after]| [format!("- {before}"), format!("+ {after}")]);
    html! {
        h3 #changes tabindex="-1" aria-keyshortcuts="d" { (ask.words.traces.changes) }
        @for lines in lines { (json::difference(lines.iter().map(String::as_str))) }
        @if let Some(headers) = &changes.headers { (json::difference(headers.iter().map(String::as_str))) }
        @if let Some(body) = &changes.body { (json::difference(body.lines())) }
    }
}

fn headers(ask: &Ask, headers: &[(String, String)]) -> Markup {
    html! {
        @if !headers.is_empty() {
            h3 { (ask.words.traces.headers) }
            dl.facts.headers {
                @for (name, value) in headers { dt { code { (name) } } dd { code { (value) } } }
            }
        }
    }
}

fn logs(ask: &Ask, logs: &[StepLog]) -> Markup {
    let words = ask.words.traces;
    let rows = html! {
        @for log in logs {
            tr {
                td { data value=(log.at_ms) { (time::duration(log.at_ms)) } }
                td { (log.level) }
                td { code { bdi { (log.text) } } }
            }
        }
    };
    html! {
        h3 { (words.logs) }
        (list::table(words.logs, &[words.after, words.result, words.logs], &rows))
    }
}
