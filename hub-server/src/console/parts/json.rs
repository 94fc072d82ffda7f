//! Texts that programs wrote: JSON as a tree, differences of texts.

use maud::{Markup, html};
use serde_json::Value;

use crate::console::words::Words;

/// Nodes of a tree; a document with more is shown as text only.
const MAX_NODES: usize = 500;

/// Levels of a tree that are open at first.
const OPEN_LEVELS: usize = 2;

/// A body: as a tree if it is JSON, and as text.
pub(in crate::console) fn body(words: &Words, text: &str) -> Markup {
    let tree = serde_json::from_str::<Value>(text).ok();
    let tree =
        tree.filter(|value| value.is_object() || value.is_array()).filter(|value| nodes(value) <= MAX_NODES);
    html! {
        @if text.is_empty() {
            p.muted { (words.traces.no_body) }
        } @else if let Some(tree) = tree {
            (self::tree(words, &tree))
            details {
                summary { (words.traces.raw) }
                pre tabindex="0" { code { (text) } }
            }
        } @else {
            pre tabindex="0" { code { (text) } }
        }
    }
}

/// A value as a tree.
pub(in crate::console) fn tree(words: &Words, value: &Value) -> Markup {
    html! { div.tree { (node(words, value, 0)) } }
}

fn nodes(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(nodes).sum::<usize>(),
        _ => 1,
    }
}

fn node(words: &Words, value: &Value, level: usize) -> Markup {
    match value {
        Value::Array(items) if !items.is_empty() => {
            let names = (0..items.len()).map(|index| index.to_string());
            branch(words, level, names.zip(items).collect())
        }
        Value::Object(fields) if !fields.is_empty() => {
            branch(words, level, fields.iter().map(|(name, value)| (name.clone(), value)).collect())
        }
        Value::String(text) => html! { span.text { "\"" bdi { (text) } "\"" } },
        other => html! { span.value { (other) } },
    }
}

fn branch(words: &Words, level: usize, children: Vec<(String, &Value)>) -> Markup {
    html! {
        details open[level < OPEN_LEVELS] {
            summary { ((words.traces.items)(children.len())) }
            ul {
                @for (name, value) in children { li { span.name { bdi { (name) } ":" } " " (node(words, value, level + 1)) } }
            }
        }
    }
}

/// Lines of a difference: those that begin with `-` and `+` are marked.
pub(in crate::console) fn difference<'t>(lines: impl Iterator<Item = &'t str>) -> Markup {
    html! {
        pre.difference tabindex="0" {
            @for line in lines {
                @match line.chars().next() {
                    Some('-') => del { (line) },
                    Some('+') => ins { (line) },
                    _ => span { (line) },
                }
                "\n"
            }
        }
    }
}
