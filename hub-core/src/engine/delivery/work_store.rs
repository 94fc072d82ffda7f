//! The store as the parts of the delivery pipeline use it: every read and write between a poll of the network and a
//! finished delivery, each one call and, where it writes, one commit.
//!
//! It is a trait so that the same parts also run, unchanged, on a store in memory that loses commits, responses and
//! nodes on purpose, from a seed (`delivery::simulation`).

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::FutureExt;

use super::hints;
use crate::{
    app_status::notify_status,
    context::Context,
    error::{Error, Result},
    id::{AppEventId, BotId, ChannelId, DeliveryId, Ids, MediaId, NodeId, PluginVersionId},
    media::{FileStore, Files},
    model::{
        app::AppRuntime, bot::BotStatus, channel::ChannelRecord, message::QuotedMessage, sinks::SinkKey,
    },
    network::WindowRules,
    secret::Sealed,
    store::{
        Store,
        ai::{AiConfigRow, Conversation, ConversationQuery},
        app_events::DueEvent,
        bots::Answered,
        channel_plugins::InstalledRow,
        deliveries::{EventJobRow, Finished, FinishedEvent, JobRow},
        due::Followed,
        inbox::{Accept, Accepted},
        leases::{self, Extended, Lease, NodeEntry, WorkRow},
        media::{MediaRow, SettledMedia},
        outbox::NewOutbound,
        sending::{Begun, OpenItem, Permit, Settled},
        traces::TraceUpdate,
    },
    time::Timestamp,
};

/// Files with the same MD5 whose keys are tried on a new one.
const MAX_EARLIER_KEYS: u32 = 3;
/// Bots without a node that can work for them whose status is set in one round.
const MAX_UNSERVED: u32 = 100;

/// Deliveries as the backlog scan loads them, oldest first.
#[derive(Debug, Default)]
pub struct BacklogRows {
    /// Those to channels. A damaged row does not keep the others from being read.
    pub messages: Vec<Result<JobRow>>,
    /// Those to apps.
    pub events: Vec<EventJobRow>,
}

/// The store as the workers see it. Every write returns `UNAVAILABLE` if its commit failed, or may have failed; a
/// write rejected because of its content has another code.
#[async_trait]
pub trait WorkStore: FileStore {
    fn is_shared(&self) -> bool;
    async fn sync_clock(&self) -> Result<()>;

    async fn void_leases(&self) -> Result<()>;
    async fn release_leases(&self, node: NodeId) -> Result<()>;
    /// Releases leases as if their holder had died.
    async fn give_up_leases(&self, leases: Vec<Lease>) -> Result<()>;
    /// Notifies other nodes that this one released leases: they need not wait for their next poll.
    async fn announce_release(&self, node: NodeId);
    /// Gives bots to another node, or to none if that one is dead. May be repeated.
    async fn hand_over(&self, leases: Vec<Lease>, to: NodeId) -> Result<()>;
    /// Whether a bot of these networks has no holder.
    async fn any_free_bot(&self, networks: &[String], now: Timestamp) -> Result<bool>;
    /// Moves due times along with a step of the shared clock since `before`, extends the leases of a node, then takes
    /// up to `take` free bots of its networks.
    async fn extend_leases(
        &self,
        node: &NodeEntry,
        lease: Duration,
        before: Option<Followed>,
        take: u32,
    ) -> Result<Extended>;
    async fn work(&self, lease: &Lease) -> Result<Option<WorkRow>>;
    async fn with_work(&self, node: NodeId, now: Timestamp) -> Result<(Vec<BotId>, Vec<BotId>)>;
    async fn is_held(&self, bot_id: BotId) -> Result<bool>;

    /// The revision of a bot's settings and its channels, oldest first.
    async fn channels(&self, bot_id: BotId) -> Result<(i64, Vec<ChannelRecord>)>;
    /// Plugins installed in a bot's channels, in the order of each channel, and the sources of their versions.
    async fn plugins(&self, bot_id: BotId) -> Result<(Vec<InstalledRow>, Vec<(PluginVersionId, String)>)>;
    /// Stops a plugin in a channel; `false` when it is stopped already, or another version of it runs there.
    async fn pause_plugin(
        &self,
        channel_id: ChannelId,
        version_id: PluginVersionId,
        reason: String,
    ) -> Result<bool>;
    /// The apps on a bot that are switched on.
    async fn apps(&self, bot_id: BotId) -> Result<Vec<AppRuntime>>;
    /// Stores a bot's status, and the events for apps. `false` when nothing changed, or the lease is gone.
    async fn set_status(
        &self,
        lease: &Lease,
        status: BotStatus,
        reason: Option<String>,
        ids: &Ids,
        now: Timestamp,
    ) -> Result<bool>;
    async fn note_poll(&self, lease: &Lease, error: String) -> Result<()>;
    async fn note_answers(&self, answers: Vec<Answered>) -> Result<()>;

