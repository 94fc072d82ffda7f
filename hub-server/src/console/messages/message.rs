//! A message: its content, its outcome in each channel, and the reason if it did not arrive.

use hub_core::{
    bots::Message,
    id::ChannelId,
    media::{MediaState, MediaView},
    network::MessageKind,
    page::PageRequest,
    traces::{Trace, TraceQuery},
};
use maud::{Markup, html};

use super::row;
use crate::{
    console::{
        page::{Answer, Ask, Page, does, handler},
        parts::{badge, cause::cause, code, form::Form, time},
        traces::explanation,
    },
    envelope::ApiError,
};

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/messages/:bot/:message",
    shows: &["getMessage", "explainMessage", "listTraces"],
    command: "hub-cli traces explain {message}",
    show: handler!(show),
    actions: &[does!("retryMedia", retry, |words| words.messages.retried)],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = ask.words.messages;
    let (bot, id) = (ask.id("bot")?, ask.id("message")?);
    let message = ask.hub.bots().message(&ask.actor, bot, id).await?;
    let channel = ask.query("channel_id").map(str::parse::<ChannelId>).transpose();
    let channel = channel.map_err(|_| hub_core::Error::not_found("channel"))?;
    let explained = ask.hub.traces().explain(&ask.actor, bot, id, channel).await?;
    let query = TraceQuery { message_id: Some(id), ..TraceQuery::default() };
    let traces = ask.hub.traces().list(&ask.actor, bot, &query, &PageRequest::default()).await?.items;
    let main = html! {
        div data-region="explanation" data-live={ "trace sent message:" (id) } { (explanation::section(ask, &explained)) }
        (content(ask, &message))
        (deliveries(ask, &traces))
    };
    let above = vec![("/console/messages".to_owned(), words.title.to_owned())];
    Ok(Answer::page(format!("{} {id}", words.message), above, main))
}

fn content(ask: &Ask, message: &Message) -> Markup {
    let words = ask.words.messages;
    let texts =
        message.items.iter().filter_map(|item| item.text.as_ref()).filter(|text| **text != message.content);
    html! {
        section data-region="content" data-live={ "message:" (message.id) " media:" (message.id) " sent:" (message.id) }
            aria-labelledby="content-heading" {
            h2 #content-heading { (words.message) }
            @if !message.content.is_empty() { blockquote.content { bdi { (message.content) } } }
            dl.facts {
                dt { (words.at) } dd { (time::time(Some(message.created_at), "")) }
                dt { (words.direction) } dd { (row::way(ask.words, message.direction)) }
                dt { (words.person) } dd { (row::person(message)) }
                dt { (words.kind) } dd { ((words.kinds)(message.kind)) }
                dt { (words.status) } dd {
                    ((words.statuses)(message.status))
                    @if let Some(reason) = &message.status_reason { ": " (cause(ask.words, reason)) }
                }
                @if let Some(quoted) = message.quoted.as_ref().and_then(|quoted| quoted.text.as_ref()) {
                    dt { (words.quoted) } dd { bdi { (quoted) } }
                }
                dt { (words.bot) } dd { a href={ "/console/bots/" (message.bot_id) } { (code::id(message.bot_id)) } }
                @if let Some(trace) = message.trace_id {
                    dt { (ask.words.traces.trace) }
                    dd { a href={ "/console/traces/" (message.bot_id) "/" (trace) } { (code::id(trace)) } }
                }
            }
            @for text in texts { blockquote.content { bdi { (text) } } }
            (files(ask, message))
        }
    }
}

fn files(ask: &Ask, message: &Message) -> Markup {
    let words = ask.words.messages;
    html! {
        @if !message.media.is_empty() {
            h3 { (words.files) }
            ul.plain-list {
                @for file in &message.media { li { (self::file(ask, file)) } }
            }
            @if message.media.iter().any(|file| file.status == MediaState::Failed) {
                (Form::new(ask, "retry").render(&html! {}, words.retry))
            }
        }
    }
}

fn file(ask: &Ask, file: &MediaView) -> Markup {
    let words = ask.words.messages;
    let tone = match file.status {
        MediaState::Ready => badge::Tone::Ok,
        MediaState::Failed => badge::Tone::Error,
        _ => badge::Tone::Warn,
    };
    let kind = (words.kinds)(file.kind);
    let name = if file.file_name.is_empty() { kind } else { &file.file_name };
    // The pages may be at another address of the hub than the links for programs.
    let base = ask.settings.public_url.as_str().trim_end_matches('/');
    let url = file.url.as_ref().map(|url| url.as_str().strip_prefix(base).unwrap_or(url.as_str()));
    let url = url.filter(|_| file.status == MediaState::Ready);
    html! {
        p {
            (badge::badge(tone, (words.file_states)(file.status))) " " (kind) " "
            @if let Some(url) = url { a href=(url) { bdi { ((words.open_file)(name)) } } } @else { bdi { (name) } }
            @if let Some(bytes) = file.size { " " data value=(bytes) { (time::size(bytes)) } }
            @if let Some(error) = &file.error { " " (cause(ask.words, error)) }
        }
        @if let Some(url) = url.filter(|_| file.kind == MessageKind::Image) {
            img.picture src=(url) alt=(name) loading="lazy";
        }
    }
}

/// One block per trace, newest first.
fn deliveries(ask: &Ask, traces: &[Trace]) -> Markup {
    let words = ask.words.messages;
    html! {
        section data-region="deliveries" data-live="trace sent" aria-labelledby="deliveries-heading" {
            h2 #deliveries-heading { (words.deliveries) }
            @if traces.is_empty() { p { (words.no_deliveries) } }
            ul.plain-list {
                @for trace in traces { li data-key=(trace.trace_id) { (delivery(ask, trace)) } }
            }
        }
    }
}

fn delivery(ask: &Ask, trace: &Trace) -> Markup {
    let words = ask.words.traces;
    let name = trace.channel_name.as_deref().unwrap_or(ask.words.messages.app_or_send);
    html! {
        h3 { bdi { (name) } " " (badge::trace(ask.words, trace.status)) }
        p { (cause(ask.words, &trace.summary)) }
        dl.facts {
            dt { (words.trace) }
            dd { a href={ "/console/traces/" (trace.bot_id) "/" (trace.trace_id) } { (code::id(trace.trace_id)) } }
            dt { (words.started) } dd { (time::time(Some(trace.started_at), "")) }
            dt { (words.took) } dd { data value=(trace.duration_ms) { (time::duration(trace.duration_ms)) } }
            dt { (words.attempts) } dd { data value=(trace.attempts) { (trace.attempts) } }
            @if let Some(of) = trace.replay_of {
                dt { (words.replay_of) }
                dd { a href={ "/console/traces/" (trace.bot_id) "/" (of) } { (code::id(of)) } }
            }
        }
        @if let Some(channel) = trace.channel_id {
            p { a href=(ask.with_query("channel_id", &channel.to_string())) { (ask.words.messages.explain_channel) } }
        }
    }
}

async fn retry(ask: &Ask) -> Result<Answer, ApiError> {
    ask.hub.media().retry(&ask.actor, ask.id("bot")?, ask.id("message")?).await?;
    Ok(ask.done())
}
