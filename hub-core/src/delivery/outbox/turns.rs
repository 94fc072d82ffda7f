//! Whose turn it is: one task at a time writes to a person. The outbox gives turns to people with open items; the
//! outcome of a delivery takes one before it is stored, so that its reply can be sent without another commit
//! (`store::sending::at_once`).

use std::sync::Arc;

use super::{MAX_CONCURRENT_PEERS, Next, Outbox, Sending, pace::counts_sends};
use crate::{
    network::WindowRules,
    store::{
        outbox::NewOutbound,
        sending::{OpenItem, Permit, SendAtOnce},
    },
    time::Timestamp,
};

/// While it exists, nothing else is sent to a person.
#[derive(Debug)]
pub(in crate::delivery) struct Turn {
    outbox: Arc<Outbox>,
    peer: String,
}

impl Outbox {
    /// Takes the turn of a person; `None` when someone has it, or too many people are written to.
    pub(super) fn take_turn(self: &Arc<Self>, state: &mut Sending, peer: String) -> Option<Turn> {
        if state.busy.len() >= MAX_CONCURRENT_PEERS || !state.busy.insert(peer.clone()) {
            return None;
        }
        state.served.insert(peer.clone());
        Some(Turn { outbox: Arc::clone(self), peer })
    }

    /// Takes the turn of the person who gets this reply, and says on what condition its first item is sent as soon as it is
    /// stored; `None` when something is in the way already.
    pub(in crate::delivery) fn turn_for(self: &Arc<Self>, reply: &NewOutbound) -> Option<(Turn, SendAtOnce)> {
        let bot = &self.bot;
        let is_text = reply.parts.first().is_some_and(|part| part.file.is_none());
        if !is_text || bot.tasks.stopping() || bot.is_expired() || !bot.holds_lease() {
            return None;
        }
        // It would have to be entered into their logs.
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
        let turn = may_send.then(|| self.take_turn(&mut state, reply.peer.clone()))??;
        drop(state);
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
    pub(in crate::delivery) fn send(self, replies: &[NewOutbound], permit: Permit) {
        let Some((item, is_all)) = first_item(replies, permit) else { return };
        let outbox = Arc::clone(&self.outbox);
        {
            let now = outbox.ctx.clock.instant();
            outbox.state().note_send(&outbox.rules, &item.peer, now);
        }
        let tasks = outbox.bot.tasks.clone();
        tasks.spawn("send", async move {
            outbox.state().left_out |= !is_all;
            let next = match outbox.token(&item) {
                Ok(Some(token)) => outbox.send_marked(&item, token, None, false).await,
                Ok(None) => Ok(Next::Wait),
                Err(error) => Err(error),
            };
            let went_through = outbox.goes_on(next, &[]).await;
            self.end(went_through);
        });
    }

    /// Ends it, and looks for what waits for it, if the person's items `went_through`.
    pub(super) fn end(self, went_through: bool) {
        let outbox = Arc::clone(&self.outbox);
        drop(self);
        if went_through && std::mem::take(&mut outbox.state().left_out) {
            outbox.bot.outbox_ready.notify_one();
        }
    }
}

/// Whatever happens, a panic included.
impl Drop for Turn {
    fn drop(&mut self) {
        self.outbox.state().busy.remove(&self.peer);
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
