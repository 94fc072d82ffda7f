//! One step in full: what was sent and received, what a plugin changed, and what it logged.

use hub_core::traces::{Step, Trace};
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::console::{
    page::Ask,
    parts::{badge, json, list, time},
};

/// The step with this position in the trace.
pub(super) fn section(ask: &Ask, trace: &Trace, at: usize, step: &Step) -> Markup {
    let words = ask.words.traces;
    let empty = Map::new();
    let detail = step.detail.as_object().unwrap_or(&empty);
    html! {
        section #step .step aria-labelledby="step-heading" {
            h2 #step-heading {
                span data-computed { (at + 1) "/" (trace.steps.len()) ": " } ((words.step)(step.name)) " "
                (badge::trace(ask.words, step.status))
            }
            @if let Some(failure) = detail.get("error") { (self::failure(ask, failure)) }
            dl.facts {
                dt { (words.component) } dd { (step.kind) }
                dt { (words.started) } dd { (time::time(Some(step.started_at), "")) }
                dt { (words.took) } dd { data value=(step.duration_ms) { (time::duration(step.duration_ms)) } }
                @for (name, value) in detail.iter().filter(|(name, _)| !SHOWN.contains(&name.as_str())) {
                    dt lang="en" { (name) } dd { (fact(ask, value)) }
                }
            }
            @if let Some(changes) = detail.get("changes") { (self::changes(ask, changes)) }
            @if let Some(headers) = detail.get("headers").and_then(Value::as_array) { (self::headers(ask, headers)) }
            @for body in ["body", "answer"].iter().filter_map(|name| detail.get(*name)?.as_str()) {
                h3 { (words.body) } (json::body(ask.words, body))
            }
            @if let Some(logs) = detail.get("logs").and_then(Value::as_array) { (self::logs(ask, logs)) }
            @if let Some(fetches) = detail.get("fetches") { h3 { (words.fetches) } (json::tree(ask.words, fetches)) }
        }
    }
}

/// The fields that have a place of their own.
const SHOWN: [&str; 7] = ["error", "changes", "headers", "body", "answer", "logs", "fetches"];

/// A value of a line; anything longer as a tree.
fn fact(ask: &Ask, value: &Value) -> Markup {
    html! {
        @match value {
            Value::String(text) => bdi { (text) },
            Value::Array(_) | Value::Object(_) => (json::tree(ask.words, value)),
            other => data value=(other) { (other) },
        }
    }
}

/// What went wrong: a sentence, or a record with the place in the source of a plugin.
fn failure(ask: &Ask, failure: &Value) -> Markup {
    let text = |name: &str| failure[name].as_str().filter(|text| !text.is_empty());
    let place = failure["line"].as_u64().map(|line| (line, failure["column"].as_u64().unwrap_or(1)));
    html! {
        div.refused {
            p { strong { (ask.words.traces.error) ": " } @if let Some(class) = text("class").or_else(|| text("kind")) { code { (class) } } }
            p lang="en" { bdi { (failure.as_str().or_else(|| text("message")).unwrap_or_default()) } }
            @if let Some((line, column)) = place { p { code data-computed { (line) ":" (column) } } }
            @if let Some(stack) = text("stack").or_else(|| text("told")) { pre tabindex="0" { code { (stack) } } }
        }
    }
}

/// What a plugin changed in the request.
fn changes(ask: &Ask, changes: &Value) -> Markup {
    let pair = |name: &str| {
        let pair = changes[name].as_array()?;
        let line = |sign: char, value: Option<&Value>| {
            format!("{sign} {}", value.and_then(Value::as_str).unwrap_or_default())
        };
        Some([line('-', pair.first()), line('+', pair.get(1))])
    };
    let headers = changes["headers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let headers: Vec<&str> = headers.collect();
    html! {
        h3 #changes tabindex="-1" aria-keyshortcuts="d" { (ask.words.traces.changes) }
        @for lines in ["method", "url"].into_iter().filter_map(pair) { (json::difference(lines.iter().map(String::as_str))) }
        @if !headers.is_empty() { (json::difference(headers.into_iter())) }
        @if let Some(body) = changes["body"].as_str() { (json::difference(body.lines())) }
    }
}

fn headers(ask: &Ask, headers: &[Value]) -> Markup {
    let text = |pair: &Value, at: usize| pair[at].as_str().unwrap_or_default().to_owned();
    html! {
        @if !headers.is_empty() {
            h3 { (ask.words.traces.headers) }
            dl.facts.headers {
                @for pair in headers { dt { code { (text(pair, 0)) } } dd { code { (text(pair, 1)) } } }
            }
        }
    }
}

fn logs(ask: &Ask, logs: &[Value]) -> Markup {
    let words = ask.words.traces;
    let rows = html! {
        @for log in logs {
            tr {
                td { @if let Some(ms) = log["at_ms"].as_u64() { data value=(ms) { (time::duration(ms)) } } }
                td { (log["level"].as_str().unwrap_or_default()) }
                td { code { bdi { (log["text"].as_str().unwrap_or_default()) } } }
            }
        }
    };
    html! {
        h3 { (words.logs) }
        (list::table(words.logs, &[words.after, words.result, words.logs], &rows))
    }
}
