//! Statements about leases: which node polls and delivers for which bot.
//!
//! A node has one lease over all its bots, so that renewing it costs one row. It covers a bot's polling, deliveries and outbox at once, since a conversation never spans bots: the order
//! within a lane then needs no lock between nodes. The fence grows with every change of hands, and every write on
//! behalf of a bot checks it inside the commit, so that a node that slept through the loss of its lease writes
//! nothing.

use hub_macros::FromRow;
use serde::Serialize;

use super::{
    conn::{Conn, sql},
    due::{Followed, LONGEST_WAIT, Step},
};
use crate::{
    error::Result,
    id::{BotId, DeliveryId, MessageId, NodeId, UserId},
    model::bot::BotStatus,
    secret::Sealed,
    text::json,
    time::Timestamp,
};

/// Statements about leases, on a lent connection.
#[derive(Debug)]
pub struct Leases<'c>(pub(super) Conn<'c>);

/// A bot that this node works for.
#[derive(Debug, Clone, PartialEq, Eq, FromRow, Serialize)]
#[row(table = "bots")]
pub struct Lease {
    /// The bot.
    pub bot_id: BotId,
    /// The number that every write shows.
    pub fence: i64,
}

/// The leases of a node after a round.
#[derive(Debug, Clone)]
pub struct Extended {
    /// Every lease it holds.
    pub held: Vec<Lease>,
    /// Whether it took as many new ones as it may in one round: more bots may be free.
    pub is_full: bool,
    /// The shared clock during the round.
    pub followed: Followed,
    /// A step by which due times were moved.
    pub step: Option<Step>,
    /// The bots that it has beyond its share: to which node, and how many.
    pub surplus: Vec<(NodeId, usize)>,
}

/// The bots that a node has beyond its share of all, given how many each living node has: how many of them go to each
/// node that lacks some.
pub(crate) fn surplus(node: NodeId, counts: &[(NodeId, usize)]) -> Vec<(NodeId, usize)> {
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    let own = counts.iter().find(|(of, _)| *of == node).map_or(0, |(_, count)| *count);
    let nodes = counts.len().max(1);
    let (mut left, share) = (own.saturating_sub(all.div_ceil(nodes)), all / nodes);
    let lacking = counts.iter().filter(|(of, _)| *of != node).map(|(of, count)| {
        let moved = share.saturating_sub(*count).min(left);
        left -= moved;
        (*of, moved)
    });
    lacking.filter(|(_, moved)| *moved > 0).collect()
}

/// The bots that no living node has, after `FROM`; `$1` is the time. `$dead` compares their node with those whose lease
/// is over, in the form for which each database uses the index.
macro_rules! free_bots {
    ($dead:literal) => {
        concat!(
            "bots WHERE (lease_owner IS NULL OR lease_owner ",
            $dead,
            ") AND EXISTS (SELECT 1 FROM users WHERE users.id = bots.owner_id AND users.status = 'active')"
        )
    };
    (sqlite) => {
        free_bots!("IN (SELECT id FROM nodes WHERE lease_until <= $1)")
    };
    (postgres) => {
        free_bots!("= ANY (ARRAY(SELECT id FROM nodes WHERE lease_until <= $1))")
    };
}

