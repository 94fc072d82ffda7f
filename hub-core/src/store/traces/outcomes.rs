//! The outcomes of messages: the newest trace of each in each channel.

use super::Traces;
use crate::{error::Result, id::MessageId, model::message::MessageOutcome, store::conn::sql, text::json};

impl Traces<'_> {
    /// Returns the outcomes of messages in each channel, grouped by message. The caller has authorized the request.
    pub async fn outcomes(&mut self, messages: &[MessageId]) -> Result<Vec<MessageOutcome>> {
        sql!(self.0, all:
            ["SELECT t.message_id, t.channel_id, c.name AS channel_name, t.id AS trace_id, t.status, t.attempts,
                CASE WHEN t.status <> 'ok' THEN t.summary END AS reason,
                (SELECT MIN(d.due_at) FROM deliveries d WHERE d.message_id = t.message_id AND d.trace_id = t.id
                    AND d.state IN ('pending', 'parked')) AS next_attempt_at
             FROM traces t LEFT JOIN channels c ON c.id = t.channel_id
             WHERE t.message_id", in 1, " AND NOT EXISTS (SELECT 1 FROM traces n
                WHERE n.message_id = t.message_id AND n.channel_id = t.channel_id AND n.id > t.id)
             ORDER BY t.message_id, t.id"];
            json(messages)
        )
    }
}
