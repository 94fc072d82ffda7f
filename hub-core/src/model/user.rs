//! Users, and what they sign in with.

use hub_macros::FromRow;
use serde::{Deserialize, Serialize};

use crate::{
    access::Role,
    id::{KeyId, PasskeyId, UserId},
    secret::TokenKind,
    time::Timestamp,
    words::words,
};

/// A person with an account.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
#[row(table = "users")]
pub struct User {
    /// The id.
    pub id: UserId,
    /// The name to sign in with: 2 to 32 of `a-z0-9_-`, unique.
    pub username: String,
    /// The name to show.
    pub display_name: String,
    /// E-mail address; empty when none was given. Never checked by mail, never used to sign in.
    pub email: String,
    /// What they may do.
    pub role: Role,
    /// Whether they may do it.
    pub status: UserStatus,
    /// Since when.
    pub created_at: Timestamp,
}

words! {
    /// Whether a user may sign in.
    pub enum UserStatus {
        /// Yes.
        Active = "active",
        /// No; their sessions have ended.
        Disabled = "disabled",
    }
}

/// What changes about a user; what is absent stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProfilePatch {
    /// Another name to show, 1 to 64 characters.
    pub display_name: Option<String>,
    /// Another e-mail address; the empty text removes it.
    pub email: Option<String>,
}

/// An API key, without the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, FromRow)]
#[row(table = "user_keys")]
pub struct ApiKey {
    /// The id.
    pub id: KeyId,
    /// What its user calls it.
    pub name: String,
    /// The last four characters of the secret.
    pub last4: String,
    /// Since when.
    pub created_at: Timestamp,
    /// Until when; `None` until it is ended.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

impl ApiKey {
    /// What is shown of the secret after its creation: its prefix and the last four characters.
    pub fn prefix(&self) -> String {
        format!("{}…{}", TokenKind::UserKey.prefix(), self.last4)
    }
}

/// A passkey in the list of its user.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
#[row(table = "passkeys")]
pub struct Passkey {
    /// The id.
    pub id: PasskeyId,
    /// What its user calls it.
    pub name: String,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was last used to sign in.
    pub last_used_at: Option<Timestamp>,
}

/// A linked account.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
#[row(table = "external_accounts")]
pub struct ExternalAccount {
    /// Name of the provider.
    pub provider: String,
    /// The account's id there.
    pub subject: String,
    /// Its name there; empty when unknown.
    pub username: String,
    /// Its picture there; empty when unknown.
    pub avatar_url: String,
    /// When it was linked.
    pub created_at: Timestamp,
}