impl Leases<'_> {
    /// Takes up to `limit` free bots, for a node and under its configured name, if it has one, and extends the node's
    /// lease. Bots of disabled users are paused.
    pub async fn acquire(
        &mut self,
        node: NodeId,
        name: &str,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<Lease>> {
        failpoint!("lease.acquire");
        // On PostgreSQL these rows stay locked until the commit: a node whose lease is over cannot extend it while
        // its bots are being taken.
        let dead: Vec<NodeId> = sql!(self.0, values:
            "SELECT id FROM nodes WHERE lease_until <= $1",
            "SELECT id FROM nodes WHERE lease_until <= $1 ORDER BY id FOR UPDATE";
            now
        )?;
        let taken = sql!(self.0, all:
            concat!(
                "UPDATE bots SET lease_owner = $2, lease_fence = lease_fence + 1, lease_name = NULLIF($4, '')
                WHERE id IN (SELECT id FROM ", free_bots!(sqlite), " LIMIT $3)
                RETURNING id AS bot_id, lease_fence AS fence"
            ),
            concat!(
                "UPDATE bots SET lease_owner = $2, lease_fence = lease_fence + 1, lease_name = NULLIF($4, '')
                WHERE id IN (SELECT id FROM ", free_bots!(postgres), " LIMIT $3 FOR UPDATE SKIP LOCKED)
                RETURNING id AS bot_id, lease_fence AS fence"
            );
            now, node, i64::from(limit), name
        )?;
        self.extend(node, until).await?;
        if !dead.is_empty() {
            sql!(self.0, run:
                "DELETE FROM nodes WHERE lease_until <= $1
                AND NOT EXISTS (SELECT 1 FROM bots WHERE lease_owner = nodes.id)";
                now
            )?;
        }
        Ok(taken)
    }

    /// Extends the lease of a node, and returns the bots it still has. They are its own until another node takes
    /// them, also when the lease was over.
    pub async fn renew(&mut self, node: NodeId, until: Timestamp) -> Result<Vec<Lease>> {
        failpoint!("lease.renew");
        self.extend(node, until).await?;
        self.held(node).await
    }

    async fn extend(&mut self, node: NodeId, until: Timestamp) -> Result<()> {
        sql!(self.0, run:
            "INSERT INTO nodes (id, lease_until) VALUES ($1, $2)
            ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until";
            node, until
        )
    }

    /// The bots of a node, without extending its lease.
    pub async fn held(&mut self, node: NodeId) -> Result<Vec<Lease>> {
        sql!(self.0, all:
            "SELECT id AS bot_id, lease_fence AS fence FROM bots WHERE lease_owner = $1";
            node
        )
    }

    /// How many bots each living node has; nothing on SQLite, where one node has them all.
    pub async fn shares(&mut self, now: Timestamp) -> Result<Vec<(NodeId, usize)>> {
        if matches!(self.0, Conn::Sqlite(_)) {
            return Ok(Vec::new());
        }
        let nodes: Vec<NodeId> =
            sql!(self.0, values: "SELECT id FROM nodes WHERE lease_until > $1 ORDER BY id"; now)?;
        // One node needs no count of its bots.
        if nodes.len() < 2 {
            return Ok(Vec::new());
        }
        let rows: Vec<(NodeId, i64)> = sql!(self.0, all:
            "SELECT n.id, (SELECT COUNT(*) FROM bots WHERE lease_owner = n.id)
            FROM nodes n WHERE n.lease_until > $1 ORDER BY n.id";
            now
        )?;
        Ok(rows.into_iter().map(|(node, count)| (node, usize::try_from(count).unwrap_or(0))).collect())
    }

    /// Gives bots to another node, which finds them when it next extends its lease; to none if that node is dead. Those that
    /// are not held under these leases any more are left alone, so that this may be repeated.
    pub async fn hand_over(&mut self, leases: &[Lease], to: NodeId, now: Timestamp) -> Result<()> {
        sql!(self.0, run:
            "UPDATE bots SET lease_owner = (SELECT id FROM nodes WHERE id = $2 AND lease_until > $3),
                lease_fence = lease_fence + 1
            FROM (SELECT value->>'bot_id' AS bot_id, value->>'fence' AS fence FROM json_each($1)) AS x
            WHERE bots.id = x.bot_id AND bots.lease_fence = x.fence",
            "UPDATE bots SET lease_owner = (SELECT id FROM nodes WHERE id = $2 AND lease_until > $3),
                lease_fence = lease_fence + 1
            FROM json_to_recordset($1::json) AS x (bot_id text, fence bigint)
            WHERE bots.id = x.bot_id AND bots.lease_fence = x.fence";
            json(leases), to, now
        )
    }

    /// Gives every bot of a node back.
    pub async fn release(&mut self, node: NodeId) -> Result<()> {
        failpoint!("lease.release");
        sql!(self.0, run: "UPDATE bots SET lease_owner = NULL WHERE lease_owner = $1"; node)?;
        sql!(self.0, run: "DELETE FROM nodes WHERE id = $1"; node)
    }

    /// Gives one bot back, as if its holder had died: the next one begins from the store.
    pub async fn give_up(&mut self, lease: &Lease) -> Result<()> {
        sql!(self.0, run:
            "UPDATE bots SET lease_owner = NULL WHERE id = $1 AND lease_fence = $2";
            lease.bot_id, lease.fence
        )
    }

    /// Voids every lease: for SQLite at the start, where no other process may work on the file.
    pub async fn void_all(&mut self) -> Result<()> {
        failpoint!("lease.void");
        sql!(self.0, run: "UPDATE bots SET lease_owner = NULL WHERE lease_owner IS NOT NULL")?;
        sql!(self.0, run: "DELETE FROM nodes")
    }

    /// Whether a bot is there for [`Leases::acquire`].
    pub async fn any_free(&mut self, now: Timestamp) -> Result<bool> {
        let free: Option<i64> = sql!(self.0, optional_value:
            concat!("SELECT CAST(1 AS BIGINT) FROM ", free_bots!(sqlite), " LIMIT 1"),
            concat!("SELECT CAST(1 AS BIGINT) FROM ", free_bots!(postgres), " LIMIT 1");
            now
        )?;
        Ok(free.is_some())
    }

    /// Whether some node works for some bot at `now`.
    pub async fn any_held(&mut self, now: Timestamp) -> Result<bool> {
        let held: Option<i64> = sql!(self.0, optional_value:
            "SELECT CAST(1 AS BIGINT) FROM nodes WHERE lease_until > $1
            AND EXISTS (SELECT 1 FROM bots WHERE lease_owner = nodes.id) LIMIT 1";
            now
        )?;
        Ok(held.is_some())
    }

    /// Whether the database answers at all.
    pub async fn ping(&mut self) -> Result<()> {
        let _: i64 = sql!(self.0, value: "SELECT CAST(1 AS BIGINT)")?;
        Ok(())
    }

    /// The database's own clock; `None` on SQLite, which has none of its own.
    pub async fn database_now(&mut self) -> Result<Option<Timestamp>> {
        if matches!(self.0, Conn::Sqlite(_)) {
            return Ok(None);
        }
        sql!(self.0, optional_value: "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)")
    }
}

