//! Home: bots, channels and keys that need attention, counts of the last hour, and the first steps.

use hub_core::{
    accounts::{Accounts, ApiKey},
    bots::{Bot, BotStatus, Bots, UserStats},
    page::PageRequest,
    time::Timestamp,
};
use maud::{Markup, html};

use super::{
    page::{Answer, Ask, Page, handler},
    parts::{
        badge::{self, Tone, badge},
        code,
        icon::Icon,
        time::time,
    },
};
use crate::envelope::ApiError;

pub(super) static PAGE: Page = Page {
    path: "/console",
    shows: &["listBots", "getUserStats", "listApiKeys"],
    command: "hub-cli bots list",
    show: handler!(show),
    actions: &[],
};

/// A key that expires within this time is shown, in milliseconds.
const WEEK: i64 = 7 * 24 * 60 * 60 * 1000;

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let (bots, accounts) = (ask.hub.bots(), ask.hub.accounts());
    let all = |list: &str| PageRequest::parse(list, Some(200), None);
    let listed = bots.list(&ask.actor, &all(&Bots::bot_list(&ask.actor))?).await?.items;
    let stats = bots.stats(&ask.actor).await?;
    let keys = accounts.api_keys(&ask.actor, &all(&Accounts::api_key_list(&ask.actor))?).await?.items;
    let main = html! {
        (attention(ask, &listed, &stats, &keys))
        (last_hour(ask, &stats))
        (first_steps(ask, &listed, &stats, &keys))
        (try_it(ask))
    };
    Ok(Answer::page(ask.words.home.title, Vec::new(), main))
}

/// Renders the bots, channels and keys that need attention, each with a link to its page.
fn attention(ask: &Ask, bots: &[Bot], stats: &UserStats, keys: &[ApiKey]) -> Markup {
    let words = &ask.words.home;
    let now = ask.hub.context().store.now();
    let is_soon = |at: Timestamp| at > now && at.as_millis() - now.as_millis() < WEEK;
    let offline: Vec<_> = bots.iter().filter(|bot| bot.status != BotStatus::Online).collect();
    let failing: Vec<_> =
        stats.channels.iter().filter(|channel| channel.health.failing_since.is_some()).collect();
    let expiring: Vec<_> = keys.iter().filter(|key| key.expires_at.is_some_and(is_soon)).collect();
    let is_well = offline.is_empty() && failing.is_empty() && expiring.is_empty();
    html! {
        section data-region="attention" data-live="bot trace" aria-labelledby="attention" {
            h2 #attention { (words.attention) }
            @if is_well { p { (badge(Tone::Ok, words.all_well)) } }
            ul.plain-list {
                @for bot in offline {
                    li {
                        a href={ "/console/bots/" (bot.id) } { bdi { (bot.name) } } " " (badge::bot(ask.words, bot.status))
                        p.muted { ((ask.words.bots.remedy)(bot.status)) }
                    }
                }
                @for channel in failing {
                    li {
                        a href={ "/console/bots/" (channel.bot_id) "/channels/" (channel.id) } { bdi { (channel.name) } }
                        " " (badge(Tone::Error, words.failing)) " " (time(channel.health.failing_since, ""))
                        p.muted {
                            (words.last_delivered) " " (time(channel.health.last_ok_at, ask.words.common.never))
                            @if let Some(next) = channel.health.next_attempt_at {
                                " · " (words.next_attempt) " " (time(Some(next), ""))
                            }
                        }
                    }
                }
                @for key in expiring {
                    li {
                        a href="/console/account/keys" { bdi { (key.name) } } " " (badge(Tone::Warn, words.key_expires)) " "
                        (time(key.expires_at, ""))
                    }
                }
            }
        }
    }
}

fn last_hour(ask: &Ask, stats: &UserStats) -> Markup {
    let (words, hour) = (&ask.words.home, stats.last_hour());
    let counts = [
        (words.received, hour.messages_in, "/console/messages?direction=inbound"),
        (words.sent, hour.messages_out, "/console/messages?direction=outbound"),
        (words.delivered, hour.delivered, "/console/messages?outcome=delivered"),
        (words.failed, hour.failed, "/console/messages?outcome=failed"),
    ];
    html! {
        section data-region="hour" data-live="message trace sent" aria-labelledby="hour" {
            h2 #hour { (words.last_hour) }
            dl.counts {
                @for (text, count, address) in counts {
                    div { dt { (text) } dd { a href=(address) { data value=(count) data-computed { (count) } } } }
                }
            }
        }
    }
}

/// Renders the first steps of a new user until all are done.
fn first_steps(ask: &Ask, bots: &[Bot], stats: &UserStats, keys: &[ApiKey]) -> Markup {
    let words = &ask.words.home;
    let has_message = bots.iter().any(|bot| bot.last_inbound_at.is_some());
    let steps = [
        (!bots.is_empty(), words.step_bot, "/console/bots/new"),
        (has_message, words.step_message, "/console/messages"),
        (
            stats.channels.iter().any(|channel| channel.name != hub_core::demo::NAME),
            words.step_channel,
            "/console/bots",
        ),
        (!keys.is_empty(), words.step_key, "/console/account/keys"),
    ];
    html! {
        @if steps.iter().any(|(is_done, ..)| !is_done) {
            section data-region="steps" data-live="bot message" aria-labelledby="steps" {
                h2 #steps { (words.first_steps) }
                ol.steps {
                    @for (is_done, text, address) in steps {
                        li {
                            @if is_done { (badge(Tone::Ok, words.done)) " " (text) }
                            @else { (badge(Tone::Skipped, words.open)) " " a href=(address) { (text) } }
                        }
                    }
                }
            }
        }
    }
}

/// The simulated network of a hub in development.
fn try_it(ask: &Ask) -> Markup {
    let words = &ask.words.home;
    html! {
        @if ask.settings.sim_control.is_some() {
            section aria-labelledby="try" {
                h2 #try { (words.try_it) }
                p { (words.try_help) }
                p.actions { a.button href="/console/playground" { (Icon::Bot) (ask.words.playground.title) } }
                (code::copied(ask.words, "hub-cli sim say \"order 42\" --as Ada"))
            }
        }
    }
}
