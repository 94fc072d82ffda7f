//! Entries of the audit log.

use std::fmt::Display;

use serde_json::Value;

use crate::{id::AuditId, time::Timestamp, words::words};

words! {
    /// What was done.
    #[derive(Hash)]
    #[non_exhaustive]
    pub enum Action {
        /// An account was created.
        UserRegistered = "user.registered",
        /// The operator made an administrator.
        UserCreated = "user.created",
        /// An administrator changed a user's role, status or name.
        UserUpdated = "user.updated",
        /// An administrator deleted a user.
        UserDeleted = "user.deleted",
        /// A user signed in; the detail contains the method.
        Login = "user.login",
        /// A sign-in as an existing user failed.
        LoginFailed = "user.login_failed",
        /// A user signed out.
        Logout = "user.logout",
        /// A user revoked one of their sessions.
        SessionEnded = "session.ended",
        /// A user changed their password, or set the first one.
        PasswordChanged = "password.changed",
        /// An administrator made a link with which a user sets a new password.
        ResetLinkCreated = "reset_link.created",
        /// A user set a new password with such a link.
        PasswordReset = "password.reset",
        /// A user added a passkey.
        PasskeyAdded = "passkey.added",
        /// A user deleted a passkey.
        PasskeyDeleted = "passkey.deleted",
        /// A user linked an account at an external provider.
        AccountLinked = "external_account.linked",
        /// A user unlinked one.
        AccountUnlinked = "external_account.unlinked",
        /// A user confirmed or rejected a QR login, or ended it with a wrong code.
        QrLoginDecided = "qr_login.decided",
        /// A user created an API key.
        KeyCreated = "api_key.created",
        /// A user deleted an API key.
        KeyDeleted = "api_key.deleted",
        /// A bot was bound, which stored its login.
        BotBound = "bot.bound",
        /// A bot got a new login, or works with its former one again; the detail says which.
        BotLoggedIn = "bot.logged_in",
        /// A bot was deleted.
        BotDeleted = "bot.deleted",
        /// A channel was created, with its key.
        ChannelCreated = "channel.created",
        /// Name, handle or options of a channel were changed, or the channel was switched on or off.
        ChannelUpdated = "channel.updated",
        /// A channel was deleted, with its key.
        ChannelDeleted = "channel.deleted",
        /// The filter of a channel was changed.
        FilterChanged = "channel_filter.changed",
        /// The webhook of a channel was changed; the detail contains the origin of its URL.
        WebhookChanged = "webhook_sink.changed",
        /// The AI sink of a channel was changed; the detail contains the origin of its endpoint.
        AiSinkChanged = "ai_sink.changed",
        /// The WebSocket sink of a channel was changed.
        WebSocketChanged = "websocket_sink.changed",
        /// The iLink sink of a channel was changed.
        IlinkChanged = "ilink_sink.changed",
        /// Messages were replayed to another URL than that of their channel; the detail contains its origin.
        ReplayedToUrl = "replay.redirected",
        /// The key of a channel was replaced.
        ChannelKeyRegenerated = "channel_key.regenerated",
        /// A program was logged in to a channel, which created its token.
        IlinkClientAdded = "ilink_client.added",
        /// A program was logged out of a channel, which revoked its token.
        IlinkClientRevoked = "ilink_client.revoked",
        /// An app was created.
        AppCreated = "app.created",
        /// An app was changed, or its URL for events; the detail contains the origin of that.
        AppUpdated = "app.updated",
        /// An app was deleted.
        AppDeleted = "app.deleted",
        /// An administrator decided about the listing of an app.
        AppReviewed = "app.reviewed",
        /// An app was installed on a bot, which created its token.
        AppInstalled = "app.installed",
        /// Handle or scopes of an app on a bot were changed, or it was switched on or off there.
        InstallationChanged = "app.installation_changed",
        /// An app was uninstalled from a bot, which revoked its token.
        AppUninstalled = "app.uninstalled",
        /// The token of an app on a bot was replaced.
        AppTokenRegenerated = "app_token.regenerated",
        /// An administrator made an invitation.
        InviteCreated = "invite.created",
        /// An author submitted a version of a plugin; the detail contains the hash of its source.
        PluginSubmitted = "plugin.submitted",
        /// A plugin was installed in a channel, or another version of it.
        PluginInstalled = "channel_plugin.installed",
        /// A plugin of a channel got another version or position, or was switched on or off.
        PluginArranged = "channel_plugin.changed",
        /// A plugin was uninstalled from a channel.
        PluginUninstalled = "channel_plugin.uninstalled",
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
}

/// An entry on its way into the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntry {
    /// Its id.
    pub id: AuditId,
    /// Time of the act.
    pub at: Timestamp,
    /// Actor, as in [`AuditEntry::actor`].
    pub actor: String,
    /// Session or key that was used.
    pub credential: String,
    /// Type of the act.
    pub action: Action,
    /// Id of the affected object.
    pub target: String,
    /// Name of the affected object, unless it is a user.
    pub target_name: String,
    /// Further details.
    pub detail: Value,
    /// Address, unless there is a session that has one.
    pub ip: String,
}

/// An act of an administrator, on a credential, or one that changes where messages go.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::FromRow, hub_macros::Api)]
#[row(table = "audit")]
#[api(example = {
    "action": "user.updated",
    "actor": "usr_01KAJJS8P00000000000000004",
    "actor_name": "alice",
    "at": "2026-11-21T09:30:00.000Z",
    "credential": "ses_01KAJJS8P00000000000000004",
    "detail": {"role": "admin"},
    "id": "aud_01KAJJS8P00000000000000004",
    "ip": "203.0.113.7",
    "target": "usr_01KAJJS8P00000000000000005",
    "target_name": "bob",
})]
pub struct AuditEntry {
    /// Id of the entry.
    pub id: AuditId,
    /// When it happened.
    pub at: Timestamp,
    /// Id of the user who acted, `operator` for the command line on the server, empty for an unauthenticated
    /// caller.
    pub actor: String,
    /// Username at that time.
    pub actor_name: String,
    /// Id of the session or API key that was used; empty if there was none.
    pub credential: String,
    /// Type of the act, for example `user.updated`.
    pub action: String,
    /// Id of the affected object.
    pub target: String,
    /// Name of the affected object at that time.
    pub target_name: String,
    /// Further details; never a secret.
    #[row(json)]
    #[api(with(crate::openapi::Any, crate::openapi::one_any))]
    pub detail: Value,
    /// Client address; empty if unknown.
    pub ip: String,
}

impl NewEntry {
    /// Sets the affected object. The name of a user is looked up when the entry is written.
    #[must_use]
    pub fn target(self, id: impl Display, name: impl Into<String>) -> Self {
        Self { target: id.to_string(), target_name: name.into(), ..self }
    }

    /// Sets further details: an object without secrets.
    #[must_use]
    pub fn detail(self, detail: Value) -> Self {
        Self { detail, ..self }
    }
}
