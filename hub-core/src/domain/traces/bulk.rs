//! Replays of many traces at once.
//!
//! The deliveries are stored with the replay in one transaction: they are the queue, so that a restart loses nothing,
//! and the progress is counted from their traces.

use std::collections::{BTreeSet, HashMap};

use futures_util::FutureExt as _;
use serde_json::json;

use super::{Traces, open_deliveries, replay};
use crate::{
    access::Actor,
    error::{Error, Result},
    id::{ReplayId, TraceId, UserId},
    idempotency::{self, Idempotent},
    model::{
        audit::Action,
        cause::Cause,
        channel::decode,
        message::Direction,
        replay::{BulkReplay, RefusedReplay, ReplaySource},
        sinks::{SinkId, WebhookSettings},
        trace::TraceSearch,
    },
    page::{MAX_LIMIT, PageRequest},
    store::deliveries::Replay,
    wake::Hint,
};

/// Traces of one replay at most.
pub const MAX_REPLAYED: usize = 1_000;

/// Pages of traces that the filter of a replay reads at most.
const MAX_PAGES: usize = 100;

/// Replays of a user that are kept: the newest ones.
const MAX_KEPT: u32 = 100;

/// Traces to replay.
#[derive(Debug, Clone)]
pub enum ReplaySelection {
    /// These.
    Ids(Vec<TraceId>),
    /// Those that a search finds.
    Matching(Box<TraceSearch>),
}

/// Options of a bulk replay.
#[derive(Debug, Clone, Copy, Default)]
pub struct BulkOptions<'a> {
    /// URL instead of that of each channel's webhook.
    pub to: Option<&'a str>,
    /// Whether replays take the place of deliveries that wait, which are cancelled in the same commit.
    pub supersede: bool,
    /// Whether to count only.
    pub dry_run: bool,
}