    async fn quoted(&self, bot_id: BotId, network_ids: &[&str]) -> Result<HashMap<String, QuotedMessage>>;
    /// Names of people whose messages have no name.
    async fn names(&self, bot_id: BotId, users: &[&str]) -> Result<HashMap<String, String>>;
    async fn accept(&self, batch: Accept) -> Result<Accepted>;

    /// Files of a bot that are still to be fetched, the next one first.
    async fn downloading(&self, bot_id: BotId, limit: u32) -> Result<Vec<MediaRow>>;
    async fn opened_with_md5(&self, bot_id: BotId, md5: &str) -> Result<Vec<(MediaId, Sealed)>>;
    async fn settle_media(&self, settled: SettledMedia) -> Result<bool>;

    /// Open deliveries that the node does not hold in memory: at most `limit` to channels and as many to apps.
    async fn backlog(
        &self,
        lease: &Lease,
        full: &[SinkKey],
        now: Timestamp,
        limit: u32,
    ) -> Result<BacklogRows>;
    /// An event with what an attempt to deliver it needs; `None` if it is gone.
    async fn event(&self, id: AppEventId) -> Result<Option<DueEvent>>;
    /// Stores the outcome of an attempt to deliver an event, unless it was attempted again or has ended.
    async fn finish_event(&self, finished: FinishedEvent) -> Result<()>;
    async fn claim(&self, ids: Vec<DeliveryId>, fence: i64) -> Result<HashSet<DeliveryId>>;
    async fn disclaim(&self, ids: Vec<DeliveryId>, fence: i64) -> Result<()>;
    /// Stores the outcome of an attempt. Returns a permit if the first of its replies may be sent at once.
    async fn finish(&self, finished: Arc<Finished>) -> Result<Option<Permit>>;
    async fn abandon(
        &self,
        id: DeliveryId,
        fence: i64,
        reason: String,
        now: Timestamp,
        trace: TraceUpdate,
    ) -> Result<bool>;

    async fn ai_config(&self) -> Result<Option<AiConfigRow>>;
    async fn conversation(&self, query: &ConversationQuery) -> Result<Conversation>;
    /// Returns the keys that belong to messages that are, or were, in the outbox.
    async fn known_keys(&self, bot_id: BotId, keys: &[String]) -> Result<Vec<String>>;
    /// Puts replies into the outbox before the attempt that made them has ended; `false` when the lease is gone.
    async fn reply(&self, lease: &Lease, replies: Vec<NewOutbound>) -> Result<bool>;

    /// People who have items that can be processed now.
    async fn people_to_write(
        &self,
        bot_id: BotId,
        after: &str,
        rules: &WindowRules,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<String>>;
    async fn open_items(
        &self,
        bot_id: BotId,
        people: &[String],
        rules: &WindowRules,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<OpenItem>>;
    async fn begin_send(&self, begun: Begun) -> Result<bool>;
    async fn settle_send(&self, settled: Settled) -> Result<bool>;
}

/// The context, with the store as the delivery pipeline uses it. It is shared, as every bot keeps it.
pub type WorkContext = Arc<Context<Arc<dyn WorkStore>>>;

impl Context {
    pub(crate) fn for_work(&self) -> WorkContext {
        Arc::new(self.with_store(Arc::new(self.store.clone())))
    }
}

impl Context<Arc<dyn WorkStore>> {
    pub(crate) fn files(&self) -> Files<'_> {
        self.files_in(&*self.store)
    }
}

#[async_trait]
impl WorkStore for Store {
    fn is_shared(&self) -> bool {
        Self::is_shared(self)
    }

    async fn sync_clock(&self) -> Result<()> {
        Self::sync_clock(self).await
    }

    async fn void_leases(&self) -> Result<()> {
        self.write(|tx| async move { tx.leases().void_all().await }.boxed()).await
    }

    async fn release_leases(&self, node: NodeId) -> Result<()> {
        self.write(move |tx| async move { tx.leases().release(node).await }.boxed()).await
    }

    async fn give_up_leases(&self, leases: Vec<Lease>) -> Result<()> {
        self.write(move |tx| async move { tx.leases().give_up(&leases).await }.boxed()).await
    }

    async fn announce_release(&self, node: NodeId) {
        hints::announce_release(self, node).await;
    }

