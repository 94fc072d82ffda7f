//! Statements about leases: which node polls and delivers for which bot.
//!
//! A node has one lease over all its bots, so that renewing it costs one row. It covers a bot's polling, deliveries and outbox at once, since a conversation never spans bots: the order
//! within a lane then needs no lock between nodes. The fence grows with every change of hands, and every write on
//! behalf of a bot checks it inside the commit, so that a node that slept through the loss of its lease writes
//! nothing.

use hub_macros::FromRow;
use serde::Serialize;

use super::{
    conn::{Conn, dialect, sql},
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

mod shares;

pub(crate) use shares::surplus;
pub use shares::{Share, Surplus};

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

/// A node as it shows itself to the others when it extends its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEntry {
    /// Its id.
    pub id: NodeId,
    /// Its configured name; may be empty.
    pub name: String,
    /// The networks for which it takes bots; none once it stops.
    pub networks: Vec<String>,
}

/// A free bot that no living node can work for.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
#[row(table = "bots")]
pub struct Unserved {
    /// The bot, under the fence of its last holder.
    #[row(flatten)]
    pub lease: Lease,
    /// The network that no living node has.
    pub network: String,
}

impl Unserved {
    const REASON: &str = "no node of this hub has the network ";

    /// The reason of the status that the bot gets.
    pub fn reason(&self) -> String {
        format!("{}{}", Self::REASON, self.network)
    }
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
    /// The bots that it has beyond its share of each network.
    pub surplus: Vec<Surplus>,
    /// Free bots whose status does not show yet that no living node has their network.
    pub unserved: Vec<Unserved>,
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

/// The networks of living nodes, as a list for `IN`; `$1` is the time.
macro_rules! served_networks {
    (sqlite) => {
        "(SELECT x.value FROM nodes AS n, json_each(n.networks) AS x WHERE n.lease_until > $1)"
    };
    (postgres) => {
        "(SELECT json_array_elements_text(n.networks::json) FROM nodes AS n WHERE n.lease_until > $1)"
    };
}

/// The statement of [`Leases::acquire`], on SQLite and on PostgreSQL.
const ACQUIRE: [&str; 2] = [
    concat!(
        "UPDATE bots SET lease_owner = $2, lease_fence = lease_fence + 1 WHERE id IN (SELECT id FROM ",
        free_bots!(sqlite),
        dialect!(sqlite " AND network", in 4),
        " LIMIT $3) RETURNING id AS bot_id, lease_fence AS fence"
    ),
    concat!(
        "UPDATE bots SET lease_owner = $2, lease_fence = lease_fence + 1 WHERE id IN (SELECT id FROM ",
        free_bots!(postgres),
        dialect!(postgres " AND network", in 4),
        " LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING id AS bot_id, lease_fence AS fence"
    ),
];

impl Leases<'_> {
    /// Takes up to `limit` free bots of the node's networks for it, and extends its lease. Bots of disabled users are
    /// paused.
    pub async fn acquire(
        &mut self,
        node: &NodeEntry,
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
        let taken = sql!(self.0, all: ACQUIRE[0], ACQUIRE[1];
            now, node.id, i64::from(limit), json(&node.networks))?;
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
    pub async fn renew(&mut self, node: &NodeEntry, until: Timestamp) -> Result<Vec<Lease>> {
        failpoint!("lease.renew");
        self.extend(node, until).await?;
        self.held(node.id).await
    }

    async fn extend(&mut self, node: &NodeEntry, until: Timestamp) -> Result<()> {
        sql!(self.0, run:
            "INSERT INTO nodes (id, lease_until, name, networks) VALUES ($1, $2, $3, $4)
            ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until, name = excluded.name,
                networks = excluded.networks";
            node.id, until, &node.name, json(&node.networks)
        )
    }

    /// Up to `limit` free bots whose network no living node has and whose status does not show it yet.
    pub async fn unserved(&mut self, now: Timestamp, limit: u32) -> Result<Vec<Unserved>> {
        sql!(self.0, all:
            concat!(
                "SELECT id AS bot_id, lease_fence AS fence, network FROM ", free_bots!(sqlite),
                " AND network NOT IN ", served_networks!(sqlite),
                " AND NOT (status = 'error' AND COALESCE(status_reason, '') = $2 || network) LIMIT $3"
            ),
            concat!(
                "SELECT id AS bot_id, lease_fence AS fence, network FROM ", free_bots!(postgres),
                " AND network NOT IN ", served_networks!(postgres),
                " AND NOT (status = 'error' AND COALESCE(status_reason, '') = $2 || network) LIMIT $3"
            );
            now, Unserved::REASON, i64::from(limit)
        )
    }

    /// The bots of a node, without extending its lease.
    pub async fn held(&mut self, node: NodeId) -> Result<Vec<Lease>> {
        sql!(self.0, all:
            "SELECT id AS bot_id, lease_fence AS fence FROM bots WHERE lease_owner = $1";
            node
        )
    }

    /// Counts the bots of each living node by network; empty on SQLite, where one node has them all.
    pub async fn shares(&mut self, now: Timestamp) -> Result<Vec<Share>> {
        if matches!(self.0, Conn::Sqlite(_)) {
            return Ok(Vec::new());
        }
        let nodes: Vec<NodeId> = sql!(self.0, values: "SELECT id FROM nodes WHERE lease_until > $1"; now)?;
        // One node needs no count of its bots.
        if nodes.len() < 2 {
            return Ok(Vec::new());
        }
        sql!(self.0, all:
            "SELECT n.id AS node, x.network, (SELECT COUNT(*) FROM bots b
                WHERE b.lease_owner = n.id AND b.network = x.network) AS bots
            FROM nodes AS n CROSS JOIN LATERAL json_array_elements_text(n.networks::json) AS x (network)
            WHERE n.lease_until > $1 ORDER BY n.id, x.network";
            now
        )
    }

