//! Statements about logins in progress.

use super::conn::{Conn, sql};
use crate::{
    error::Result,
    id::{BindId, BotId, UserId},
    model::bot::{BindStatus, StoredBind},
    secret::Sealed,
    time::Timestamp,
};

/// Statements about logins in progress, on a lent connection.
#[derive(Debug)]
pub struct Binds<'c>(pub(super) Conn<'c>);

/// Changes of a login by one step.
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
        sql!(self.0, insert "binds":
            id = bind.id, owner_id = bind.owner_id, for_bot_id = bind.for_bot, network = &bind.network, name = &bind.name,
            status = bind.status, private = &bind.private, codes_shown = i64::from(bind.codes_shown), rev = bind.rev,
            bot_id = bind.bot_id, created_at = now, expires_at = bind.expires_at
        )?;
        sql!(self.0, run: DELETE_ENDED; bind.owner_id, old, i64::from(keep))
    }

    /// A login that this user started.
    pub async fn find(&mut self, owner: UserId, id: BindId) -> Result<Option<StoredBind>> {
        sql!(self.0, optional:
            "SELECT id, owner_id, for_bot_id AS for_bot, network, name, status, private, codes_shown, rev, bot_id,
               expires_at
            FROM binds WHERE id = $1 AND owner_id = $2";
            id, owner
        )
    }

    /// Changes a login unless it was changed since `rev`; returns whether it did.
    pub async fn advance(&mut self, id: BindId, rev: i64, change: &BindChange) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE binds SET status = $3, private = $4, codes_shown = $5, bot_id = $6, rev = rev + 1
            WHERE id = $1 AND rev = $2";
            id, rev, change.status, &change.private, i64::from(change.codes_shown), change.bot_id
        )?;
        Ok(rows == 1)
    }

    /// Forgets the logins that belong to a bot.
    pub async fn delete_of_bot(&mut self, bot_id: BotId) -> Result<()> {
        sql!(self.0, run: "DELETE FROM binds WHERE for_bot_id = $1 OR bot_id = $1"; bot_id)
    }
}
