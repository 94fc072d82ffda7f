//! Actions on a delivery: attempt it now, cancel it, or replay it once it has ended.

use hub_core::traces::{Trace, TraceStatus};
use maud::{Markup, html};

use crate::{
    api::traces::ReplayTrace,
    console::{
        page::{Answer, Ask},
        parts::form::{Field, Form},
    },
    envelope::ApiError,
};

/// The forms for a trace as it is now. A pending one has no replay: the receiver would get the message twice.
pub(super) fn section(ask: &Ask, trace: &Trace) -> Markup {
    let is_pending = trace.status == TraceStatus::Pending;
    html! {
        div data-region="mending" data-live={ "trace:" (trace.trace_id) } {
            @if is_pending { (pending(ask, trace)) } @else { (replay_form(ask)) }
        }
    }
}

fn pending(ask: &Ask, trace: &Trace) -> Markup {
    let words = ask.words.traces;
    // The last attempt notes whether its delivery left the lane.
    let is_parked = trace.steps.iter().rev().find_map(|step| step.detail.parked) == Some(true);
    html! {
        section aria-labelledby="pending-heading" {
            h2 #pending-heading { (words.not_ended) }
            @if is_parked {
                p { (words.parked_help) }
                (Form::new(ask, "attempt").render(&html! {}, words.attempt_now))
                (Form::new(ask, "give_up").render(&html! {}, words.give_up))
            } @else {
                p { (words.in_lane_help) }
            }
        }
    }
}

fn replay_form(ask: &Ask) -> Markup {
    let words = ask.words.traces;
    let form = Form::new(ask, "replay");
    let url = Field {
        name: "url",
        label: words.replay_url,
        help: Some(words.replay_url_help),
        kind: "url",
        max: Some(2048),
        ..Field::default()
    };
    let sinks = [("webhook", words.sink_webhook), ("ai", words.sink_ai)];
    html! {
        section aria-labelledby="replay-heading" {
            h2 #replay-heading { (words.replay) }
            p { (words.replay_help) }
            form.fields method="post" data-enhance {
                (form.once(ask))
                (form.select("sink", words.sink, "webhook", &sinks))
                (form.field(&url))
                (form.checkbox("supersede", words.supersede, false))
                p.actions { button name="do" value="replay" aria-keyshortcuts="r" { (words.replay) } }
            }
        }
    }
}

pub(super) async fn replay(ask: &Ask) -> Result<Answer, ApiError> {
    let request = ask.form::<ReplayTrace>()?;
    let (bot, trace) = (ask.id("bot")?, ask.id("trace")?);
    let (options, once) = (request.options()?, ask.idempotency_key());
    let new = ask.hub.traces().replay(&ask.actor, bot, trace, options, once).await?;
    Ok(ask.done_at(&format!("/console/traces/{bot}/{new}")))
}

pub(super) async fn attempt(ask: &Ask) -> Result<Answer, ApiError> {
    ask.hub.traces().attempt_now(&ask.actor, ask.id("bot")?, ask.id("trace")?).await?;
    Ok(ask.done())
}

pub(super) async fn give_up(ask: &Ask) -> Result<Answer, ApiError> {
    ask.hub.traces().cancel(&ask.actor, ask.id("bot")?, ask.id("trace")?).await?;
    Ok(ask.done())
}
