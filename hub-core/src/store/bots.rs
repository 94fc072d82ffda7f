//! Statements about bots.

use std::collections::HashMap;

use sqlx::AssertSqlSafe;

use super::{
    conn::{Conn, sql},
    given,
    list_ids::{ScanEnd, scan_end},
    rows::{self, row},
};
use crate::{
    error::Result,
    id::{BotId, UserId},
    model::bot::{BotRecord, BotStatus},
    page::{Found, PageRequest},
    secret::Sealed,
    text::json,
    time::Timestamp,
};

/// Statements about bots, on a lent connection.
#[derive(Debug)]
pub struct Bots<'c>(pub(super) Conn<'c>);

/// A bot to be made.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "columns of the table, as in `BotRecord`")]
pub struct NewBot {
    pub id: BotId,
    pub owner_id: UserId,
    pub name: String,
    pub network: String,
    pub login: NewLogin,
}

/// A login as it is stored.
#[derive(Debug, Clone)]
pub struct NewLogin {
    /// The account's id on the network.
    pub wx_id: String,
    /// The person the account belongs to.
    pub owner_user_id: String,
    /// Made by [`crate::bots::credentials::seal`] for this bot.
    pub credentials: Sealed,
}

/// State that a poller of a bot needs.
#[derive(Debug, Clone, hub_macros::FromRow)]
#[row(table = "bots")]
pub struct Login {
    /// Chat network.
    pub network: String,
    /// Status of the connection.
    pub status: BotStatus,
    /// Opened by [`crate::bots::credentials::open`].
    pub credentials: Sealed,
    /// Grows with every change of the login.
    pub credentials_rev: i64,
    /// Position from which the next poll continues.
    pub cursor: String,
}

/// A bot with a network account, and its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, hub_macros::FromRow)]
pub struct OwnedBot {
    /// The bot.
    pub bot_id: BotId,
    /// Its owner.
    pub owner_id: UserId,
}

/// A poll that the network responded to.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    /// The bot.
    pub bot_id: BotId,
    /// The fence of its holder.
    pub fence: i64,
    /// Time of the response.
    pub at: Timestamp,
}

row!(Answered, |row| {
    Text bot = row.bot_id,
    Number fence = row.fence,
    Number at = row.at,
});

/// The columns of [`BotRecord`], before the `WHERE`.
macro_rules! select_bot {
    ($rest:literal) => {
        concat!(
            "SELECT b.id, b.owner_id, b.name, b.network, b.status, b.status_reason, b.status_since, b.wx_id,
                b.owner_user_id, b.last_inbound_at, b.last_poll_at, b.last_error, b.lease_owner,
                NULLIF(n.name, '') AS lease_name, COALESCE(n.lease_until, 0) AS lease_until, b.created_at, c.window_opened_at AS opened_at,
                COALESCE(c.window_sends, 0) AS sends, c.window_closed AS closed
             FROM bots AS b
             LEFT JOIN nodes AS n ON n.id = b.lease_owner
             LEFT JOIN contacts AS c ON c.bot_id = b.id AND c.user_id = b.owner_user_id ",
            $rest
        )
    };
}

/// The statement for a page of the bots of an owner, or in a status.
fn page_statement(of_owner: bool, in_status: bool) -> String {
    let filters = given(&[(of_owner, " AND b.owner_id = $1"), (in_status, " AND b.status = $4")]);
    format!("{}{filters} ORDER BY b.id DESC LIMIT $3", select_bot!("WHERE b.id < $2 AND b.id > $5"))
}

