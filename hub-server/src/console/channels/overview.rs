//! Overview of a channel: the path of a message, counters, its switch and its key.

use hub_core::channels::{Channel, ChannelStats};
use maud::{Markup, html};
use poem_openapi::Object;

use super::{
    Open, Tab, filter,
    list::{base, sinks, waiting},
    settings::update,
    truth,
};
use crate::{
    console::{
        page::{Answer, Ask, Page, does, handler},
        parts::{
            cause::cause,
            code,
            form::{Field, Form},
            time::time,
        },
    },
    envelope::ApiError,
    wire::Number,
};

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/bots/:bot/channels/:channel",
    shows: &["getChannel"],
    command: "hub-cli channels show --bot {bot} {channel}",
    show: handler!(show),
    actions: &[
        does!("updateChannel", update, |words| words.channels.updated),
        does!("regenerateChannelKey", regenerate, |words| words.channels.regenerated),
    ],
};

/// The query of the operation that replaces the key, as fields of a form.
#[derive(Debug, Object)]
struct Replacement {
    grace_hours: Option<Number<1, 72>>,
}

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.channels;
    let open = Open::of(ask).await?;
    let channel = &open.channel;
    let main = html! {
        section data-region="flow" data-live="trace" aria-labelledby="flow" {
            h2 #flow { (words.flow) }
            (flow(ask, &open))
            h3 { (words.numbers) }
            (numbers(ask, channel.stats))
        }
        form method="post" data-enhance {
            input type="hidden" name="enabled" value=(truth(!channel.enabled));
            p.actions {
                button name="do" value="update" {
                    @if channel.enabled { (words.switch_off) } @else { (words.switch_on) }
                }
            }
        }
        section aria-labelledby="key" {
            h2 #key { (words.key) }
            (key(ask, channel))
        }
    };
    Ok(open.page(ask, Tab::Overview, &main))
}

/// Renders the path of a message through the channel: bot, filter, plugins, sinks, replies.
fn flow(ask: &Ask, open: &Open) -> Markup {
    let (words, channel, path) = (&ask.words.channels, &open.channel, open.path());
    let sinks = sinks(ask.words, channel);
    let plugins: Vec<_> =
        channel.plugins.iter().filter(|plugin| plugin.enabled && plugin.state.runs()).collect();
    html! {
        ol.flow {
            li { (words.from_bot) " " a href={ "/console/bots/" (open.bot.id) } { bdi { (open.bot.name) } } }
            li { a href={ (path) "/filter" } { (words.filter) } (filter::sentence(ask, channel)) }
            li {
                a href={ (path) "/plugins" } { (words.plugins) }
                @if plugins.is_empty() { p { (words.no_plugins) } }
                @else { p { @for plugin in plugins { bdi.entry { (plugin.name) " " (plugin.version) } " " } } }
            }
            li {
                (words.sinks) ": "
                @if sinks.is_empty() { (words.no_sink) } @else { (sinks.join(", ")) }
                @if channel.webhook.settings.enabled { p { bdi { (channel.webhook.settings.url) } } }
                @if let Some(reason) = &channel.webhook_disabled_reason {
                    p.error { (ask.words.webhooks.switched_off) " " (cause(ask.words, reason)) " "
                        a href={ (path) "/webhook" } { (words.webhook) } }
                }
            }
            li {
                (words.replies)
                @if channel.webhook.settings.enabled {
                    p { @if channel.webhook.settings.auto_reply { (words.auto_reply) } @else { (words.no_auto_reply) } }
                }
                p { (words.reply_with_key) }
                (code::copied(ask.words, &reply(ask)))
            }
        }
    }
}

/// The command that sends a message through the channel.
fn reply(ask: &Ask) -> String {
    let base = base(ask);
    format!(
        "curl -H \"Authorization: Bearer $HUB_CHANNEL_KEY\" --json '{{\"content\":\"hello\"}}' \
         '{base}/api/v1/channels/send'"
    )
}

fn numbers(ask: &Ask, stats: ChannelStats) -> Markup {
    let words = &ask.words.channels;
    let all = [
        (words.received, stats.received),
        (words.delivered, stats.delivered),
        (words.failed, stats.failed),
        (words.pending, stats.pending),
    ];
    html! {
        dl.facts { @for (name, count) in all { dt { (name) } dd { data value=(count) { (count) } } } }
    }
}

fn key(ask: &Ask, channel: &Channel) -> Markup {
    let words = &ask.words.channels;
    let form = Form::new(ask, "regenerate");
    let grace = Field {
        name: "grace_hours",
        label: words.grace,
        help: Some(words.grace_help),
        kind: "number",
        value: "24".to_owned(),
        ..Field::default()
    };
    html! {
        dl.facts { dt { (words.key_prefix) } dd { (code::id(&channel.api_key_prefix)) } }
        p.muted { (words.regenerate_help) }
        (form.render(&html! { (form.once(ask)) (form.field(&grace)) }, words.regenerate))
    }
}

/// The new key is in this answer alone.
async fn regenerate(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.channels;
    let grace = ask.form::<Replacement>()?.grace_hours.map(u32::from);
    let open = Open::of(ask).await?;
    let (bot, channel, once) = (open.bot.id, open.channel.id, ask.idempotency_key());
    let new = ask.hub.channels().regenerate_key(&ask.actor, bot, channel, grace, once).await?;
    let key = new.api_key.expose();
    let main = html! {
        p { strong { (words.key_once) } }
        (code::copied(ask.words, key))
        @if new.old_key_expires_at.is_some() {
            p { (words.old_key_until) " " (time(new.old_key_expires_at, "")) }
        } @else {
            p { (words.old_key_ended) }
        }
        p { (words.key_is_for) }
        (code::copied(ask.words, &waiting(ask, key)))
        p.actions { a.button href=(open.path()) { (words.saved_it) } }
    };
    Ok(Answer::secret(words.regenerated, open.above(ask, Some(Tab::Overview)), main))
}
