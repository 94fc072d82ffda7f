//! The settings of a channel itself, and its end.

use hub_core::channels::{Channel, ChannelPatch, OnPluginError};
use maud::{Markup, html};

use super::{Open, Tab};
use crate::{
    console::{
        page::{Answer, Ask, Page, does, handler},
        parts::{
            code,
            form::{Field, Form},
            time::time,
        },
    },
    envelope::ApiError,
};

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/bots/:bot/channels/:channel/settings",
    shows: &["getChannel"],
    command: "hub-cli channels show --bot {bot} {channel}",
    show: handler!(show),
    actions: &[
        does!("updateChannel", update, |words| words.channels.updated),
        does!("deleteChannel", delete, |words| words.channels.deleted),
    ],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.channels;
    let open = Open::of(ask).await?;
    if ask.query("ask") == Some("delete") {
        let title = (words.delete_named)(&open.channel.name);
        return Ok(Answer::page(
            title.clone(),
            open.above(ask, Some(Tab::Settings)),
            confirm_deletion(ask, &title),
        ));
    }
    let channel = &open.channel;
    let main = html! {
        section aria-labelledby="settings" {
            h2 #settings { (words.settings) }
            (fields(ask, channel))
        }
        dl.facts {
            dt { (words.id) } dd { (code::id(channel.id)) }
            dt { (ask.words.common.created) } dd { (time(Some(channel.created_at), "")) }
            dt { (words.changed) } dd { (time(Some(channel.updated_at), "")) }
        }
        p { a.button href=(ask.with_query("ask", "delete")) { (words.delete) } }
    };
    Ok(open.page(ask, Tab::Settings, &main))
}

fn fields(ask: &Ask, channel: &Channel) -> Markup {
    let words = &ask.words.channels;
    let form = Form::new(ask, "update");
    let name = Field {
        name: "name",
        label: ask.words.common.name,
        value: channel.name.clone(),
        is_required: true,
        max: Some(64),
        ..Field::default()
    };
    let handle = Field {
        name: "handle",
        label: words.handle,
        help: Some(words.handle_help),
        value: channel.handle.as_ref().map(|handle| handle.as_str().to_owned()).unwrap_or_default(),
        max: Some(32),
        ..Field::default()
    };
    let hold = Field {
        name: "lane_hold_s",
        label: words.lane_hold,
        help: Some(words.lane_hold_help),
        kind: "number",
        value: channel.options.lane_hold_s.to_string(),
        ..Field::default()
    };
    let on_error = OnPluginError::ALL.map(|rule| {
        let label = match rule {
            OnPluginError::Retry => words.retry,
            OnPluginError::Send => words.send_anyway,
            OnPluginError::Drop => words.drop,
        };
        (rule.as_str(), label)
    });
    let fields = html! {
        (form.field(&name))
        // An empty field removes the handle.
        input type="hidden" name="handle.clear" value="true";
        (form.field(&handle))
        (form.checkbox("enabled", words.enabled, channel.enabled))
        (form.select("on_plugin_error", words.on_plugin_error, channel.options.on_plugin_error.as_str(), &on_error))
        (form.field(&hold))
    };
    form.render(&fields, ask.words.common.save)
}

fn confirm_deletion(ask: &Ask, title: &str) -> Markup {
    html! {
        p { (ask.words.channels.delete_help) }
        form method="post" {
            p.actions {
                a.button href=(ask.path) autofocus { (ask.words.common.cancel) }
                button.danger name="do" value="delete" { (title) }
            }
        }
    }
}

/// Changes the fields of the form; others keep their values.
pub(super) async fn update(ask: &Ask) -> Result<Answer, ApiError> {
    let patch = ask.form::<ChannelPatch>()?;
    ask.hub.channels().update(&ask.actor, ask.id("bot")?, ask.id("channel")?, patch).await?;
    Ok(ask.done())
}

async fn delete(ask: &Ask) -> Result<Answer, ApiError> {
    let bot: hub_core::id::BotId = ask.id("bot")?;
    ask.hub.channels().delete(&ask.actor, bot, ask.id("channel")?).await?;
    Ok(ask.done_at(&format!("/console/bots/{bot}")))
}
