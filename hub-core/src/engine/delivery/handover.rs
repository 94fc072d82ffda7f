//! Hands bots over: some to a node that has too few, all when this node stops. Each lease is released as soon as
//! the work for its bot has ended, so that a bot is without a node only while its own work ends.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt, stream::FuturesUnordered};

use super::{bot::BotWork, bots::Bots, queue::Queue, supervisor::Supervisor, work_store::WorkContext};
use crate::{
    id::NodeId,
    store::leases::{Lease, NodeEntry, Surplus},
    time::Clock,
    wake::Hint,
};

/// Bots handed over to other nodes in one round.
const MAX_MOVED: usize = 100;
/// Leases given away in one commit.
const MAX_GIVEN: usize = 500;
/// Pause after a handover that could not be stored.
const HANDOVER_PAUSE: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Hands bots over that are beyond this node's share, so that all nodes of a network have about as many. Their work
    /// ends first: no message is attempted twice for it.
    pub(super) fn share(&self, surplus: Vec<Surplus>) {
        // One handover at a time, since the bots of the last one still count as ours.
        if surplus.is_empty() || !self.bots.are_all_staying() {
            return;
        }
        let mut left = MAX_MOVED;
        for Surplus { to, network, bots } in surplus {
            let moved = self.bots.move_away(&network, bots.min(left));
            left -= moved.len();
            // Bots that nothing runs for, as after a violated invariant, stay here.
            if moved.is_empty() {
                continue;
            }
            let (ctx, bots, queue) = (self.ctx.clone(), Arc::clone(&self.bots), Arc::clone(&self.queue));
            let stop = self.tasks.stop_token().clone();
            self.tasks.spawn("handover of bots", async move {
                // A node that stops releases all its leases.
                stop.run_until_cancelled(hand_over(&ctx, &bots, &queue, moved, to)).await;
            });
        }
    }

    /// Releases each lease as soon as the work for its bot has ended, for at most the drain time. The tasks were
    /// stopped before.
    pub(super) async fn drain(&self) {
        let (clock, limit) = (&self.ctx.clock, self.ctx.config.drain);
        let releases = ended(clock, self.bots.leased(), limit).for_each(|ended| self.give_up(ended));
        tokio::select! {
            biased;
            // First, so that the others know that this node takes no bots before any of its bots is free.
            never = self.renew_without_taking() => match never {},
            () = releases => {}
            () = clock.sleep(limit) => {}
        }
    }

    /// Keeps the leases of bots whose work has not ended. Without networks, this node has no share of the bots.
    async fn renew_without_taking(&self) -> Infallible {
        let leaving = NodeEntry { networks: Vec::new(), ..self.entry.clone() };
        loop {
            if let Err(error) = self.extend(&leaving, 0).await {
                tracing::warn!(%error, "leases could not be renewed");
            }
            self.ctx.clock.sleep(self.ctx.config.lease / 3).await;
        }
    }

    async fn give_up(&self, bots: Vec<Arc<BotWork>>) {
        match self.ctx.store.give_up_leases(leases_of(&bots)).await {
            Ok(()) => self.ctx.store.announce_release(self.entry.id).await,
            Err(error) => tracing::warn!(%error, "leases could not be released yet"),
        }
    }
}

/// Ends the work for bots, then gives their leases to another node.
async fn hand_over(ctx: &WorkContext, bots: &Bots, queue: &Queue, moved: Vec<Arc<BotWork>>, to: NodeId) {
    for bot in &moved {
        bot.tasks.stop();
    }
    // What does not end in time is fenced, and attempted again by the other node.
    let mut ended = pin!(ended(&ctx.clock, moved, ctx.config.drain));
    while let Some(ended) = ended.next().await {
        queue.forget(|delivery| ended.iter().any(|bot| bot.lease.bot_id == delivery.bot_id()));
        // Their work cannot go on here: deliveries count as held in memory until the fence grows.
        while let Err(error) = ctx.store.hand_over(leases_of(&ended), to).await {
            tracing::warn!(%error, "bots could not be handed over; retrying");
            ctx.clock.sleep(HANDOVER_PAUSE).await;
        }
        tracing::info!(bots = ended.len(), %to, "bots were handed over to another node");
        bots.moved(&ended);
        // The other node learns of them, and this one whether there are more.
        ctx.node.wake.hint(Hint::Released);
    }
}

/// Bots as the work for them ends, those together that end together; after `limit` all that are left.
fn ended(
    clock: &Clock,
    bots: Vec<Arc<BotWork>>,
    limit: Duration,
) -> impl Stream<Item = Vec<Arc<BotWork>>> + use<'_> {
    let wait = move |bot: Arc<BotWork>| async move {
        if !bot.tasks.wait(clock, limit).await {
            tracing::warn!(bot_id = %bot.lease.bot_id, "work for a bot did not end in time");
        }
        bot
    };
    bots.into_iter().map(wait).collect::<FuturesUnordered<_>>().ready_chunks(MAX_GIVEN)
}

fn leases_of(bots: &[Arc<BotWork>]) -> Vec<Lease> {
    bots.iter().map(|bot| bot.lease.clone()).collect()
}
