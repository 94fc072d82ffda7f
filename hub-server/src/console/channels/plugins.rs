//! The plugins of a channel, in the order in which they run.

use hub_core::{
    Error,
    id::PluginId,
    plugins::{InstallationPatch, InstalledPlugin, NewInstallation, Plugins, VersionState},
};
use maud::{Markup, html};

use super::{Open, Tab, switch, truth};
use crate::{
    console::{
        page::{Answer, Ask, Page, does, handler},
        parts::{
            badge::{Tone, badge},
            cause::cause,
            code,
            form::{Field, Form},
            list,
        },
    },
    envelope::ApiError,
};

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/bots/:bot/channels/:channel/plugins",
    shows: &["listChannelPlugins"],
    command: "hub-cli channels plugins list --bot {bot} --channel {channel}",
    show: handler!(show),
    actions: &[
        does!("installPlugin", install, |words| words.channel_plugins.installed),
        does!("changeChannelPlugin", change, |words| words.channel_plugins.changed),
        does!("uninstallPlugin", uninstall, |words| words.channel_plugins.uninstalled),
    ],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.channel_plugins;
    let open = Open::of(ask).await?;
    let (bot, channel) = (open.bot.id, open.channel.id);
    let request = ask.page_request(&Plugins::installed_list(channel))?;
    let plugins = ask.hub.plugins().installed(&ask.actor, bot, channel, &request).await?;
    let is_selected =
        |plugin: &&InstalledPlugin| ask.query("plugin") == Some(plugin.plugin_id.to_string().as_str());
    if let Some(plugin) = plugins.items.iter().find(is_selected) {
        let above = open.above(ask, Some(Tab::Plugins));
        return Ok(Answer::page((words.change_named)(&plugin.name), above, change_form(ask, plugin)));
    }
    let count = open.channel.plugins.len();
    let rows = html! { @for plugin in &plugins.items { (row(ask, plugin, count)) } };
    let main = html! {
        p.muted { (words.what) }
        @if plugins.items.is_empty() {
            (list::empty(ask, words.empty, Some("hub-cli plugins list")))
        } @else {
            (list::table(ask.words.channels.plugins, &[words.plugin, words.version, words.state, words.order, ""], &rows))
            (list::pages(ask, plugins.next_cursor.as_deref()))
        }
        section aria-labelledby="install" {
            h2 #install { (words.install) }
            (install_form(ask))
        }
    };
    Ok(open.page(ask, Tab::Plugins, &main))
}

fn row(ask: &Ask, plugin: &InstalledPlugin, count: usize) -> Markup {
    let words = &ask.words.channel_plugins;
    let place = plugin.position;
    let is_last = place as usize + 1 >= count;
    let toggle =
        if plugin.enabled { (words.switch_off)(&plugin.name) } else { (words.switch_on)(&plugin.name) };
    html! {
        tr {
            td { bdi { (plugin.name) } br; (code::id(plugin.plugin_id)) }
            td { bdi { (plugin.version) } br; span.muted { ((words.review)(plugin.state)) } }
            td {
                @if plugin.paused.is_some() { (badge(Tone::Error, words.paused)) }
                @else if !matches!(plugin.state, VersionState::Rejected | VersionState::Withdrawn) {
                    (switch(ask.words, plugin.enabled))
                } @else { (badge(Tone::Error, words.off)) }
                @for reason in [&plugin.paused, &plugin.reason].into_iter().flatten() { p.muted { (cause(ask.words, reason)) } }
            }
            td {
                @if place > 0 { (one_field(ask, plugin, "position", &(place - 1).to_string(), "↑", &(words.up)(&plugin.name))) }
                @if !is_last { (one_field(ask, plugin, "position", &(place + 1).to_string(), "↓", &(words.down)(&plugin.name))) }
            }
            td {
                (one_field(ask, plugin, "enabled", truth(!plugin.enabled), if plugin.enabled { words.off } else { words.on }, &toggle))
                " " a href=(ask.with_query("plugin", &plugin.plugin_id.to_string())) { (words.change) }
            }
        }
    }
}