    /// Gives bots to another node, which finds them when it next extends its lease; to none if that node is dead, or
    /// does not take bots of their network any more. Those that are not held under these leases any more are left
    /// alone, so that this may be repeated.
    pub async fn hand_over(&mut self, leases: &[Lease], to: NodeId, now: Timestamp) -> Result<()> {
        sql!(self.0, run:
            "UPDATE bots SET lease_fence = lease_fence + 1, lease_owner = (
                SELECT n.id FROM nodes AS n WHERE n.id = $2 AND n.lease_until > $3
                AND bots.network IN (SELECT value FROM json_each(n.networks)))
            FROM (SELECT value->>'bot_id' AS bot_id, value->>'fence' AS fence FROM json_each($1)) AS x
            WHERE bots.id = x.bot_id AND bots.lease_fence = x.fence",
            "UPDATE bots SET lease_fence = lease_fence + 1, lease_owner = (
                SELECT n.id FROM nodes AS n WHERE n.id = $2 AND n.lease_until > $3
                AND bots.network IN (SELECT json_array_elements_text(n.networks::json)))
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

    /// Gives bots back, as if their holder had died: the next one begins from the store. Those that are not held under
    /// these leases any more are left alone.
    pub async fn give_up(&mut self, leases: &[Lease]) -> Result<()> {
        sql!(self.0, run:
            "UPDATE bots SET lease_owner = NULL
            FROM (SELECT value->>'bot_id' AS bot_id, value->>'fence' AS fence FROM json_each($1)) AS x
            WHERE bots.id = x.bot_id AND bots.lease_fence = x.fence",
            "UPDATE bots SET lease_owner = NULL
            FROM json_to_recordset($1::json) AS x (bot_id text, fence bigint)
            WHERE bots.id = x.bot_id AND bots.lease_fence = x.fence";
            json(leases)
        )
    }

    /// Voids every lease: for SQLite at the start, where no other process may work on the file.
    pub async fn void_all(&mut self) -> Result<()> {
        failpoint!("lease.void");
        sql!(self.0, run: "UPDATE bots SET lease_owner = NULL WHERE lease_owner IS NOT NULL")?;
        sql!(self.0, run: "DELETE FROM nodes")
    }

    /// Whether [`Leases::acquire`] would take a bot for a node with these networks.
    pub async fn any_free(&mut self, networks: &[String], now: Timestamp) -> Result<bool> {
        let free: Option<i64> = sql!(self.0, optional_value:
            concat!("SELECT CAST(1 AS BIGINT) FROM ", free_bots!(sqlite), dialect!(sqlite " AND network", in 2), " LIMIT 1"),
            concat!("SELECT CAST(1 AS BIGINT) FROM ", free_bots!(postgres), dialect!(postgres " AND network", in 2), " LIMIT 1");
            now, json(networks)
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

/// State that a node needs to work for a bot.
#[derive(Debug, Clone, FromRow)]
#[row(table = "bots")]
pub struct WorkRow {
    /// Name of the network.
    pub network: String,
    /// Sealed login.
    pub credentials: Sealed,
    /// Position from which the next poll continues.
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
    /// Reads the state that the holder of a lease needs; `None` when the lease is gone.
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
