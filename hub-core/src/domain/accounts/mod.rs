//! Users, their passwords and sessions.
//!
//! Registration and sign-in return a [`SignedIn`]: the user and the secret of a new session. The secret is shown only
//! there and stored as a hash. [`Accounts::authenticate_session`] turns it back into an
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
mod profile;
mod qr_login;
mod reset;
mod session;
mod setup;
mod sign_in_methods;
#[cfg(test)]
mod tests;
mod user;

pub use crate::{
    model::{
        session::{ClientInfo, QrStatus, Session},
        user::{ApiKey, ExternalAccount, Passkey, ProfilePatch, User, UserStatus},
    },
    password::PasswordHasher,
};
pub use activity::{Activity, ActivityBy};
pub use api_key::{CreatedApiKey, MAX_KEY_DAYS, MAX_KEYS, NewApiKey};
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
pub use profile::NewPassword;
pub use qr_login::{QrAsker, QrLogin, QrPoll};
pub use setup::{EnsuredAdmin, SETUP_TOKEN_LIFETIME};
pub use user::{Me, NewProfile, NewUser};

use crate::{context::Context, error::Result, revocation, secret::Secret, store::accounts::Alive};

/// Operations on users, their passwords and sessions. Each takes the actor of the caller.
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

impl<'h> Accounts<'h> {
    pub(crate) fn new(ctx: &'h Context) -> Self {
        Self { ctx }
    }

    /// Deletes at most `limit` rows of each kind that are no longer usable: expired sessions, one-time tokens and
    /// idempotency keys, old revocations, old entries of the audit log. Returns the number of deleted rows; retention
    /// repeats the call until it returns 0.
    pub async fn delete_expired(&self, limit: u32) -> Result<u64> {
        let alive = self.alive();
        let (revoked_before, audited_before) =
            (alive.now - revocation::RETENTION, alive.now - self.ctx.config.audit_retention);
        self.ctx
            .store
            .write(move |tx| {
                Box::pin(async move {
                    let sessions = tx.accounts().delete_ended_sessions(alive, limit).await?;
                    let one_time = tx.accounts().delete_expired_one_time(alive.now, limit).await?;
                    let keys = tx.idempotency().delete_expired(alive.now, limit).await?;
                    let revocations = tx.revocations().delete_before(revoked_before, limit).await?;
                    let audit_entries = tx.audit().delete_before(audited_before, limit).await?;
                    let flows = tx.sign_in_flows().delete_expired(alive.now, limit).await?;
                    let qr_logins = tx.qr_logins().delete_expired(alive.now, limit).await?;
                    let ilink_logins = tx.ilink().delete_expired_logins(alive.now, limit).await?;
                    Ok(sessions
                        + one_time
                        + keys
                        + revocations
                        + audit_entries
                        + flows
                        + qr_logins
                        + ilink_logins)
                })
            })
            .await
    }

    /// Time limits by which sessions are valid now.
    pub(crate) fn alive(self) -> Alive {
        let now = self.ctx.store.now();
        Alive { now, idle_since: now - self.ctx.config.session_idle }
    }
}
