//! Browsers in which a user has signed in before. Guessing is limited per account name, for any client; the user can
//! still sign in from a recognised browser.
//!
//! The browser keeps a cookie that the hub has signed. It names its user and grants no access: it only makes a
//! sign-in count against the browser's own limit instead of the common one. The hub stores one number per user, which
//! is signed too; a changed password, and everything that revokes all sessions of the user, increments that number,
//! and no browser is recognised any more.

use std::time::Duration;

use data_encoding::HEXLOWER;

use crate::{
    accounts::{Accounts, user::canonical_username},
    error::Result,
    id::UserId,
    secret::{Secret, TokenHash},
    time::Timestamp,
};

/// Time for which a browser is recognised after a sign-in.
pub const DEVICE_LIFETIME: Duration = Duration::from_secs(180 * 24 * 60 * 60);

/// Purpose of the cookie's signature.
const PURPOSE: &str = "known-device";
/// Longest cookie that is accepted, in bytes.
const LONGEST: usize = 256;

/// A browser that its user has signed in with before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownDevice {
    /// Identifies the browser; it grants no access.
    pub mark: TokenHash,
}

/// Signed part of the cookie: `user.generation.expires.nonce`.
struct Claim<'c> {
    user_id: UserId,
    generation: i64,
    expires_at: Timestamp,
    nonce: &'c str,
}

impl<'c> Claim<'c> {
    fn parse(text: &'c str) -> Option<Self> {
        let mut parts = text.split('.');
        let claim = Self {
            user_id: parts.next()?.parse().ok()?,
            generation: parts.next()?.parse().ok()?,
            expires_at: Timestamp::from_millis(parts.next()?.parse().ok()?),
            nonce: parts.next()?,
        };
        parts.next().is_none().then_some(claim)
    }
}

impl Accounts<'_> {
    /// Creates the cookie by which the user's browser is recognised at the next sign-in. `None` when the user does
    /// not exist any more.
    pub async fn device_cookie(&self, user_id: UserId) -> Result<Option<Secret>> {
        let found = self.ctx.store.read().await?.accounts().device_generation(user_id).await?;
        let Some((username, generation)) = found else { return Ok(None) };
        let expires_at = (self.ctx.store.now() + DEVICE_LIFETIME).as_millis();
        let nonce = HEXLOWER.encode(&self.ctx.random.bytes::<16>());
        let claim = format!("{user_id}.{generation}.{expires_at}.{nonce}");
        let signature = self.sign_device(&username, &claim);
        Ok(Some(Secret::new(format!("{claim}.{signature}"))))
    }

    /// Returns the browser of a cookie, if the user of this name has signed in with it before and it was not revoked
    /// since. The account is looked up only for a cookie that was signed for this name.
    pub async fn known_device(&self, cookie: &str, username: &str) -> Result<Option<KnownDevice>> {
        let signed = || {
            let name = canonical_username(username)?;
            let (claim, signature) = cookie.rsplit_once('.').filter(|_| cookie.len() <= LONGEST)?;
            // Compare hashes, so that the time reveals nothing of the signature.
            let right = TokenHash::of(signature) == TokenHash::of(&self.sign_device(&name, claim));
            if right { Claim::parse(claim) } else { None }
        };
        let Some(claim) = signed().filter(|claim| claim.expires_at > self.ctx.store.now()) else {
            return Ok(None);
        };
        let now = self.ctx.store.read().await?.accounts().device_generation(claim.user_id).await?;
        let is_current = now.is_some_and(|(_, generation)| generation == claim.generation);
        Ok(is_current.then(|| KnownDevice { mark: TokenHash::of(claim.nonce) }))
    }

    fn sign_device(self, username: &str, claim: &str) -> String {
        HEXLOWER.encode(&self.ctx.sealer.derive(PURPOSE, &format!("{username}\n{claim}")))
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