    async fn hand_over(&self, leases: Vec<Lease>, to: NodeId) -> Result<()> {
        let now = self.now();
        self.write(move |tx| async move { tx.leases().hand_over(&leases, to, now).await }.boxed()).await
    }

    async fn extend_leases(
        &self,
        node: &NodeEntry,
        lease: Duration,
        before: Option<Followed>,
        take: u32,
    ) -> Result<Extended> {
        let (node, clock) = (node.clone(), self.clock().clone());
        let extended = self.write(move |tx| {
            async move {
                let (followed, step) = tx.due().follow_clock(before, &clock).await?;
                let (now, until) = (followed.reading.wall, followed.reading.wall + lease);
                // Our own first: a lease that expired while this process slept, and that no node took, is extended.
                let mut held = tx.leases().renew(&node, until).await?;
                let taken = tx.leases().acquire(&node, now, until, take).await?;
                let is_full = taken.len() >= take as usize;
                held.extend(taken);
                let surplus = leases::surplus(node.id, &tx.leases().shares(now).await?);
                let unserved = tx.leases().unserved(now, MAX_UNSERVED).await?;
                Ok(Extended { held, is_full, followed, step, surplus, unserved })
            }
            .boxed()
        });
        let extended = extended.await?;
        self.set_clock(extended.followed.reading);
        Ok(extended)
    }

    async fn any_free_bot(&self, networks: &[String], now: Timestamp) -> Result<bool> {
        self.read().await?.leases().any_free(networks, now).await
    }

    async fn work(&self, lease: &Lease) -> Result<Option<WorkRow>> {
        self.read().await?.leases().work(lease).await
    }

    async fn with_work(&self, node: NodeId, now: Timestamp) -> Result<(Vec<BotId>, Vec<BotId>)> {
        self.read().await?.leases().with_work(node, now).await
    }

    async fn is_held(&self, bot_id: BotId) -> Result<bool> {
        let found = self.read().await?.bots().find(None, bot_id).await?;
        Ok(found.is_some_and(|bot| bot.lease_owner.is_some()))
    }

    async fn channels(&self, bot_id: BotId) -> Result<(i64, Vec<ChannelRecord>)> {
        let mut read = self.read().await?;
        // The revision first: after a change between the reads the next batch is rejected once too often, never too seldom.
        let config_rev = read.channels().config_rev(bot_id).await?.ok_or_else(|| Error::not_found("bot"))?;
        Ok((config_rev, read.channels().of_bot(bot_id).await?))
    }

    async fn plugins(&self, bot_id: BotId) -> Result<(Vec<InstalledRow>, Vec<(PluginVersionId, String)>)> {
        let mut read = self.read().await?;
        let rows = read.channel_plugins().installed_of_bot(bot_id).await?;
        let enabled = rows.iter().map(|row| &row.plugin).filter(|plugin| plugin.enabled);
        let mut ids: Vec<_> = enabled.map(|plugin| plugin.version_id).collect();
        ids.sort_unstable();
        ids.dedup();
        let scripts = if ids.is_empty() { Vec::new() } else { read.channel_plugins().scripts(&ids).await? };
        Ok((rows, scripts))
    }

    async fn pause_plugin(
        &self,
        channel_id: ChannelId,
        version_id: PluginVersionId,
        reason: String,
    ) -> Result<bool> {
        self.write(move |tx| {
            async move { tx.channel_plugins().pause(channel_id, version_id, &reason).await }.boxed()
        })
        .await
    }

    async fn apps(&self, bot_id: BotId) -> Result<Vec<AppRuntime>> {
        self.read().await?.installations().runtimes(bot_id).await
    }

    async fn set_status(
        &self,
        lease: &Lease,
        status: BotStatus,
        reason: Option<String>,
        ids: &Ids,
        now: Timestamp,
    ) -> Result<bool> {
        let (&Lease { bot_id, fence }, ids) = (lease, ids.clone());
        self.write(move |tx| {
            async move {
                let before = tx.bots().set_status(bot_id, fence, status, reason.as_deref(), now).await?;
                if before.is_some_and(|before| before != status) {
                    notify_status(tx, &ids, bot_id, before, now).await?;
                }
                Ok(before.is_some())
            }
            .boxed()
        })
        .await
    }

    async fn note_poll(&self, lease: &Lease, error: String) -> Result<()> {
        let Lease { bot_id, fence } = *lease;
        self.write(move |tx| {
            async move { tx.bots().note_poll(bot_id, fence, None, Some(&error)).await.map(drop) }.boxed()
        })
        .await
    }

