//! Storage of a node's counters: a row per minute and node, written every few seconds. A crash loses only the counts
//! of those seconds.

use std::time::Duration;

use crate::{context::Context, counters::Tallied, error::Result, id::NodeId, tasks::Tasks};

/// Time between two writes.
const WRITE: Duration = Duration::from_secs(10);
/// Number of minutes with separate rows; older minutes are added up.
const MINUTES_RETAINED: i64 = 120;

/// Starts to store the counters of this node.
pub(crate) fn start(ctx: &Context, node: NodeId, tasks: &Tasks) {
    let (ctx, own) = (ctx.clone(), tasks.clone());
    tasks.supervise("tallies", ctx.clock.clone(), move || keep(ctx.clone(), node, own.clone()));
}

async fn keep(ctx: Context, node: NodeId, tasks: Tasks) {
    let mut folded = 0;
    loop {
        let stop = tokio::select! {
            () = ctx.clock.sleep(WRITE) => false,
            () = tasks.stop_token().cancelled() => true,
        };
        let minute = ctx.store.now().as_millis() / 60_000;
        if let Err(error) = write_down(&ctx, node, minute, minute != folded).await {
            tracing::debug!(%error, "counts could not be written down; the next time they are");
        } else {
            folded = minute;
        }
        if stop {
            return;
        }
    }
}

async fn write_down(ctx: &Context, node: NodeId, minute: i64, fold: bool) -> Result<()> {
    let (all, new) = ctx.node.counters.since_written();
    if new == Tallied::default() && !fold {
        return Ok(());
    }
    let write = ctx.store.write(move |tx| {
        Box::pin(async move {
            if new != Tallied::default() {
                tx.stats().add(minute, node, &new).await?;
            }
            if fold {
                tx.stats().fold(minute - MINUTES_RETAINED).await?;
            }
            Ok(())
        })
    });
    write.await?;
    ctx.node.counters.set_written(all);
    Ok(())
}
