//! A bot: its connection and its settings.

use hub_core::bots::{BotHealth, BotStatus};
use maud::{Markup, html};

use super::composer::{self, Recipient, send};
use crate::{
    api::bots::RenameBot,
    console::{
        channels::list::{self as channels, create_channel},
        page::{Answer, Ask, Page, does, handler},
        parts::{
            badge,
            cause::cause,
            code,
            form::{Field, Form},
            time::time,
        },
    },
    envelope::ApiError,
};

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/bots/:bot",
    shows: &["getBot", "getBotStatus", "listChannels"],
    command: "hub-cli bots show {bot}",
    show: handler!(show),
    actions: &[
        does!("renameBot", rename, |words| words.bots.renamed),
        does!("reconnectBot", reconnect, |words| words.bots.reconnecting),
        does!("deleteBot", delete, |words| words.bots.deleted),
        does!("sendMessage", send, |words| words.people.sent),
        does!("createChannel", create_channel, |words| words.channels.created),
    ],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = ask.words;
    let health = ask.hub.bots().status(&ask.actor, ask.id("bot")?).await?;
    let above = vec![("/console/bots".to_owned(), words.bots.title.to_owned())];
    if ask.query("ask") == Some("delete") {
        let main = confirm_deletion(ask, &health);
        return Ok(Answer::page((words.bots.delete_named)(&health.bot.name), above, main));
    }
    let rename = Form::new(ask, "rename");
    let name = Field {
        name: "name",
        label: words.common.name,
        value: health.bot.name.clone(),
        is_required: true,
        max: Some(64),
        ..Field::default()
    };
    let main = html! {
        (connection(ask, &health))
        (channels::section(ask).await?)
        (composer::render(ask, &Recipient::Owner {
            can_send: health.bot.can_send,
            reason: health.bot.send_disabled_reason.as_deref(),
        }))
        p { a.button href={ "/console/bots/" (health.bot.id) "/contacts" } { (words.people.title) } }
        section aria-labelledby="settings" {
            h2 #settings { (words.bots.settings) }
            (rename.render(&rename.field(&name), words.bots.rename))
            p { a.button href=(ask.with_query("ask", "delete")) { (words.bots.delete) } }
        }
    };
    Ok(Answer::page(health.bot.name, above, main))
}

fn connection(ask: &Ask, health: &BotHealth) -> Markup {
    let (words, common, bot) = (&ask.words.bots, &ask.words.common, &health.bot);
    html! {
        section data-region="connection" data-live={ "bot:" (bot.id) } aria-labelledby="connection" {
            h2 #connection { (words.connection) }
            p { (badge::bot(ask.words, bot.status)) " " ((words.remedy)(bot.status)) }
            @if let Some(reason) = &bot.status_reason { p { (cause(ask.words, reason)) } }
            dl.facts {
                dt { (words.network) } dd { (bot.network) }
                dt { (words.account) } dd { (code::id(&bot.wx_id)) }
                dt { (words.since) } dd { (time(Some(health.since), common.never)) }
                dt { (words.last_poll) } dd { (time(health.last_poll_at, common.never)) }
                dt { (words.last_message) } dd { (time(bot.last_inbound_at, common.never)) }
                dt { (words.can_send) } dd {
                    @if bot.can_send { (common.yes) } @else { (common.no) }
                    @if let Some(reason) = &bot.send_disabled_reason { ": " (cause(ask.words, reason)) }
                }
                @if let Some(error) = &health.last_error { dt { (words.last_error) } dd { (cause(ask.words, error)) } }
                @if let Some(node) = &health.poller_node { dt { (words.node) } dd { (node) } }
                dt { "ID" } dd { (code::id(bot.id)) }
            }
            @if bot.status == BotStatus::Expired {
                p { a.button href={ "/console/bots/new?network=" (bot.network) } { (ask.words.bind.title) } }
            }
            @if bot.status != BotStatus::Online && bot.status != BotStatus::Expired {
                (Form::new(ask, "reconnect").render(&html! {}, words.reconnect))
            }
        }
    }
}

fn confirm_deletion(ask: &Ask, health: &BotHealth) -> Markup {
    let words = &ask.words.bots;
    html! {
        p { (words.delete_help) }
        form method="post" {
            p.actions {
                a.button href=(ask.path) autofocus { (ask.words.common.cancel) }
                button.danger name="do" value="delete" { ((words.delete_named)(&health.bot.name)) }
            }
        }
    }
}

async fn rename(ask: &Ask) -> Result<Answer, ApiError> {
    let body = ask.form::<RenameBot>()?;
    ask.hub.bots().rename(&ask.actor, ask.id("bot")?, &body.name).await?;
    Ok(ask.done())
}

async fn reconnect(ask: &Ask) -> Result<Answer, ApiError> {
    ask.hub.bots().reconnect(&ask.actor, ask.id("bot")?).await?;
    Ok(ask.done())
}

async fn delete(ask: &Ask) -> Result<Answer, ApiError> {
    ask.hub.bots().delete(&ask.actor, ask.id("bot")?).await?;
    Ok(ask.done_at("/console/bots"))
}
