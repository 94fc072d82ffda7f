//! A replay of many deliveries: its progress, and the new traces.

use hub_core::{
    id::ReplayId,
    traces::{BulkReplay, Trace, TraceSearch, Traces},
};
use maud::{Markup, html};

use super::{
    messages::replay::refused,
    page::{Answer, Ask, Page, handler},
    parts::{badge, list, time},
};
use crate::{console::parts::cause::cause, envelope::ApiError};

pub(super) static PAGE: Page = Page {
    path: "/console/replays/:replay",
    shows: &["getReplay", "listAllTraces"],
    command: "",
    show: handler!(show),
    actions: &[],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.replays;
    let id: ReplayId = ask.id("replay")?;
    let replay = ask.hub.traces().bulk_replay(&ask.actor, id).await?;
    let search = TraceSearch { replay_id: Some(id), ..TraceSearch::default() };
    let request = ask.page_request(&Traces::search_list(&ask.actor, &search))?;
    let traces = ask.hub.traces().search(&ask.actor, &search, &request).await?;
    let main = html! {
        div.stacked data-region="replay" data-live="trace" {
            (progress(ask, &replay))
            (refused(ask, &replay))
            @if !traces.items.is_empty() {
                h2 { (words.new_traces) }
                (new_traces(ask, &traces.items))
                (list::pages(ask, traces.next_cursor.as_deref()))
            }
        }
    };
    let above = vec![("/console/messages".to_owned(), ask.words.messages.title.to_owned())];
    Ok(Answer::page(words.title, above, main))
}

fn progress(ask: &Ask, replay: &BulkReplay) -> Markup {
    let words = &ask.words.replays;
    let done = replay.total - replay.pending;
    let said = (words.progress)(done, replay.total);
    let counts = [
        (words.ok, replay.ok),
        (words.failed, replay.error),
        (words.skipped, replay.skipped),
        (words.pending, replay.pending),
        (words.deleted, replay.deleted),
    ];
    html! {
        p role="status" data-computed { (said) }
        @if replay.total > 0 { progress max=(replay.total) value=(done) aria-label=(said) {} }
        dl.facts {
            @for (name, count) in counts {
                @if count > 0 { dt { (name) } dd { data value=(count) { (count) } } }
            }
            dt { (ask.words.traces.started) } dd { (time::time(Some(replay.created_at), "")) }
        }
        @if replay.pending > 0 { p.actions { a.button href=(ask.path) { (words.check) } } }
    }
}

fn new_traces(ask: &Ask, traces: &[Trace]) -> Markup {
    let words = ask.words;
    let rows = html! {
        @for trace in traces {
            tr data-key=(trace.trace_id) {
                td.text {
                    a href={ "/console/traces/" (trace.bot_id) "/" (trace.trace_id) } {
                        @if trace.preview.trim().is_empty() { (trace.trace_id) } @else { bdi { (trace.preview) } }
                    }
                }
                td { bdi { (trace.channel_name.as_deref().unwrap_or_default()) } }
                td { (badge::trace(words, trace.status)) }
                td.text { (cause(ask.words, &trace.summary)) }
            }
        }
    };
    let columns = [words.messages.message, words.messages.channel, words.traces.result, words.traces.summary];
    list::table(words.replays.new_traces, &columns, &rows)
}
