//! Statements about the people a bot talks to.

use std::collections::HashMap;

use super::conn::{Conn, sql};
use crate::{
    error::Result,
    id::{BotId, UserId},
    model::bot::StoredContact,
    secret::Sealed,
    text::json,
    time::Timestamp,
};

/// Statements about contacts, on a lent connection.
#[derive(Debug)]
pub struct Contacts<'c>(pub(super) Conn<'c>);

/// `SELECT` of [`StoredContact`] with the rest of the statement.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT user_id, user_name, remark, avatar_url, message_count, last_message_at, recent_sends,
                window_opened_at AS opened_at, window_sends AS sends, window_closed AS closed
             FROM contacts ",
            $rest
        )
    };
}

/// The statement of [`Contacts::page`].
const PAGE: &str = select!(
    "WHERE bot_id = $1 AND (last_message_at, user_id) < ($2, $3)
     ORDER BY last_message_at DESC, user_id DESC LIMIT $4"
);

impl Contacts<'_> {
    /// Reads a person's sealed permission to answer, if there is one. The caller has authorized the request.
    pub async fn context_token(&mut self, bot_id: BotId, user_id: &str) -> Result<Option<Sealed>> {
        let token: Option<Option<Sealed>> = sql!(self.0, optional_value:
            "SELECT context_token FROM contacts WHERE bot_id = $1 AND user_id = $2";
            bot_id, user_id
        )?;
        Ok(token.flatten())
    }

    /// A page of a bot's contacts after the position `after` (time and user id of the last row of the previous page),
    /// most recently active first. The caller has checked the owner of the bot.
    pub async fn page(
        &mut self,
        bot_id: BotId,
        after: Option<(Timestamp, &str)>,
        limit: u32,
    ) -> Result<Vec<StoredContact>> {
        let (at, user) = after.unwrap_or((Timestamp::MAX, ""));
        sql!(self.0, all: PAGE; bot_id, at, user, i64::from(limit))
    }

    /// Reads one contact of a bot. The caller has authorized the request.
    pub async fn find(&mut self, bot_id: BotId, user_id: &str) -> Result<Option<StoredContact>> {
        sql!(self.0, optional: select!("WHERE bot_id = $1 AND user_id = $2"); bot_id, user_id)
    }

    /// Returns the names of people: the name on the network, or else the owner's remark; people with neither are left
    /// out.
    pub async fn names(&mut self, bot_id: BotId, users: &[&str]) -> Result<HashMap<String, String>> {
        let rows: Vec<(String, String)> = sql!(self.0, all:
            ["SELECT user_id, COALESCE(NULLIF(user_name, ''), remark) FROM contacts
            WHERE bot_id = $1 AND user_id", in 2];
            bot_id, json(users)
        )?;
        Ok(rows.into_iter().filter(|(_, name)| !name.is_empty()).collect())
    }

    /// Sets the remark of a contact whose bot is in a scope; returns whether there is one.
    pub async fn set_remark(
        &mut self,
        owner: Option<UserId>,
        bot_id: BotId,
        user_id: &str,
        remark: &str,
    ) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE contacts SET remark = $4 WHERE bot_id = $1 AND user_id = $2 AND EXISTS (
            SELECT 1 FROM bots WHERE id = $1 AND (CAST($3 AS TEXT) IS NULL OR owner_id = $3))";
            bot_id, user_id, owner, remark
        )?;
        Ok(rows == 1)
    }

    /// Forgets every permission to answer that a bot holds: they belong to a login that was replaced. Of people who
    /// wrote before it is noted when that was.
    pub async fn close_windows(&mut self, bot_id: BotId, now: Timestamp) -> Result<()> {
        sql!(self.0, run:
            "UPDATE contacts SET context_token = NULL, window_opened_at = NULL, window_sends = 0,
               window_closed = CASE WHEN window_opened_at IS NOT NULL OR window_closed IS NOT NULL THEN $2 END
            WHERE bot_id = $1";
            bot_id, now.as_millis().to_string()
        )
    }
}