    async fn note_answers(&self, answers: Vec<Answered>) -> Result<()> {
        self.write(move |tx| async move { tx.bots().note_answers(&answers).await }.boxed()).await
    }

    async fn quoted(&self, bot_id: BotId, network_ids: &[&str]) -> Result<HashMap<String, QuotedMessage>> {
        self.read().await?.messages().quoted(bot_id, network_ids).await
    }

    async fn names(&self, bot_id: BotId, users: &[&str]) -> Result<HashMap<String, String>> {
        self.read().await?.contacts().names(bot_id, users).await
    }

    async fn accept(&self, batch: Accept) -> Result<Accepted> {
        Self::accept(self, batch).await
    }

    async fn downloading(&self, bot_id: BotId, limit: u32) -> Result<Vec<MediaRow>> {
        self.read().await?.media().downloading(bot_id, limit).await
    }

    async fn opened_with_md5(&self, bot_id: BotId, md5: &str) -> Result<Vec<(MediaId, Sealed)>> {
        self.read().await?.media().opened_with_md5(bot_id, md5, MAX_EARLIER_KEYS).await
    }

    async fn settle_media(&self, settled: SettledMedia) -> Result<bool> {
        self.write(move |tx| async move { tx.media().settle(&settled).await }.boxed()).await
    }

    async fn backlog(
        &self,
        lease: &Lease,
        full: &[SinkKey],
        now: Timestamp,
        limit: u32,
    ) -> Result<BacklogRows> {
        let mut read = self.read().await?;
        let (bot_id, fence) = (lease.bot_id, lease.fence);
        let messages = read.deliveries().backlog(bot_id, fence, full, now, limit).await?;
        let events = read.deliveries().event_backlog(bot_id, fence, full, now, limit).await?;
        Ok(BacklogRows { messages, events })
    }

    async fn event(&self, id: AppEventId) -> Result<Option<DueEvent>> {
        self.read().await?.app_events().due(id).await
    }

    async fn finish_event(&self, finished: FinishedEvent) -> Result<()> {
        Self::finish_event(self, finished).await.map(drop)
    }

    async fn claim(&self, ids: Vec<DeliveryId>, fence: i64) -> Result<HashSet<DeliveryId>> {
        self.write(move |tx| async move { tx.deliveries().claim(&ids, fence).await }.boxed()).await
    }

    async fn disclaim(&self, ids: Vec<DeliveryId>, fence: i64) -> Result<()> {
        self.write(move |tx| async move { tx.deliveries().disclaim(&ids, fence).await }.boxed()).await
    }

    async fn finish(&self, finished: Arc<Finished>) -> Result<Option<Permit>> {
        Self::finish(self, finished).await
    }

    async fn abandon(
        &self,
        id: DeliveryId,
        fence: i64,
        reason: String,
        now: Timestamp,
        trace: TraceUpdate,
    ) -> Result<bool> {
        self.write(move |tx| {
            async move { tx.deliveries().abandon(id, fence, &reason, now, &trace).await }.boxed()
        })
        .await
    }

    async fn ai_config(&self) -> Result<Option<AiConfigRow>> {
        self.read().await?.ai().config().await
    }

    async fn conversation(&self, query: &ConversationQuery) -> Result<Conversation> {
        self.read().await?.ai().conversation(query).await
    }

    async fn known_keys(&self, bot_id: BotId, keys: &[String]) -> Result<Vec<String>> {
        self.read().await?.outbox().known(bot_id, keys).await
    }

    async fn reply(&self, lease: &Lease, replies: Vec<NewOutbound>) -> Result<bool> {
        let lease = lease.clone();
        self.write(move |tx| {
            async move {
                if !tx.leases().is_current(&lease).await? {
                    return Ok(false);
                }
                tx.outbox().enqueue(&replies).await?;
                Ok(true)
            }
            .boxed()
        })
        .await
    }

    async fn people_to_write(
        &self,
        bot_id: BotId,
        after: &str,
        rules: &WindowRules,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<String>> {
        self.read().await?.sending().people(bot_id, after, rules, now, limit).await
    }

    async fn open_items(
        &self,
        bot_id: BotId,
        people: &[String],
        rules: &WindowRules,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<OpenItem>> {
        self.read().await?.sending().open(bot_id, people, rules, now, limit).await
    }

    async fn begin_send(&self, begun: Begun) -> Result<bool> {
        Self::begin_send(self, begun).await
    }

    async fn settle_send(&self, settled: Settled) -> Result<bool> {
        Self::settle_send(self, settled).await
    }
}
