//! Statements about the clients of iLink sinks, and about their logins.

use hub_macros::FromRow;

use super::conn::{Conn, sql};
use crate::{
    error::Result,
    id::{BotId, ChannelId, IlinkClientId, MessageId, TraceId, UserId},
    model::{bot::BotStatus, user::UserStatus},
    secret::TokenHash,
    text::json,
    time::Timestamp,
    words::words,
};

/// Statements about the clients of iLink sinks and their logins, on a lent connection.
#[derive(Debug)]
pub struct Ilink<'c>(pub(super) Conn<'c>);

words! {
    /// Status of a login.
    pub enum IlinkLoginStatus {
        /// A user has opened it.
        Scanned = "scanned",
        /// A user has confirmed it.
        Confirmed = "confirmed",
        /// A user has rejected it.
        Rejected = "rejected",
    }
}

/// A login that a user has opened.
#[derive(Debug, Clone, FromRow)]
#[row(table = "ilink_logins")]
#[expect(missing_docs, reason = "columns of the table")]
pub struct IlinkLoginRow {
    pub status: IlinkLoginStatus,
    pub client_id: Option<IlinkClientId>,
}

/// A login as a user opens it.
#[derive(Debug)]
#[expect(missing_docs, reason = "columns of the table")]
pub struct OpenedLogin<'a> {
    pub id: &'a str,
    pub ip: &'a str,
    pub user_agent: &'a str,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// A program that is logged in to a channel.
#[derive(Debug, Clone, PartialEq, Eq, FromRow, hub_macros::Api)]
#[row(table = "ilink_clients")]
#[api(example = {
    "acked_seq": 40,
    "address": "203.0.113.7",
    "created_at": "2025-11-21T09:30:00.000Z",
    "given_seq": 42,
    "id": "ilc_01KAG00000E008000000000008",
    "last_used_at": "2025-11-21T10:30:00.000Z",
    "user_agent": "agent-host/1.0",
})]
pub struct IlinkClient {
    /// Id.
    pub id: IlinkClientId,
    /// Network address from which it logged in; empty if unknown.
    #[api(name = "address")]
    pub ip: String,
    /// Name of the program, at most 40 characters of its `User-Agent`; empty if it sent none.
    pub user_agent: String,
    /// Number in the channel's log up to which it acknowledged.
    pub acked_seq: i64,
    /// Number in the channel's log up to which messages were given to it.
    pub given_seq: i64,
    /// When it logged in.
    pub created_at: Timestamp,
    /// When it last made a request, to the minute.
    pub last_used_at: Timestamp,
}

/// A client with what its requests depend on.
#[derive(Debug, Clone, FromRow)]
#[row(table = "ilink_clients")]
pub struct IlinkClientRow {
    /// The client.
    #[row(flatten)]
    pub client: IlinkClient,
    /// Hash of its token.
    pub token_hash: TokenHash,
    /// Its channel.
    pub channel_id: ChannelId,
    /// Whether the channel is switched on.
    pub enabled: bool,
    /// JSON of the sink's settings.
    pub ilink: String,
    /// The bot.
    pub bot_id: BotId,
    /// The bot's account on its network.
    pub wx_id: String,
    /// The person to whom the account belongs.
    pub owner_user_id: String,
    /// Status of the bot.
    pub bot_status: BotStatus,
    /// The bot's owner.
    pub owner_id: UserId,
    /// Status of the owner.
    pub owner_status: UserStatus,
}

/// The columns of an [`IlinkClientRow`], and its tables.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT i.id, i.ip, i.user_agent, i.acked_seq, i.given_seq, i.created_at, i.last_used_at, i.token_hash,
                i.channel_id, c.enabled, c.ilink, b.id AS bot_id, b.wx_id, b.owner_user_id, b.status AS bot_status, b.owner_id,
                u.status AS owner_status
             FROM ilink_clients i JOIN channels c ON c.id = i.channel_id JOIN bots b ON b.id = c.bot_id
             JOIN users u ON u.id = b.owner_id ",
            $rest
        )
    };
}

/// The statement of [`Ilink::delete_expired_logins`].
pub(super) const DELETE_EXPIRED_LOGINS: &str =
    "DELETE FROM ilink_logins WHERE id IN (SELECT id FROM ilink_logins WHERE expires_at <= $1 LIMIT $2)";

