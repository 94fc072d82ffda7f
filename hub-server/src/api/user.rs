//! Profile, password and API keys of the signed-in user.

use std::sync::Arc;

use hub_core::{
    Hub,
    accounts::{Accounts, ApiKey, CreatedApiKey, Me, NewApiKey, NewPassword, ProfilePatch},
    id::KeyId,
    openapi::Api,
};
use poem::{http::header, web::Data};
use poem_openapi::{
    OpenApi,
    param::{Header, Path, Query},
    payload::{Json, Response},
};

use super::Tag;
use crate::{
    AppSettings,
    credentials::{User, entry_cookies},
    envelope::{ApiError, ApiResult, Empty, Envelope, ok},
    rate_limit::RateLimits,
    wire::{Body, Cursor, Limit, Page, Secret, Text, page_request},
};

/// Profile, password and API keys.
#[derive(Debug, Clone, Copy)]
pub struct UserApi;

/// A change of password.
#[derive(Debug, Api)]
#[api(input, example = {
    "new_password": "a better passphrase",
    "old_password": "correct horse battery"
})]
pub struct ChangePassword {
    /// The current password. Not required for a user without a password.
    pub old_password: Option<Secret<1024>>,
    /// Alias of `old_password`.
    pub current_password: Option<Secret<1024>>,
    /// The new password: 8 to 256 characters; not the username and not a common password.
    pub new_password: Secret<256, 8>,
}

/// An API key, without its secret.
#[derive(Debug, Api)]
#[api(example = {
    "created_at": "2026-11-21T09:30:00.000Z",
    "current": false,
    "id": "key_01KAJJS8P00000000000000003",
    "last_used_at": "2026-11-21T09:30:00.000Z",
    "name": "nightly backup",
    "prefix": "hubu_…x7qa"
})]
pub struct ApiKeyView {
    /// The key.
    #[api(flatten)]
    pub key: ApiKey,
    /// Whether it is the key of this request.
    pub current: bool,
}

#[OpenApi(tag = "Tag::User")]
impl UserApi {
    /// Shows the user's profile
    ///
    /// Profile fields and account state.
    #[oai(path = "/api/user/profile", method = "get", operation_id = "getProfile")]
    async fn profile(&self, hub: Data<&Hub>, user: User) -> ApiResult<Me> {
        ok(hub.accounts().me(&user.0).await?)
    }

    /// Changes the user's profile
    ///
    /// Absent fields keep their values.
    #[oai(path = "/api/user/profile", method = "put", operation_id = "updateProfile")]
    async fn update_profile(&self, hub: Data<&Hub>, user: User, body: Body<ProfilePatch>) -> ApiResult<Me> {
        ok(hub.accounts().update_profile(&user.0, body.0).await?)
    }

    /// Changes the user's password
    ///
    /// Requires the current password if the user has one. All other sessions of the user are revoked; the session of
    /// this request gets a new cookie. API keys stay valid; they cannot make this call. 5 attempts per minute.
    #[oai(path = "/api/user/password", method = "put", operation_id = "changePassword")]
    async fn change_password(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        limits: Data<&Arc<RateLimits>>,
        user: User,
        body: Body<ChangePassword>,
    ) -> Result<Response<Json<Envelope<Empty>>>, ApiError> {
        limits.check_account(&user.0.principal(), None)?;
        let token = hub.accounts().change_password(&user.0, body.0.into()).await?;
        let answer = Response::new(ok(Empty {})?);
        let Some(token) = token else { return Ok(answer) };
        let cookies = entry_cookies(&hub, &settings, user.0.user()?.user_id, &token).await?;
        Ok(cookies.into_iter().fold(answer, |answer, cookie| answer.header(header::SET_COOKIE, cookie)))
    }

    /// Lists the user's API keys
    ///
    /// Expired keys are listed until they are deleted.
    #[oai(path = "/api/user/api-keys", method = "get", operation_id = "listApiKeys")]
    async fn api_keys(
        &self,
        hub: Data<&Hub>,
        user: User,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<ApiKeyView>> {
        let page = page_request(&Accounts::api_key_list(&user.0), limit.0, cursor.0.as_ref())?;
        let own = user.0.user()?.key_id;
        ok(hub
            .accounts()
            .api_keys(&user.0, &page)
            .await?
            .map(|key| ApiKeyView { current: own == Some(key.id), key })
            .into())
    }

    /// Creates an API key
    ///
    /// The key is shown only in this response. A key may do what its user may, except create keys and change the
    /// password. `CONFLICT` if the user has 50 keys. With an `Idempotency-Key`, the same request within 24 hours
    /// returns the first response.
    #[oai(path = "/api/user/api-keys", method = "post", operation_id = "createApiKey")]
    async fn create_api_key(
        &self,
        hub: Data<&Hub>,
        user: User,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
        body: Body<NewApiKey>,
    ) -> ApiResult<CreatedApiKey> {
        let key = idempotency_key.0.as_deref();
        ok(hub.accounts().create_api_key(&user.0, body.0, key).await?)
    }

    /// Deletes an API key
    ///
    /// The key stops working at once. A key may delete itself.
    #[oai(path = "/api/user/api-keys/:id", method = "delete", operation_id = "deleteApiKey")]
    async fn delete_api_key(&self, hub: Data<&Hub>, user: User, id: Path<KeyId>) -> ApiResult<Empty> {
        hub.accounts().delete_api_key(&user.0, id.0).await?;
        ok(Empty {})
    }
}

impl From<ChangePassword> for NewPassword {
    fn from(request: ChangePassword) -> Self {
        let old = request.old_password.or(request.current_password);
        Self { old: old.map(|secret| secret.0), new: request.new_password.0 }
    }
}

#[cfg(test)]
#[path = "user_tests.rs"]
mod tests;
