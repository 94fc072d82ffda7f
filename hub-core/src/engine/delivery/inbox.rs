//! From the network's answer to committed work: dedupe keys, quotes, routes, then one transaction. Nothing is
//! dispatched, and no cursor moves, before that commit.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, atomic::Ordering},
    time::Duration,
};

use super::{
    bot::BotWork,
    bots::Bots,
    job::{Delivery, Job},
    queue::Queue,
    routing::{
        BatchContext, Routed, RoutedChannel, RoutedDelivery, RoutedEvent, Router, lane_of, log_row, status_of,
    },
    work_store::WorkStore,
};
use crate::{
    error::{ErrorCode, Result},
    events::Event,
    invariants::invariant,
    model::{
        cause::Cause,
        message::QuotedMessage,
        sinks::{SinkKey, SinkKind},
    },
    network::{Batch, InboundMessage, MessageClass, MessageKind},
    node::{LogEntry, Node},
    store::inbox::{Accept, Accepted},
    time::Clock,
    wake::Hint,
};

/// Pause after the store could not accept a batch.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Result of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intake {
    /// Committed and dispatched.
    Done,
    /// Another node works for the bot now: stop polling.
    Lost,
}

/// Stores what bots receive.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) store: Arc<dyn WorkStore>,
    pub(super) clock: Clock,
    pub(super) node: Node,
    pub(super) router: Router,
    pub(super) queue: Arc<Queue>,
    pub(super) bots: Arc<Bots>,
}

impl Inbox {
    /// Commits a batch and adds its deliveries to the lanes. A batch that the store rejects because of its content is
    /// stored message by message, and a message that is rejected alone is quarantined: whatever one message contains,
    /// the others arrive and the cursor moves on.
    pub(super) async fn accept(&self, bot: &BotWork, batch: Batch) -> Result<Intake> {
        let refused = match self.accept_with_retry(bot, &batch).await {
            Err(error) if !batch.messages.is_empty() => error,
            taken => return taken,
        };
        bot.report("the store rejected a batch; its messages are stored one by one", &refused);
        for message in batch.messages {
            let alone = |message| Batch { messages: vec![message], cursor: None, answered: true };
            let batch = alone(message);
            let taken = match self.accept_with_retry(bot, &batch).await {
                Err(error) => {
                    bot.report("the store rejected a message; it is quarantined", &error);
                    let quarantined = batch.messages.into_iter().map(quarantine).next().map(alone);
                    self.accept_with_retry(bot, &quarantined.unwrap_or_default()).await?
                }
                Ok(taken) => taken,
            };
            if taken == Intake::Lost {
                return Ok(taken);
            }
        }
        self.accept_with_retry(bot, &Batch { messages: Vec::new(), cursor: batch.cursor, answered: true })
            .await
    }

    /// Whether a webhook of the bot is [crowded](super::lanes::Lanes::is_crowded).
    pub(super) fn is_crowded(&self, bot: &BotWork) -> bool {
        let (now, channels) = (self.clock.instant(), bot.channels());
        let lanes = self.queue.lanes(SinkKind::Webhook);
        channels.sinks(SinkKind::Webhook).any(|key| lanes.is_crowded(key, now))
    }

    /// Notes that a bot's network answered with nothing new; stored within about a second.
    pub(super) fn note_answer(&self, bot: &BotWork) {
        self.bots.note_answer(&bot.lease, self.store.now());
    }

