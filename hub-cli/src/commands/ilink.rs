//! `channels ilink-url`, `ilink-clients` and `ilink-login`: the programs that are logged in to the iLink sink of a channel.

use hub_core::id::IlinkClientId;
use serde_json::json;

use crate::{
    args::{IlinkClientsArgs, IlinkLoginArgs, IlinkUrlArgs},
    context::Context,
    document::cell,
    exit::Failure,
};

pub async fn clients(args: IlinkClientsArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let place = client.channel_ref(&args.which.bot, &args.which.channel).await?;
    let path = format!("{}/ilink/clients", place.path());
    if let Some(id) = &args.log_out {
        let id: IlinkClientId =
            id.parse().map_err(|_| Failure::not_found(format!("there is no client {id}")))?;
        client.delete(&format!("{path}/{id}")).await?;
        return cx.printer.one(json!({ "id": id, "logged_out": true }), &format!("logged out {id}"));
    }
    let found = client.get(&path).await?;
    let mut text = String::new();
    for client in found["clients"].as_array().into_iter().flatten() {
        let columns = ["id", "address", "user_agent", "created_at", "last_used_at", "acked_seq"];
        let row = columns.map(|name| crate::screen::clean(&cell(client, name)));
        text = format!("{text}{}\n", row.join("\t"));
    }
    if text.is_empty() {
        cx.printer.note("no client is logged in");
    }
    cx.printer.one(found, text.trim_end())
}

pub async fn url(args: IlinkUrlArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let place = client.channel_ref(&args.which.bot, &args.which.channel).await?;
    let channel = client.get(&place.path()).await?;
    if channel["ilink"]["enabled"] != true {
        cx.printer.note("the iLink sink of the channel is off; `channels set-ilink --on` switches it on");
    }
    let mut urls = client.get(&format!("{}/ilink/clients", place.path())).await?;
    let text = format!("{}\n{}", cell(&urls, "base_url"), cell(&urls, "cdn_base_url"));
    if let Some(urls) = urls.as_object_mut() {
        urls.remove("clients");
    }
    cx.printer.one(urls, &text)
}

pub async fn login(args: IlinkLoginArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let place = client.channel_ref(&args.which.bot, &args.which.channel).await?;
    let login = args.link.rsplit("login=").next().unwrap_or_default();
    let body = json!({ "login_id": login, "channel_id": place.channel });
    let added = client.post("/api/ilink/logins/confirm", &body).await?;
    let text = format!("{}\t{}", cell(&added, "id"), crate::screen::clean(&cell(&added, "user_agent")));
    cx.printer.one(added, &text)
}
