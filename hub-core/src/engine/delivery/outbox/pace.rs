//! Limits on sends to a person: the smallest gap between two sends, and the maximum within five minutes.

use std::collections::hash_map::Entry;

use super::{MAX_REMEMBERED, Next, Outbox, Sending};
use crate::{bots::pacing::RecentSends, network::WindowRules, store::sending::OpenItem, time::Instant};

impl Outbox {
    /// Waits for the smallest gap between two sends. Returns [`Next::Paced`] if the person got too many messages
    /// recently, and [`Next::Wait`] if the work for the bot ends.
    pub(super) async fn wait_for_gap(&self, item: &OpenItem) -> Next {
        let clock = &self.ctx.clock;
        loop {
            let (now, wall) = (clock.instant(), self.ctx.store.now());
            let wait = {
                let mut state = self.state();
                if let Entry::Vacant(unknown) = state.recent.entry(item.peer.clone()) {
                    // What an earlier process or node sent.
                    let stored = RecentSends::parse(item.recent_sends.as_deref().unwrap_or_default(), wall);
                    unknown.insert(stored.iter().map(|at| now - wall.since(at)).collect());
                }
                let Some(until) = state.next_send(&self.rules, &item.peer, now) else {
                    return Next::Paced; // The next round finds it again.
                };
                if until <= now {
                    state.note_send(&self.rules, &item.peer, now);
                    state.paced.remove(&item.id);
                    return Next::Continue;
                }
                until
            };
            tokio::select! {
                biased;
                () = clock.sleep_until(wait) => {}
                () = self.bot.tasks.stop_token().cancelled() => return Next::Wait,
            }
        }
    }

    /// Returns the times of recent sends to a person, by the clock of the store.
    pub(super) fn recent_sends(&self, peer: &str) -> RecentSends {
        let (now, wall) = (self.ctx.clock.instant(), self.ctx.store.now());
        let state = self.state();
        state.recent.get(peer).into_iter().flatten().map(|at| wall - now.since(*at)).collect()
    }
}

impl Sending {
    /// Returns the time at which a person may be sent the next message; `None` if the limit is reached, or the
    /// person's sends are not known.
    pub(super) fn next_send(&mut self, rules: &WindowRules, peer: &str, now: Instant) -> Option<Instant> {
        let recent = self.recent.get_mut(peer)?;
        while recent.front().is_some_and(|at| now.since(*at) >= WindowRules::BURST_SPAN) {
            recent.pop_front();
        }
        let is_full = rules.burst.is_some_and(|burst| recent.len() >= burst as usize);
        (!is_full).then(|| recent.back().map_or(now, |last| *last + rules.gap))
    }

    /// Records a send to a person.
    pub(super) fn note_send(&mut self, rules: &WindowRules, peer: &str, now: Instant) {
        if counts_sends(rules) {
            self.recent.entry(peer.to_owned()).or_default().push_back(now);
        }
        if self.recent.len() > MAX_REMEMBERED {
            self.recent
                .retain(|_, sends| sends.back().is_some_and(|at| now.since(*at) < WindowRules::BURST_SPAN));
        }
    }
}

/// Whether a limit depends on the times of sends.
pub(super) fn counts_sends(rules: &WindowRules) -> bool {
    rules.burst.is_some() || !rules.gap.is_zero()
}
