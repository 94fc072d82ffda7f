//! Bots: bound, looked at, renamed, taken away; their people, their messages, and sending.

use std::time::Duration;

use hub_core::{
    Hub,
    access::Actor,
    bots::{BindStep, Bot, BotHealth, Bots, Contact, Message, MessageFilter, NewBind, NewSend},
    id::{BindId, BotId},
    page::PageRequest,
};
use serde_json::{Value, json};

use super::{
    Reach,
    apps::{given, paging},
    expect_user, page_document,
    plugins::user,
};
use crate::{args::PageArgs, exit::Failure};

/// An account on its way to become a bot.
#[derive(Debug)]
pub struct Binding {
    id: BindId,
    /// Who binds it, on files.
    actor: Actor,
    /// As the API tells it: `bind_id`, `qr_text`, `expires_at`.
    pub started: Value,
}

impl Reach {
    /// A page of bots.
    pub async fn bot_page(&self, page: &PageArgs) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                let list = Bots::bot_list(&Actor::Operator);
                let request = PageRequest::parse(&list, Some(page.limit), page.cursor.as_deref())?;
                Ok(page_document(&hub.bots().list(&Actor::Operator, &request).await?, document))
            }
            Self::Remote(remote) => remote.call("GET", "/api/bots", &paging(page), &Value::Null).await,
        }
    }

    /// A bot.
    pub async fn bot_document(&self, bot: BotId) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => Ok(document(&hub.bots().get(&Actor::Operator, bot).await?)),
            Self::Remote(remote) => remote.call("GET", &path(bot), &[], &Value::Null).await,
        }
    }

    /// A bot's connection.
    pub async fn bot_health(&self, bot: BotId) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => Ok(health_document(&hub.bots().status(&Actor::Operator, bot).await?)),
            Self::Remote(remote) => {
                remote.call("GET", &format!("{}/status", path(bot)), &[], &Value::Null).await
            }
        }
    }

    /// Gives a bot another name.
    pub async fn rename_bot(&self, bot: BotId, name: &str) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => Ok(document(&hub.bots().rename(&Actor::Operator, bot, name).await?)),
            Self::Remote(remote) => remote.call("PUT", &path(bot), &[], &json!({ "name": name })).await,
        }
    }

    /// Deletes a bot with everything of it.
    pub async fn delete_bot(&self, bot: BotId) -> Result<(), Failure> {
        match self {
            Self::Local(hub) => Ok(hub.bots().delete(&Actor::Operator, bot).await?),
            Self::Remote(remote) => remote.call("DELETE", &path(bot), &[], &Value::Null).await.map(|_| ()),
        }
    }

    /// Makes the hub connect a bot anew.
    pub async fn reconnect_bot(&self, bot: BotId) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => Ok(document(&hub.bots().reconnect(&Actor::Operator, bot).await?)),
            Self::Remote(remote) => {
                remote.call("POST", &format!("{}/reconnect", path(bot)), &[], &Value::Null).await
            }
        }
    }

    /// A page of the people a bot talks to.
    pub async fn contacts(&self, bot: BotId, page: &PageArgs) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                let list = Bots::contact_list(bot);
                let request = PageRequest::parse(&list, Some(page.limit), page.cursor.as_deref())?;
                let contacts = hub.bots().contacts(&Actor::Operator, bot, &request).await?;
                Ok(page_document(&contacts, contact_document))
            }
            Self::Remote(remote) => {
                let path = format!("{}/contacts", path(bot));
                remote.call("GET", &path, &paging(page), &Value::Null).await
            }
        }
    }

    /// A page of the messages of a bot, newest first.
    pub async fn messages(
        &self,
        bot: BotId,
        filter: &MessageFilter,
        page: &PageArgs,
    ) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                let list = Bots::message_list(bot, filter);
                let request = PageRequest::parse(&list, Some(page.limit), page.cursor.as_deref())?;
                let messages = hub.bots().messages(&Actor::Operator, bot, filter, &request).await?;
                Ok(page_document(&messages, message_document))
            }
            Self::Remote(remote) => {
                let wanted = [
                    ("direction", filter.direction.map(|direction| direction.as_str().to_owned())),
                    ("user_id", filter.user_id.clone()),
                    ("since", filter.since.map(|at| at.to_string())),
                    ("until", filter.until.map(|at| at.to_string())),
                    ("q", filter.q.clone()),
                ];
                let wanted = [&wanted[..], &paging(page)].concat();
                remote.call("GET", &format!("{}/messages", path(bot)), &wanted, &Value::Null).await
            }
        }
    }

    /// Accepts a text into the outbox: `message_id`, `trace_id`, `status`.
    pub async fn send(&self, bot: BotId, to: String, content: String) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                let new = NewSend { to_user_id: Some(to), content, ..NewSend::default() };
                let sent = hub.bots().send(&Actor::Operator, bot, new, None).await?;
                Ok(json!({
                    "message_id": sent.message_id, "trace_id": sent.trace_id, "status": sent.status,
                }))
            }
            Self::Remote(remote) => {
                let body = json!({ "to_user_id": to, "content": content });
                remote.call("POST", &format!("{}/send", path(bot)), &[], &body).await
            }
        }
    }

    /// Starts to bind an account. On files `owner` says whose bot it becomes, on a server the key.
    pub async fn start_bind(
        &self,
        network: Option<String>,
        name: Option<String>,
        owner: Option<&str>,
    ) -> Result<Binding, Failure> {
        match self {
            Self::Local(hub) => {
                let owner = owner.ok_or_else(|| Failure::usage("whose is it? add --owner NAME"))?;
                let actor = user(hub, owner).await?;
                let new = NewBind { network, name, for_bot: None };
                let bind = hub.bots().start_bind(&actor, new).await?;
                let started = json!({
                    "bind_id": bind.bind_id, "qr_text": bind.qr_text.expose(), "expires_at": bind.expires_at,
                });
                Ok(Binding { id: bind.bind_id, actor, started })
            }
            Self::Remote(remote) => {
                expect_user(remote, "--owner", owner).await?;
                let body = given(&json!({ "network": network, "name": name }));
                let started = remote.call("POST", "/api/bots/bind/start", &[], &body).await?;
                let id = started["bind_id"].as_str().and_then(|id| id.parse().ok());
                let id = id.ok_or_else(|| Failure::unreachable("the server's answer names no bind"))?;
                Ok(Binding { id, actor: Actor::Operator, started })
            }
        }
    }

    /// The next step of a bind, waited for so long at most: `status`, `qr_text`, `reason`, `bot`.
    pub async fn confirm_bind(
        &self,
        bind: &Binding,
        code: Option<&str>,
        wait: Duration,
    ) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => local_step(hub, bind, code, wait).await,
            Self::Remote(remote) => {
                let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                let body = given(&json!({ "bind_id": bind.id, "verify_code": code, "wait_ms": wait }));
                remote.call("POST", "/api/bots/bind/confirm", &[], &body).await
            }
        }
    }
}

