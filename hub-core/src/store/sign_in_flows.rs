//! Statements about ceremonies of signing in that a browser has begun.

use super::conn::{Conn, sql};
use crate::{
    error::Result,
    secret::{Sealed, TokenHash},
    time::Timestamp,
    words::words,
};

/// Statements about begun ceremonies, on a lent connection.
#[derive(Debug)]
pub struct SignInFlows<'c>(pub(super) Conn<'c>);

words! {
    /// What a ceremony is for; one that was begun for one purpose is worth nothing for another.
    pub enum FlowPurpose {
        /// Making a passkey.
        PasskeyRegistration = "passkey_registration",
        /// Signing in with a passkey.
        PasskeyLogin = "passkey_login",
        /// Signing in with, or linking, an account at an external provider.
        External = "external",
    }
}

/// A ceremony as it is stored.
#[derive(Debug)]
pub struct FlowRow<'a> {
    /// Hash of its id.
    pub id: &'a TokenHash,
    /// Purpose.
    pub purpose: FlowPurpose,
    /// Hash of the browser's cookie.
    pub browser: &'a TokenHash,
    /// Sealed state for the end of the ceremony.
    pub state: &'a Sealed,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of expiry.
    pub expires_at: Timestamp,
}

/// The statement of [`SignInFlows::delete_expired`].
pub(super) const DELETE_EXPIRED: &str = "DELETE FROM sign_in_flows WHERE id IN
        (SELECT id FROM sign_in_flows WHERE expires_at <= $1 LIMIT $2)";

impl SignInFlows<'_> {
    /// Adds a ceremony.
    pub async fn insert(&mut self, row: &FlowRow<'_>) -> Result<()> {
        sql!(self.0, run:
            "INSERT INTO sign_in_flows (id, purpose, browser, state, created_at, expires_at)
            VALUES ($1, $2, $3, $4, $5, $6)";
            row.id, row.purpose, row.browser, row.state, row.created_at, row.expires_at
        )
    }

    /// Deletes the ceremonies that expire first, beyond `keep`; at most 1,000. Returns how many.
    pub async fn trim_all(&mut self, now: Timestamp, keep: u32) -> Result<u64> {
        sql!(self.0, execute:
            "DELETE FROM sign_in_flows WHERE id IN (SELECT id FROM sign_in_flows WHERE expires_at > $1
            ORDER BY expires_at DESC LIMIT 1000 OFFSET $2)";
            now, i64::from(keep)
        )
    }

    /// Forgets a browser's oldest ceremonies beyond `keep`.
    pub async fn trim(&mut self, browser: &TokenHash, keep: u32) -> Result<u64> {
        sql!(self.0, execute:
            "DELETE FROM sign_in_flows WHERE id IN (SELECT id FROM sign_in_flows WHERE browser = $1
            ORDER BY created_at DESC, id DESC LIMIT 1000 OFFSET $2)";
            browser, i64::from(keep)
        )
    }

    /// Takes a ceremony out, once, for the browser that began it; `None` when it is unknown, used, expired,
    /// for another purpose or another browser's.
    pub async fn take(
        &mut self,
        id: &TokenHash,
        purpose: FlowPurpose,
        browser: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<Sealed>> {
        sql!(self.0, optional_value:
            "DELETE FROM sign_in_flows WHERE id = $1 AND purpose = $2 AND browser = $3 AND expires_at > $4
            RETURNING state";
            id, purpose, browser, now
        )
    }

    /// Deletes at most `limit` expired ceremonies and says how many.
    pub async fn delete_expired(&mut self, now: Timestamp, limit: u32) -> Result<u64> {
        sql!(self.0, execute: DELETE_EXPIRED; now, i64::from(limit))
    }
}
