//! Statements about logins in progress.

use super::conn::{Conn, on};
use crate::{
    error::{Error, Result},
    id::{BindId, BotId, UserId},
    model::bot::{BindStatus, StoredBind},
    secret::Sealed,
    time::Timestamp,
};

/// Statements about logins in progress, on a lent connection.
#[derive(Debug)]
pub struct Binds<'c>(pub(super) Conn<'c>);

#[derive(hub_macros::FromRow)]
struct Row {
    id: String,
    owner_id: String,
    for_bot_id: Option<String>,
    network: String,
    name: String,
    status: String,
    private: String,
    codes_shown: i64,
    rev: i64,
    bot_id: Option<String>,
    expires_at: i64,
}

impl TryFrom<Row> for StoredBind {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        let bot = |id: Option<String>| id.map(|id| id.parse()).transpose().map_err(Error::internal);
        Ok(Self {
            id: row.id.parse().map_err(Error::internal)?,
            owner_id: row.owner_id.parse().map_err(Error::internal)?,
            for_bot: bot(row.for_bot_id)?,
            network: row.network,
            name: row.name,
            status: BindStatus::parse(&row.status)
                .ok_or_else(|| Error::internal(format!("{} is no status of a bind", row.status)))?,
            private: row.private.into(),
            codes_shown: u32::try_from(row.codes_shown).unwrap_or(u32::MAX),
            rev: row.rev,
            bot_id: bot(row.bot_id)?,
            expires_at: Timestamp::from_millis(row.expires_at),
        })
    }
}

/// What a step changes.
#[derive(Debug, Clone)]
pub struct BindChange {
    /// New state.
    pub status: BindStatus,
    /// Sealed for the bind's row.
    pub private: Sealed,
    /// Codes shown so far.
    pub codes_shown: u32,
    /// The bot it ended with.
    pub bot_id: Option<BotId>,
}

/// The deletion of [`Binds::insert`].
pub(super) const DELETE_ENDED: &str = "DELETE FROM binds WHERE expires_at < $2 OR (owner_id = $1
        AND id NOT IN (SELECT id FROM binds WHERE owner_id = $1 ORDER BY id DESC LIMIT $3))";

impl Binds<'_> {
    /// Notes a new login, and forgets those that ended before `old` and all but the user's newest `keep`.
    pub async fn insert(
        &mut self,
        bind: &StoredBind,
        now: Timestamp,
        old: Timestamp,
        keep: u32,
    ) -> Result<()> {
        failpoint!("bind.begin");
        on!(self.0, |conn| sqlx::query(
            "INSERT INTO binds (id, owner_id, for_bot_id, network, name, status, private, codes_shown, rev,
                bot_id, created_at, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
        )
        .bind(bind.id.to_string())
        .bind(bind.owner_id.to_string())
        .bind(bind.for_bot.map(|id| id.to_string()))
        .bind(&bind.network)
        .bind(&bind.name)
        .bind(bind.status.as_str())
        .bind(bind.private.as_str())
        .bind(i64::from(bind.codes_shown))
        .bind(bind.rev)
        .bind(bind.bot_id.map(|id| id.to_string()))
        .bind(now.as_millis())
        .bind(bind.expires_at.as_millis())
        .execute(conn)
        .await
        .map(|_| ()))?;
        on!(self.0, |conn| sqlx::query(DELETE_ENDED)
            .bind(bind.owner_id.to_string())
            .bind(old.as_millis())
            .bind(i64::from(keep))
            .execute(conn)
            .await
            .map(|_| ()))
    }

    /// A login that this user started.
    pub async fn find(&mut self, owner: UserId, id: BindId) -> Result<Option<StoredBind>> {
        let row: Option<Row> = on!(self.0, |conn| sqlx::query_as(
            "SELECT id, owner_id, for_bot_id, network, name, status, private, codes_shown, rev, bot_id,
                expires_at
             FROM binds WHERE id = $1 AND owner_id = $2"
        )
        .bind(id.to_string())
        .bind(owner.to_string())
        .fetch_optional(conn)
        .await)?;
        row.map(StoredBind::try_from).transpose()
    }

    /// Changes a login unless it was changed since `rev`; returns whether it did.
    pub async fn advance(&mut self, id: BindId, rev: i64, change: &BindChange) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "UPDATE binds SET status = $3, private = $4, codes_shown = $5, bot_id = $6, rev = rev + 1
             WHERE id = $1 AND rev = $2"
        )
        .bind(id.to_string())
        .bind(rev)
        .bind(change.status.as_str())
        .bind(change.private.as_str())
        .bind(i64::from(change.codes_shown))
        .bind(change.bot_id.map(|id| id.to_string()))
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows == 1)
    }

    /// Forgets the logins that belong to a bot.
    pub async fn delete_of_bot(&mut self, bot_id: BotId) -> Result<()> {
        on!(self.0, |conn| sqlx::query("DELETE FROM binds WHERE for_bot_id = $1 OR bot_id = $1")
            .bind(bot_id.to_string())
            .execute(conn)
            .await
            .map(|_| ()))
    }
}
