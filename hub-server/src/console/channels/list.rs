//! The channels of a bot, as a section of its page, and the form that creates one.

use hub_core::{
    channels::{Channel, Channels, CreatedChannel, NewChannel},
    id::BotId,
};
use maud::{Markup, html};

use super::switch;
use crate::{
    console::{
        page::{Answer, Ask},
        parts::{
            badge::{Tone, badge},
            code,
            form::{Field, Form},
            list,
        },
        words::Words,
    },
    envelope::ApiError,
};

/// The sinks of a channel that are on.
pub(super) fn sinks(words: &Words, channel: &Channel) -> Vec<&'static str> {
    let all = [
        (channel.webhook.settings.enabled, words.channels.webhook),
        (channel.websocket.enabled, words.channels.websocket),
        (channel.ilink.enabled, words.channels.ilink),
        (channel.ai.settings.enabled, words.channels.ai),
    ];
    all.into_iter().filter(|(is_on, _)| *is_on).map(|(_, name)| name).collect()
}

/// The section of the bot's page.
pub(in crate::console) async fn section(ask: &Ask) -> Result<Markup, ApiError> {
    let words = &ask.words.channels;
    let bot: BotId = ask.id("bot")?;
    let request = ask.page_request(&Channels::channel_list(bot))?;
    let channels = ask.hub.channels().list(&ask.actor, bot, &request).await?;
    let rows = html! { @for channel in &channels.items { (row(ask, channel)) } };
    let form = Form::new(ask, "create_channel");
    let name = Field {
        name: "name",
        label: ask.words.common.name,
        help: Some(words.name_help),
        is_required: true,
        max: Some(64),
        ..Field::default()
    };
    Ok(html! {
        section aria-labelledby="channels" {
            h2 #channels { (words.title) }
            p.muted { (words.what) }
            @if channels.items.is_empty() {
                (list::empty(ask, words.empty, Some(&format!("hub-cli channels create --bot {bot} --name orders"))))
            } @else {
                div.stacked { (list::table(words.title, &[words.channel, words.state, words.sinks, words.failed, words.pending], &rows)) }
                (list::pages(ask, channels.next_cursor.as_deref()))
            }
            h3 { (words.new) }
            (form.render(&html! { (form.once(ask)) (form.field(&name)) }, words.create))
        }
    })
}

fn row(ask: &Ask, channel: &Channel) -> Markup {
    let words = &ask.words.channels;
    let sinks = sinks(ask.words, channel);
    html! {
        tr {
            td.text {
                a href={ "/console/bots/" (channel.bot_id) "/channels/" (channel.id) } { bdi { (channel.name) } }
                @if let Some(handle) = &channel.handle { " " span.muted { "@" (handle.as_str()) } }
            }
            td { (switch(ask.words, channel.enabled)) }
            td {
                @if sinks.is_empty() { (badge(Tone::Warn, words.no_sink)) } @else { (sinks.join(", ")) }
                @if channel.webhook_disabled_reason.is_some() { br; (badge(Tone::Error, words.failing)) }
            }
            td data-label=(words.failed) { (channel.stats.failed) }
            td data-label=(words.pending) { (channel.stats.pending) }
        }
    }
}

/// The key of the new channel is in this answer alone: sent again, the form gives the same key.
pub(in crate::console) async fn create_channel(ask: &Ask) -> Result<Answer, ApiError> {
    let body = ask.form::<NewChannel>()?;
    let bot: BotId = ask.id("bot")?;
    let created = ask.hub.channels().create(&ask.actor, bot, body, ask.idempotency_key()).await?;
    let above = vec![("/console/bots".to_owned(), ask.words.bots.title.to_owned())];
    let main = shown_once(ask, &created);
    Ok(Answer::secret(ask.words.channels.created, above, main))
}

fn shown_once(ask: &Ask, created: &CreatedChannel) -> Markup {
    let words = &ask.words.channels;
    let (channel, key) = (&created.channel, created.api_key.expose());
    html! {
        p { strong { (words.key_once) } }
        (code::copied(ask.words, key))
        p { (words.key_is_for) }
        (code::copied(ask.words, &waiting(ask, key)))
        p.actions {
            a.button href={ "/console/bots/" (channel.bot_id) "/channels/" (channel.id) } { (words.saved_it) }
        }
    }
}

/// The command that prints the messages of a channel as they arrive.
pub(super) fn waiting(ask: &Ask, key: &str) -> String {
    format!("curl -H \"Authorization: Bearer {key}\" '{}/api/v1/channels/messages'", base(ask))
}

/// The address of this hub, without a slash at the end.
pub(super) fn base(ask: &Ask) -> &str {
    ask.settings.public_url.as_str().trim_end_matches('/')
}
