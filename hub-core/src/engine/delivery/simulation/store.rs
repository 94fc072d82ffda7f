//! [`WorkStore`] over [`Tables`], with the simulation as the committer: a write waits until it is committed, lost, or
//! committed without a response.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::oneshot;

use super::{
    tables::Tables,
    world::{Shared, World},
};
use crate::{
    apps::AppRuntime,
    bots::BotStatus,
    channels::ChannelRecord,
    delivery::work_store::{BacklogRows, WorkStore},
    error::{Error, ErrorCode, Result},
    id::{
        AppEventId, BotId, ChannelId, DeliveryId, Ids, MediaId, MessageId, NodeId, PluginVersionId, UserId,
    },
    media::FileStore,
    model::{message::QuotedMessage, sinks::SinkKey},
    network::WindowRules,
    secret::Sealed,
    store::{
        ai::{AiConfigRow, Conversation, ConversationQuery},
        app_events::DueEvent,
        bots::Answered,
        channel_plugins::InstalledRow,
        deliveries::{Finished, FinishedEvent},
        due::{Followed, Reading},
        inbox::{Accept, Accepted},
        leases::{self, Extended, Lease, NodeEntry, WorkRow},
        media::{MediaRow, SettledMedia},
        outbox::NewOutbound,
        sending::{Begun, OpenItem, Permit, Settled},
        traces::TraceUpdate,
    },
    time::{Clock, Timestamp},
};

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitResult {
    /// Committed, and the caller is notified.
    Committed,
    /// Not committed, and the caller gets an error.
    Failed,
    /// Committed, and the caller gets an error: the connection broke before the response.
    Unacknowledged,
}

type Command = Box<dyn FnOnce(&mut Tables, CommitResult) + Send>;

/// A write that waits for the committer.
pub struct Waiting {
    pub node: usize,
    what: &'static str,
    run: Command,
}

impl Waiting {
    pub fn end(self, tables: &mut Tables, result: CommitResult) -> &'static str {
        (self.run)(tables, result);
        self.what
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

/// One node's connection to the tables.
#[derive(Debug, Clone)]
pub struct ModelStore {
    pub world: Shared,
    pub node: usize,
    /// The node's own clock.
    pub clock: Clock,
    /// Whether several nodes share the tables, as on PostgreSQL.
    pub shared: bool,
}

fn unavailable() -> Error {
    Error::new(ErrorCode::Unavailable, "the store is busy")
}

fn read(clock: &Clock) -> Reading {
    Reading { at: clock.instant(), wall: clock.now() }
}

impl ModelStore {
    async fn write<T: Send + 'static>(
        &self,
        what: &'static str,
        command: impl FnOnce(&mut Tables) -> T + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let run = Box::new(move |tables: &mut Tables, result| {
            let outcome = match result {
                CommitResult::Committed => Ok(command(tables)),
                CommitResult::Failed => Err(unavailable()),
                CommitResult::Unacknowledged => {
                    command(tables);
                    Err(unavailable())
                }
            };
            // The caller may be gone.
            let _ = reply.send(outcome);
        });
        self.world.lock().submit(Waiting { node: self.node, what, run });
        answer.await.unwrap_or_else(|_| Err(unavailable()))
    }

    /// Reads at once; sometimes what was read is a little old when the caller gets it, and sometimes there is
    /// no connection.
    async fn read<T>(&self, query: impl FnOnce(&World) -> T) -> Result<T> {
        let (delay, found) = {
            let world = self.world.lock();
            if world.faults.reads && world.chance(20) {
                return Err(unavailable());
            }
            let delay = world.faults.slow_reads && world.chance(8);
            (delay.then(|| Duration::from_millis(world.below(300))), query(&world))
        };
        if let Some(delay) = delay {
            self.clock.sleep(delay).await;
        }
        Ok(found)
    }
}

#[async_trait]
impl FileStore for ModelStore {
    fn now(&self) -> Timestamp {
        self.world.lock().now()
    }

    async fn bytes_of(&self, _: UserId) -> Result<i64> {
        Ok(0)
    }

    async fn find_media(&self, _: MediaId) -> Result<Option<MediaRow>> {
        Ok(None)
    }

