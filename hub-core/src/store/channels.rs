//! Statements about channels.
//!
//! A change to a channel is two or three statements of one command, and the first is always
//! [`Channels::begin_change`]: it checks whose bot it is, raises the revision of the bot's rules and holds
//! the bot's row, so that changes to one bot's channels run one after the other on every node.

use super::conn::{Conn, sql};
use crate::{
    access::{ChannelActor, Scope},
    error::{Error, Result},
    id::{BotId, ChannelId, UserId},
    model::{
        channel::{AfterChange, ChannelHealth, ChannelRecord, ChannelTotals, NewKey},
        trace::DeliveryState,
        user::UserStatus,
    },
    page::PageRequest,
    secret::{KeyMark, TokenHash},
    time::Timestamp,
};

/// Statements about channels, on a lent connection.
#[derive(Debug)]
pub struct Channels<'c>(pub(super) Conn<'c>);

/// `SELECT` with the columns of [`ChannelRecord`] and the rest of the statement.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, bot_id, name, handle, enabled, key_last4, filter, websocket, ilink, webhook, webhook_secret,
                webhook_old_secret, webhook_old_until, webhook_disabled, ai, ai_api_key, on_plugin_error,
                lane_hold_s, last_seq, created_at, updated_at
             FROM channels ",
            $rest
        )
    };
}

/// The columns of a [`ChannelHealth`] of the channel `c`, each from an index.
macro_rules! health {
    () => {
        "c.failing_since,
         (SELECT s.last_at FROM successes s WHERE s.channel_id = c.id) AS last_ok_at,
         (SELECT MIN(open.due_at) FROM (
            SELECT due_at FROM (SELECT d.due_at FROM deliveries d WHERE d.channel_id = c.id AND d.state = 'pending'
                ORDER BY d.id LIMIT 1000) AS held
            UNION ALL
            SELECT due_at FROM (SELECT d.due_at FROM deliveries d WHERE d.channel_id = c.id AND d.state = 'parked'
                ORDER BY d.id LIMIT 1000) AS parked) AS open) AS next_attempt_at,
         (SELECT COUNT(*) FROM deliveries d WHERE d.channel_id = c.id AND d.state = 'parked') AS parked,
         (SELECT COUNT(*) FROM deliveries d WHERE d.channel_id = c.id AND d.state = 'dead') AS dead"
    };
}

