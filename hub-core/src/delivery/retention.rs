//! Forgetting: traces, messages and used-up one-time things go after their time, in small pieces.

use std::time::Duration;

use super::node::Engine;
use crate::{accounts::Accounts, error::Result};

/// Time between two rounds.
const ROUND: Duration = Duration::from_secs(10 * 60);
/// Rows of one transaction, so that none takes long (reliability P14).
const PIECE: u32 = 500;

impl Engine {
    pub(super) async fn retain(&self) {
        loop {
            if let Err(error) = self.retain_once().await {
                tracing::warn!(%error, "forgetting what is old failed");
            }
            tokio::select! {
                () = self.ctx.clock.sleep(ROUND) => {}
                () = self.tasks.stop_token().cancelled() => return,
            }
        }
    }

    async fn retain_once(&self) -> Result<()> {
        let now = self.ctx.store.now();
        let (traces, messages) =
            (now - self.ctx.config.trace_retention, now - self.ctx.config.message_retention);
        let piece = u64::from(PIECE);
        loop {
            let gone = self
                .ctx
                .store
                .write(move |tx| {
                    Box::pin(async move {
                        let traces = tx.traces().delete_before(traces, PIECE).await?;
                        let messages = tx.sending().delete_messages_before(messages, PIECE).await?;
                        Ok(traces.max(messages))
                    })
                })
                .await?;
            let gone = gone.max(Accounts::new(&self.ctx).delete_expired(PIECE).await?);
            if gone < piece || self.tasks.stopping() {
                return Ok(());
            }
        }
    }
}
