//! `sendmessage` (`docs/ilink.md#sending`): the window, idempotency, and the list of what people got.

use std::{collections::VecDeque, fmt};

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    account::Sent,
    config::TokenlessSend,
    violation::ViolationKind,
    world::{Bell, Env, World},
};
use crate::{
    network::server::{Answer, Item, Reply, SendRequest, stamp},
    time::Timestamp,
};

/// A message that the simulated network accepted from a bot.
#[derive(Clone, PartialEq, Serialize, hub_macros::Api)]
#[api(name = "SimOutbound", example = {
    "at": "2026-11-21T09:30:00.000Z",
    "number": 3,
    "repeats": 0,
    "shown": true,
    "text": "42 is on its way",
    "to_user_id": "ann@im.wechat",
})]
pub struct Outbound {
    /// Number, ascending over all bots.
    #[api(name = "number")]
    pub n: u64,
    /// Id of the recipient.
    pub to_user_id: String,
    /// Text; empty for a file.
    pub text: String,
    /// Type of the file: `image`, `voice`, `file` or `video`.
    #[api(name = "media_type", with(Option<String>, |media: &Option<OutboundMedia>| media.as_ref().map(|media| media.kind.to_owned())))]
    pub media: Option<OutboundMedia>,
    /// When the network accepted the message.
    pub at: Timestamp,
    /// Whether the recipient sees the message.
    pub shown: bool,
    /// How often the same message arrived again; repeats are not shown.
    pub repeats: u32,
    /// What is unusual about the message.
    pub note: Option<String>,
    /// The bot.
    #[api(skip)]
    pub wx_id: String,
    /// The sender's own id; empty when it sent none.
    #[api(skip)]
    pub client_id: String,
    /// The permission it was sent with; empty when it sent none.
    #[api(skip)]
    pub context_token: String,
    /// Whether the receiver can open the media. `Some(false)`: a check failed, [`note`](Self::note) says which.
    /// `None`: not media.
    #[api(skip)]
    pub opened: Option<bool>,
    /// The id returned to the sender; `None` for a message accepted by an account in shadow mode.
    #[api(skip)]
    pub message_id: Option<String>,
    /// The message as it was sent.
    #[api(skip)]
    pub raw: Value,
}

/// Media of an [`Outbound`] message.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct OutboundMedia {
    /// `image`, `voice`, `file` or `video`.
    pub kind: &'static str,
    /// The CDN reference.
    pub encrypt_query_param: String,
    /// Name of a file.
    pub file_name: Option<String>,
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbound")
            .field("n", &self.n)
            .field("wx_id", &self.wx_id)
            .field("to_user_id", &self.to_user_id)
            .field("text", &self.text)
            .field("client_id", &self.client_id)
            .field("media", &self.media)
            .field("note", &self.note)
            .field("repeats", &self.repeats)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for OutboundMedia {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboundMedia")
            .field("kind", &self.kind)
            .field("file_name", &self.file_name)
            .finish_non_exhaustive()
    }
}

/// The list of what was sent, and the numbers in it.
#[derive(Default)]
pub(super) struct Outbox {
    items: VecDeque<Outbound>,
    last_n: u64,
    pub bell: Bell,
}

impl Outbox {
    fn push(&mut self, cap: usize, make: impl FnOnce(u64) -> Outbound) -> u64 {
        self.last_n += 1;
        if self.items.len() >= cap {
            self.items.pop_front();
        }
        self.items.push_back(make(self.last_n));
        self.bell.ring();
        self.last_n
    }

    /// Up to `limit` messages with a number above `after`, oldest first.
    pub(super) fn list(&self, wx_id: Option<&str>, after: u64, limit: usize) -> Vec<Outbound> {
        let first = self.items.front().map_or(0, |item| item.n);
        let skip = usize::try_from((after + 1).saturating_sub(first)).unwrap_or(usize::MAX);
        let wanted = self.items.iter().skip(skip);
        wanted.filter(|item| wx_id.is_none_or(|wx_id| item.wx_id == wx_id)).take(limit).cloned().collect()
    }

    fn count_repeat(&mut self, n: u64) {
        if let Some(item) = self.items.iter_mut().rev().find(|item| item.n == n) {
            item.repeats += 1;
        }
    }
}

/// The one item of a send, as the receiver sees it.
pub(super) struct Content {
    pub text: String,
    pub media: Option<OutboundMedia>,
    pub opened: Option<bool>,
    pub shown: bool,
    pub note: Option<&'static str>,
}

impl Content {
    fn text(text: &str) -> Self {
        Self { text: text.to_owned(), media: None, opened: None, shown: true, note: None }
    }