/// Logins.
impl Ilink<'_> {
    /// Notes that a user has opened a login. Returns its status; `None` when it is new and `most` are open.
    pub async fn open_login(
        &mut self,
        login: &OpenedLogin<'_>,
        now: Timestamp,
        most: u32,
    ) -> Result<Option<IlinkLoginStatus>> {
        sql!(self.0, run:
            "INSERT INTO ilink_logins (id, status, ip, user_agent, created_at, expires_at)
            SELECT $1, 'scanned', $2, $3, $4, $5
            WHERE (SELECT COUNT(*) FROM ilink_logins WHERE expires_at > $6) < $7
            ON CONFLICT (id) DO NOTHING";
            login.id, login.ip, login.user_agent, login.created_at, login.expires_at, now, i64::from(most)
        )?;
        Ok(self.login(login.id, now).await?.map(|row| row.status))
    }

    /// A login that a user has opened and that has not expired.
    pub async fn login(&mut self, id: &str, now: Timestamp) -> Result<Option<IlinkLoginRow>> {
        sql!(self.0, optional:
            "SELECT status, client_id FROM ilink_logins WHERE id = $1 AND expires_at > $2";
            id, now
        )
    }

    /// Confirms a login for a client; it then lives until `until`, or longer if it did before. Returns whether it was
    /// open.
    pub async fn confirm_login(
        &mut self,
        id: &str,
        client_id: IlinkClientId,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE ilink_logins SET status = 'confirmed', client_id = $2,
                expires_at = CASE WHEN expires_at < $4 THEN $4 ELSE expires_at END
            WHERE id = $1 AND status = 'scanned' AND expires_at > $3";
            id, client_id, now, until
        )?;
        Ok(rows == 1)
    }

    /// Rejects a login. Returns whether it was open.
    pub async fn reject_login(&mut self, id: &str, now: Timestamp) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE ilink_logins SET status = 'rejected' WHERE id = $1 AND status = 'scanned' AND expires_at > $2";
            id, now
        )?;
        Ok(rows == 1)
    }

    /// Deletes at most `limit` logins that expired before `old`, and returns how many.
    pub async fn delete_expired_logins(&mut self, old: Timestamp, limit: u32) -> Result<u64> {
        sql!(self.0, execute: DELETE_EXPIRED_LOGINS; old, i64::from(limit))
    }
}

/// Clients.
impl Ilink<'_> {
    /// Adds a client to a channel. It is given what the channel receives from then on.
    pub async fn insert_client(
        &mut self,
        id: IlinkClientId,
        channel_id: ChannelId,
        token: &TokenHash,
        described: (&str, &str),
        now: Timestamp,
    ) -> Result<()> {
        sql!(self.0, run:
            "INSERT INTO ilink_clients (id, channel_id, token_hash, ip, user_agent, acked_seq, given_seq, created_at,
                last_used_at)
            SELECT $1, id, $3, $4, $5, last_seq, last_seq, $6, $6 FROM channels WHERE id = $2";
            id, channel_id, token, described.0, described.1, now
        )
    }

    /// The clients of a channel, oldest first. Whose channel it is, the caller has checked.
    pub async fn clients(&mut self, channel_id: ChannelId) -> Result<Vec<IlinkClient>> {
        sql!(self.0, all:
            "SELECT id, ip, user_agent, acked_seq, given_seq, created_at, last_used_at FROM ilink_clients
            WHERE channel_id = $1 ORDER BY id";
            channel_id
        )
    }

    /// The client with a token.
    pub async fn client_with(&mut self, token: &TokenHash) -> Result<Option<IlinkClientRow>> {
        sql!(self.0, optional: select!("WHERE i.token_hash = $1"); token)
    }

    /// A client.
    pub async fn client(&mut self, id: IlinkClientId) -> Result<Option<IlinkClientRow>> {
        sql!(self.0, optional: select!("WHERE i.id = $1"); id)
    }

    /// Notes that a client made a request.
    pub async fn touch(&mut self, id: IlinkClientId, now: Timestamp) -> Result<()> {
        sql!(self.0, run:
            "UPDATE ilink_clients SET last_used_at = $2 WHERE id = $1 AND last_used_at < $2"; id, now)
    }

    /// Moves the position of a client forward: everything up to `acked` arrived, and messages up to `given` were given
    /// to it. A number before the stored one changes nothing.
    pub async fn advance(&mut self, id: IlinkClientId, acked: i64, given: i64) -> Result<()> {
        sql!(self.0, run:
            "UPDATE ilink_clients SET acked_seq = CASE WHEN acked_seq < $2 THEN $2 ELSE acked_seq END,
                given_seq = CASE WHEN given_seq < $3 THEN $3 ELSE given_seq END
            WHERE id = $1";
            id, acked, given
        )
    }

    /// Deletes a client of a channel. Returns whether it existed.
    pub async fn delete_client(&mut self, channel_id: ChannelId, id: IlinkClientId) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "DELETE FROM ilink_clients WHERE id = $1 AND channel_id = $2"; id, channel_id)?;
        Ok(rows > 0)
    }

    /// Deletes the clients of a channel whose last request was before a time.
    pub async fn delete_idle(&mut self, channel_id: ChannelId, before: Timestamp) -> Result<()> {
        sql!(self.0, run:
            "DELETE FROM ilink_clients WHERE channel_id = $1 AND last_used_at < $2"; channel_id, before)
    }

    /// The traces of messages in a channel, replays excluded.
    pub async fn traces_of(&mut self, channel_id: ChannelId, messages: &[MessageId]) -> Result<Vec<TraceId>> {
        sql!(self.0, values:
            ["SELECT id FROM traces WHERE channel_id = $1 AND replay_of IS NULL AND message_id", in 2, " ORDER BY id"];
            channel_id, json(messages)
        )
    }
}
