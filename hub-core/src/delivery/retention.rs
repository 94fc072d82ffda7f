//! Forgetting: traces, messages, files and used-up one-time things go after their time, in small pieces.

use std::time::Duration;

use crate::{accounts::Accounts, context::Context, error::Result, tasks::Tasks};

/// Time between two rounds.
const ROUND: Duration = Duration::from_secs(10 * 60);
/// Rows of one transaction, so that none takes long (reliability P14).
const PIECE: u32 = 500;
/// Days for which it is known what models cost.
const USAGE_DAYS: i64 = 400;

/// Starts forgetting.
pub(super) fn start(ctx: &Context, tasks: &Tasks) {
    let (ctx, own) = (ctx.clone(), tasks.clone());
    tasks.supervise("retention", ctx.clock.clone(), move || retain(ctx.clone(), own.clone()));
}

/// How long a code of an authorization is known after its time: whoever shows it again ends its token.
const CODES_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

async fn retain(ctx: Context, tasks: Tasks) {
    loop {
        if let Err(error) = retain_once(&ctx, &tasks).await {
            tracing::warn!(%error, "forgetting what is old failed");
        }
        tokio::select! {
            () = ctx.clock.sleep(ROUND) => {}
            () = tasks.stop_token().cancelled() => return,
        }
    }
}

async fn retain_once(ctx: &Context, tasks: &Tasks) -> Result<()> {
    failpoint!("retention.round");
    let now = ctx.store.now();
    let (before, messages) = (now - ctx.config.trace_retention, now - ctx.config.message_retention);
    let piece = u64::from(PIECE);
    loop {
        let gone = ctx
            .store
            .write(move |tx| {
                Box::pin(async move {
                    failpoint!("retention.traces");
                    let traces = tx.traces().delete_before(before, PIECE).await?;
                    failpoint!("retention.messages");
                    let messages = tx.sending().delete_messages_before(messages, PIECE).await?;
                    let calls = tx.app_calls().delete_before(before, PIECE).await?;
                    let events = tx.app_events().delete_before(before, PIECE).await?;
                    let codes = tx.app_codes().delete_before(now - CODES_KEPT, PIECE).await?;
                    Ok(traces.max(messages).max(calls).max(events).max(codes))
                })
            })
            .await?;
        let gone = gone.max(Accounts::new(ctx).delete_expired(PIECE).await?);
        let day = now.as_days() - USAGE_DAYS;
        ctx.store.write(move |tx| Box::pin(async move { tx.ai().delete_usage_before(day).await })).await?;
        if gone < piece || tasks.stopping() {
            break;
        }
    }
    crate::media::sweep(ctx, tasks).await
}
