//! Replays of the deliveries of selected messages, or of all messages of the list.

use hub_core::{
    Error,
    bots::{Bots, Direction, ListedMessage},
    id::TraceId,
    page::{MAX_LIMIT, PageRequest},
    traces::{BulkOptions, BulkReplay, MAX_REPLAYED, ReplaySelection, TraceStatus},
};
use maud::{Markup, html};

use super::search;
use crate::{
    api::replays::StartReplay,
    console::{
        page::{Answer, Ask},
        parts::{
            cause::cause,
            code,
            form::{Field, Form},
            list,
        },
    },
    envelope::ApiError,
};

/// Pages of the list that a replay of all of it reads at most.
const MAX_PAGES: usize = 10;

/// The deliveries of a message that a replay repeats: the failed ones if there are any, otherwise all that have ended.
pub(super) fn deliveries(item: &ListedMessage) -> Vec<TraceId> {
    if item.message.direction == Direction::Outbound {
        return Vec::new();
    }
    let of_channels = item.outcomes.iter().filter(|outcome| outcome.channel_id.is_some());
    let ended: Vec<_> = of_channels.filter(|outcome| outcome.status != TraceStatus::Pending).collect();
    let has_failed = ended.iter().any(|outcome| outcome.status == TraceStatus::Error);
    let wanted = ended.into_iter().filter(|outcome| !has_failed || outcome.status == TraceStatus::Error);
    wanted.map(|outcome| outcome.trace_id).collect()
}

/// The form around the list: its buttons, and the rows with their checkboxes.
pub(super) fn form(ask: &Ask, rows: &Markup) -> Markup {
    let words = &ask.words.replays;
    html! {
        form method="post" data-enhance data-counts {
            input type="hidden" name="do" value="start_replay";
            input type="hidden" name="dry_run" value="true";
            p.actions #start_replay-trace_ids tabindex="-1" {
                button name="scope" value="selected" { (words.selected) " " output data-count {} }
                button name="scope" value="matching" { (words.matching) }
            }
            p.muted { (words.rule) }
            (rows)
        }
    }
}

/// Starts a replay, or shows a preview for a dry run.
pub(super) async fn start_replay(ask: &Ask) -> Result<Answer, ApiError> {
    let body = ask.form::<StartReplay>()?;
    if body.dry_run == Some(true) {
        return preview(ask).await;
    }
    let given = body.trace_ids.map(|ids| ids.into_iter().collect());
    let selection = ReplaySelection::Ids(ids(ask, given).await?);
    let options =
        BulkOptions { to: body.url.as_deref(), supersede: body.supersede.unwrap_or(false), dry_run: false };
    let started = ask.hub.traces().replay_all(&ask.actor, selection, options, ask.idempotency_key()).await?;
    let id = started.id.map(|id| id.to_string()).unwrap_or_default();
    Ok(ask.done_at(&format!("/console/replays/{id}")))
}

/// Whether the form of a preview was rejected and has to be shown again.
pub(super) fn is_refused(ask: &Ask) -> bool {
    let form = ask.submitted.as_ref().filter(|form| form.action == "start_replay" && form.refused.is_some());
    form.and_then(|form| form.field("dry_run")) == Some("false")
}

