//! Statements about channels.
//!
//! A change to a channel is two or three statements of one command, and the first is always
//! [`Channels::begin_change`]: it checks whose bot it is, raises the revision of the bot's rules and holds
//! the bot's row, so that changes to one bot's channels run one after the other on every node.

use super::{
    conn::{Conn, on},
    stored_id,
};
use crate::{
    access::{ChannelActor, Scope},
    error::{Error, Result},
    id::{BotId, ChannelId},
    model::channel::{Aftermath, ChannelRecord, NewKey},
    page::PageRequest,
    secret::{KeyMark, Sealed, TokenHash},
    time::Timestamp,
};

/// Statements about channels, on a lent connection.
#[derive(Debug)]
pub struct Channels<'c>(pub(super) Conn<'c>);

/// A channel as its row holds it.
#[derive(hub_macros::FromRow)]
struct Row {
    id: String,
    bot_id: String,
    name: String,
    handle: Option<String>,
    enabled: bool,
    key_last4: String,
    filter: String,
    websocket: String,
    webhook: String,
    webhook_secret: Option<String>,
    webhook_old_secret: Option<String>,
    webhook_old_until: Option<i64>,
    ai: String,
    ai_api_key: Option<String>,
    on_plugin_error: String,
    lane_hold_s: i64,
    last_seq: i64,
    webhook_disabled: Option<String>,
    created_at: i64,
    updated_at: i64,
}

/// `SELECT` with the columns of [`Row`] and the rest of the statement.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, bot_id, name, handle, enabled, key_last4, filter, websocket, webhook, webhook_secret, \
             webhook_old_secret, webhook_old_until, ai, ai_api_key, on_plugin_error, lane_hold_s, last_seq, \
             webhook_disabled, created_at, updated_at FROM channels ",
            $rest
        )
    };
}

impl TryFrom<Row> for ChannelRecord {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: stored_id(&row.id)?,
            bot_id: stored_id(&row.bot_id)?,
            name: row.name,
            handle: row.handle,
            enabled: row.enabled,
            key_last4: row.key_last4,
            filter: row.filter,
            websocket: row.websocket,
            webhook: row.webhook,
            webhook_secret: row.webhook_secret.map(Sealed::from),
            webhook_old_secret: row.webhook_old_secret.map(Sealed::from),
            webhook_old_until: row.webhook_old_until.map(Timestamp::from_millis),
            ai: row.ai,
            ai_api_key: row.ai_api_key.map(Sealed::from),
            on_plugin_error: row.on_plugin_error.parse().map_err(Error::internal)?,
            lane_hold_s: u32::try_from(row.lane_hold_s).map_err(Error::internal)?,
            last_seq: row.last_seq,
            webhook_disabled: row.webhook_disabled,
            created_at: Timestamp::from_millis(row.created_at),
            updated_at: Timestamp::from_millis(row.updated_at),
        })
    }
}

fn records(rows: Vec<Row>) -> Result<Vec<ChannelRecord>> {
    rows.into_iter().map(ChannelRecord::try_from).collect()
}