impl Traces<'_> {
    /// Delivers the messages of many traces again, each through the same channel as it is configured now, optionally to
    /// another URL. Traces that cannot be replayed are reported: also those with a delivery to the same receiver that is
    /// in flight, or waits and is not superseded. A dry run only counts.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is a user. `INVALID_PARAMS` for no trace, for more than [`MAX_REPLAYED`], for a
    /// filter that would read too much and for a bad URL; `CONFLICT` when the key was used for another request.
    pub async fn replay_all(
        &self,
        actor: &Actor,
        selection: ReplaySelection,
        BulkOptions { to, supersede, dry_run }: BulkOptions<'_>,
        idempotency_key: Option<&str>,
    ) -> Result<BulkReplay> {
        let owner = actor.user()?.user_id;
        let wanted = (format!("{selection:?}"), to, supersede, dry_run);
        let once = Idempotent::read(self.ctx, actor, "replay.start", &wanted, idempotency_key)?;
        if let Some(key) = &once
            && let Some(first) = key.first_answer(&mut self.ctx.store.read().await?).await?
        {
            return Ok(first);
        }
        let target = to.map(|to| self.ctx.egress.check_url(to)).transpose()?;
        let shown = target.as_ref().map(replay::shown);
        let ids = match selection {
            ReplaySelection::Ids(ids) => ids.into_iter().collect(),
            ReplaySelection::Matching(search) => self.matching(actor, &search).await?,
        };
        let field = "trace_ids";
        if ids.is_empty() {
            return Err(Error::invalid(field, "match no trace"));
        }
        if ids.len() > MAX_REPLAYED {
            return Err(Error::invalid(field, "must be at most 1000 traces; narrow the filter"));
        }
        let ids: Vec<TraceId> = ids.into_iter().collect();
        let now = self.ctx.store.now();
        let (to, new_ids) = (to.map(str::to_owned), self.ctx.ids.clone());
        let plan = move |sources: Vec<ReplaySource>, ids: &[TraceId]| {
            let (accepted, refused) = plan(sources, ids, to.is_some());
            let replays = accepted.into_iter().map(|(source, channel_id)| Replay {
                id: new_ids.next(),
                message_id: source.message_id,
                bot_id: source.bot_id,
                channel_id,
                sink: SinkId::Webhook,
                target_url: to.clone(),
                now,
                trace: replay::new_trace(
                    new_ids.next(),
                    (source.id, source.message_id, source.bot_id, channel_id),
                    now,
                    shown.clone(),
                ),
            });
            (replays.collect::<Vec<_>>(), refused)
        };
        if dry_run {
            let mut read = self.ctx.store.read().await?;
            let (replays, refused) = plan(read.replays().sources(owner, &ids).await?, &ids);
            let messages: Vec<_> = replays.iter().map(|replay| replay.message_id).collect();
            let open = read.deliveries().open_of(&messages).await?;
            let admitted = open_deliveries::admit(replays, &open, supersede);
            let mut replay = BulkReplay::new(None, now, all_refused(refused, admitted.refused));
            replay.total = admitted.replays.len() as u64;
            return Ok(replay);
        }
        let id: ReplayId = self.ctx.ids.next();
        let entry = target.map(|target| {
            let origin = target.as_url().origin().ascii_serialization();
            (self.ctx.audit(actor, Action::ReplayedToUrl).target(id, ""), origin)
        });
        let replay = idempotency::write_once(&self.ctx.store, once, move |tx| {
            async move {
                let sources = tx.replays().sources(owner, &ids).await?;
                let (replays, refused) = plan(sources, &ids);
                let admitted = open_deliveries::make_way(tx, replays, supersede, now).await?;
                let refused = all_refused(refused, admitted.refused);
                tx.replays().insert(id, owner, (&admitted.replays, &refused), (now, MAX_KEPT)).await?;
                if let Some((entry, origin)) = entry {
                    let detail = json!({ "traces": admitted.replays.len(), "origin": origin });
                    tx.audit().add(&entry.detail(detail)).await?;
                }
                tx.replays().find(owner, id).await?.ok_or_else(|| Error::not_found("replay"))
            }
            .boxed()
        })
        .await?;
        self.wake(owner, &replay).await?;
        Ok(replay)
    }

    /// A replay with its progress. The newest 100 replays of a user are kept.
    ///
    /// # Errors
    /// `NOT_FOUND` unless it is the actor's; `FORBIDDEN` unless the caller is a user.
    pub async fn bulk_replay(&self, actor: &Actor, id: ReplayId) -> Result<BulkReplay> {
        let owner = actor.user()?.user_id;
        let found = self.ctx.store.read().await?.replays().find(owner, id).await?;
        found.ok_or_else(|| Error::not_found("replay"))
    }

    /// The ids that a search finds: at most one more than are allowed.
    async fn matching(&self, actor: &Actor, search: &TraceSearch) -> Result<BTreeSet<TraceId>> {
        let list = Self::search_list(actor, search);
        let (mut ids, mut cursor) = (BTreeSet::new(), None::<String>);
        for _ in 0..MAX_PAGES {
            let page = PageRequest::parse(&list, Some(MAX_LIMIT), cursor.as_deref())?;
            let page = self.search(actor, search, &page).await?;
            ids.extend(page.items.iter().map(|trace| trace.trace_id));
            cursor = page.next_cursor;
            if cursor.is_none() || ids.len() > MAX_REPLAYED {
                return Ok(ids);
            }
        }
        Err(Error::invalid("filter", "would read too many traces; narrow it by time, bot or channel"))
    }

    /// Tells the bots of a new replay that there is work.
    async fn wake(&self, owner: UserId, replay: &BulkReplay) -> Result<()> {
        if replay.pending == 0 {
            return Ok(());
        }
        for bot in self.ctx.store.read().await?.replays().bots_of(owner, replay.id).await? {
            self.ctx.node.wake.hint(Hint::Delivery(bot));
        }
        Ok(())
    }
}

/// Adds the traces that were not admitted to those that are not replayed.
fn all_refused(mut refused: Vec<RefusedReplay>, not_admitted: Vec<(Replay, String)>) -> Vec<RefusedReplay> {
    let sources =
        not_admitted.into_iter().filter_map(|(replay, reason)| Some((replay.trace.replay_of?, reason)));
    refused.extend(sources.map(|(trace_id, reason)| RefusedReplay { trace_id, reason }));
    refused
}

