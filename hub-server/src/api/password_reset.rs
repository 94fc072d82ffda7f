//! Setting a new password with the link of an administrator (added; reliability Z6).

use poem_openapi::{Object, OpenApi, types::Example};

use super::{Tag, door::Door};
use crate::{
    envelope::{ApiResult, ok},
    wire::{Body, Secret},
};

/// Setting a lost password.
#[derive(Debug, Clone, Copy)]
pub struct PasswordResetApi;

/// A new password, and the permission to set it.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct ResetPassword {
    /// What stands behind the `#` of the link.
    pub token: Secret<256>,
    /// The password from now on: 8 to 256 characters; not the username and none of the most common passwords.
    pub new_password: Secret<256, 8>,
}

/// Whose password was set.
#[derive(Debug, Object)]
#[oai(example)]
pub struct PasswordWasSet {
    /// The name to sign in with.
    pub username: String,
}

#[OpenApi(tag = "Tag::Auth")]
impl PasswordResetApi {
    /// Sets a new password with a link
    ///
    /// The link of an administrator works once. Every session of the user ends; API keys live on. Nobody is signed in
    /// by it. A password that is refused leaves the link as it is.
    #[oai(path = "/api/auth/password/reset", method = "post", operation_id = "resetPassword")]
    async fn reset(&self, door: Door<'_>, body: Body<ResetPassword>) -> ApiResult<PasswordWasSet> {
        let ResetPassword { token, new_password } = body.0;
        let user = door.hub.accounts().reset_password(&token.0, new_password.0, &door.client).await?;
        ok(PasswordWasSet { username: user.username })
    }
}

impl Example for ResetPassword {
    fn example() -> Self {
        Self { token: Secret("hubr_…".into()), new_password: Secret("correct horse battery staple".into()) }
    }
}

impl Example for PasswordWasSet {
    fn example() -> Self {
        Self { username: "alice".to_owned() }
    }
}

#[cfg(test)]
#[path = "password_reset_tests.rs"]
mod tests;