async fn local_step(hub: &Hub, bind: &Binding, code: Option<&str>, wait: Duration) -> Result<Value, Failure> {
    let BindStep { status, qr_text, reason, bot, .. } =
        hub.bots().confirm_bind(&bind.actor, bind.id, code, wait).await?;
    Ok(given(&json!({
        "status": status.as_str(),
        "qr_text": qr_text.as_ref().map(hub_core::secret::Secret::expose),
        "reason": reason,
        "bot": bot.as_ref().map(document),
    })))
}

fn path(bot: BotId) -> String {
    format!("/api/bots/{bot}")
}

fn document(bot: &Bot) -> Value {
    given(&json!({
        "id": bot.id,
        "name": bot.name,
        "network": bot.network,
        "status": bot.status.as_str(),
        "status_reason": bot.status_reason,
        "wx_id": bot.wx_id,
        "owner_id": bot.owner_id,
        "can_send": bot.can_send,
        "send_disabled_reason": bot.send_disabled_reason,
        "last_inbound_at": bot.last_inbound_at,
        "created_at": bot.created_at,
    }))
}

fn health_document(health: &BotHealth) -> Value {
    given(&json!({
        "bot_id": health.bot.id,
        "status": health.bot.status.as_str(),
        "status_reason": health.bot.status_reason,
        "since": health.since,
        "last_poll_at": health.last_poll_at,
        "last_error": health.last_error,
        "poller_node": health.poller_node,
        "can_send": health.bot.can_send,
        "send_disabled_reason": health.bot.send_disabled_reason,
        "last_inbound_at": health.bot.last_inbound_at,
    }))
}

fn contact_document(contact: &Contact) -> Value {
    given(&json!({
        "user_id": contact.user_id,
        "user_name": contact.user_name,
        "remark": contact.remark,
        "avatar_url": contact.avatar_url,
        "last_message_at": contact.last_message_at,
        "message_count": contact.message_count,
        "window_expires_at": contact.window_expires_at,
        "sends_left": contact.sends_left,
        "next_send_at": contact.next_send_at,
    }))
}

fn message_document(message: &Message) -> Value {
    let quoted = message.quoted.as_ref();
    given(&json!({
        "id": message.id,
        "bot_id": message.bot_id,
        "channel_ids": message.channel_ids,
        "direction": message.direction.as_str(),
        "from_user_id": message.from_user_id,
        "to_user_id": message.to_user_id,
        "user_name": message.user_name,
        "content": message.content,
        "msg_type": message.kind.msg_type(),
        "items": message.items,
        "session_id": message.session_id,
        "quoted": quoted.map(|quote| given(&json!({ "network_id": quote.network_id, "text": quote.text }))),
        "media": message.media,
        "status": message.status,
        "status_reason": message.status_reason,
        "trace_id": message.trace_id,
        "created_at": message.created_at,
    }))
}