/// Splits the wanted traces into those that can be replayed, with their channels, and the others, with the reasons.
fn plan(
    sources: Vec<ReplaySource>,
    wanted: &[TraceId],
    has_target: bool,
) -> (Vec<(ReplaySource, crate::id::ChannelId)>, Vec<RefusedReplay>) {
    let mut found: HashMap<TraceId, ReplaySource> =
        sources.into_iter().map(|source| (source.id, source)).collect();
    let (mut accepted, mut refused) = (Vec::new(), Vec::new());
    for &trace_id in wanted {
        let checked = found.remove(&trace_id).ok_or(Cause::NoSuchTrace).and_then(|source| {
            let channel = source.channel_id.ok_or(Cause::TraceWithoutChannel)?;
            if source.direction == Direction::Outbound {
                return Err(Cause::TraceOfSend);
            }
            let settings = source.webhook.as_deref().map(decode::<WebhookSettings>);
            let is_on = matches!(settings, Some(Ok(settings)) if settings.enabled && source.webhook_disabled.is_none());
            if has_target || is_on {
                return Ok((source, channel));
            }
            Err(Cause::SinkOff { sink: SinkId::Webhook.to_string() })
        });
        match checked {
            Ok(replayed) => accepted.push(replayed),
            Err(cause) => refused.push(RefusedReplay { trace_id, reason: cause.to_string() }),
        }
    }
    (accepted, refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        error::ErrorCode,
        model::{sinks::WebhookUpdate, trace::TraceStatus},
        testing::{Receiver, TestHub},
        traces::TraceQuery,
    };

    const DRY: BulkOptions<'static> = BulkOptions { to: None, supersede: false, dry_run: true };

    #[tokio::test]
    async fn many_traces_are_replayed_once_per_key_with_progress() {
        let shop = Receiver::new();
        let mut hub = TestHub::builder().receiver("shop.test", &shop).start().await;
        let (ada, eve) = (hub.register("ada").await, hub.register("eve").await);
        let bot = hub.bind(&ada).await;
        let webhook = WebhookUpdate { url: "http://shop.test/orders".to_owned(), ..WebhookUpdate::default() };
        hub.webhook_channel(&ada, bot.id, "orders", webhook).await;
        for text in ["order 1", "order 2"] {
            hub.say(&bot, text);
        }
        let done = hub
            .until("two deliveries", async || {
                let query = TraceQuery { status: Some(TraceStatus::Ok), ..TraceQuery::default() };
                let traces = hub.traces(&ada, bot.id, &query).await;
                (traces.len() == 2).then_some(traces)
            })
            .await;
        let traces = hub.hub().traces();
        let mut ids: Vec<TraceId> = done.iter().map(|trace| trace.trace_id).collect();
        ids.push(TraceId::MAX);
        let all = ReplaySelection::Ids(ids.clone());
        let dry = traces.replay_all(&ada, all.clone(), DRY, None).await.unwrap();
        assert_eq!((dry.id, dry.total, dry.refused.len()), (None, 2, 1));
        assert_eq!(dry.refused[0].trace_id, TraceId::MAX);
        assert_eq!(shop.bodies().len(), 2, "a dry run delivers nothing");

        let key = Some("once");
        let started = traces.replay_all(&ada, all.clone(), BulkOptions::default(), key).await.unwrap();
        let again = traces.replay_all(&ada, all.clone(), BulkOptions::default(), key).await.unwrap();
        assert_eq!((started.id, started.total), (again.id, 2));
        let id = started.id.unwrap();
        let ended = hub
            .until("the replay's end", async || {
                let replay = hub.hub().traces().bulk_replay(&ada, id).await.unwrap();
                (replay.pending == 0).then_some(replay)
            })
            .await;
        assert_eq!((ended.ok, ended.error, ended.refused), (2, 0, started.refused));
        assert_eq!(shop.bodies().len(), 4, "the key was used once");

        let matching = ReplaySelection::Matching(Box::new(TraceSearch {
            bot_id: Some(bot.id),
            ..TraceSearch::default()
        }));
        let dry = traces.replay_all(&ada, matching.clone(), DRY, None).await.unwrap();
        assert_eq!((dry.total, dry.refused.len()), (2, 2), "each message is replayed once");
        let none = traces.replay_all(&eve, matching, DRY, None).await.unwrap_err();
        assert_eq!(none.details()[0].field, "trace_ids");
        let theirs = traces.replay_all(&eve, all, DRY, None).await.unwrap();
        assert_eq!((theirs.total, theirs.refused.len()), (0, 3));
        assert_eq!(traces.bulk_replay(&eve, id).await.unwrap_err().code(), ErrorCode::NotFound);
        let too_many = ReplaySelection::Ids((0..1_001).map(TraceId::from_u128).collect());
        let refused = traces.replay_all(&ada, too_many, DRY, None).await.unwrap_err();
        assert_eq!(refused.details()[0].field, "trace_ids");

        hub.restart().await;
        let kept = hub.hub().traces().bulk_replay(&ada, id).await.unwrap();
        assert_eq!(kept.ok, 2, "a restart keeps the progress");
    }
}
