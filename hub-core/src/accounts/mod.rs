//! Users, their passwords and sessions.
//!
//! Registering and signing in give a [`SignedIn`]: the user and the secret of a new session, which is shown
//! this once and stored as a hash. [`Accounts::authenticate_session`] turns it back into an
//! [`Actor`](crate::access::Actor) for every later request.

mod activity;
mod admission;
mod api_key;
mod device;
#[cfg(feature = "providers")]
mod external;
#[cfg(any(feature = "passkeys", feature = "providers"))]
mod flow;
#[cfg(feature = "passkeys")]
mod passkey;
mod password;
mod profile;
mod qr_login;
mod reset;
mod session;
mod setup;
mod sign_in_methods;
#[cfg(test)]
mod tests;
mod user;

use std::net::IpAddr;

pub use activity::{Activity, ActivityBy};
pub use api_key::{ApiKey, CreatedApiKey, MAX_KEY_DAYS, MAX_KEYS, NewApiKey};
pub use device::{DEVICE_LIFETIME, KnownDevice};
#[cfg(feature = "providers")]
pub use external::{
    ExternalReturn, ExternalStart, MAX_RETURN_PATH, OAuthEndpoints, Provider, ProviderKind, ReturnError,
    is_safe_path,
};
#[cfg(any(feature = "passkeys", feature = "providers"))]
pub use flow::Browser;
#[cfg(feature = "passkeys")]
pub use passkey::{Ceremony, NewPasskey};
pub use password::PasswordHasher;
pub use profile::{NewPassword, ProfilePatch};
pub use qr_login::{QrAsker, QrLogin, QrPoll, QrStatus};
pub use session::Session;
pub use setup::{EnsuredAdmin, SETUP_TOKEN_LIFETIME};
pub use sign_in_methods::{ExternalAccount, Passkey};
pub use user::{Me, NewProfile, NewUser, User, UserStatus};

use session::not_signed_in;

use crate::{context::Context, error::Result, revocation, secret::Secret, store::accounts::Alive};

/// Users, their passwords and sessions: every operation takes the actor who asks.
#[derive(Debug, Clone, Copy)]
pub struct Accounts<'h> {
    ctx: &'h Context,
}

/// A user who has just proven who they are.
#[derive(Debug, Clone)]
pub struct SignedIn {
    /// The user, as they see themselves.
    pub me: Me,
    /// The secret of the new session: the cookie's value.
    pub token: Secret,
}

/// From where somebody signs in; shown to them in the list of their sessions.
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

    fn cleaned(&self) -> Self {
        let user_agent = self.user_agent.chars().filter(|c| !c.is_control()).take(256).collect();
        Self { ip: self.ip, user_agent }
    }
}

impl<'h> Accounts<'h> {
    pub(crate) fn new(ctx: &'h Context) -> Self {
        Self { ctx }
    }

    /// Deletes at most `limit` rows of each kind that nobody can use any more: ended sessions, expired
    /// one-time things and idempotency keys, what was told of revocations, old entries of the audit log. Returns
    /// how many; retention calls it again while it is not 0.
    pub async fn delete_expired(&self, limit: u32) -> Result<u64> {
        let alive = self.alive();
        let (told, audited) = (alive.now - revocation::KEPT, alive.now - self.ctx.config.audit_retention);
        self.ctx
            .store
            .write(move |tx| {
                Box::pin(async move {
                    let sessions = tx.accounts().delete_ended_sessions(alive, limit).await?;
                    let one_time = tx.accounts().delete_expired_one_time(alive.now, limit).await?;
                    let keys = tx.idempotency().delete_expired(alive.now, limit).await?;
                    let told = tx.revocations().delete_before(told, limit).await?;
                    let audited = tx.audit().delete_before(audited, limit).await?;
                    let flows = tx.sign_in_flows().delete_expired(alive.now, limit).await?;
                    let qr_logins = tx.qr_logins().delete_expired(alive.now, limit).await?;
                    Ok(sessions + one_time + keys + told + audited + flows + qr_logins)
                })
            })
            .await
    }

    /// What "a living session" means now.
    pub(crate) fn alive(self) -> Alive {
        let now = self.ctx.store.now();
        Alive { now, idle_since: now - self.ctx.config.session_idle }
    }
}
