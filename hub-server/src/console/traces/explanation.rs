//! Explanation of a delivery: the verdict, the remedy and the checks behind it.

use hub_core::traces::{
    Explanation, OfChannel, OfPlugin, OfSink, OfTrace, Remedy, SinkId, Verdict, WebhookSetting,
};
use maud::{Markup, html};

use crate::console::{
    page::Ask,
    parts::{
        badge::{Tone, badge},
        cause::commands,
        time::time,
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

/// The page on which something can be done.
fn page(remedy: &Remedy) -> Option<String> {
    let channel =
        |of: &OfChannel, tab| format!("/console/bots/{}/channels/{}/{tab}", of.bot_id, of.channel_id);
    let trace = |of: &OfTrace, part| format!("/console/traces/{}/{}{part}", of.bot_id, of.trace_id);
    Some(match remedy {
        Remedy::Attempt(of) => trace(of, "#pending-heading"),
        Remedy::Replay(of) => trace(of, "#replay-heading"),
        Remedy::OpenTrace(of) => trace(of, "#steps-heading"),
        Remedy::CreateChannel(of) | Remedy::OpenBot(of) => format!("/console/bots/{}", of.bot_id),
        Remedy::EnableChannel(of) | Remedy::RemoveHandle(of) => channel(of, "settings"),
        Remedy::SetFilter(of) | Remedy::SetExpression(of) => channel(of, "filter"),
        Remedy::ConnectClient(of) => channel(of, "websocket"),
        Remedy::SetWebhook(WebhookSetting { place, .. })
        | Remedy::EnableSink(OfSink { place, sink: SinkId::Webhook }) => channel(place, "webhook"),
        Remedy::SetModel(of)
        | Remedy::TestModel(of)
        | Remedy::EnableSink(OfSink { place: of, sink: SinkId::Ai }) => channel(of, "ai"),
        Remedy::EnablePlugin(OfPlugin { place, .. }) | Remedy::DisablePlugin(OfPlugin { place, .. }) => {
            channel(place, "plugins")
        }
        Remedy::BindBot(_) => "/console/bots/new".to_owned(),
        Remedy::Send(of) => format!("/console/bots/{}#composer", of.bot_id),
        Remedy::Wait
        | Remedy::DebugPlugin(_)
        | Remedy::MentionHandle
        | Remedy::OpenApps(_)
        | Remedy::CheckPhone
        | Remedy::Write
        | Remedy::WriteText
        | Remedy::CorrectReceiver
        | Remedy::StartReceiver
        | Remedy::RenewCertificate
        | Remedy::StartNode
        | Remedy::UpdateHub
        | Remedy::ChangeSetting(_) => return None,
    })
}

fn remedies(ask: &Ask, explained: &Explanation) -> Markup {
    let words = ask.words.traces;
    html! {
        @if !explained.remedies.is_empty() {
            p { strong { (words.remedy) ":" } }
            ul {
                @for remedy in &explained.remedies {
                    @let text = (words.action)(remedy);
                    li {
                        @match page(remedy) {
                            Some(page) => a href=(page) { (commands(&text)) },
                            None => (commands(&text))
                        }
                    }
                }
            }
        }
    }
}

/// The verdict with its values, what solves the problem, and what was checked.
pub(in crate::console) fn section(ask: &Ask, explained: &Explanation) -> Markup {
    let words = ask.words.traces;
    let title = if explained.verdict.is_success() { words.arrived } else { words.not_arrived };
    html! {
        section.explanation aria-labelledby="explanation-heading" {
            h2 #explanation-heading { (title) }
            p { (badge(tone(explained.verdict), (words.verdict)(explained.verdict))) }
            p { ((words.explained)(explained)) }
            (remedies(ask, explained))
            details {
                summary { (words.checks) }
                ul.checks {
                    @for check in &explained.checks {
                        @let tone = if check.ok { Tone::Ok } else { Tone::Error };
                        li {
                            (badge(tone, (words.check)(check.name))) " "
                            span.muted { ((words.check_result)(check.ok)) ": " }
                            ((words.finding)(&check.finding))
                            @if let Some(at) = check.at { " " span.muted { (time(Some(at), "")) } }
                        }
                    }
                }
            }
        }
    }
}