    /// Waits and retries as long as the store cannot read or write: the network's cursor does not move meanwhile.
    async fn accept_with_retry(&self, bot: &BotWork, batch: &Batch) -> Result<Intake> {
        loop {
            match self.commit_batch(bot, batch).await {
                Ok(Some(intake)) => return Ok(intake),
                Ok(None) => {}
                Err(error) if error.code() == ErrorCode::Unavailable => {
                    tracing::warn!(bot_id = %bot.lease.bot_id, "the store cannot accept messages; retrying");
                    self.clock.sleep(RETRY_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
            if bot.tasks.stopping() {
                return Ok(Intake::Lost);
            }
        }
    }

    /// One transaction. `None` when the channels changed after they were loaded; they are loaded again then.
    async fn commit_batch(&self, bot: &BotWork, batch: &Batch) -> Result<Option<Intake>> {
        failpoint!("intake.before");
        let mut known =
            BatchContext { quoted: self.quoted(bot, batch).await?, names: self.names(bot, batch).await? };
        let has_quotes = batch.messages.iter().any(|message| message.quote.is_some());
        // Held over the commit: the backlog scan of this bot must not run between the decision who holds a
        // delivery and its row.
        let mut unloaded = bot.unloaded.lock().await;
        let channels = bot.channels();
        let now = self.store.now();
        let mut routed = Vec::with_capacity(batch.messages.len());
        let mut messages = Vec::with_capacity(batch.messages.len());
        for message in &batch.messages {
            let claims = |key: SinkKey| {
                let held = !unloaded.includes(key) && self.queue.lanes(key.kind()).room(key);
                if !held {
                    unloaded.add(key);
                }
                held
            };
            let (row, work) = self.router.route(bot, &channels, message, &known, now, claims);
            if has_quotes {
                known.add(message, &work.content);
            }
            messages.push(row);
            routed.push(work);
        }
        let accept = Accept {
            bot_id: bot.lease.bot_id,
            fence: bot.lease.fence,
            config_rev: channels.config_rev,
            cursor: batch.cursor.clone(),
            now,
            is_read_at_once: channels
                .channels
                .iter()
                .any(|one| self.node.channel_listeners.has_ilink_polls(one.id)),
            messages,
        };
        match self.store.accept(accept).await {
            Ok(Accepted::Stored(stored)) => {
                failpoint!("intake.committed", passed);
                if !self.numbers_grow(bot, &routed, &stored) {
                    // Nothing is lost: no node holds the rows after the next start.
                    self.bots.stop(bot, &self.queue, &Cause::LogWentBackwards).await;
                    return Ok(Some(Intake::Lost));
                }
                let fresh = batch.messages.iter().zip(&stored).filter(|(_, seqs)| seqs.is_some());
                fresh.for_each(|(message, _)| {
                    self.node.counters.messages.count(status_of(message.class).as_str());
                    if !message.user_name.is_empty() {
                        bot.names.forget(&message.from_user_id);
                    }
                });
                if batch.messages.iter().any(|message| !message.media.is_empty()) {
                    bot.media_ready.notify_one();
                }
                if let Some(outbox) = bot.outbox() {
                    outbox.wrote(routed.iter().map(|routed| &*routed.content.peer));
                }
                self.dispatch(bot, &batch.messages, routed, &stored);
                Ok(Some(Intake::Done))
            }
            Ok(Accepted::Fenced) => Ok(Some(Intake::Lost)),
            Ok(Accepted::Stale) => {
                drop(unloaded);
                bot.reload_channels().await?;
                Ok(None)
            }
            Err(error) => {
                if error.code() == ErrorCode::Unavailable {
                    unloaded.add_uncertain(routed.iter().flat_map(Routed::held));
                    self.bots.scan_later(bot.lease.bot_id);
                }
                Err(error)
            }
        }
    }

    /// The stored messages that this batch quotes by id: one query for all.
    async fn quoted(&self, bot: &BotWork, batch: &Batch) -> Result<HashMap<String, QuotedMessage>> {
        let ids: Vec<&str> = batch
            .messages
            .iter()
            .filter_map(|message| message.quote.as_ref())
            .filter_map(|quote| quote.network_id.as_deref())
            .collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        self.store.quoted(bot.lease.bot_id, &ids).await
    }

    /// Names of the senders of this batch without a name from the network: one query for all.
    async fn names(&self, bot: &BotWork, batch: &Batch) -> Result<HashMap<String, String>> {
        let nameless = batch.messages.iter().filter(|message| message.user_name.is_empty());
        let mut users: Vec<&str> = nameless.map(|message| message.from_user_id.as_str()).collect();
        users.sort_unstable();
        users.dedup();
        if users.is_empty() {
            return Ok(HashMap::new());
        }
        let remarks = self.node.remarks.load(Ordering::Acquire);
        bot.names.of(&*self.store, bot.lease.bot_id, &users, remarks, self.clock.instant()).await
    }

    /// Whether every channel's log only went on.
    fn numbers_grow(&self, bot: &BotWork, routed: &[Routed], stored: &[Option<Vec<i64>>]) -> bool {
        let mut last = bot.seqs.lock().unwrap_or_else(PoisonError::into_inner);
        let numbered = routed.iter().zip(stored).filter_map(|(routed, seqs)| Some((routed, seqs.as_ref()?)));
        let taken = numbered.flat_map(|(routed, seqs)| routed.channels.iter().zip(seqs));
        taken.filter(|(_, seq)| **seq > 0).all(|(routed, &seq)| {
            let (channel_id, violations) = (routed.channel.id, &self.node.violations);
            let before = last.insert(channel_id, seq).unwrap_or(0);
            invariant!(violations, before < seq, "a channel's cursor grows", %channel_id, before, seq)
        })
    }

    /// After the commit: clients of channels get the messages, and what this node holds goes into its lanes.
    fn dispatch(
        &self,
        bot: &BotWork,
        messages: &[InboundMessage],
        routed: Vec<Routed>,
        stored: &[Option<Vec<i64>>],
    ) {
        let (mut pushed, mut has_events) = (false, false);
        for ((message, routed), seqs) in messages.iter().zip(routed).zip(stored) {
            let Some(seqs) = seqs else { continue };
            has_events |= routed.notifies_apps;
            for RoutedEvent { job, lane, .. } in routed.events.into_iter().filter(|one| one.held) {
                self.queue.push(Delivery::Event(job), &lane, None, None);
                pushed = true;
            }
            let message_id = routed.content.message_id;
            self.node.events.notify(Event::Message { bot_id: bot.lease.bot_id, message_id });
            for (taken, seq) in routed.channels.into_iter().zip(seqs).filter(|(_, seq)| **seq > 0) {
                let RoutedChannel { trace_id, channel, text, deliveries } = taken;
                let entry = || {
                    let row = log_row(&routed.content, message, text.clone(), *seq)?;
                    let token = routed.content.context_token.as_ref();
                    LogEntry::new(row, token, &[], (bot.lease.bot_id, channel.id), self.store.now()).ok()
                };
                if self.node.channel_listeners.committed(channel.id, *seq, entry) {
                    self.node.wake.hint(Hint::Log(channel.id));
                }
                for RoutedDelivery { id, sink, .. } in deliveries.into_iter().filter(|one| one.held) {
                    let job = Job {
                        id,
                        trace_id,
                        bot_id: bot.lease.bot_id,
                        channel_id: channel.id,
                        sink,
                        fence: bot.lease.fence,
                        seq: *seq,
                        is_alone: false,
                        attempts: 0,
                        first_attempt: None,
                        is_followed: false,
                        target_url: None,
                        channel_text: text.clone(),
                        content: Arc::clone(&routed.content),
                        media: Vec::new(),
                    };
                    let lane = lane_of(&channel, &job.content, sink, id);
                    self.queue.push(Delivery::Message(job), &lane, Some(&channel), None);
                    pushed = true;
                }
            }
        }
        if has_events {
            self.node.wake.hint(Hint::AppEvents);
        }
        if pushed {
            self.queue.ready.notify_one();
        }
    }
}

/// A message with nothing in it that could be refused; its original form is kept sealed.
fn quarantine(message: InboundMessage) -> InboundMessage {
    InboundMessage {
        network_id: None,
        class: MessageClass::Quarantined,
        session_id: String::new(),
        group_id: String::new(),
        user_name: String::new(),
        kind: MessageKind::Other,
        content: String::new(),
        items: Vec::new(),
        media: Vec::new(),
        quote: None,
        context_token: None,
        ..message
    }
}
