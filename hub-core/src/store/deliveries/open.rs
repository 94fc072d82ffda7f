//! Open deliveries of messages: what keeps a replay from starting, and what one may supersede.

use super::{
    super::conn::{dialect, sql},
    Deliveries,
};
use crate::{
    error::Result,
    id::{ChannelId, DeliveryId, MessageId, TraceId},
    model::{
        channel::decode,
        sinks::{SinkId, WebhookSettings},
        trace::DeliveryState,
    },
    store::traces::{self, TraceUpdate},
    text::json,
    time::Timestamp,
};

/// A delivery that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::FromRow)]
#[row(table = "deliveries")]
#[expect(missing_docs, reason = "columns of the table")]
pub struct OpenDelivery {
    pub id: DeliveryId,
    pub trace_id: TraceId,
    pub message_id: MessageId,
    pub channel_id: ChannelId,
    pub sink: SinkId,
    pub state: DeliveryState,
    pub target_url: Option<String>,
    /// Settings of the channel's webhook.
    pub webhook: String,
    /// Whether a node holds it in memory: it is in its lane, or in flight.
    pub is_held: bool,
}

impl OpenDelivery {
    /// Whether it goes to the URL to which a delivery with this `target_url` goes; always, if the sink is the model.
    pub fn goes_to(&self, target_url: Option<&str>) -> bool {
        if self.target_url.as_deref() == target_url {
            return true;
        }
        let Ok(WebhookSettings { url: configured, .. }) = decode(&self.webhook) else { return false };
        self.target_url.as_deref().unwrap_or(&configured) == target_url.unwrap_or(&configured)
    }
}

impl Deliveries<'_> {
    /// Locks messages until the end of the transaction, so that no other node creates replays of them at the same
    /// time. SQLite has one writer.
    pub async fn lock_messages(&mut self, ids: &[MessageId]) -> Result<()> {
        sql!(self.0, run:
            dialect!(sqlite "SELECT id FROM messages WHERE id", in 1),
            dialect!(postgres "SELECT id FROM messages WHERE id", in 1, " ORDER BY id FOR NO KEY UPDATE");
            json(ids)
        )
    }

    /// Reads the deliveries of messages that have not ended, oldest first. The caller has authorized the request.
    pub async fn open_of(&mut self, messages: &[MessageId]) -> Result<Vec<OpenDelivery>> {
        sql!(self.0, all:
            ["SELECT d.id, d.trace_id, d.message_id, d.channel_id, d.sink, d.state, d.target_url, c.webhook,
               (d.claim > 0 AND b.lease_fence = d.claim) AS is_held
            FROM deliveries d JOIN bots b ON b.id = d.bot_id JOIN channels c ON c.id = d.channel_id
            WHERE d.state IN ('pending', 'parked') AND d.message_id", in 1, " ORDER BY d.id"];
            json(messages)
        )
    }

    /// Abandons those of these open deliveries that no node holds, and records it in their traces by `update`, which
    /// is called for each of them with its trace. Returns the abandoned ones.
    pub async fn abandon_waiting(
        &mut self,
        ids: &[DeliveryId],
        reason: &str,
        now: Timestamp,
        update: impl Fn(TraceId) -> TraceUpdate,
    ) -> Result<Vec<DeliveryId>> {
        // A node that loads one at this moment has written its fence into the row.
        let rows: Vec<(DeliveryId, TraceId)> = sql!(self.0, all:
            ["UPDATE deliveries SET state = 'dead', claim = 0, last_error = $2, finished_at = $3
            WHERE state IN ('pending', 'parked') AND NOT (claim > 0 AND EXISTS (
                SELECT 1 FROM bots b WHERE b.id = deliveries.bot_id AND b.lease_fence = deliveries.claim))
            AND id", in 1, " RETURNING id, trace_id"];
            json(ids), reason, now
        )?;
        let updates: Vec<_> = rows.iter().map(|(_, trace)| update(*trace)).collect();
        traces::update(&mut self.0, &updates.iter().collect::<Vec<_>>()).await?;
        Ok(rows.into_iter().map(|(id, _)| id).collect())
    }
}