/// What a node needs to work for a bot.
#[derive(Debug, Clone, FromRow)]
#[row(table = "bots")]
pub struct WorkRow {
    /// Name of the network.
    pub network: String,
    /// Sealed login.
    pub credentials: Sealed,
    /// Where polling goes on.
    pub cursor: String,
    /// Status.
    pub status: BotStatus,
    /// The bot's id on the network.
    pub wx_id: String,
    /// The bot's owner.
    pub owner_id: UserId,
    /// The bot's last message.
    pub last_message_id: Option<MessageId>,
    /// The bot's last open delivery.
    pub last_delivery_id: Option<DeliveryId>,
    /// Whether there is something to send.
    pub has_items: bool,
    /// Whether there are files to fetch.
    pub has_files: bool,
}

impl Leases<'_> {
    /// What the holder of a lease needs; `None` when the lease is gone.
    pub async fn work(&mut self, lease: &Lease) -> Result<Option<WorkRow>> {
        failpoint!("lease.work");
        sql!(self.0, optional:
            "SELECT network, credentials, cursor, status, wx_id, owner_id,
               (SELECT m.id FROM messages m WHERE m.bot_id = bots.id ORDER BY m.id DESC LIMIT 1) AS last_message_id,
               (SELECT d.id FROM deliveries d WHERE d.bot_id = bots.id AND d.state IN ('pending', 'parked')
                   ORDER BY d.id DESC LIMIT 1) AS last_delivery_id,
               EXISTS (SELECT 1 FROM outbox o WHERE o.bot_id = bots.id AND o.state IN ('queued', 'sending'))
                   AS has_items,
               EXISTS (SELECT 1 FROM media f WHERE f.bot_id = bots.id AND f.state = 'downloading'
                   AND f.message_id IS NOT NULL) AS has_files
            FROM bots WHERE id = $1 AND lease_fence = $2";
            lease.bot_id, lease.fence
        )
    }

    /// Whether a lease is the bot's present one.
    pub async fn is_current(&mut self, lease: &Lease) -> Result<bool> {
        sql!(self.0, value:
            "SELECT EXISTS (SELECT 1 FROM bots WHERE id = $1 AND lease_fence = $2)";
            lease.bot_id, lease.fence
        )
    }

    /// Bots of a node with work that is not held: deliveries, then items to send. Costs a few reads per bot, of any
    /// node, that has open work, and none for an idle one.
    pub async fn with_work(&mut self, node: NodeId, now: Timestamp) -> Result<(Vec<BotId>, Vec<BotId>)> {
        failpoint!("lease.look");
        let deliveries = sql!(self.0, values: BOTS_WITH_DELIVERIES; node, now, now + LONGEST_WAIT)?;
        let outbox = sql!(self.0, values: BOTS_WITH_ITEMS; node)?;
        Ok((deliveries, outbox))
    }
}

