//! Keeps this node's clients up to date: polls their channels after a hint and once a second, stores acknowledgements
//! once a second, and announces the channels with clients to other nodes.

use std::{collections::HashMap, time::Duration};

use tokio::sync::broadcast::error::RecvError;

use crate::{
    context::Context,
    error::Result,
    id::{ChannelId, NodeId},
    node::channel_listeners::ChannelListeners,
    store::log::PulseRow,
    tasks::Tasks,
    time::Instant,
    wake::Hint,
};

/// Time between two polls of all channels, and between two commits of acknowledgements.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Pause between two rounds, so that changes are collected and handled together.
const COLLECT: Duration = Duration::from_millis(50);
/// Time between two announcements of the channels with clients to other nodes.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(10);
/// Time after which an announcement expires.
const ANNOUNCEMENT_LIFETIME: Duration = Duration::from_secs(30);
/// Channels of one query.
const MAX_PER_QUERY: usize = 500;

pub(crate) fn start(ctx: &Context, node: NodeId, tasks: &Tasks) {
    let watch =
        Watch { ctx: ctx.clone(), listeners: ctx.node.channel_listeners.clone(), node, tasks: tasks.clone() };
    tasks.supervise("channel listeners", ctx.clock.clone(), move || watch.clone().run());
}

#[derive(Clone)]
struct Watch {
    ctx: Context,
    listeners: ChannelListeners,
    node: NodeId,
    tasks: Tasks,
}

impl Watch {
    async fn run(self) {
        let (clock, mut hints) = (self.ctx.clock.clone(), self.ctx.node.wake.listen());
        let (mut poll_at, mut announce_at) = (clock.instant(), clock.instant());
        while !self.tasks.stopping() {
            tokio::select! {
                biased;
                () = self.tasks.stop_token().cancelled() => {}
                received = hints.recv() => {
                    match received.map(|received| (received.hint, received.remote)) {
                        Ok((Hint::Bot(bot), _)) => self.listeners.refresh_bot(bot),
                        Ok((Hint::Log(channel), true)) => drop(self.listeners.refresh(channel)),
                        Ok((Hint::Listening(channel), true)) => self.listeners.note_message(channel),
                        Ok(_) => {}
                        Err(RecvError::Lagged(_)) => poll_at = clock.instant(),
                        Err(RecvError::Closed) => return,
                    }
                    continue;
                }
                () = self.listeners.work() => {}
                () = clock.sleep_until(poll_at), if !self.listeners.is_idle() => {}
                () = clock.sleep_until(announce_at), if self.ctx.store.is_shared() => {}
            }
            let now = clock.instant();
            if now >= poll_at {
                self.listeners.refresh_all();
                poll_at = now + POLL_INTERVAL;
                self.report(
                    "acknowledgements could not be stored; they are tried again",
                    self.store_acks().await,
                );
            }
            self.report("looking at channels failed", self.refresh().await);
            if self.ctx.store.is_shared() {
                self.report(
                    "channels with clients could not be announced",
                    self.notify(now, &mut announce_at).await,
                );
            } else {
                self.listeners.take_unannounced();
            }
            tokio::select! {
                () = clock.sleep(COLLECT) => {}
                () = self.tasks.stop_token().cancelled() => {}
            }
        }
        self.report("acknowledgements could not be stored", self.store_acks().await);
    }

    fn report(&self, what: &'static str, done: Result<()>) {
        if let Err(error) = done {
            tracing::debug!(node = %self.node, %error, "{what}");
        }
    }

    /// Looks at channels that the store has something new about.
    async fn refresh(&self) -> Result<()> {
        let stale = self.listeners.take_stale();
        for channels in stale.chunks(MAX_PER_QUERY) {
            let pulses = self.ctx.store.read().await?.log().pulses(channels).await?;
            let pulses: HashMap<ChannelId, &PulseRow> =
                pulses.iter().map(|pulse| (pulse.id, pulse)).collect();
            let now = self.ctx.store.now();
            for channel in channels {
                if let Some(feed) = self.listeners.feed(*channel) {
                    feed.refresh(pulses.get(channel).copied(), now);
                }
            }
        }
        Ok(())
    }

    async fn store_acks(&self) -> Result<()> {
        let acks = self.listeners.acks();
        if acks.is_empty() {
            return Ok(());
        }
        let stored = acks.clone();
        self.ctx.store.write(move |tx| Box::pin(async move { tx.log().acknowledge(&acks).await })).await?;
        self.listeners.stored(&stored);
        Ok(())
    }

    /// Tells other nodes of new clients at once, of all of them now and then, and learns theirs.
    async fn notify(&self, now: Instant, announce_at: &mut Instant) -> Result<()> {
        let unannounced = self.listeners.take_unannounced();
        if unannounced.is_empty() && now < *announce_at {
            return Ok(());
        }
        *announce_at = now + ANNOUNCE_INTERVAL;
        let (node, listening, now) = (self.node, self.listeners.listening(), self.ctx.store.now());
        self.ctx
            .store
            .write(move |tx| {
                Box::pin(async move {
                    tx.log().announce(node, &listening, now, now + ANNOUNCEMENT_LIFETIME).await
                })
            })
            .await?;
        for channel in unannounced {
            self.ctx.node.wake.hint(Hint::Listening(channel));
        }
        let elsewhere = self.ctx.store.read().await?.log().listened_elsewhere(node, now).await?;
        self.listeners.set_elsewhere(elsewhere);
        Ok(())
    }
}