impl Bots<'_> {
    /// Reads a page of the bots in a scope, newest first, with one more row if another page follows.
    pub async fn page(&mut self, owner: Option<UserId>, request: &PageRequest) -> Result<Vec<BotRecord>> {
        Ok(self.page_in_status(owner, None, request).await?.rows)
    }

    /// The same, of one status alone. Without an owner it looks at [`MAX_SCANNED`](crate::page::MAX_SCANNED) bots.
    pub async fn page_in_status(
        &mut self,
        owner: Option<UserId>,
        status: Option<BotStatus>,
        request: &PageRequest,
    ) -> Result<Found<BotRecord>> {
        let before = request.before(BotId::MAX);
        let ScanEnd { after, scanned } = if owner.is_none() && status.is_some() {
            scan_end(&mut self.0, ("bots WHERE true", None), &before).await?
        } else {
            ScanEnd::default()
        };
        let sql = page_statement(owner.is_some(), status.is_some());
        let rows = sql!(self.0, all:
            AssertSqlSafe(sql);
            owner, before, i64::from(request.limit()) + 1, status, after
        )?;
        Ok(Found { rows, scanned })
    }

    /// One bot in a scope.
    pub async fn find(&mut self, owner: Option<UserId>, id: BotId) -> Result<Option<BotRecord>> {
        sql!(self.0, optional:
            select_bot!("WHERE b.id = $1 AND (CAST($2 AS TEXT) IS NULL OR b.owner_id = $2)");
            id, owner
        )
    }

    /// Returns the owner of each of these bots; bots that do not exist are left out.
    pub async fn owners(&mut self, bots: &[BotId]) -> Result<Vec<OwnedBot>> {
        sql!(self.0, all: ["SELECT id AS bot_id, owner_id FROM bots WHERE id", in 1]; json(bots))
    }

    /// Reads the names of bots, by id. The caller has authorized the request.
    pub async fn names(&mut self, ids: &[BotId]) -> Result<HashMap<BotId, String>> {
        let rows: Vec<(BotId, String)> =
            sql!(self.0, all: ["SELECT id, name FROM bots WHERE id", in 1]; json(ids))?;
        Ok(rows.into_iter().collect())
    }

    /// Counts the bots of a user.
    pub async fn count(&mut self, owner: UserId) -> Result<u32> {
        let count: i64 = sql!(self.0, value: "SELECT COUNT(*) FROM bots WHERE owner_id = $1"; owner)?;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// Makes a bot.
    ///
    /// # Errors
    /// A constraint violation when another bot has the same person on the same network.
    pub async fn insert(&mut self, bot: &NewBot, now: Timestamp) -> Result<()> {
        sql!(self.0, insert "bots":
            id = bot.id, owner_id = bot.owner_id, name = &bot.name, network = &bot.network, status = BotStatus::Pending,
            status_since = now, wx_id = &bot.login.wx_id, owner_user_id = &bot.login.owner_user_id,
            credentials = &bot.login.credentials, credentials_rev = 1_i64, cursor = "", config_rev = 0_i64,
            lease_fence = 0_i64, created_at = now
        )
    }

    /// Replaces the login of a bot: the cursor is reset, and the fence grows, so that writes of the old poller are
    /// rejected.
    pub async fn replace_login(&mut self, id: BotId, login: &NewLogin, now: Timestamp) -> Result<()> {
        sql!(self.0, run:
            "UPDATE bots SET wx_id = $2, owner_user_id = $3, credentials = $4,
               credentials_rev = credentials_rev + 1, cursor = '', lease_fence = lease_fence + 1,
               status = $5, status_reason = NULL, status_since = $6, last_error = NULL
            WHERE id = $1";
            id, &login.wx_id, &login.owner_user_id, &login.credentials, BotStatus::Connecting, now
        )
    }

    /// Replaces the credentials of the same login, unless it changed meanwhile; returns whether it did.
    pub async fn update_credentials(&mut self, id: BotId, rev: i64, credentials: &Sealed) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE bots SET credentials = $3, credentials_rev = credentials_rev + 1
            WHERE id = $1 AND credentials_rev = $2";
            id, rev, credentials
        )?;
        Ok(rows == 1)
    }

    /// Gives a bot another name.
    pub async fn rename(&mut self, id: BotId, name: &str) -> Result<()> {
        sql!(self.0, run: "UPDATE bots SET name = $2 WHERE id = $1"; id, name)
    }

    /// Reads the state that the poller of a bot needs. For workers: the lease limits what they read.
    pub async fn login(&mut self, id: BotId) -> Result<Option<Login>> {
        sql!(self.0, optional:
            "SELECT network, status, credentials, credentials_rev, cursor FROM bots WHERE id = $1";
            id
        )
    }

    /// Reads the logins of a user's bots on a network, newest first; with `only`, just that bot's.
    pub async fn logins_of(
        &mut self,
        owner: UserId,
        network: &str,
        only: Option<BotId>,
        limit: u32,
    ) -> Result<Vec<(BotId, Sealed)>> {
        sql!(self.0, all:
            "SELECT id, credentials FROM bots
            WHERE owner_id = $1 AND network = $2 AND (CAST($3 AS TEXT) IS NULL OR id = $3)
            ORDER BY id DESC LIMIT $4";
            owner, network, only, i64::from(limit)
        )
    }

    /// The bot with a network account, of any hub user. The bot of the same person precedes one that only has the
    /// same account id.
    pub async fn holders(
        &mut self,
        network: &str,
        wx_id: &str,
        owner_user_id: &str,
    ) -> Result<Vec<OwnedBot>> {
        sql!(self.0, all:
            "SELECT bot_id, owner_id FROM (
                SELECT id AS bot_id, owner_id, owner_user_id FROM bots WHERE wx_id = $2 AND network = $1
                UNION SELECT id, owner_id, owner_user_id FROM bots
                    WHERE network = $1 AND owner_user_id = $3 AND owner_user_id <> '') AS found
            ORDER BY CASE WHEN owner_user_id = $3 THEN 0 ELSE 1 END, bot_id";
            network, wx_id, owner_user_id
        )
    }

    /// Deletes a bot in a scope with all its data; returns whether there was one.
    pub async fn delete(&mut self, owner: Option<UserId>, id: BotId) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "DELETE FROM bots WHERE id = $1 AND (CAST($2 AS TEXT) IS NULL OR owner_id = $2)";
            id, owner
        )?;
        Ok(rows == 1)
    }

    /// Resets a bot in a scope to `connecting`, unless its login expired; returns whether it did.
    pub async fn reconnect(&mut self, owner: Option<UserId>, id: BotId, now: Timestamp) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE bots SET status = $3, status_reason = NULL, status_since = $4, last_error = NULL
            WHERE id = $1 AND (CAST($2 AS TEXT) IS NULL OR owner_id = $2) AND status <> $5";
            id, owner, BotStatus::Connecting, now, BotStatus::Expired
        )?;
        Ok(rows == 1)
    }

    /// Lets a known login be tried again, also an expired one, unless it is in use; returns whether it did.
    pub async fn resume(&mut self, id: BotId, now: Timestamp) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE bots SET status = $2, status_reason = NULL, status_since = $3, last_error = NULL
            WHERE id = $1 AND status NOT IN ($4, $5, $6)";
            id, BotStatus::Connecting, now, BotStatus::Online, BotStatus::Degraded, BotStatus::Pending
        )?;
        Ok(rows == 1)
    }

    /// Notes a new status on behalf of the node that holds the lease; returns the one before. `None` when the fence is
    /// an old one, the bot is gone, or the status cannot follow the present one ([`BotStatus::may_become`]).
    pub async fn set_status(
        &mut self,
        id: BotId,
        fence: i64,
        next: BotStatus,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<BotStatus>> {
        let present: Option<BotStatus> = sql!(self.0, optional_value:
            "SELECT status FROM bots WHERE id = $1 AND lease_fence = $2";
            id, fence
        )?;
        let Some(present) = present.filter(|present| present.may_become(next)) else { return Ok(None) };
        // The present status is compared again: on PostgreSQL a user's command may come between.
        let rows = sql!(self.0, execute:
            "UPDATE bots SET status = $3, status_reason = $4,
               status_since = CASE WHEN status = $3 THEN status_since ELSE $5 END
            WHERE id = $1 AND lease_fence = $2 AND status = $6";
            id, fence, next, reason, now, present
        )?;
        Ok((rows == 1).then_some(present))
    }

    /// Notes when the network last answered and what last went wrong, on behalf of the node that holds the
    /// lease. An absent time keeps the old one; an absent error means all is well. `false` when the fence is
    /// an old one or the bot is gone.
    pub async fn note_poll(
        &mut self,
        id: BotId,
        fence: i64,
        answered_at: Option<Timestamp>,
        error: Option<&str>,
    ) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE bots SET last_poll_at = COALESCE($3, last_poll_at), last_error = $4
            WHERE id = $1 AND lease_fence = $2";
            id, fence, answered_at, error
        )?;
        Ok(rows == 1)
    }

    /// Notes when the networks of many bots last answered, each on behalf of the node that holds its lease. What has
    /// another fence by now is left out.
    pub async fn note_answers(&mut self, answers: &[Answered]) -> Result<()> {
        let statement = |rows: &str| {
            format!(
                "UPDATE bots SET last_poll_at = x.at, last_error = NULL FROM {rows}
                WHERE bots.id = x.bot AND bots.lease_fence = x.fence"
            )
        };
        rows::run(&mut self.0, answers, statement).await
    }
}