/// The statement that goes from one bot with open rows of a table to the next by the index of these rows.
macro_rules! bots_with_open {
    ($table:literal, $open:literal, $rest:literal) => {
        concat!(
            // CROSS JOIN: SQLite would begin with all bots of the node.
            // Not MIN: PostgreSQL may read all rows for the least of them, and not for the first one in their order.
            "WITH RECURSIVE busy (id) AS (
                SELECT (SELECT bot_id FROM ",
            $table,
            " WHERE state IN ",
            $open,
            " AND bot_id > '' ORDER BY bot_id LIMIT 1)
                UNION ALL
                SELECT (SELECT bot_id FROM ",
            $table,
            " WHERE state IN ",
            $open,
            " AND bot_id > busy.id ORDER BY bot_id LIMIT 1)
                FROM busy WHERE busy.id IS NOT NULL)
            SELECT b.id FROM busy CROSS JOIN bots b WHERE b.id = busy.id AND b.lease_owner = $1",
            $rest
        )
    };
}

pub(super) const BOTS_WITH_DELIVERIES: &str = bots_with_open!(
    "deliveries",
    "('pending', 'parked')",
    " AND EXISTS (SELECT 1 FROM deliveries d WHERE d.bot_id = b.id AND d.claim <> b.lease_fence
        AND d.state IN ('pending', 'parked') AND (d.state = 'pending' OR d.due_at <= $2 OR d.due_at > $3))"
);
pub(super) const BOTS_WITH_ITEMS: &str = bots_with_open!("outbox", "('queued', 'sending')", "");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_hands_over_what_is_beyond_its_share() {
        let node = |number| NodeId::from_u128(number);
        let of = |own: u128, counts: &[usize]| -> Vec<(u128, usize)> {
            let counts: Vec<_> = (0..).zip(counts).map(|(number, count)| (node(number), *count)).collect();
            surplus(node(own), &counts).into_iter().map(|(to, moved)| (to.as_u128(), moved)).collect()
        };
        assert_eq!(of(0, &[10, 0]), [(1, 5)]);
        assert_eq!(of(1, &[10, 0]), []);
        assert_eq!(of(0, &[9, 0, 0]), [(1, 3), (2, 3)]);
        assert_eq!(of(0, &[7, 5, 0]), [(2, 3)]);
        assert_eq!(of(1, &[7, 5, 0]), [(2, 1)]);
        // As even as it can be.
        assert_eq!(of(0, &[2, 1, 1]), []);
        assert_eq!(of(0, &[1, 0]), []);
        assert_eq!(of(0, &[4]), []);
        assert_eq!(of(0, &[]), []);
    }
}