/// Reading.
impl Channels<'_> {
    /// Whether the bot exists within the scope.
    pub async fn sees_bot(&mut self, scope: Scope, bot_id: BotId) -> Result<bool> {
        let found: Option<i64> = on!(self.0, |conn| sqlx::query_scalar(
            "SELECT config_rev FROM bots WHERE id = $1 AND (CAST($2 AS TEXT) IS NULL OR owner_id = $2)"
        )
        .bind(bot_id.to_string())
        .bind(scope.owner())
        .fetch_optional(conn)
        .await)?;
        Ok(found.is_some())
    }

    /// A page of a bot's channels, newest first, with one row more than wanted when more follow.
    pub async fn page(
        &mut self,
        scope: Scope,
        bot_id: BotId,
        page: &PageRequest,
    ) -> Result<Vec<ChannelRecord>> {
        let rows: Vec<Row> = on!(self.0, |conn| sqlx::query_as(select!(
            "WHERE bot_id = $1 AND id < $2 AND EXISTS (
                SELECT 1 FROM bots WHERE bots.id = channels.bot_id
                AND (CAST($3 AS TEXT) IS NULL OR bots.owner_id = $3))
            ORDER BY id DESC LIMIT $4"
        ))
        .bind(bot_id.to_string())
        .bind(page.before(ChannelId::MAX))
        .bind(scope.owner())
        .bind(i64::from(page.limit()) + 1)
        .fetch_all(conn)
        .await)?;
        records(rows)
    }

    /// One channel of a bot.
    pub async fn find(
        &mut self,
        scope: Scope,
        bot_id: BotId,
        id: ChannelId,
    ) -> Result<Option<ChannelRecord>> {
        let row: Option<Row> = on!(self.0, |conn| sqlx::query_as(select!(
            "WHERE id = $1 AND bot_id = $2 AND EXISTS (
                SELECT 1 FROM bots WHERE bots.id = channels.bot_id
                AND (CAST($3 AS TEXT) IS NULL OR bots.owner_id = $3))"
        ))
        .bind(id.to_string())
        .bind(bot_id.to_string())
        .bind(scope.owner())
        .fetch_optional(conn)
        .await)?;
        row.map(ChannelRecord::try_from).transpose()
    }

    /// The bot of a channel within the scope.
    pub async fn bot_of(&mut self, scope: Scope, id: ChannelId) -> Result<Option<BotId>> {
        let bot: Option<String> = on!(self.0, |conn| sqlx::query_scalar(
            "SELECT b.id FROM channels c JOIN bots b ON b.id = c.bot_id
            WHERE c.id = $1 AND (CAST($2 AS TEXT) IS NULL OR b.owner_id = $2)"
        )
        .bind(id.to_string())
        .bind(scope.owner())
        .fetch_optional(conn)
        .await)?;
        bot.as_deref().map(stored_id).transpose()
    }

    /// How many deliveries are in which state, for a bot's channels from `first` to `last` by id.
    pub async fn deliveries_by_state(
        &mut self,
        bot_id: BotId,
        first: ChannelId,
        last: ChannelId,
    ) -> Result<Vec<(ChannelId, String, i64)>> {
        let rows: Vec<(String, String, i64)> = on!(self.0, |conn| sqlx::query_as(
            "SELECT channel_id, state, count(*) FROM deliveries WHERE channel_id IN (
                SELECT id FROM channels WHERE bot_id = $1 AND id >= $2 AND id <= $3)
            GROUP BY channel_id, state"
        )
        .bind(bot_id.to_string())
        .bind(first.to_string())
        .bind(last.to_string())
        .fetch_all(conn)
        .await)?;
        rows.into_iter().map(|(id, state, count)| Ok((stored_id(&id)?, state, count))).collect()
    }

    /// The revision of a bot's rules, for the workers; `None` when the bot is gone.
    pub async fn config_rev(&mut self, bot_id: BotId) -> Result<Option<i64>> {
        on!(self.0, |conn| sqlx::query_scalar("SELECT config_rev FROM bots WHERE id = $1")
            .bind(bot_id.to_string())
            .fetch_optional(conn)
            .await)
    }

    /// Every channel of a bot, oldest first, for the workers.
    pub async fn of_bot(&mut self, bot_id: BotId) -> Result<Vec<ChannelRecord>> {
        let rows: Vec<Row> = on!(self.0, |conn| sqlx::query_as(select!("WHERE bot_id = $1 ORDER BY id"))
            .bind(bot_id.to_string())
            .fetch_all(conn)
            .await)?;
        records(rows)
    }

    /// The channel behind a key that is valid at `now`, and whether it and its owner are switched on.
    pub async fn find_by_key(
        &mut self,
        hash: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<(ChannelActor, bool)>> {
        let row: Option<(String, String, String, bool, String)> = on!(self.0, |conn| sqlx::query_as(
            "SELECT channels.id, bots.id, bots.owner_id, channels.enabled, users.status
            FROM channels JOIN bots ON bots.id = channels.bot_id JOIN users ON users.id = bots.owner_id
            WHERE channels.key_hash = $1 OR (channels.old_key_hash = $1 AND channels.old_key_until > $2)"
        )
        .bind(hash.as_str())
        .bind(now.as_millis())
        .fetch_optional(conn)
        .await)?;
        let Some((channel, bot, owner, enabled, status)) = row else { return Ok(None) };
        let actor = ChannelActor {
            channel_id: stored_id(&channel)?,
            bot_id: stored_id(&bot)?,
            owner_id: stored_id(&owner)?,
            key: KeyMark::of(hash.as_str()),
        };
        Ok(Some((actor, enabled && status == "active")))
    }
}

