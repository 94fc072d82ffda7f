//! Deletion of files whose message is gone, and of those that were never sent. Objects are deleted before their rows,
//! so that an interrupted sweep continues where it stopped.

use crate::{context::Context, error::Result, tasks::Tasks};

/// Files of one transaction.
const BATCH_SIZE: u32 = 100;

/// Deletes expired files that no message holds.
pub(crate) async fn sweep(ctx: &Context, tasks: &Tasks) -> Result<()> {
    while !tasks.stopping() {
        let now = ctx.store.now();
        let ids = ctx.store.read().await?.media().loose(now, BATCH_SIZE).await?;
        for id in &ids {
            ctx.media.remove(*id).await?;
        }
        let found = ids.len();
        if found > 0 {
            ctx.store.write(move |tx| Box::pin(async move { tx.media().delete(&ids).await })).await?;
        }
        if found < BATCH_SIZE as usize {
            break;
        }
    }
    Ok(())
}
