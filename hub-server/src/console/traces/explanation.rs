//! Explanation of a delivery: the verdict, the remedy and the checks behind it.

use hub_core::traces::{Explanation, Verdict};
use maud::{Markup, html};

use crate::console::{
    page::Ask,
    parts::{
        badge::{Tone, badge},
        time::time,
        translated::sentence,
    },
};

const fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Delivered | Verdict::Sent | Verdict::LogOnly => Tone::Ok,
        Verdict::Retrying
        | Verdict::Waiting
        | Verdict::Queued
        | Verdict::NoNode
        | Verdict::Sending
        | Verdict::WindowClosed
        | Verdict::LoginExpired
        | Verdict::SendUnknown => Tone::Warn,
        Verdict::NoUserMessage
        | Verdict::NoChannel
        | Verdict::OlderThanChannel
        | Verdict::NoTrace
        | Verdict::ChannelOff
        | Verdict::NotAddressed
        | Verdict::Filtered
        | Verdict::SkippedByPlugin
        | Verdict::IgnoredBySink => Tone::Skipped,
        Verdict::Unreadable
        | Verdict::FilterBroken
        | Verdict::PluginFailed
        | Verdict::SinkOff
        | Verdict::Gone
        | Verdict::ReceiverError
        | Verdict::Unreachable
        | Verdict::Failed
        | Verdict::ReplyFailed
        | Verdict::SendFailed
        | Verdict::SendExpired => Tone::Error,
    }
}

/// Renders the verdict with the sentence of the API, the remedy, and the checks.
pub(in crate::console) fn section(ask: &Ask, explained: &Explanation) -> Markup {
    let words = ask.words.traces;
    let title = if explained.verdict.is_success() { words.arrived } else { words.not_arrived };
    html! {
        section.explanation aria-labelledby="explanation-heading" {
            h2 #explanation-heading { (title) }
            p { (badge(tone(explained.verdict), (words.verdict)(explained.verdict))) }
            p { (sentence(ask.words, &explained.sentence)) }
            @if let Some(remedy) = &explained.remedy { p { strong { (words.remedy) ": " } (sentence(ask.words, remedy)) } }
            details {
                summary { (words.checks) }
                ul.checks {
                    @for check in &explained.checks {
                        @let tone = if check.ok { Tone::Ok } else { Tone::Error };
                        li {
                            (badge(tone, (words.check)(check.name))) " "
                            span.muted { ((words.check_result)(check.ok)) ": " }
                            (sentence(ask.words, &check.why))
                            @if let Some(at) = check.at { " " span.muted { (time(Some(at), "")) } }
                        }
                    }
                }
            }
        }
    }
}
