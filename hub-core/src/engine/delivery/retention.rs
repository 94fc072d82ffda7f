//! Deletes traces, messages, files and expired one-time records after their retention time, in small batches.

use std::time::Duration;

use crate::{
    accounts::Accounts, context::Context, error::Result, model::app_event::socket_wait, store::DeletedBatch,
    tasks::Tasks, time::Timestamp,
};

/// Time between two rounds.
const RETENTION_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// Most rows of each kind that one transaction visits, so that none takes long.
const BATCH_SIZE: u32 = 500;
/// Days for which the usage of models is kept.
const USAGE_DAYS: i64 = 400;

pub(super) fn start(ctx: &Context, tasks: &Tasks) {
    let (ctx, own) = (ctx.clone(), tasks.clone());
    tasks.supervise("retention", ctx.clock.clone(), move || retain(ctx.clone(), own.clone()));
}

/// Time for which an authorization code is kept after it expires: presenting it again revokes its token.
const CODE_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

async fn retain(ctx: Context, tasks: Tasks) {
    loop {
        if let Err(error) = retain_once(&ctx, &tasks).await {
            tracing::warn!(%error, "retention failed");
        }
        tokio::select! {
            () = ctx.clock.sleep(RETENTION_INTERVAL) => {}
            () = tasks.stop_token().cancelled() => return,
        }
    }
}

async fn retain_once(ctx: &Context, tasks: &Tasks) -> Result<()> {
    failpoint!("retention.round");
    let now = ctx.store.now();
    let ages =
        Ages { traces: now - ctx.config.trace_retention, messages: now - ctx.config.message_retention };
    forget(ctx, tasks, ages).await.map(|_| ())
}

/// Times before which data is deleted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ages {
    /// Traces, calls of apps, and events for apps.
    pub traces: Timestamp,
    /// Messages.
    pub messages: Timestamp,
}

/// Numbers of deleted rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Traces deleted before their messages.
    pub traces: u64,
    /// Messages, with their deliveries and traces.
    pub messages: u64,
    /// Entries in the log of apps' calls.
    pub app_calls: u64,
    /// Entries in the log of events for apps.
    pub app_events: u64,
}

/// Deletes data older than `ages` until none is left or the hub stops.
pub(crate) async fn forget(ctx: &Context, tasks: &Tasks, ages: Ages) -> Result<Forgotten> {
    let now = ctx.store.now();
    let usage_day = now.as_days() - USAGE_DAYS;
    let mut forgotten = Forgotten::default();
    let (mut traces, mut messages) = (Some(String::new()), Some(String::new()));
    loop {
        let (after_trace, after_message) = (traces.take(), messages.take());
        let (pieces, gone, others) = ctx
            .store
            .write(move |tx| {
                Box::pin(async move {
                    failpoint!("retention.traces");
                    let traces = match after_trace {
                        Some(after) => tx.traces().delete_before(&after, ages.traces, BATCH_SIZE).await?,
                        None => DeletedBatch::default(),
                    };
                    failpoint!("retention.messages");
                    let messages = match after_message {
                        Some(after) => {
                            tx.sending().delete_messages_before(&after, ages.messages, BATCH_SIZE).await?
                        }
                        None => DeletedBatch::default(),
                    };
                    let app_calls = tx.app_calls().delete_before(ages.traces, BATCH_SIZE).await?;
                    let app_events = tx.app_events().delete_before(ages.traces, BATCH_SIZE).await?;
                    let unheard = tx.app_events().expire(now - socket_wait(), now, BATCH_SIZE).await?;
                    let codes = tx.app_codes().delete_before(now - CODE_RETENTION, BATCH_SIZE).await?;
                    let usage = tx.ai().delete_usage_before(usage_day, BATCH_SIZE).await?;
                    let gone = Forgotten {
                        traces: traces.deleted,
                        messages: messages.deleted,
                        app_calls,
                        app_events,
                    };
                    Ok(((traces.last, messages.last), gone, codes.max(usage).max(unheard)))
                })
            })
            .await?;
        (traces, messages) = pieces;
        forgotten.traces += gone.traces;
        forgotten.messages += gone.messages;
        forgotten.app_calls += gone.app_calls;
        forgotten.app_events += gone.app_events;
        let others = others.max(gone.app_calls).max(gone.app_events);
        let others = others.max(Accounts::new(ctx).delete_expired(BATCH_SIZE).await?);
        let more = traces.is_some() || messages.is_some() || others >= u64::from(BATCH_SIZE);
        if !more || tasks.stopping() {
            break;
        }
    }
    crate::media::sweep(ctx, tasks).await?;
    Ok(forgotten)
}
