//! `getconfig` and `sendtyping` (`docs/ilink.md#typing`).

use std::{collections::VecDeque, time::Duration};

use serde::Serialize;
use serde_json::json;

use super::world::{Env, World};
use crate::{
    network::server::{Answer, Reply, stamp},
    time::Timestamp,
};

/// Lifetime of a typing ticket.
const TICKET_LIFE: Duration = Duration::from_secs(600);

/// One `sendtyping` that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Typing {
    /// The bot.
    pub wx_id: String,
    /// The person who sees it.
    pub user_id: String,
    /// Shown (status 1) or hidden (status 2).
    pub on: bool,
    /// Time of the call.
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
    pub(super) fn get_config(&self, env: &Env<'_>, wx_id: &str, user_id: &str) -> Answer {
        if !self.accounts.get(wx_id).is_some_and(|account| account.peers.contains_key(user_id)) {
            return Err(Reply::refuse(-4, "GetTypingTicket rpc failed"));
        }
        let ticket = stamp::typing_ticket(&self.secret, wx_id, user_id, env.now);
        Ok(Reply::json(&json!({"ret": 0, "typing_ticket": ticket})))
    }

    pub(super) fn send_typing(
        &mut self,
        env: &Env<'_>,
        wx_id: String,
        (user_id, ticket, on): (&str, &str, bool),
    ) -> Answer {
        let made = stamp::typing_ticket_time(&self.secret, &wx_id, user_id, ticket);
        if made.is_none_or(|made| env.now.since(made) >= TICKET_LIFE) {
            return Err(Reply::refuse(-2, "invalid typing_ticket"));
        }
        let log = &mut self.typing.0;
        if log.len() >= env.config.caps.records {
            log.pop_front();
        }
        log.push_back(Typing { wx_id, user_id: user_id.to_owned(), on, at: env.now });
        Ok(Reply::done())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::network::sim::{SimConfig, testing::Rig};

    #[tokio::test]
    async fn a_ticket_is_for_one_person_who_wrote_and_for_ten_minutes() {
        let rig = Rig::new(SimConfig::default());
        let bot = rig.login(None).await;
        let owner = json!({"ilink_user_id": bot.owner()});
        let none = rig.call("getconfig", &bot, json!({})).await;
        assert_eq!(none, json!({"ret": -2, "errmsg": "ilink_user_id required"}));
        let early = rig.call("getconfig", &bot, owner.clone()).await;
        assert_eq!(early, json!({"ret": -4, "errmsg": "GetTypingTicket rpc failed"}));
        rig.receive(&bot).await;
        let ticket = rig.call("getconfig", &bot, owner).await["typing_ticket"].clone();
        let typing = |status: u64, ticket: Value| {
            rig.call(
                "sendtyping",
                &bot,
                json!({"ilink_user_id": bot.owner(), "typing_ticket": ticket, "status": status}),
            )
        };
        assert_eq!(typing(1, ticket.clone()).await, json!({"ret": 0}));
        rig.advance(599);
        assert_eq!(typing(2, ticket.clone()).await, json!({"ret": 0}));
        assert_eq!(typing(3, ticket.clone()).await["ret"], -2);
        assert_eq!(typing(1, json!("wrong")).await["ret"], -2);
        rig.advance(1);
        assert_eq!(typing(2, ticket).await["ret"], -2);
        let seen: Vec<_> = rig.sim.typing(Some(bot.wx_id())).iter().map(|t| t.on).collect();
        assert_eq!(seen, [true, false]);
        assert_eq!(rig.sim.typing(Some("other")), []);
    }
}
