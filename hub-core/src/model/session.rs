//! Sessions, and sign-ins that are not complete yet.

use std::net::IpAddr;

use crate::{id::SessionId, time::Timestamp, words::words};

/// A session of the signed-in user.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::FromRow, hub_macros::Api)]
#[row(table = "sessions")]
#[api(example = {
    "created_at": "2026-11-21T09:30:00.000Z",
    "current": true,
    "id": "ses_01KAJJS8P00000000000000002",
    "ip": "127.0.0.1",
    "last_seen_at": "2026-11-21T09:30:00.000Z",
    "user_agent": "curl/8.14",
})]
pub struct Session {
    /// The id; not the secret in the cookie.
    pub id: SessionId,
    /// When the user signed in.
    pub created_at: Timestamp,
    /// When the session was last used, to the minute.
    pub last_seen_at: Timestamp,
    /// Client address at sign-in; empty if unknown.
    pub ip: String,
    /// User agent at sign-in; empty if unknown.
    pub user_agent: String,
    /// Whether it is the session of this request.
    #[row(skip)]
    pub current: bool,
}

/// The client of a sign-in, as shown in the list of sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientInfo {
    /// Network address; unknown for a program that embeds the hub.
    pub ip: Option<IpAddr>,
    /// Name that the program reports; truncated to 256 characters, without control characters.
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
    /// Status of a QR login.
    #[api(name = "QrLoginStatus")]
    pub enum QrStatus {
        /// The code was not opened yet.
        Waiting = "waiting",
        /// The code was opened.
        Scanned = "scanned",
        /// Confirmed: the session can be collected.
        Confirmed = "confirmed",
        /// Expired.
        Expired = "expired",
        /// Rejected, or the entered code was wrong.
        Cancelled = "cancelled",
    }
}

impl QrStatus {
    /// Whether nothing more will come of it.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Confirmed | Self::Expired | Self::Cancelled)
    }
}
