//! The steps of a trace on a time line: a table whose bars are drawn to scale, except for long waits, which are folded.

use std::borrow::Cow;

use hub_core::traces::{Step, StepName, Trace};
use maud::{Markup, html};

use crate::console::{
    page::Ask,
    parts::{badge, cause::cause, list, time},
};

/// Waits longer than this are folded, in milliseconds.
const FOLDED_FROM: u64 = 1_000;
/// Length of the time line in its own units.
const LENGTH: u64 = 1_000;
/// A folded wait has this part of the time line.
const FOLD_PART: u64 = 20;
/// Steps that are shown at once. A trace with more has links to the others.
const MAX_STEPS: usize = 100;
/// Shortest bar, in units of the time line.
const MIN_BAR: u64 = 6;

/// Bar of a step; `from` and `length` are in units of the time line.
#[derive(Debug, PartialEq, Eq)]
struct Bar {
    /// Milliseconds from the beginning of the trace.
    offset: u64,
    /// The folded wait before it, in milliseconds.
    waited: Option<u64>,
    from: u64,
    length: u64,
}

/// Returns the range of steps to show: those around the chosen one, or the last ones without a choice.
fn window(steps: usize, chosen: Option<usize>) -> std::ops::Range<usize> {
    let middle = chosen.unwrap_or(steps);
    let start = middle.saturating_sub(MAX_STEPS / 2).min(steps.saturating_sub(MAX_STEPS));
    start..steps.min(start + MAX_STEPS)
}

/// Characters of a reason in a table.
const MAX_REASON: usize = 200;

/// Renders the steps as a table and marks the chosen one.
pub(super) fn table(ask: &Ask, trace: &Trace, chosen: Option<usize>) -> Markup {
    let words = ask.words.traces;
    let shown = window(trace.steps.len(), chosen);
    let rows = html! {
        @for ((at, step), bar) in trace.steps.iter().enumerate().zip(bars(trace)).filter(|((at, _), _)| shown.contains(at)) {
            @if let Some(waited) = bar.waited {
                tr.wait data-key={ "wait-" (at) } {
                    td colspan="6" data-computed { ((words.waited)(&time::duration(waited))) }
                }
            }
            tr data-key={ "step-" (at) } aria-current=[(chosen == Some(at)).then_some("true")] {
                td { (step_link(ask, at, (words.step)(step.name))) }
                td data-label=(words.after) { data value=(bar.offset) data-computed { (time::duration(bar.offset)) } }
                td data-label=(words.took) { data value=(step.duration_ms) { (time::duration(step.duration_ms)) } }
                td.line { (drawn(&bar, badge::step_tone(step).class())) }
                td { (badge::step(ask.words, step)) }
                td.text { (detail(ask, step)) }
            }
        }
    };
    let columns = [words.steps, words.after, words.took, words.timeline, words.result, words.detail];
    let others =
        [(shown.start, shown.start.checked_sub(1)), (trace.steps.len() - shown.end, Some(shown.end))];
    html! {
        div.stacked.waterfall { (list::table(words.timeline, &columns, &rows)) }
        @for ((count, at), text) in others.into_iter().zip([words.earlier_steps, words.later_steps]) {
            @if let Some(at) = at.filter(|_| count > 0) { p { (step_link(ask, at, &text(count))) } }
        }
    }
}

/// A link to a step of this trace.
pub(super) fn step_link(ask: &Ask, at: usize, text: &str) -> Markup {
    html! { a href={ (ask.with_query("step", &(at + 1).to_string())) "#step" } { (text) } }
}

fn drawn(bar: &Bar, class: &str) -> Markup {
    html! {
        svg viewBox={ "0 0 " (LENGTH) " 10" } preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            rect class=(class) x=(bar.from) y="0" width=(bar.length) height="10" {}
        }
    }
}

fn offset(trace: &Trace, step: &Step) -> u64 {
    u64::try_from(step.started_at.since(trace.started_at).as_millis()).unwrap_or(u64::MAX)
}

/// Returns the bars of all steps. Waits of more than [`FOLDED_FROM`] are cut out.
fn bars(trace: &Trace) -> Vec<Bar> {
    let (mut end, mut cut, mut folds) = (0_u64, 0_u64, 0_u64);
    let mut placed = Vec::with_capacity(trace.steps.len());
    for step in &trace.steps {
        let offset = offset(trace, step);
        let waited = Some(offset.saturating_sub(end)).filter(|wait| *wait > FOLDED_FROM);
        if let Some(wait) = waited {
            cut = cut.saturating_add(wait);
            folds += 1;
        }
        end = end.max(offset.saturating_add(step.duration_ms));
        placed.push((offset, waited, offset.saturating_sub(cut), folds, step.duration_ms));
    }
    let active =
        placed.iter().map(|(_, _, from, _, length)| from.saturating_add(*length)).max().unwrap_or(0).max(1);
    let fold = active.div_ceil(FOLD_PART);
    let total = u128::from(active) + u128::from(fold) * u128::from(folds);
    let scale = |ms: u128| u64::try_from(ms * u128::from(LENGTH) / total).unwrap_or(LENGTH).min(LENGTH);
    let bar = |(offset, waited, from, folds, length): (u64, _, u64, u64, u64)| {
        let start = u128::from(from) + u128::from(fold) * u128::from(folds);
        let from = scale(start).min(LENGTH - MIN_BAR);
        let length = scale(start + u128::from(length)).saturating_sub(from).max(MIN_BAR);
        Bar { offset, waited, from, length }
    };
    placed.into_iter().map(bar).collect()
}

