//! `getconfig` and `sendtyping` (ilink §11).

use std::{collections::VecDeque, time::Duration};

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    stamp,
    wire::{Call, Reply},
    world::{Env, World},
};
use crate::time::Timestamp;

/// How long a typing ticket is taken (ilink §17.2).
const TICKET_LIFE: Duration = Duration::from_secs(600);

/// One `sendtyping` that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Typing {
    /// The bot.
    pub wx_id: String,
    /// Who sees it.
    pub user_id: String,
    /// Shown (status 1) or hidden (status 2).
    pub on: bool,
    /// When.
    pub at: Timestamp,
}

/// The calls so far, the newest [`SimCaps::records`](super::SimCaps::records) of them.
#[derive(Default)]
pub(super) struct TypingLog(VecDeque<Typing>);

impl TypingLog {
    pub(super) fn list(&self, wx_id: Option<&str>) -> Vec<Typing> {
        self.0.iter().filter(|typing| wx_id.is_none_or(|wx_id| typing.wx_id == wx_id)).cloned().collect()
    }
}

impl World {
    pub(super) fn get_config(&mut self, env: &Env<'_>, call: &Call) -> Result<Reply, Reply> {
        let wx_id = self.authenticate(env, call)?;
        let user_id = user_of(call)?;
        if !self.accounts.get(&wx_id).is_some_and(|account| account.peers.contains_key(user_id)) {
            return Err(Reply::refuse(-4, "GetTypingTicket rpc failed"));
        }
        let ticket = stamp::typing_ticket(&self.secret, &wx_id, user_id, env.now);
        Ok(Reply::json(&json!({"ret": 0, "typing_ticket": ticket})))
    }

    pub(super) fn send_typing(&mut self, env: &Env<'_>, call: &Call) -> Result<Reply, Reply> {
        let wx_id = self.authenticate(env, call)?;
        let user_id = user_of(call)?;
        let made = stamp::typing_ticket_time(&self.secret, &wx_id, user_id, call.text("typing_ticket"));
        if made.is_none_or(|made| env.now.since(made) >= TICKET_LIFE) {
            return Err(Reply::refuse(-2, "invalid typing_ticket"));
        }
        let on = match call.json.get("status").and_then(Value::as_u64) {
            Some(1) => true,
            Some(2) => false,
            _ => return Err(Reply::refuse(-2, "invalid status")),
        };
        let log = &mut self.typing.0;
        if log.len() >= env.config.caps.records {
            log.pop_front();
        }
        log.push_back(Typing { wx_id, user_id: user_id.to_owned(), on, at: env.now });
        Ok(Reply::done())
    }
}

fn user_of(call: &Call) -> Result<&str, Reply> {
    let user_id = call.text("ilink_user_id");
    if user_id.is_empty() { Err(Reply::refuse(-2, "ilink_user_id required")) } else { Ok(user_id) }
}
