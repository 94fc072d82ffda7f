//! Resetting a password with a link from an administrator.

use hub_core::openapi::Api;
use poem_openapi::OpenApi;

use super::{Tag, sign_in::SignIn};
use crate::{
    envelope::{ApiResult, ok},
    wire::{Body, Secret},
};

/// Resetting a password.
#[derive(Debug, Clone, Copy)]
pub struct PasswordResetApi;

/// A new password, and the token that permits it.
#[derive(Debug, Api)]
#[api(input, example = {
    "new_password": "a better passphrase",
    "token": "hubr_0000000000000000000000000000000000000000000000"
})]
pub struct ResetPassword {
    /// The part of the link after `#`.
    pub token: Secret<256>,
    /// The new password: 8 to 256 characters; not the username and not a common password.
    pub new_password: Secret<256, 8>,
}

/// The user whose password was set.
#[derive(Debug, Api)]
#[api(example = {
    "username": "alice"
})]
pub struct PasswordWasSet {
    /// Name to sign in with.
    pub username: String,
}

#[OpenApi(tag = "Tag::Auth")]
impl PasswordResetApi {
    /// Sets a new password with a reset link
    ///
    /// The link of an administrator works once. All sessions of the user are revoked; API keys stay valid. No session
    /// is created. A rejected password does not use up the link.
    #[oai(path = "/api/auth/password/reset", method = "post", operation_id = "resetPassword")]
    async fn reset(&self, sign_in: SignIn<'_>, body: Body<ResetPassword>) -> ApiResult<PasswordWasSet> {
        let ResetPassword { token, new_password } = body.0;
        let user = sign_in.hub.accounts().reset_password(&token.0, new_password.0, &sign_in.client).await?;
        ok(PasswordWasSet { username: user.username })
    }
}

#[cfg(test)]
#[path = "password_reset_tests.rs"]
mod tests;
