//! States: a sign, a word and a colour, always all three.

use hub_core::{
    bots::BotStatus,
    traces::{Step, StepName, TraceStatus},
};
use maud::{Markup, html};

use super::icon::Icon;
use crate::console::words::Words;

/// Severity of a state; selects sign and colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::console) enum Tone {
    Ok,
    Warn,
    Error,
    Skipped,
}

impl Tone {
    /// CSS class of the colour.
    pub(in crate::console) const fn class(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Error => "error",
            Self::Skipped => "skipped",
        }
    }
}

/// A state in a word.
pub(in crate::console) fn badge(tone: Tone, text: &str) -> Markup {
    let icon = match tone {
        Tone::Ok => Icon::Ok,
        Tone::Warn => Icon::Warn,
        Tone::Error => Icon::Error,
        Tone::Skipped => Icon::Skipped,
    };
    html! { span class={ "badge " (tone.class()) } { (icon) (text) } }
}

pub(in crate::console) fn bot_tone(status: BotStatus) -> Tone {
    match status {
        BotStatus::Online => Tone::Ok,
        BotStatus::Pending | BotStatus::Connecting | BotStatus::Degraded => Tone::Warn,
        BotStatus::Offline | BotStatus::Expired | BotStatus::Error => Tone::Error,
    }
}

/// The connection of a bot.
pub(in crate::console) fn bot(words: &Words, status: BotStatus) -> Markup {
    badge(bot_tone(status), (words.bots.status)(status))
}

pub(in crate::console) fn trace_tone(status: TraceStatus) -> Tone {
    match status {
        TraceStatus::Ok => Tone::Ok,
        TraceStatus::Pending => Tone::Warn,
        TraceStatus::Error => Tone::Error,
        TraceStatus::Skipped => Tone::Skipped,
    }
}

/// The status of a delivery.
pub(in crate::console) fn trace(words: &Words, status: TraceStatus) -> Markup {
    badge(trace_tone(status), (words.traces.status)(status))
}

/// Whether a step put a reply into the outbox; a later step has its outcome.
fn is_queued(step: &Step) -> bool {
    step.name == StepName::Reply && step.status == TraceStatus::Pending && step.detail.error.is_none()
}

pub(in crate::console) fn step_tone(step: &Step) -> Tone {
    if is_queued(step) { Tone::Ok } else { trace_tone(step.status) }
}

/// The status of a step.
pub(in crate::console) fn step(words: &Words, step: &Step) -> Markup {
    if is_queued(step) { badge(Tone::Ok, words.traces.queued) } else { trace(words, step.status) }
}
