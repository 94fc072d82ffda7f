//! The database's answer when something is not as the statement took it for granted.

use std::{collections::HashSet, sync::Arc};

use sqlx::PgConnection;

use crate::{
    error::Result,
    id::{BotId, MessageId},
    store::{
        conn::{Conn, sql},
        inbox::{Accept, CheckedBatches, Current},
    },
    text::json,
};

/// Known leases and messages of batches; none at first.
#[derive(Debug, Default)]
pub(super) struct ExistingRows {
    current: Option<Current>,
    repeats: HashSet<MessageId>,
}

impl ExistingRows {
    /// Reads the leases of the bots, and which of the messages are stored already.
    pub(super) async fn ask(conn: &mut PgConnection, batches: &[Arc<Accept>]) -> Result<Self> {
        let mut conn = Conn::Postgres(conn);
        let bots = json(&batches.iter().map(|batch| batch.bot_id).collect::<Vec<_>>());
        let rows: Vec<(BotId, i64, i64)> = sql!(conn, all:
            ["SELECT id, lease_fence, config_rev FROM bots WHERE id", in 1]; &bots
        )?;
        let current = rows.into_iter().map(|(id, fence, rev)| (id, (fence, rev))).collect();
        let rows = || batches.iter().flat_map(|batch| &batch.messages).map(|message| &message.row);
        let keys = json(&rows().map(|row| &row.dedupe_key).collect::<Vec<_>>());
        let stored: Vec<(BotId, String)> = sql!(conn, all:
            ["SELECT bot_id, dedupe_key FROM messages WHERE bot_id", in 1, " AND dedupe_key", in 2]; &bots, &keys
        )?;
        let mut keys: HashSet<_> = stored.into_iter().collect();
        let repeats = rows().filter(|row| !keys.insert((row.bot_id, row.dedupe_key.clone())));
        Ok(Self { current: Some(current), repeats: repeats.map(|row| row.id).collect() })
    }

    /// Accepts or rejects each batch; without an answer all are accepted.
    pub(super) fn judge<'b>(&self, batches: &'b [Arc<Accept>]) -> CheckedBatches<'b> {
        match &self.current {
            Some(current) => CheckedBatches::new(batches, current),
            None => CheckedBatches::accepted(batches),
        }
    }

    /// The messages of batches that are no repeats.
    pub(super) fn new_messages(&self, batches: &[&Accept]) -> HashSet<MessageId> {
        let ids = batches.iter().flat_map(|batch| &batch.messages).map(|message| message.row.id);
        ids.filter(|id| !self.repeats.contains(id)).collect()
    }
}
