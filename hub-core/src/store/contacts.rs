//! Statements about the people a bot talks to.

use std::collections::HashMap;

use super::conn::{Conn, on, on_each};
use crate::{
    error::Result,
    id::BotId,
    model::{bot::StoredContact, window::Window},
    secret::Sealed,
    text::json,
    time::Timestamp,
};

/// Statements about contacts, on a lent connection.
#[derive(Debug)]
pub struct Contacts<'c>(pub(super) Conn<'c>);

#[derive(hub_macros::FromRow)]
struct Row {
    user_id: String,
    user_name: String,
    remark: String,
    avatar_url: String,
    message_count: i64,
    last_message_at: i64,
    window_opened_at: Option<i64>,
    window_sends: i64,
    window_closed: Option<String>,
    recent_sends: String,
}

impl From<Row> for StoredContact {
    fn from(row: Row) -> Self {
        Self {
            user_id: row.user_id,
            user_name: row.user_name,
            remark: row.remark,
            avatar_url: row.avatar_url,
            message_count: row.message_count,
            last_message_at: Timestamp::from_millis(row.last_message_at),
            window: window(row.window_opened_at, row.window_sends, row.window_closed),
            recent_sends: row.recent_sends,
        }
    }
}

fn window(opened_at: Option<i64>, sends: i64, closed: Option<String>) -> Window {
    Window {
        opened_at: opened_at.map(Timestamp::from_millis),
        sends: u32::try_from(sends).unwrap_or(u32::MAX),
        closed,
    }
}

/// The statement of [`Contacts::page`].
pub(super) const PAGE: &str = "SELECT user_id, user_name, remark, avatar_url, message_count, last_message_at,
        window_opened_at, window_sends, window_closed, recent_sends
     FROM contacts WHERE bot_id = $1 AND (last_message_at, user_id) < ($2, $3)
     ORDER BY last_message_at DESC, user_id DESC LIMIT $4";

impl Contacts<'_> {
    /// A person's sealed permission to answer, if there is one. The caller has checked whose bot it is.
    pub async fn context_token(&mut self, bot_id: BotId, user_id: &str) -> Result<Option<Sealed>> {
        let token: Option<Option<String>> = on!(self.0, |conn| sqlx::query_scalar(
            "SELECT context_token FROM contacts WHERE bot_id = $1 AND user_id = $2"
        )
        .bind(bot_id.to_string())
        .bind(user_id)
        .fetch_optional(conn)
        .await)?;
        Ok(token.flatten().map(Sealed::from))
    }

    /// A page of a bot's contacts after the position `after` (time and user id of the last row of the previous page),
    /// most recently active first. The caller has checked the owner of the bot.
    pub async fn page(
        &mut self,
        bot_id: BotId,
        after: Option<(i64, &str)>,
        limit: u32,
    ) -> Result<Vec<StoredContact>> {
        let (at, user) = after.unwrap_or((i64::MAX, ""));
        let rows: Vec<Row> = on!(self.0, |conn| {
            sqlx::query_as(PAGE)
                .bind(bot_id.to_string())
                .bind(at)
                .bind(user)
                .bind(i64::from(limit))
                .fetch_all(conn)
                .await
        })?;
        Ok(rows.into_iter().map(StoredContact::from).collect())
    }

    /// One contact of a bot. The caller has checked whose bot it is.
    pub async fn find(&mut self, bot_id: BotId, user_id: &str) -> Result<Option<StoredContact>> {
        let row: Option<Row> = on!(self.0, |conn| {
            sqlx::query_as(
            "SELECT user_id, user_name, remark, avatar_url, message_count, last_message_at, window_opened_at,
                window_sends, window_closed, recent_sends
             FROM contacts WHERE bot_id = $1 AND user_id = $2"
        )
        .bind(bot_id.to_string())
        .bind(user_id)
        .fetch_optional(conn)
        .await
        })?;
        Ok(row.map(StoredContact::from))
    }

    /// What people are called, as far as that is known: by their names on the network, or else by their owner's remarks.
    pub async fn names(&mut self, bot_id: BotId, users: &[&str]) -> Result<HashMap<String, String>> {
        let rows: Vec<(String, String)> = on_each!(
            self.0,
            "SELECT user_id, COALESCE(NULLIF(user_name, ''), remark) FROM contacts
             WHERE bot_id = $1 AND user_id IN (SELECT value FROM json_each($2))",
            "SELECT user_id, COALESCE(NULLIF(user_name, ''), remark) FROM contacts
             WHERE bot_id = $1 AND user_id IN (SELECT json_array_elements_text(CAST($2 AS json)))",
            |conn, sql| sqlx::query_as(sql).bind(bot_id.to_string()).bind(json(users)).fetch_all(conn).await
        )?;
        Ok(rows.into_iter().filter(|(_, name)| !name.is_empty()).collect())
    }

    /// Sets the remark of a contact whose bot is in a scope; says whether there is one.
    pub async fn set_remark(
        &mut self,
        owner: Option<String>,
        bot_id: BotId,
        user_id: &str,
        remark: &str,
    ) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "UPDATE contacts SET remark = $4 WHERE bot_id = $1 AND user_id = $2 AND EXISTS (
                SELECT 1 FROM bots WHERE id = $1 AND (CAST($3 AS TEXT) IS NULL OR owner_id = $3))"
        )
        .bind(bot_id.to_string())
        .bind(user_id)
        .bind(&owner)
        .bind(remark)
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows == 1)
    }

    /// Forgets every permission to answer that a bot holds: they belong to a login that was replaced.
    pub async fn close_windows(&mut self, bot_id: BotId) -> Result<()> {
        on!(self.0, |conn| sqlx::query(
            "UPDATE contacts SET context_token = NULL, window_opened_at = NULL, window_sends = 0,
                window_closed = NULL
             WHERE bot_id = $1"
        )
        .bind(bot_id.to_string())
        .execute(conn)
        .await
        .map(|_| ()))
    }
}