/// Renders the outcome of a dry run, with the form that starts the replay.
pub(super) async fn preview(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.replays;
    let given = ask.field("trace_ids").is_some().then(|| {
        let fields = ask.submitted.as_ref().map_or(&[][..], |form| &form.fields);
        let lines = fields.iter().filter(|(name, _)| name == "trace_ids").flat_map(|(_, ids)| ids.lines());
        lines.map(|id| id.trim().parse()).collect::<Result<Vec<_>, _>>()
    });
    let given = given.transpose().map_err(|_| Error::invalid("trace_ids", "must be ids of traces"))?;
    let ids = ids(ask, given).await?;
    let lines: Vec<String> = ids.iter().map(TraceId::to_string).collect();
    let selection = ReplaySelection::Ids(ids);
    let dry_run = BulkOptions { dry_run: true, ..BulkOptions::default() };
    let found = ask.hub.traces().replay_all(&ask.actor, selection.clone(), dry_run, None).await?;
    let superseding = BulkOptions { supersede: true, ..dry_run };
    let most = ask.hub.traces().replay_all(&ask.actor, selection, superseding, None).await?.total;
    let waiting = most - found.total.min(most);
    let form = Form::new(ask, "start_replay");
    let url = Field {
        name: "url",
        label: words.url,
        help: Some(words.url_help),
        kind: "url",
        value: ask.field("url").unwrap_or_default().to_owned(),
        max: Some(2048),
        ..Field::default()
    };
    let main = html! {
        @if most == 0 { p { (words.none) } }
        @if found.total > 0 { p data-computed { ((words.count)(found.total)) } }
        (refused(ask, &found))
        @if most > 0 {
            p.warn { (words.effect) }
            form.fields method="post" data-enhance {
                input type="hidden" name="trace_ids" value=(lines.join("\n"));
                input type="hidden" name="dry_run" value="false";
                (form.once(ask))
                (form.field(&url))
                @if waiting > 0 { (form.checkbox("supersede", &(words.supersede)(waiting), false)) }
                p.actions {
                    button name="do" value="start_replay" {
                        @if found.total > 0 { ((words.start)(found.total)) } @else { (words.title) }
                    }
                    a.button href=(ask.with_queries(&[])) { (ask.words.common.cancel) }
                }
            }
        } @else {
            p.actions { a.button href=(ask.with_queries(&[])) { (ask.words.common.cancel) } }
        }
    };
    let above = vec![(ask.with_queries(&[]), ask.words.messages.title.to_owned())];
    Ok(Answer::page(words.preview, above, main))
}

/// The traces that cannot be replayed, with the reasons.
pub(in crate::console) fn refused(ask: &Ask, replay: &BulkReplay) -> Markup {
    let words = &ask.words.replays;
    let rows = html! {
        @for refused in &replay.refused {
            tr { td { (code::id(refused.trace_id)) } td { (cause(ask.words, &refused.reason)) } }
        }
    };
    html! {
        @if !replay.refused.is_empty() {
            details open[replay.total == 0] {
                summary { (words.refused) ": " data value=(replay.refused.len()) data-computed { (replay.refused.len()) } }
                (list::table(words.refused, &[ask.words.traces.trace, words.reason], &rows))
            }
        }
    }
}

/// The traces to replay: the given ones, or those of all messages of the list.
async fn ids(ask: &Ask, given: Option<Vec<TraceId>>) -> Result<Vec<TraceId>, ApiError> {
    if ask.field("scope") == Some("matching") {
        return matching(ask).await;
    }
    let ids = given.filter(|ids| !ids.is_empty());
    Ok(ids.ok_or_else(|| Error::invalid("trace_ids", "select at least one message"))?)
}

/// The deliveries of all messages that the filters of the page match; one more than is allowed at most.
async fn matching(ask: &Ask) -> Result<Vec<TraceId>, ApiError> {
    let search = search(ask)?;
    let list = Bots::all_messages_list(&ask.actor, &search);
    let (mut ids, mut cursor) = (Vec::new(), None::<String>);
    for _ in 0..MAX_PAGES {
        let page = PageRequest::parse(&list, Some(MAX_LIMIT), cursor.as_deref())?;
        let found = ask.hub.bots().all_messages(&ask.actor, &search, &page).await?;
        ids.extend(found.items.iter().flat_map(deliveries));
        cursor = found.next_cursor;
        if cursor.is_none() || ids.len() > MAX_REPLAYED {
            return Ok(ids);
        }
    }
    Err(Error::invalid("trace_ids", "these are too many messages; narrow the filter").into())
}