/// Reading.
impl Channels<'_> {
    /// Whether the bot exists within the scope.
    pub async fn sees_bot(&mut self, scope: Scope, bot_id: BotId) -> Result<bool> {
        let found: Option<i64> = sql!(self.0, optional_value:
            "SELECT config_rev FROM bots WHERE id = $1 AND (CAST($2 AS TEXT) IS NULL OR owner_id = $2)";
            bot_id, scope.owner()
        )?;
        Ok(found.is_some())
    }

    /// A page of a bot's channels, newest first, with one row more than wanted when more follow.
    pub async fn page(
        &mut self,
        scope: Scope,
        bot_id: BotId,
        page: &PageRequest,
    ) -> Result<Vec<ChannelRecord>> {
        sql!(self.0, all:
            select!("WHERE bot_id = $1 AND id < $2 AND EXISTS (
                SELECT 1 FROM bots WHERE bots.id = channels.bot_id
                AND (CAST($3 AS TEXT) IS NULL OR bots.owner_id = $3))
            ORDER BY id DESC LIMIT $4");
            bot_id, page.before(ChannelId::MAX), scope.owner(), i64::from(page.limit()) + 1
        )
    }

    /// One channel of a bot.
    pub async fn find(
        &mut self,
        scope: Scope,
        bot_id: BotId,
        id: ChannelId,
    ) -> Result<Option<ChannelRecord>> {
        sql!(self.0, optional:
            select!("WHERE id = $1 AND bot_id = $2 AND EXISTS (
                SELECT 1 FROM bots WHERE bots.id = channels.bot_id
                AND (CAST($3 AS TEXT) IS NULL OR bots.owner_id = $3))");
            id, bot_id, scope.owner()
        )
    }

    /// The bot of a channel within the scope.
    pub async fn bot_of(&mut self, scope: Scope, id: ChannelId) -> Result<Option<BotId>> {
        sql!(self.0, optional_value:
            "SELECT b.id FROM channels c JOIN bots b ON b.id = c.bot_id
            WHERE c.id = $1 AND (CAST($2 AS TEXT) IS NULL OR b.owner_id = $2)";
            id, scope.owner()
        )
    }

    /// Counts deliveries by state for a bot's channels from `first` to `last` by id.
    pub async fn deliveries_by_state(
        &mut self,
        bot_id: BotId,
        first: ChannelId,
        last: ChannelId,
    ) -> Result<Vec<(ChannelId, DeliveryState, i64)>> {
        sql!(self.0, all:
            "SELECT channel_id, state, count(*) FROM deliveries WHERE state <> 'done' AND channel_id IN (
                SELECT id FROM channels WHERE bot_id = $1 AND id >= $2 AND id <= $3)
            GROUP BY channel_id, state
            UNION ALL
            SELECT s.channel_id, 'done', s.count FROM channels c JOIN successes s ON s.channel_id = c.id
            WHERE c.bot_id = $1 AND c.id >= $2 AND c.id <= $3 AND s.count > 0";
            bot_id, first, last
        )
    }

    /// Reads the delivery health of a bot's channels from `first` to `last` by id.
    pub async fn health(
        &mut self,
        bot_id: BotId,
        first: ChannelId,
        last: ChannelId,
    ) -> Result<Vec<(ChannelId, ChannelHealth)>> {
        #[derive(hub_macros::FromRow)]
        struct Row {
            id: ChannelId,
            #[row(flatten)]
            health: ChannelHealth,
        }
        let rows: Vec<Row> = sql!(self.0, all:
            concat!("SELECT c.id, ", health!(), " FROM channels c WHERE c.bot_id = $1 AND c.id >= $2 AND c.id <= $3");
            bot_id, first, last
        )?;
        Ok(rows.into_iter().map(|row| (row.id, row.health)).collect())
    }

    /// The newest channels of all bots of a user with their numbers.
    pub async fn totals(&mut self, owner: UserId, limit: u32) -> Result<Vec<ChannelTotals>> {
        sql!(self.0, all:
            concat!(
                "SELECT c.id, c.bot_id, c.name, c.last_seq AS received,
                    (SELECT COUNT(*) FROM deliveries d WHERE d.channel_id = c.id AND d.state = 'pending') AS pending, ",
                health!(),
                " FROM bots b JOIN channels c ON c.bot_id = b.id WHERE b.owner_id = $1 ORDER BY c.id DESC LIMIT $2"
            );
            owner, i64::from(limit)
        )
    }

    /// The revision of a bot's rules, for the workers; `None` when the bot is gone.
    pub async fn config_rev(&mut self, bot_id: BotId) -> Result<Option<i64>> {
        sql!(self.0, optional_value: "SELECT config_rev FROM bots WHERE id = $1"; bot_id)
    }

    /// Every channel of a bot, oldest first, for the workers.
    pub async fn of_bot(&mut self, bot_id: BotId) -> Result<Vec<ChannelRecord>> {
        sql!(self.0, all: select!("WHERE bot_id = $1 ORDER BY id"); bot_id)
    }

    /// Finds the channel with a key that is valid at `now`, and whether it and its owner are enabled.
    pub async fn find_by_key(
        &mut self,
        hash: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<(ChannelActor, bool)>> {
        let row: Option<(ChannelId, BotId, UserId, bool, UserStatus)> = sql!(self.0, optional:
            "SELECT channels.id, bots.id, bots.owner_id, channels.enabled, users.status
            FROM channels JOIN bots ON bots.id = channels.bot_id JOIN users ON users.id = bots.owner_id
            WHERE channels.key_hash = $1 OR (channels.old_key_hash = $1 AND channels.old_key_until > $2)";
            hash, now
        )?;
        let key = KeyMark::of(hash.as_str());
        Ok(row.map(|(channel_id, bot_id, owner_id, enabled, status)| {
            (
                ChannelActor { channel_id, bot_id, owner_id, key, ilink: None },
                enabled && status == UserStatus::Active,
            )
        }))
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
        let rows = sql!(self.0, execute:
            "UPDATE bots SET config_rev = config_rev + 1
            WHERE id = $1 AND (CAST($2 AS TEXT) IS NULL OR owner_id = $2)";
            bot_id, scope.owner()
        )?;
        if rows == 0 { Err(Error::not_found("bot")) } else { Ok(()) }
    }

    /// Counts the channels of a bot.
    pub async fn count(&mut self, bot_id: BotId) -> Result<i64> {
        sql!(self.0, value: "SELECT count(*) FROM channels WHERE bot_id = $1"; bot_id)
    }

    /// Whether a bot has another channel than `except` with this name. The case of letters does not count; it is compared
    /// here, because the databases differ in what they know of it.
    pub async fn has_name(&mut self, bot_id: BotId, name: &str, except: ChannelId) -> Result<bool> {
        let names: Vec<String> = sql!(self.0, values:
            "SELECT name FROM channels WHERE bot_id = $1 AND id <> $2";
            bot_id, except
        )?;
        let wanted = name.to_lowercase();
        Ok(names.iter().any(|name| name.to_lowercase() == wanted))
    }

    /// Adds a channel.
    ///
    /// # Errors
    /// A constraint error when the bot has another channel with the handle.
    pub async fn insert(&mut self, channel: &ChannelRecord, key_hash: &TokenHash) -> Result<()> {
        sql!(self.0, insert "channels":
            id = channel.id, bot_id = channel.bot_id, name = &channel.name, handle = &channel.handle,
            enabled = channel.enabled, key_hash = key_hash, key_last4 = &channel.key_last4,
            filter = &channel.filter, websocket = &channel.websocket, ilink = &channel.ilink,
            webhook = &channel.webhook, webhook_secret = &channel.webhook_secret, ai = &channel.ai, ai_api_key = &channel.ai_api_key,
            on_plugin_error = channel.options.on_plugin_error, lane_hold_s = i64::from(channel.options.lane_hold_s),
            last_seq = channel.last_seq, created_at = channel.created_at, updated_at = channel.updated_at
        )
    }

    /// Writes what a caller may change about a channel. What the delivery counts (`last_seq` and the like) is
    /// left alone; with [`AfterChange::RestartWebhook`] it is forgotten that the webhook failed for long.
    ///
    /// # Errors
    /// A constraint error when the bot has another channel with the handle.
    pub async fn update(&mut self, channel: &ChannelRecord, after_change: AfterChange) -> Result<()> {
        let restart = after_change == AfterChange::RestartWebhook;
        sql!(self.0, update "channels":
            name = &channel.name, handle = &channel.handle, enabled = channel.enabled, filter = &channel.filter,
            websocket = &channel.websocket, ilink = &channel.ilink, webhook = &channel.webhook,
            webhook_secret = &channel.webhook_secret,
            webhook_old_secret = &channel.webhook_old_secret, webhook_old_until = channel.webhook_old_until,
            ai = &channel.ai, ai_api_key = &channel.ai_api_key, on_plugin_error = channel.options.on_plugin_error,
            lane_hold_s = i64::from(channel.options.lane_hold_s), updated_at = channel.updated_at;
            ", failing_since = CASE WHEN $2 THEN NULL ELSE failing_since END,
                webhook_disabled = CASE WHEN $2 THEN NULL ELSE webhook_disabled END
            WHERE id = $1";
            channel.id, restart
        )
    }

    /// Puts a new key in the place of the current one, which stays valid until `new.old_until` or ends now.
    /// One statement, so that of parallel calls each ends the key of the one before. Returns whether the
    /// channel exists.
    pub async fn replace_key(&mut self, bot_id: BotId, id: ChannelId, new: &NewKey) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE channels SET key_hash = $3, key_last4 = $4, old_key_until = $5, updated_at = $6,
                old_key_hash = CASE WHEN CAST($5 AS BIGINT) IS NULL THEN NULL ELSE key_hash END
            WHERE id = $1 AND bot_id = $2";
            id, bot_id, &new.hash, &new.last4, new.old_until, new.at
        )?;
        Ok(rows > 0)
    }

    /// Deletes a channel with its log, deliveries and traces. Returns whether it existed.
    pub async fn delete(&mut self, bot_id: BotId, id: ChannelId) -> Result<bool> {
        let rows = sql!(self.0, execute: "DELETE FROM channels WHERE id = $1 AND bot_id = $2"; id, bot_id)?;
        Ok(rows > 0)
    }
}

#[cfg(any(test, feature = "testing"))]
impl Channels<'_> {
    /// Runs any statement: tests set up what other nouns and the workers write.
    pub async fn execute(&mut self, sql: String) -> Result<()> {
        sql!(self.0, run: sqlx::AssertSqlSafe(sql))
    }

    /// Returns every row of every table as SQL literals: tests compare them before and after. SQLite only.
    pub async fn contents(&mut self) -> Result<Vec<String>> {
        let tables: Vec<String> = sql!(self.0, values:
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")?;
        let mut contents = Vec::new();
        for table in tables {
            let columns: Vec<String> =
                sql!(self.0, values: "SELECT name FROM pragma_table_info($1)"; &table)?;
            let quoted: Vec<_> = columns.iter().map(|column| format!("quote(\"{column}\")")).collect();
            let row = quoted.join(" || ', ' || ");
            let select = format!("SELECT '{table}: ' || {row} FROM \"{table}\" ORDER BY 1");
            let rows: Vec<String> = sql!(self.0, values: sqlx::AssertSqlSafe(select))?;
            contents.extend(rows);
        }
        Ok(contents)
    }
}