/// The most important detail of a step.
pub(super) fn detail(ask: &Ask, step: &Step) -> Markup {
    let detail = &step.detail;
    let status = detail.status.map(|status| status.to_string());
    let replay_of = detail.replay_of.map(|id| id.to_string());
    let reason = detail.error.as_ref().map(|error| &error.message).or(detail.reason.as_ref());
    let known = match step.name {
        _ if detail.error.is_some() => Vec::new(),
        StepName::Received => vec![replay_of.as_ref().or(detail.msg_type.as_ref())],
        StepName::Request => vec![detail.method.as_ref(), detail.url.as_ref()],
        StepName::Response => vec![status.as_ref(), detail.body.as_ref()],
        StepName::Reply => vec![detail.state.as_ref(), detail.to.as_ref()],
        StepName::PluginOnRequest | StepName::PluginOnResponse => {
            vec![detail.plugin.as_ref(), detail.version.as_ref()]
        }
        StepName::Ai if reason.is_none() => vec![detail.answer.as_ref()],
        StepName::Ai | StepName::Filter | StepName::Websocket | StepName::Ilink => Vec::new(),
    };
    let reason = reason.filter(|_| shows_reason(step));
    let known: Vec<&str> = known.into_iter().flatten().map(String::as_str).collect();
    let found = known.join(" ");
    let cut: String = found.trim().chars().take(120).collect();
    html! {
        @if !cut.is_empty() { bdi data-computed { (cut) @if cut.len() < found.trim().len() { "…" } } " " }
        @if let Some(reason) = reason { (cause(ask.words, &cut_off(reason))) }
    }
}

/// The beginning of a text that is too long for a table.
fn cut_off(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_REASON) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// Whether the reason of a step is its most important detail. That of a reply is on its own page.
fn shows_reason(step: &Step) -> bool {
    let has_error = step.detail.error.is_some();
    has_error
        || !matches!(step.name, StepName::Received | StepName::Request | StepName::Response | StepName::Reply)
}

#[cfg(test)]
mod tests {
    use hub_core::traces::{StepDetail, StepKind, TraceStatus};

    use super::*;

    fn trace(steps: &[(i64, u64)]) -> Trace {
        let at = |ms: i64| hub_core::time::Timestamp::from_millis(1_790_000_000_000 + ms);
        let step = |(from, took): &(i64, u64)| Step {
            name: StepName::Request,
            kind: StepKind::Webhook,
            status: TraceStatus::Ok,
            started_at: at(*from),
            duration_ms: *took,
            attempt: None,
            detail: StepDetail::default(),
        };
        let steps = steps.iter().map(step).collect();
        let id = |n| n;
        Trace::new(
            hub_core::id::Id::from_u128(id(1)),
            hub_core::id::Id::from_u128(id(2)),
            hub_core::id::Id::from_u128(id(3)),
            at(0),
            steps,
        )
    }

    fn places(steps: &[(i64, u64)]) -> Vec<(Option<u64>, u64, u64)> {
        bars(&trace(steps)).into_iter().map(|bar| (bar.waited, bar.from, bar.length)).collect()
    }

    #[test]
    fn at_most_a_hundred_steps_are_shown_around_the_chosen_one() {
        assert_eq!(window(7, None), 0..7);
        assert_eq!(window(7, Some(6)), 0..7);
        assert_eq!(window(200, None), 100..200);
        assert_eq!(window(200, Some(0)), 0..100);
        assert_eq!(window(200, Some(149)), 99..199);
        assert_eq!(window(200, Some(199)), 100..200);
    }

    #[test]
    fn short_traces_are_drawn_to_scale() {
        assert_eq!(places(&[(0, 0), (10, 20), (30, 10)]), [(None, 0, 6), (None, 250, 500), (None, 750, 250)]);
    }

    #[test]
    fn long_waits_are_folded_and_bars_stay_on_the_time_line() {
        let found = places(&[(0, 100), (30_100, 100), (90_000, 0)]);
        assert_eq!(found[0], (None, 0, 454));
        assert_eq!(found[1], (Some(30_000), 500, 454));
        assert_eq!(found[2], (Some(59_800), 994, 6));
        for (_, from, length) in
            places(&[(0, u64::MAX), (-5, 3), (5, 0), (i64::MAX / 2 - 1_790_000_000_000, u64::MAX)])
        {
            assert!(from + length <= LENGTH, "{from} {length}");
        }
    }
}