/// Writing; [`Channels::begin_change`] comes first.
impl Channels<'_> {
    /// Raises the revision of the bot's rules: batches accepted under the old ones are refused from the
    /// commit on.
    ///
    /// # Errors
    /// `NOT_FOUND` when the bot does not exist within the scope.
    pub async fn begin_change(&mut self, scope: Scope, bot_id: BotId) -> Result<()> {
        let rows = on!(self.0, |conn| sqlx::query(
            "UPDATE bots SET config_rev = config_rev + 1
            WHERE id = $1 AND (CAST($2 AS TEXT) IS NULL OR owner_id = $2)"
        )
        .bind(bot_id.to_string())
        .bind(scope.owner())
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        if rows == 0 { Err(Error::not_found("bot")) } else { Ok(()) }
    }

    /// How many channels a bot has.
    pub async fn count(&mut self, bot_id: BotId) -> Result<i64> {
        on!(self.0, |conn| sqlx::query_scalar("SELECT count(*) FROM channels WHERE bot_id = $1")
            .bind(bot_id.to_string())
            .fetch_one(conn)
            .await)
    }

    /// Whether a bot has another channel than `except` with this name. The case of letters does not count; it is compared
    /// here, because the databases differ in what they know of it.
    pub async fn has_name(&mut self, bot_id: BotId, name: &str, except: ChannelId) -> Result<bool> {
        let names: Vec<String> = on!(self.0, |conn| sqlx::query_scalar(
            "SELECT name FROM channels WHERE bot_id = $1 AND id <> $2"
        )
        .bind(bot_id.to_string())
        .bind(except.to_string())
        .fetch_all(conn)
        .await)?;
        let wanted = name.to_lowercase();
        Ok(names.iter().any(|name| name.to_lowercase() == wanted))
    }

    /// Adds a channel.
    ///
    /// # Errors
    /// A constraint error when the bot has another channel with the handle.
    pub async fn insert(&mut self, channel: &ChannelRecord, key_hash: &TokenHash) -> Result<()> {
        on!(self.0, |conn| sqlx::query(
            "INSERT INTO channels (id, bot_id, name, handle, enabled, key_hash, key_last4, filter, websocket,
                webhook, webhook_secret, ai, ai_api_key, on_plugin_error, lane_hold_s, last_seq, created_at,
                updated_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)"
        )
        .bind(channel.id.to_string())
        .bind(channel.bot_id.to_string())
        .bind(&channel.name)
        .bind(&channel.handle)
        .bind(channel.enabled)
        .bind(key_hash.as_str())
        .bind(&channel.key_last4)
        .bind(&channel.filter)
        .bind(&channel.websocket)
        .bind(&channel.webhook)
        .bind(channel.webhook_secret.as_ref().map(Sealed::as_str))
        .bind(&channel.ai)
        .bind(channel.ai_api_key.as_ref().map(Sealed::as_str))
        .bind(channel.on_plugin_error.as_str())
        .bind(i64::from(channel.lane_hold_s))
        .bind(channel.last_seq)
        .bind(channel.created_at.as_millis())
        .bind(channel.updated_at.as_millis())
        .execute(conn)
        .await
        .map(|_| ()))
    }

    /// Writes what a caller may change about a channel. What the delivery counts (`last_seq` and the like) is
    /// left alone; with [`Aftermath::RestartWebhook`] it is forgotten that the webhook failed for long.
    ///
    /// # Errors
    /// A constraint error when the bot has another channel with the handle.
    pub async fn update(&mut self, channel: &ChannelRecord, aftermath: Aftermath) -> Result<()> {
        let restart = aftermath == Aftermath::RestartWebhook;
        on!(self.0, |conn| sqlx::query(
            "UPDATE channels SET name = $2, handle = $3, enabled = $4, filter = $5, websocket = $6,
                webhook = $7, webhook_secret = $8, webhook_old_secret = $9, webhook_old_until = $10, ai = $11,
                ai_api_key = $12, on_plugin_error = $13, lane_hold_s = $14, updated_at = $15,
                failing_since = CASE WHEN $16 THEN NULL ELSE failing_since END,
                webhook_disabled = CASE WHEN $16 THEN NULL ELSE webhook_disabled END
            WHERE id = $1"
        )
        .bind(channel.id.to_string())
        .bind(&channel.name)
        .bind(&channel.handle)
        .bind(channel.enabled)
        .bind(&channel.filter)
        .bind(&channel.websocket)
        .bind(&channel.webhook)
        .bind(channel.webhook_secret.as_ref().map(Sealed::as_str))
        .bind(channel.webhook_old_secret.as_ref().map(Sealed::as_str))
        .bind(channel.webhook_old_until.map(Timestamp::as_millis))
        .bind(&channel.ai)
        .bind(channel.ai_api_key.as_ref().map(Sealed::as_str))
        .bind(channel.on_plugin_error.as_str())
        .bind(i64::from(channel.lane_hold_s))
        .bind(channel.updated_at.as_millis())
        .bind(restart)
        .execute(conn)
        .await
        .map(|_| ()))
    }

    /// Puts a new key in the place of the current one, which stays valid until `new.old_until` or ends now.
    /// One statement, so that of parallel calls each ends the key of the one before. Returns whether the
    /// channel exists.
    pub async fn replace_key(&mut self, bot_id: BotId, id: ChannelId, new: &NewKey) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "UPDATE channels SET key_hash = $3, key_last4 = $4, old_key_until = $5, updated_at = $6,
                old_key_hash = CASE WHEN CAST($5 AS BIGINT) IS NULL THEN NULL ELSE key_hash END
            WHERE id = $1 AND bot_id = $2"
        )
        .bind(id.to_string())
        .bind(bot_id.to_string())
        .bind(new.hash.as_str())
        .bind(&new.last4)
        .bind(new.old_until.map(Timestamp::as_millis))
        .bind(new.at.as_millis())
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows > 0)
    }

    /// Deletes a channel with its log, deliveries and traces. Returns whether it existed.
    pub async fn delete(&mut self, bot_id: BotId, id: ChannelId) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query("DELETE FROM channels WHERE id = $1 AND bot_id = $2")
            .bind(id.to_string())
            .bind(bot_id.to_string())
            .execute(conn)
            .await
            .map(|done| done.rows_affected()))?;
        Ok(rows > 0)
    }
}

#[cfg(any(test, feature = "testing"))]
impl Channels<'_> {
    /// Runs any statement: tests set up what other nouns and the workers write.
    pub async fn execute(&mut self, sql: String) -> Result<()> {
        on!(self.0, |conn| sqlx::query(sqlx::AssertSqlSafe(sql)).execute(conn).await.map(|_| ()))
    }
}
