//! `channels plugins …`.

use hub_core::{id::PluginId, page::MAX_LIMIT};
use serde_json::{Value, json};

use super::channels::state;
use crate::{
    args::{ChannelPlugin, ChannelPluginsCommand, ChannelTarget, PageArgs},
    client::{ChannelRef, Client, id_of},
    context::Context,
    document::{cell, cells, without_nulls},
    exit::Failure,
    printer::{List, Printer},
};

/// A channel of an open hub.
struct OpenChannel {
    client: Client,
    channel: ChannelRef,
}

pub async fn run(command: ChannelPluginsCommand, cx: &Context) -> Result<(), Failure> {
    match command {
        ChannelPluginsCommand::List(target) => OpenChannel::find(&target, cx).await?.list(&cx.printer).await,
        ChannelPluginsCommand::Install(args) => {
            let channel = OpenChannel::find(&args.target, cx).await?;
            let id = channel.plugin_id(&args.plugin).await?;
            let new = json!({ "plugin_id": id, "version": args.version, "position": args.position });
            let path = format!("{}/install", channel.path());
            let done = channel.client.post(&path, &without_nulls(&new)).await?;
            cx.printer.note(&format!(
                "{} {} is installed in this channel",
                cell(&done, "name"),
                cell(&done, "version")
            ));
            show(done, &cx.printer)
        }
        ChannelPluginsCommand::Uninstall(args) => {
            let channel = OpenChannel::find(&args.target, cx).await?;
            let id = channel.plugin_id(&args.plugin).await?;
            let what = format!(
                "this uninstalls {} from this channel; its position in the order is lost",
                args.plugin
            );
            if args.confirm.is_confirmed(&what, &cx.printer).await? {
                channel.client.delete(&format!("{}/{id}", channel.path())).await?;
            }
            channel.list(&cx.printer).await
        }
        ChannelPluginsCommand::Order(args) => {
            let channel = OpenChannel::find(&args.target, cx).await?;
            for (position, plugin) in (0..).zip(&args.plugins) {
                channel.change(plugin, &json!({ "position": position })).await?;
            }
            channel.list(&cx.printer).await
        }
        ChannelPluginsCommand::Enable(args) => switch(&args, true, cx).await,
        ChannelPluginsCommand::Disable(args) => switch(&args, false, cx).await,
    }
}

async fn switch(args: &ChannelPlugin, on: bool, cx: &Context) -> Result<(), Failure> {
    let channel = OpenChannel::find(&args.target, cx).await?;
    let done = channel.change(&args.plugin, &json!({ "enabled": on })).await?;
    show(done, &cx.printer)
}

impl OpenChannel {
    async fn find(target: &ChannelTarget, cx: &Context) -> Result<Self, Failure> {
        let client = cx.hub(&target.hub).await?;
        let channel = client.channel_ref(&target.bot, &target.channel).await?;
        Ok(Self { client, channel })
    }

    fn path(&self) -> String {
        format!("{}/plugins", self.channel.path())
    }

    async fn plugin_id(&self, wanted: &str) -> Result<PluginId, Failure> {
        id_of(&self.client.plugin(wanted).await?)
    }

    async fn change(&self, plugin: &str, changes: &Value) -> Result<Value, Failure> {
        let id = self.plugin_id(plugin).await?;
        self.client.put(&format!("{}/{id}", self.path()), changes).await
    }

    async fn list(self, printer: &Printer) -> Result<(), Failure> {
        let page = PageArgs { limit: MAX_LIMIT, cursor: None };
        let installed = self.client.list(&self.path(), &[], &page).await?;
        let row = |plugin: &Value| {
            let state = match plugin {
                plugin if plugin["enabled"] == false => "off".to_owned(),
                plugin if !plugin["paused"].is_null() => "paused".to_owned(),
                plugin => cell(plugin, "status"),
            };
            let [position, name, version, id] = cells(plugin, ["position", "name", "version", "plugin_id"]);
            vec![position, name, version, state, id]
        };
        let columns = &["#", "NAME", "VERSION", "STATUS", "PLUGIN ID"];
        printer.list(List::of(installed, columns, row, "no plugins in this channel"))
    }
}

fn show(plugin: Value, printer: &Printer) -> Result<(), Failure> {
    let [position, name, version] = cells(&plugin, ["position", "name", "version"]);
    let text = format!("{position}\t{name} {version}\t{}", state(&plugin));
    printer.one(plugin, &text)
}
