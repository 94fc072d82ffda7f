//! A message in a list, and the parts of a message that several pages show.

use hub_core::{
    bots::{Direction, ListedMessage, Message, MessageOutcome, MessageStatus},
    id::TraceId,
    traces::TraceStatus,
};
use maud::{Markup, html};

use super::replay::deliveries;
use crate::console::{
    page::Ask,
    parts::{badge, cause::cause, time},
    words::Words,
};

/// Characters of a text in a list.
const MAX_TEXT: usize = 160;

/// One row: the message, with a mark for each channel that leads to its trace, and a checkbox if it can be selected.
pub(in crate::console) fn row(ask: &Ask, item: &ListedMessage, is_selectable: bool) -> Markup {
    let (words, message) = (ask.words.messages, &item.message);
    html! {
        tr data-key=(message.id) {
            @if is_selectable { td.select { (checkbox(ask, item)) } }
            td { (time::time(Some(message.created_at), "")) }
            td { a href={ "/console/bots/" (message.bot_id) } { bdi { (item.bot_name) } } }
            td { (person(message)) }
            td { (way(ask.words, message.direction)) }
            td.text {
                a data-open href={ "/console/messages/" (message.bot_id) "/" (message.id) } { (summary(ask.words, message)) }
            }
            td.outcomes {
                @for outcome in &item.outcomes { (mark(ask, message, outcome)) }
                @if item.outcomes.is_empty() {
                    span.muted { @if message.status == MessageStatus::Received { (words.no_channel) } @else { ((ask.words.messages.statuses)(message.status)) } }
                }
            }
        }
    }
}

/// Selects the deliveries of a message. A message without any has none.
fn checkbox(ask: &Ask, item: &ListedMessage) -> Markup {
    let ids: Vec<String> = deliveries(item).iter().map(TraceId::to_string).collect();
    let text: String = item.message.content.chars().take(40).collect();
    let is_chosen = ask.submitted.as_ref().is_some_and(|form| {
        form.fields.iter().any(|(name, value)| name == "trace_ids" && *value == ids.join("\n"))
    });
    html! {
        @if !ids.is_empty() {
            label.choice {
                input type="checkbox" name="trace_ids" value=(ids.join("\n")) checked[is_chosen]
                    aria-label=((ask.words.replays.select)(&text));
            }
        }
    }
}

/// The person on the other side.
pub(super) fn person(message: &Message) -> Markup {
    let id = match message.direction {
        Direction::Inbound => &message.from_user_id,
        Direction::Outbound => &message.to_user_id,
    };
    html! { @if message.user_name.is_empty() { code.id { bdi { (id) } } } @else { bdi title=(id) { (message.user_name) } } }
}

/// Renders the direction of a message.
pub(in crate::console) fn way(words: &Words, direction: Direction) -> Markup {
    let sign = match direction {
        Direction::Inbound => "←",
        Direction::Outbound => "→",
    };
    html! { span.way { span aria-hidden="true" { (sign) } " " ((words.messages.way)(direction)) } }
}

/// Renders the beginning of the text and the files, or else the kind of the message.
pub(super) fn summary(words: &Words, message: &Message) -> Markup {
    let mut text: String = message.content.chars().take(MAX_TEXT).collect();
    if text.len() < message.content.len() {
        text.push('…');
    }
    let files = message.items.iter().filter(|item| item.is_file());
    html! {
        @if !text.trim().is_empty() { bdi { (text) } " " }
        @for item in files {
            span.kind {
                "[" ((words.messages.kinds)(item.kind))
                @if let Some(name) = &item.file_name { " " bdi { (name) } }
                @if let Some(bytes) = item.size { " " data value=(bytes) { (time::size(bytes)) } }
                "] "
            }
        }
        @if text.trim().is_empty() && !message.items.iter().any(hub_core::network::MessageItem::is_file) {
            span.kind { "[" ((words.messages.kinds)(message.kind)) "]" }
        }
    }
}

/// The outcome in a channel: sign, word and attempts, and the first failure in words.
fn mark(ask: &Ask, message: &Message, outcome: &MessageOutcome) -> Markup {
    let words = ask.words;
    let is_retried = outcome.attempts > 1;
    html! {
        span.outcome {
            a href={ "/console/traces/" (message.bot_id) "/" (outcome.trace_id) } {
                bdi { (outcome.channel_name.as_deref().unwrap_or(words.messages.app_or_send)) }
                " " (badge::trace(words, outcome.status))
                @if is_retried { " " span { "×" data value=(outcome.attempts) { (outcome.attempts) } } }
            }
            @if let Some(at) = outcome.next_attempt_at { " " (time::time(Some(at), "")) }
            @if let Some(reason) = outcome.reason.as_ref().filter(|_| outcome.status != TraceStatus::Ok) {
                " " span.reason { (cause(ask.words, reason)) }
            }
        }
    }
}
