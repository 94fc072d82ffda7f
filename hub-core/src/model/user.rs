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
#[derive(Debug, Clone, PartialEq, Eq, FromRow, hub_macros::Api)]
#[row(table = "users")]
pub struct User {
    /// Id of the user.
    pub id: UserId,
    /// Name to sign in with.
    pub username: String,
    /// Display name.
    pub display_name: String,
    /// E-mail address; empty if none was given.
    pub email: String,
    /// Role of the user.
    pub role: Role,
    /// Whether the user may sign in.
    pub status: UserStatus,
    /// When the account was created.
    #[api(skip)]
    pub created_at: Timestamp,
}

words! {
    /// Whether a user may sign in.
    #[api(name = "AccountStatus")]
    pub enum UserStatus {
        /// May sign in.
        Active = "active",
        /// May not sign in.
        Disabled = "disabled",
    }
}

/// A change of a profile; absent fields keep their values.
#[derive(Debug, Clone, PartialEq, Eq, Default, hub_macros::Api)]
#[api(name = "UpdateProfile", input, checked, example = { "display_name": "Alice", "email": "alice@example.com" })]
pub struct ProfilePatch {
    /// Display name.
    #[api(line = 1..=64)]
    pub display_name: Option<String>,
    /// E-mail address; an empty text removes it.
    #[api(length = 0..=254)]
    pub email: Option<String>,
}

/// An API key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, FromRow, hub_macros::Api)]
#[row(table = "user_keys")]
pub struct ApiKey {
    /// Id of the key.
    pub id: KeyId,
    /// Name of the key.
    pub name: String,
    /// Last four characters of the secret.
    #[api(skip, and(prefix: String = Self::prefix, "First and last characters of the key."))]
    pub last4: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires; absent if it does not expire.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute; absent if never.
    pub last_used_at: Option<Timestamp>,
}

impl ApiKey {
    /// Returns the part of the secret that is shown after its creation: its prefix and the last four characters.
    pub fn prefix(&self) -> String {
        format!("{}…{}", TokenKind::UserKey.prefix(), self.last4)
    }
}

/// A passkey of the signed-in user.
#[derive(Debug, Clone, PartialEq, Eq, FromRow, hub_macros::Api)]
#[row(table = "passkeys")]
#[api(example = {
    "created_at": "2026-11-21T09:30:00.000Z",
    "id": "pky_01KAJJS8P00000000000000003",
    "name": "Phone",
})]
pub struct Passkey {
    /// The id.
    pub id: PasskeyId,
    /// Name of the passkey.
    pub name: String,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was last used to sign in; `null` if never.
    pub last_used_at: Option<Timestamp>,
}

/// A linked account of the signed-in user.
#[derive(Debug, Clone, PartialEq, Eq, FromRow, hub_macros::Api)]
#[row(table = "external_accounts")]
#[api(example = {
    "avatar_url": "https://avatars.githubusercontent.com/u/583231",
    "created_at": "2026-11-21T09:30:00.000Z",
    "provider": "github",
    "subject": "583231",
    "username": "octocat",
})]
pub struct ExternalAccount {
    /// Name of the provider.
    pub provider: String,
    /// Id of the account at the provider.
    pub subject: String,
    /// Name of the account at the provider; empty if unknown.
    pub username: String,
    /// Picture of the account at the provider; empty if unknown.
    pub avatar_url: String,
    /// When it was linked.
    pub created_at: Timestamp,
}