/// A button that changes one field of a plugin.
fn one_field(
    ask: &Ask,
    plugin: &InstalledPlugin,
    name: &str,
    value: &str,
    text: &str,
    label: &str,
) -> Markup {
    html! {
        form.inline method="post" action=(ask.path) data-enhance {
            input type="hidden" name="plugin" value=(plugin.plugin_id);
            input type="hidden" name=(name) value=(value);
            button name="do" value="change" aria-label=(label) title=(label) { (text) }
        }
    }
}

/// Version, place and switch of a plugin, and its end.
fn change_form(ask: &Ask, plugin: &InstalledPlugin) -> Markup {
    let words = &ask.words.channel_plugins;
    let form = Form::new(ask, "change");
    let version =
        Field { name: "version", label: words.version, help: Some(words.version_help), ..Field::default() };
    let position =
        Field { value: plugin.position.to_string(), ..number(words.position, words.position_help) };
    let fields = html! {
        input type="hidden" name="plugin" value=(plugin.plugin_id);
        (form.field(&version))
        (form.field(&position))
        (form.checkbox("enabled", words.enabled, plugin.enabled))
    };
    html! {
        dl.facts {
            dt { (words.id) } dd { (code::id(plugin.plugin_id)) }
            dt { (words.version) } dd { bdi { (plugin.version) } " " span.muted { ((words.review)(plugin.state)) } }
        }
        (form.render(&fields, words.save))
        form method="post" {
            input type="hidden" name="plugin" value=(plugin.plugin_id);
            p.muted { (words.uninstall_help) }
            p.actions {
                a.button href=(ask.path) { (ask.words.common.cancel) }
                button.danger name="do" value="uninstall" { ((words.uninstall)(&plugin.name)) }
            }
        }
    }
}

fn install_form(ask: &Ask) -> Markup {
    let words = &ask.words.channel_plugins;
    let form = Form::new(ask, "install");
    let id = Field {
        name: "plugin_id",
        label: words.id,
        value: ask.query("install").unwrap_or_default().to_owned(),
        is_required: true,
        ..Field::default()
    };
    let version = Field {
        name: "version",
        label: words.install_version,
        help: Some(words.install_version_help),
        ..Field::default()
    };
    let fields = html! {
        (form.field(&id))
        (form.field(&version))
        (form.field(&number(words.position, words.install_position_help)))
    };
    form.render(&fields, words.install_button)
}

fn number<'a>(label: &'a str, help: &'a str) -> Field<'a> {
    Field { name: "position", label, help: Some(help), kind: "number", ..Field::default() }
}

/// The plugin that a form is about.
fn plugin(ask: &Ask) -> Result<PluginId, ApiError> {
    let id = ask.submitted.as_ref().and_then(|form| form.field("plugin")).unwrap_or_default();
    id.parse().map_err(|_| Error::not_found("plugin").into())
}

async fn install(ask: &Ask) -> Result<Answer, ApiError> {
    let new = ask.form::<NewInstallation>()?;
    ask.hub.plugins().install(&ask.actor, ask.id("bot")?, ask.id("channel")?, new).await?;
    Ok(ask.done())
}

async fn change(ask: &Ask) -> Result<Answer, ApiError> {
    let patch = ask.form::<InstallationPatch>()?;
    let (bot, channel) = (ask.id("bot")?, ask.id("channel")?);
    ask.hub.plugins().change_installation(&ask.actor, bot, channel, plugin(ask)?, patch).await?;
    Ok(ask.done())
}

async fn uninstall(ask: &Ask) -> Result<Answer, ApiError> {
    ask.hub.plugins().uninstall(&ask.actor, ask.id("bot")?, ask.id("channel")?, plugin(ask)?).await?;
    Ok(ask.done())
}