    async fn media_of(&self, _: &[MessageId]) -> Result<Vec<MediaRow>> {
        Ok(Vec::new())
    }

    async fn insert_media(&self, _: MediaRow) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl WorkStore for ModelStore {
    fn is_shared(&self) -> bool {
        self.shared
    }

    async fn sync_clock(&self) -> Result<()> {
        Ok(())
    }

    async fn void_leases(&self) -> Result<()> {
        self.write("void leases", Tables::void_leases).await
    }

    async fn release_leases(&self, node: NodeId) -> Result<()> {
        self.write("release leases", move |tables| tables.release_leases(node)).await
    }

    async fn give_up_leases(&self, leases: Vec<Lease>) -> Result<()> {
        self.write("give up leases", move |tables| tables.give_up_leases(&leases)).await
    }

    async fn announce_release(&self, _: NodeId) {}

    async fn hand_over(&self, leases: Vec<Lease>, to: NodeId) -> Result<()> {
        let clock = self.clock.clone();
        self.write("hand over", move |tables| tables.hand_over(&leases, to, read(&clock).wall)).await
    }

    async fn extend_leases(
        &self,
        node: &NodeEntry,
        lease: Duration,
        before: Option<Followed>,
        _take: u32,
    ) -> Result<Extended> {
        self.world.lock().nodes.insert(self.node, node.id);
        let (node, clock) = (node.clone(), self.clock.clone());
        self.write("extend leases", move |tables| {
            let reading = read(&clock);
            let (followed, step) = tables.follow_clock(before, reading);
            let held = tables.extend_leases(&node, reading.wall, reading.wall + lease);
            let surplus = leases::surplus(node.id, &tables.shares(reading.wall));
            Extended { held, is_full: false, followed, step, surplus, unserved: Vec::new() }
        })
        .await
    }

    async fn any_free_bot(&self, _: &[String], now: Timestamp) -> Result<bool> {
        self.read(|world| world.tables.bots.values().any(|bot| bot.until <= now)).await
    }

    async fn work(&self, lease: &Lease) -> Result<Option<WorkRow>> {
        self.read(|world| world.tables.work(lease)).await
    }

    async fn with_work(&self, node: NodeId, now: Timestamp) -> Result<(Vec<BotId>, Vec<BotId>)> {
        self.read(|world| world.tables.with_work(node, now)).await
    }

    async fn is_held(&self, bot_id: BotId) -> Result<bool> {
        self.read(|world| world.tables.bots[&bot_id].owner.is_some()).await
    }

    async fn channels(&self, bot_id: BotId) -> Result<(i64, Vec<ChannelRecord>)> {
        self.read(|world| {
            let channels = world.tables.channels.values().filter(|channel| channel.bot_id == bot_id);
            (world.tables.bots[&bot_id].config_rev, channels.cloned().collect())
        })
        .await
    }

    /// The model has no plugins: what they do needs a sandbox, which has no place in a repeatable run.
    async fn plugins(&self, _: BotId) -> Result<(Vec<InstalledRow>, Vec<(PluginVersionId, String)>)> {
        Ok((Vec::new(), Vec::new()))
    }

    async fn pause_plugin(&self, _: ChannelId, _: PluginVersionId, _: String) -> Result<bool> {
        Ok(false)
    }

    async fn apps(&self, bot_id: BotId) -> Result<Vec<AppRuntime>> {
        self.read(|world| {
            let apps = world.tables.apps.values().map(|app| &app.runtime);
            apps.filter(|app| app.app.bot_id == bot_id).cloned().collect()
        })
        .await
    }

    async fn set_status(
        &self,
        lease: &Lease,
        status: BotStatus,
        _reason: Option<String>,
        _: &Ids,
        _now: Timestamp,
    ) -> Result<bool> {
        let Lease { bot_id, fence } = *lease;
        self.write("set status", move |tables| {
            let is_current = !tables.is_fenced(bot_id, fence);
            if let Some(bot) = tables.bots.get_mut(&bot_id).filter(|_| is_current) {
                bot.status = status;
            }
            is_current
        })
        .await
    }

    async fn note_poll(&self, _lease: &Lease, _error: String) -> Result<()> {
        self.write("note poll", |_| ()).await
    }

    async fn note_answers(&self, _answers: Vec<Answered>) -> Result<()> {
        Ok(())
    }

    async fn quoted(&self, _bot_id: BotId, _ids: &[&str]) -> Result<HashMap<String, QuotedMessage>> {
        self.read(|_| HashMap::new()).await
    }

    async fn names(&self, _bot_id: BotId, _users: &[&str]) -> Result<HashMap<String, String>> {
        self.read(|_| HashMap::new()).await
    }

    async fn accept(&self, batch: Accept) -> Result<Accepted> {
        self.write("accept", move |tables| tables.accept(&batch)).await
    }

    // No one in this world sends files.
    async fn downloading(&self, _: BotId, _: u32) -> Result<Vec<MediaRow>> {
        Ok(Vec::new())
    }

    async fn opened_with_md5(&self, _: BotId, _: &str) -> Result<Vec<(MediaId, Sealed)>> {
        Ok(Vec::new())
    }

    async fn settle_media(&self, _: SettledMedia) -> Result<bool> {
        Ok(false)
    }

    async fn backlog(
        &self,
        lease: &Lease,
        full: &[SinkKey],
        now: Timestamp,
        limit: u32,
    ) -> Result<BacklogRows> {
        self.read(|world| world.tables.backlog(lease, full, now, limit)).await
    }

    async fn event(&self, id: AppEventId) -> Result<Option<DueEvent>> {
        self.read(|world| world.tables.event(id)).await
    }

    async fn finish_event(&self, finished: FinishedEvent) -> Result<()> {
        let clock = self.clock.clone();
        self.write("finish event", move |tables| tables.finish_event(finished, read(&clock))).await
    }

    async fn claim(&self, ids: Vec<DeliveryId>, fence: i64) -> Result<HashSet<DeliveryId>> {
        self.write("claim", move |tables| tables.claim(&ids, fence)).await
    }

    async fn disclaim(&self, ids: Vec<DeliveryId>, fence: i64) -> Result<()> {
        self.write("disclaim", move |tables| tables.disclaim(&ids, fence)).await
    }

    async fn finish(&self, finished: Arc<Finished>) -> Result<Option<Permit>> {
        let clock = self.clock.clone();
        self.write("finish", move |tables| tables.finish(finished, read(&clock))).await
    }

    async fn abandon(
        &self,
        id: DeliveryId,
        fence: i64,
        _reason: String,
        _now: Timestamp,
        _trace: TraceUpdate,
    ) -> Result<bool> {
        self.write("abandon", move |tables| tables.abandon(id, fence)).await
    }

    async fn ai_config(&self) -> Result<Option<AiConfigRow>> {
        self.read(|_| None).await
    }

    async fn conversation(&self, _query: &ConversationQuery) -> Result<Conversation> {
        self.read(|_| Conversation::default()).await
    }

    async fn known_keys(&self, _: BotId, _: &[String]) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    async fn reply(&self, lease: &Lease, replies: Vec<NewOutbound>) -> Result<bool> {
        let lease = lease.clone();
        self.write("reply", move |tables| tables.reply(&lease, &replies)).await
    }

    async fn people_to_write(
        &self,
        bot_id: BotId,
        after: &str,
        rules: &WindowRules,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<String>> {
        let people = self.read(|world| world.tables.people_to_write(bot_id, after, rules, now)).await?;
        Ok(people.into_iter().take(limit as usize).collect())
    }

    async fn open_items(
        &self,
        bot_id: BotId,
        people: &[String],
        rules: &WindowRules,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<OpenItem>> {
        let items = self.read(|world| world.tables.open_items(bot_id, rules, now)).await?;
        let items = items.into_iter().filter(|item| people.contains(&item.peer));
        Ok(items.take(limit as usize).collect())
    }

    async fn begin_send(&self, begun: Begun) -> Result<bool> {
        self.write("begin", move |tables| tables.begin(&begun.lease, begun.id, &begun.peer)).await
    }

    async fn settle_send(&self, settled: Settled) -> Result<bool> {
        let clock = self.clock.clone();
        self.write("settle", move |tables| tables.settle(settled, read(&clock))).await
    }
}
