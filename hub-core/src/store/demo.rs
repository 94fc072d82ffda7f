//! Statements about the demo: its bot, and its owner.

use super::conn::{Conn, sql};
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
        sql!(self.0, optional_value: "SELECT value FROM meta WHERE key = 'demo.bot'")
    }

    /// Remembers the seeded bot.
    pub async fn remember_bot(&mut self, id: BotId) -> Result<()> {
        sql!(self.0, run:
            "INSERT INTO meta (key, value) VALUES ('demo.bot', $1) \
             ON CONFLICT (key) DO UPDATE SET value = excluded.value";
            id
        )
    }

    /// The app under test and its bot, whether they still exist or not.
    pub async fn app(&mut self) -> Result<Option<(BotId, AppId)>> {
        let text: Option<String> =
            sql!(self.0, optional_value: "SELECT value FROM meta WHERE key = 'demo.app'")?;
        let read = |text: String| {
            let (bot, app) = text.split_once(' ')?;
            Some((bot.parse().ok()?, app.parse().ok()?))
        };
        text.map(|text| read(text).ok_or_else(|| Error::internal("the store holds a broken id"))).transpose()
    }

    /// Remembers the app under test and its bot.
    pub async fn remember_app(&mut self, bot: BotId, app: AppId) -> Result<()> {
        sql!(self.0, run:
            "INSERT INTO meta (key, value) VALUES ('demo.app', $1) \
             ON CONFLICT (key) DO UPDATE SET value = excluded.value";
            format!("{bot} {app}")
        )
    }

    /// Returns the user who owns the demo when it is seeded: the oldest admin, or else the demo user.
    pub async fn holder(&mut self) -> Result<Option<UserId>> {
        sql!(self.0, optional_value:
            "SELECT id FROM users WHERE role = 'admin' OR username = $1 \
             ORDER BY CASE role WHEN 'admin' THEN 0 ELSE 1 END, id LIMIT 1";
            DEMO_USER
        )
    }

    /// Moves the demo user's objects to a user who can sign in, and deletes the demo user.
    pub async fn hand_over(&mut self, to: UserId) -> Result<()> {
        sql!(self.0, run:
            "UPDATE bots SET owner_id = $1 WHERE owner_id IN (SELECT id FROM users WHERE username = $2)";
            to, DEMO_USER
        )?;
        sql!(self.0, run:
            "UPDATE apps SET owner_id = $1 WHERE owner_id IN (SELECT id FROM users WHERE username = $2)";
            to, DEMO_USER
        )?;
        sql!(self.0, run: "DELETE FROM users WHERE username = $1"; DEMO_USER)
    }
}
