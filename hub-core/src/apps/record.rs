//! What an app is.

use serde::{Deserialize, Serialize};

use super::{AppEventKind, AppScopes, AppTool};
use crate::{
    id::{AppId, UserId},
    idempotency,
    secret::Secret,
    time::Timestamp,
};

/// Whether everybody may find an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Listing {
    /// Its author has not asked for it.
    Unlisted,
    /// It waits for an administrator.
    Pending,
    /// Everybody finds it.
    Listed,
    /// An administrator refused.
    Rejected,
}

impl Listing {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Unlisted, Self::Pending, Self::Listed, Self::Rejected];

    /// The word on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unlisted => "unlisted",
            Self::Pending => "pending",
            Self::Listed => "listed",
            Self::Rejected => "rejected",
        }
    }

    /// The state of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|listing| listing.as_str() == word)
    }
}

/// An app (`contract.md` §8).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct App {
    /// Id; also its `client_id`.
    pub id: AppId,
    /// Whose it is.
    pub owner_id: UserId,
    /// Their user name.
    pub owner_name: String,
    /// Name.
    pub name: String,
    /// Short name, unique on the hub.
    pub slug: String,
    /// What it does.
    pub description: String,
    /// Picture; may be empty.
    pub icon_url: String,
    /// Page about it; may be empty.
    pub homepage: String,
    /// Where authorizations may lead, to the letter.
    pub redirect_uris: Vec<String>,
    /// Where its installation begins, if the app wants to begin it itself.
    pub setup_url: Option<String>,
    /// Where events go; `None` for who is not its author.
    pub webhook_url: Option<String>,
    /// Whether whoever answers there has shown that they belong to the app.
    pub webhook_verified: bool,
    /// What it wants to be told of.
    pub events: Vec<AppEventKind>,
    /// What it asks for.
    pub scopes: AppScopes,
    /// What it can be asked to do.
    pub tools: Vec<AppTool>,
    /// Whether everybody may find it.
    pub listing: Listing,
    /// Why an administrator refused.
    pub listing_reason: Option<String>,
    /// Bots it is installed on.
    pub installs: u64,
    /// Since when it exists.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl App {
    /// The app as its author and an administrator see it, or as everybody else does: an address may hold what
    /// only its author has to know.
    #[must_use]
    pub(super) fn shown_to(mut self, user: Option<UserId>) -> Self {
        if user.is_some_and(|user| user != self.owner_id) {
            self.webhook_url = None;
        }
        self
    }
}

/// A new app, and the only sight of its secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreatedApp {
    /// The app.
    pub app: App,
    /// Proves to the token endpoint who asks.
    #[serde(with = "idempotency::exposed")]
    pub client_secret: Secret,
    /// Signs what the hub sends to the app.
    #[serde(with = "idempotency::exposed")]
    pub webhook_secret: Secret,
}

/// Which apps a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AppView {
    /// All that the caller may see: the other three together.
    #[default]
    All,
    /// Their own.
    Own,
    /// Those that everybody finds.
    Public,
    /// Those that are installed on a bot of theirs.
    Installed,
}

impl AppView {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Own => "own",
            Self::Public => "public",
            Self::Installed => "installed",
        }
    }
}
