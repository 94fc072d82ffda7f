//! The audit log: every act of an administrator, and every act on a credential (`contract.md` §9; reliability Z11).
//! Entries are only ever added, and forgotten when they are old; they hold no secret, and outlive what they name.
//!
//! An entry is written by the transaction of the act itself:
//! `let entry = ctx.audit(actor, Action::KeyCreated).target(id, name);` before it, and
//! `tx.audit().add(&entry).await?` in it, before whatever deletes the target.

use std::fmt;

use serde_json::Value;

use crate::{
    access::Actor,
    accounts::ClientInfo,
    context::Context,
    id::{AuditId, UserId},
    time::Timestamp,
};

macro_rules! actions {
    ($($(#[$doc:meta])* $action:ident = $word:literal,)*) => {
        /// What was done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Action {
            $($(#[$doc])* $action,)*
        }

        impl Action {
            /// Every action, in the order of this page.
            pub const ALL: &'static [Self] = &[$(Self::$action),*];

            /// The word in the log.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$action => $word,)*
                }
            }
        }
    };
}

actions! {
    /// Somebody made an account.
    UserRegistered = "user.registered",
    /// The operator made an administrator.
    UserCreated = "user.created",
    /// An administrator changed a user's role, status or name.
    UserUpdated = "user.updated",
    /// An administrator deleted a user.
    UserDeleted = "user.deleted",
    /// Somebody signed in; the detail says how.
    Login = "user.login",
    /// Somebody failed to sign in as a user that exists.
    LoginFailed = "user.login_failed",
    /// Somebody signed out.
    Logout = "user.logout",
    /// Somebody ended one of their sessions.
    SessionEnded = "session.ended",
    /// Somebody changed their password, or got their first one.
    PasswordChanged = "password.changed",
    /// An administrator made a link with which a user sets a new password.
    ResetLinkCreated = "reset_link.created",
    /// Somebody set a new password with such a link.
    PasswordReset = "password.reset",
    /// Somebody added a passkey to their account.
    PasskeyAdded = "passkey.added",
    /// Somebody deleted one of their passkeys.
    PasskeyDeleted = "passkey.deleted",
    /// Somebody linked an account at an external provider.
    AccountLinked = "external_account.linked",
    /// Somebody unlinked one.
    AccountUnlinked = "external_account.unlinked",
    /// Somebody confirmed or refused a login by QR code, or ended it with a wrong code.
    QrLoginDecided = "qr_login.decided",
    /// Somebody made an API key.
    KeyCreated = "api_key.created",
    /// Somebody ended an API key.
    KeyDeleted = "api_key.deleted",
    /// Somebody gave a channel a new key.
    ChannelKeyRegenerated = "channel_key.regenerated",
    /// Somebody made an app.
    AppCreated = "app.created",
    /// Somebody deleted an app.
    AppDeleted = "app.deleted",
    /// An administrator decided about the listing of an app.
    AppReviewed = "app.reviewed",
    /// Somebody put an app onto a bot, which made its token.
    AppInstalled = "app.installed",
    /// Somebody took an app off a bot, which ended its token.
    AppUninstalled = "app.uninstalled",
    /// Somebody gave an app on a bot a new token.
    AppTokenRegenerated = "app_token.regenerated",
    /// An administrator made an invitation.
    InviteCreated = "invite.created",
    /// A reviewer approved a version of a plugin; the detail says which, and the hash of its source.
    PluginApproved = "plugin.approved",
    /// A reviewer rejected a version of a plugin.
    PluginRejected = "plugin.rejected",
    /// A reviewer or its author took back a version of a plugin.
    PluginWithdrawn = "plugin.withdrawn",
    /// An administrator or its author deleted a plugin.
    PluginDeleted = "plugin.deleted",
    /// An administrator ended sessions of a user.
    SessionsEnded = "user.sessions_ended",
    /// An administrator changed the AI endpoint of the hub.
    AiConfigChanged = "ai_config.changed",
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An entry on its way into the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntry {
    /// Its id.
    pub id: AuditId,
    /// When.
    pub at: Timestamp,
    /// Who, as in [`AuditEntry::actor`].
    pub actor: String,
    /// With which session or key.
    pub credential: String,
    /// What was done.
    pub action: Action,
    /// To what.
    pub target: String,
    /// The name of that, unless it is a user.
    pub target_name: String,
    /// What else is known.
    pub detail: Value,
    /// Address, unless there is a session that has one.
    pub ip: String,
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its id.
    pub id: AuditId,
    /// When.
    pub at: Timestamp,
    /// Id of the user who acted, `operator` for the command line on the machine, empty for a stranger.
    pub actor: String,
    /// The user's name at that time.
    pub actor_name: String,
    /// Id of the session or key they acted with; empty without one.
    pub credential: String,
    /// A word of [`Action`].
    pub action: String,
    /// Id of what it was done to.
    pub target: String,
    /// The name of that at the time.
    pub target_name: String,
    /// What else is known: `{}` or an object. Never a secret.
    pub detail: Value,
    /// Address the credential was made from; empty when unknown.
    pub ip: String,
}

impl Context {
    /// An entry about something that an actor does now.
    pub fn audit(&self, actor: &Actor, action: Action) -> NewEntry {
        let (who, credential) = match actor {
            Actor::User(user) => {
                let session = user.session_id.map(|id| id.to_string());
                (user.user_id.to_string(), session.or_else(|| user.key_id.map(|id| id.to_string())))
            }
            Actor::Channel(_) | Actor::App(_) | Actor::Operator => (actor.principal(), None),
        };
        NewEntry { credential: credential.unwrap_or_default(), ..self.audit_of(who, action) }
    }

    /// An entry about somebody who signs in or up, or tries to; without a user it is a stranger.
    pub fn audit_sign_in(&self, user: Option<UserId>, action: Action, client: &ClientInfo) -> NewEntry {
        let who = user.map(|id| id.to_string()).unwrap_or_default();
        NewEntry { ip: client.ip_text(), ..self.audit_of(who, action) }
    }

    fn audit_of(&self, actor: String, action: Action) -> NewEntry {
        NewEntry {
            id: self.ids.next(),
            at: self.store.now(),
            actor,
            credential: String::new(),
            action,
            target: String::new(),
            target_name: String::new(),
            detail: Value::Object(serde_json::Map::new()),
            ip: String::new(),
        }
    }
}

impl NewEntry {
    /// What it was done to. The name of a user is looked up when the entry is written.
    #[must_use]
    pub fn target(self, id: impl fmt::Display, name: impl Into<String>) -> Self {
        Self { target: id.to_string(), target_name: name.into(), ..self }
    }

    /// What else is worth knowing: an object without secrets.
    #[must_use]
    pub fn detail(self, detail: Value) -> Self {
        Self { detail, ..self }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_action_has_a_word_of_its_own() {
        let words: HashSet<_> = Action::ALL.iter().map(|action| action.as_str()).collect();
        assert_eq!(words.len(), Action::ALL.len());
        assert!(words.iter().all(|word| {
            word.split_once('.').is_some_and(|(noun, verb)| !noun.is_empty() && !verb.is_empty())
        }));
    }
}
