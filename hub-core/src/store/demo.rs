//! Statements about the demo: its bot, and its owner.

use super::conn::{Conn, on};
use crate::{
    error::{Error, Result},
    id::{AppId, BotId, UserId},
};

/// Name of the user that owns the demo until there is an administrator. It cannot be registered: the character is not
/// allowed in a username.
pub const DEMO_USER: &str = "~demo";

/// Statements about the demo, on a lent connection.
#[derive(Debug)]
pub struct Demo<'c>(pub(super) Conn<'c>);

impl Demo<'_> {
    /// The bot that was seeded once, whether it still exists or not.
    pub async fn bot(&mut self) -> Result<Option<BotId>> {
        let text: Option<String> =
            on!(self.0, |conn| sqlx::query_scalar("SELECT value FROM meta WHERE key = 'demo.bot'")
                .fetch_optional(conn)
                .await)?;
        text.map(|text| text.parse().map_err(|_| Error::internal("the store holds a broken id"))).transpose()
    }

    /// Remembers the seeded bot.
    pub async fn remember_bot(&mut self, id: BotId) -> Result<()> {
        on!(self.0, |conn| sqlx::query(
            "INSERT INTO meta (key, value) VALUES ('demo.bot', $1) \
             ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        )
        .bind(id.to_string())
        .execute(conn)
        .await
        .map(|_| ()))
    }

    /// The app under test and its bot, whether they still exist or not.
    pub async fn app(&mut self) -> Result<Option<(BotId, AppId)>> {
        let text: Option<String> =
            on!(self.0, |conn| sqlx::query_scalar("SELECT value FROM meta WHERE key = 'demo.app'")
                .fetch_optional(conn)
                .await)?;
        let read = |text: String| {
            let (bot, app) = text.split_once(' ')?;
            Some((bot.parse().ok()?, app.parse().ok()?))
        };
        text.map(|text| read(text).ok_or_else(|| Error::internal("the store holds a broken id"))).transpose()
    }

    /// Remembers the app under test and its bot.
    pub async fn remember_app(&mut self, bot: BotId, app: AppId) -> Result<()> {
        on!(self.0, |conn| sqlx::query(
            "INSERT INTO meta (key, value) VALUES ('demo.app', $1) \
             ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        )
        .bind(format!("{bot} {app}"))
        .execute(conn)
        .await
        .map(|_| ()))
    }

    /// Who holds the demo at its seeding: the oldest admin, else the demo user.
    pub async fn holder(&mut self) -> Result<Option<UserId>> {
        let text: Option<String> = on!(self.0, |conn| sqlx::query_scalar(
            "SELECT id FROM users WHERE role = 'admin' OR username = $1 \
             ORDER BY CASE role WHEN 'admin' THEN 0 ELSE 1 END, id LIMIT 1"
        )
        .bind(DEMO_USER)
        .fetch_optional(conn)
        .await)?;
        text.map(|text| text.parse().map_err(|_| Error::internal("the store holds a broken id"))).transpose()
    }

    /// Moves the demo user's objects to a user who can sign in, and deletes the demo user.
    pub async fn hand_over(&mut self, to: UserId) -> Result<()> {
        on!(self.0, |conn| sqlx::query(
            "UPDATE bots SET owner_id = $1 WHERE owner_id IN (SELECT id FROM users WHERE username = $2)"
        )
        .bind(to.to_string())
        .bind(DEMO_USER)
        .execute(conn)
        .await
        .map(|_| ()))?;
        on!(self.0, |conn| sqlx::query(
            "UPDATE apps SET owner_id = $1 WHERE owner_id IN (SELECT id FROM users WHERE username = $2)"
        )
        .bind(to.to_string())
        .bind(DEMO_USER)
        .execute(conn)
        .await
        .map(|_| ()))?;
        on!(self.0, |conn| sqlx::query("DELETE FROM users WHERE username = $1")
            .bind(DEMO_USER)
            .execute(conn)
            .await
            .map(|_| ()))
    }
}
