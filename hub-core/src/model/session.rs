//! Sessions, and sign-ins that are not complete yet.

use std::net::IpAddr;

use crate::{id::SessionId, time::Timestamp, words::words};

/// A session in the list of its user.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::FromRow)]
#[row(table = "sessions")]
pub struct Session {
    /// The id; it is not the secret in the cookie.
    pub id: SessionId,
    /// When the user signed in.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_seen_at: Timestamp,
    /// Address it was opened from; empty when unknown.
    pub ip: String,
    /// Program it was opened with; empty when unknown.
    pub user_agent: String,
    /// Whether it is the one that asks.
    #[row(skip)]
    pub current: bool,
}

/// The client of a sign-in, as shown in the list of sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientInfo {
    /// Network address; unknown for a program that embeds the hub.
    pub ip: Option<IpAddr>,
    /// What the program calls itself; kept to 256 characters without control characters.
    pub user_agent: String,
}

impl ClientInfo {
    pub(crate) fn ip_text(&self) -> String {
        self.ip.map(|ip| ip.to_canonical().to_string()).unwrap_or_default()
    }

    pub(crate) fn cleaned(&self) -> Self {
        let user_agent = self.user_agent.chars().filter(|c| !c.is_control()).take(256).collect();
        Self { ip: self.ip, user_agent }
    }
}

words! {
    /// Status of a login.
    pub enum QrStatus {
        /// The code was not opened yet.
        Waiting = "waiting",
        /// The code was opened.
        Scanned = "scanned",
        /// They have confirmed it: the outcome can be collected.
        Confirmed = "confirmed",
        /// Too late.
        Expired = "expired",
        /// They refused it, or the code was wrong.
        Cancelled = "cancelled",
    }
}

impl QrStatus {
    /// Whether nothing more will come of it.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Confirmed | Self::Expired | Self::Cancelled)
    }
}