    fn invisible(media: Option<OutboundMedia>) -> Self {
        Self { text: String::new(), media, opened: None, shown: false, note: Some("not shown") }
    }
}

/// An account in shadow mode accepts everything and shows nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shadow {
    pub message_id: bool,
}

impl World {
    pub(super) fn send_message(
        &mut self,
        env: &Env<'_>,
        wx_id: &str,
        send: &SendRequest<'_>,
        shadow: Option<Shadow>,
    ) -> Answer {
        let content = self.read_content(env, wx_id, send)?;
        if let Some(sent) = self.repeat_of(env, wx_id, send.client_id) {
            self.outbox.count_repeat(sent.n);
            return Ok(accepted(sent.message_id, shadow));
        }
        self.check_permission(env, wx_id, send)?;
        if send.client_id.is_empty() {
            self.violations.record(env, Some(wx_id), ViolationKind::NoClientId, "sendmessage");
        }
        let message_id = self.next_id(env.random);
        let known = shadow.is_none_or(|shadow| shadow.message_id);
        let SendRequest { msg, to, client_id, context_token, .. } = *send;
        let unfinished = msg.get("message_state").and_then(Value::as_u64) == Some(1);
        let note = shadow.map(|_| "shadow").or(content.note).or(unfinished.then_some("message_state 1"));
        let n = self.outbox.push(env.config.caps.outbound, |n| Outbound {
            n,
            wx_id: wx_id.to_owned(),
            to_user_id: to.to_owned(),
            text: content.text,
            client_id: client_id.to_owned(),
            context_token: context_token.to_owned(),
            media: content.media,
            opened: content.opened,
            at: env.now,
            message_id: known.then(|| message_id.to_string()),
            shown: content.shown && shadow.is_none(),
            note: note.map(str::to_owned),
            repeats: 0,
            raw: Value::Object(msg.clone()),
        });
        if let Some(account) = self.accounts.get_mut(wx_id) {
            if let Some(peer) = account.peers.get_mut(to) {
                peer.sends += 1;
            }
            if !client_id.is_empty() {
                account.client_ids.remember(env, client_id, Sent { message_id, n });
            }
        }
        Ok(accepted(message_id, shadow))
    }

    /// The item as the receiver sees it.
    fn read_content(&mut self, env: &Env<'_>, wx_id: &str, send: &SendRequest<'_>) -> Result<Content, Reply> {
        if !self.accounts.get(wx_id).is_some_and(|account| account.knows(send.to)) {
            return Err(Reply::refuse(-3, "invalid arguments"));
        }
        match &send.item {
            Item::Text(text) => Ok(Content::text(text)),
            // Voice is accepted and never shown, whatever it holds.
            Item::Voice => Ok(Content::invisible(Some(OutboundMedia {
                kind: "voice",
                encrypt_query_param: String::new(),
                file_name: None,
            }))),
            Item::File(item) => self.read_media(env, wx_id, send.to, item),
            Item::ToolCall => Ok(Content::invisible(None)),
        }
    }

    fn repeat_of(&mut self, env: &Env<'_>, wx_id: &str, client_id: &str) -> Option<Sent> {
        self.accounts.get_mut(wx_id)?.client_ids.find(env, client_id)
    }

    fn check_permission(&mut self, env: &Env<'_>, wx_id: &str, send: &SendRequest<'_>) -> Result<(), Reply> {
        let refused = || Reply::refuse(-2, "prepare failed");
        if send.context_token.is_empty() {
            match env.config.tokenless {
                TokenlessSend::PrepareFailed => return Err(refused()),
                TokenlessSend::Silent => return Err(Reply::raw_json(String::new())),
                TokenlessSend::Invalid => return Err(Reply::refuse(-3, "invalid arguments")),
                TokenlessSend::Accept => {}
            }
        } else if !stamp::context_token_fits(&self.secret, wx_id, send.to, send.context_token) {
            return Err(refused());
        }
        let account = self.accounts.get_mut(wx_id);
        account.and_then(|account| account.window(env, send.to)).map(|_| ()).ok_or_else(refused)
    }
}

/// The answer that names the new message: a JSON string here, a number in `getupdates`. Accounts in shadow mode get
/// no id.
fn accepted(message_id: u64, shadow: Option<Shadow>) -> Reply {
    match shadow {
        Some(Shadow { message_id: false }) => Reply::done(),
        _ => Reply::json(&json!({"ret": 0, "message_id": message_id.to_string()})),
    }
}

#[cfg(test)]
mod tests;
