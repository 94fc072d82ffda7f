//! Forgetting: traces, messages and used-up one-time things go after their time, in small pieces.

use std::time::Duration;

use crate::{accounts::Accounts, context::Context, error::Result, tasks::Tasks};

/// Time between two rounds.
const ROUND: Duration = Duration::from_secs(10 * 60);
/// Rows of one transaction, so that none takes long (reliability P14).
const PIECE: u32 = 500;

/// Starts forgetting.
pub(super) fn start(ctx: &Context, tasks: &Tasks) {
    let (ctx, own) = (ctx.clone(), tasks.clone());
    tasks.supervise("retention", ctx.clock.clone(), move || retain(ctx.clone(), own.clone()));
}

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
    let now = ctx.store.now();
    let (traces, messages) = (now - ctx.config.trace_retention, now - ctx.config.message_retention);
    let piece = u64::from(PIECE);
    loop {
        let gone = ctx
            .store
            .write(move |tx| {
                Box::pin(async move {
                    let traces = tx.traces().delete_before(traces, PIECE).await?;
                    let messages = tx.sending().delete_messages_before(messages, PIECE).await?;
                    Ok(traces.max(messages))
                })
            })
            .await?;
        let gone = gone.max(Accounts::new(ctx).delete_expired(PIECE).await?);
        if gone < piece || tasks.stopping() {
            return Ok(());
        }
    }
}
