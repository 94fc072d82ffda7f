//! Replies that are sent as soon as they are stored: the outcome of a delivery takes the turn of the person before it is
//! stored, so that its reply can be sent without another commit (`store::sending::immediate_send`).

use std::sync::Arc;

use super::{Next, Outbox, Turn, pace::counts_sends};
use crate::{
    network::WindowRules,
    store::{
        outbox::NewOutbound,
        sending::{OpenItem, Permit, SendAtOnce},
    },
    time::Timestamp,
};

impl Outbox {
    /// Takes the turn of the person who gets this reply. Returns the condition under which its first item is sent
    /// as soon as it is stored; `None` when something is in the way already.
    pub(in crate::engine::delivery) fn turn_for(
        self: &Arc<Self>,
        reply: &NewOutbound,
    ) -> Option<(Turn, SendAtOnce)> {
        let bot = &self.bot;
        let is_text = reply.parts.first().is_some_and(|part| part.file.is_none());
        if !is_text || bot.tasks.stopping() || bot.is_expired() || !bot.holds_lease() {
            return None;
        }
        // The item would have to be added to the logs of these channels.
        if !bot.channels().shown_outbound().is_empty() {
            return None;
        }
        let (now, wall) = (self.ctx.clock.instant(), self.ctx.store.now());
        let mut state = self.state();
        let counts_sends = counts_sends(&self.rules);
        let is_first = counts_sends && !state.recent.contains_key(&reply.peer);
        let may_send = !counts_sends
            || is_first
            || state.next_send(&self.rules, &reply.peer, now).is_some_and(|at| at <= now);
        if !may_send || !state.turns.take(&reply.peer) {
            return None;
        }
        drop(state);
        let turn = Turn { outbox: Arc::clone(self), person: reply.peer.clone() };
        let mut recent = self.recent_sends(&reply.peer);
        if counts_sends {
            recent.push(wall);
        }
        let WindowRules { age, sends, .. } = self.rules;
        let condition = SendAtOnce {
            wrote_after: age.map_or(Timestamp::MIN, |age| wall - age),
            most_sends: sends.map_or(i64::MAX, i64::from),
            recent_sends: recent.to_text(),
            is_first,
        };
        Some((turn, condition))
    }
}

impl Turn {
    /// Sends the first item of these replies, which is marked as being sent. Its person's other items follow.
    pub(in crate::engine::delivery) fn send(self, replies: &[NewOutbound], permit: Permit) {
        let Some((item, is_all)) = first_item(replies, permit) else { return };
        let outbox = Arc::clone(&self.outbox);
        {
            let (mut state, now) = (outbox.state(), outbox.ctx.clock.instant());
            state.note_send(&outbox.rules, &item.peer, now);
            if !is_all {
                state.turns.add(&item.peer);
            }
        }
        let tasks = outbox.bot.tasks.clone();
        tasks.spawn("send", async move {
            let _turn = self;
            let next = match outbox.token(&item) {
                Ok(Some(token)) => outbox.send_marked(&item, token, None, false).await,
                Ok(None) => Ok(Next::Wait),
                Err(error) => Err(error),
            };
            outbox.goes_on(next, &[]).await;
        });
    }
}

/// The first item of replies as it was stored, and whether it is all of them.
fn first_item(replies: &[NewOutbound], permit: Permit) -> Option<(OpenItem, bool)> {
    let reply = replies.first()?;
    let item = OpenItem {
        context_token: Some(permit.context_token),
        window_opened_at: Some(permit.window_opened_at),
        ..OpenItem::new(reply, 0)?
    };
    Some((item, replies.len() == 1 && reply.parts.len() == 1))
}
