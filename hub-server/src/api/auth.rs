//! Registering, signing in with a password, and sessions.

use hub_core::{
    Hub,
    accounts::{Accounts, Me, NewUser, Session},
    id::SessionId,
    openapi::Api,
};
use poem::{http::header, web::Data};
use poem_openapi::{
    OpenApi,
    param::{Path, Query},
    payload::Response,
};

use super::{
    Tag,
    sign_in::{SignIn, WithCookie},
};
use crate::{
    AppSettings,
    credentials::{User, cleared_cookie},
    envelope::{ApiResult, Empty, ok},
    wire::{Body, Checked, Cursor, Limit, Page, Secret, Text, Username, page_request},
};

/// Registering, signing in with a password, and sessions.
#[derive(Debug, Clone, Copy)]
pub struct AuthApi;

/// A new user.
#[derive(Debug, Api)]
#[api(input, example = {
    "display_name": "Alice",
    "password": "correct horse battery",
    "username": "alice"
})]
pub struct RegisterRequest {
    /// 2 to 32 of `a-z0-9_-`, unique regardless of case: capitals are converted to lower case. Names that look
    /// official, such as `admin`, are reserved for the first user of a hub, who becomes its administrator.
    pub username: Username,
    /// 8 to 256 characters; not the username and not a common password.
    pub password: Secret<256, 8>,
    /// Display name, 1 to 64 characters; the username if absent.
    pub display_name: Option<Checked<1, 64>>,
    /// E-mail address.
    pub email: Option<Checked<0, 254>>,
    /// The one-time token printed at the first start. Required for the first account of a hub that listens beyond
    /// loopback.
    pub setup_token: Option<Secret<256>>,
    /// An invitation by an administrator. Required while registration is `invite`.
    pub invite: Option<Secret<256>>,
}

/// A username and password.
#[derive(Debug, Api)]
#[api(input, example = {
    "password": "correct horse battery",
    "username": "alice"
})]
pub struct LoginRequest {
    /// The username, regardless of case.
    pub username: Text<0, 256>,
    /// The password.
    pub password: Secret<1024>,
}

#[OpenApi(tag = "Tag::Auth")]
impl AuthApi {
    /// Registers a user
    ///
    /// Responds with the user and sets the session cookie. While there is no administrator, the new user becomes one.
    #[oai(path = "/api/auth/register", method = "post", operation_id = "register")]
    async fn register(&self, sign_in: SignIn<'_>, body: Body<RegisterRequest>) -> WithCookie<Me> {
        let (new, ticket) = body.0.into();
        let signed_in = sign_in.hub.accounts().register(new, ticket, &sign_in.client).await?;
        sign_in.respond(signed_in).await
    }

    /// Signs in with username and password
    ///
    /// Responds with the user and sets the session cookie. An unknown user and a wrong password get the same
    /// response. 5 attempts per minute and username; a browser in which the user has signed in before has 5 of its
    /// own, so that someone who guesses elsewhere cannot lock the user out.
    ///
    /// A program that keeps the cookie and is not a browser sends `Origin` with the public URL of the hub in each
    /// request that changes something: `curl -b cookies -H 'Origin: http://localhost:9800' …`.
    #[oai(path = "/api/auth/login", method = "post", operation_id = "login")]
    async fn login(&self, sign_in: SignIn<'_>, body: Body<LoginRequest>) -> WithCookie<Me> {
        let LoginRequest { username, password } = body.0;
        sign_in.check_account(&username).await?;
        let signed_in = sign_in.hub.accounts().login(&username, password.0, &sign_in.client).await?;
        sign_in.respond(signed_in).await
    }

    /// Signs out
    ///
    /// Ends the session of the request and clears its cookie.
    #[oai(path = "/api/auth/logout", method = "post", operation_id = "logout")]
    async fn logout(&self, hub: Data<&Hub>, settings: Data<&AppSettings>, user: User) -> WithCookie<Empty> {
        hub.accounts().logout(&user.0).await?;
        Ok(Response::new(ok(Empty {})?).header(header::SET_COOKIE, cleared_cookie(&settings)))
    }

    /// Shows the signed-in user
    ///
    /// With role and sign-in methods.
    #[oai(path = "/api/auth/me", method = "get", operation_id = "getMe")]
    async fn me(&self, hub: Data<&Hub>, user: User) -> ApiResult<Me> {
        ok(hub.accounts().me(&user.0).await?)
    }

    /// Lists the user's sessions
    ///
    /// The session of this request is marked.
    #[oai(path = "/api/auth/sessions", method = "get", operation_id = "listSessions")]
    async fn sessions(
        &self,
        hub: Data<&Hub>,
        user: User,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<Session>> {
        let page = page_request(&Accounts::session_list(&user.0), limit.0, cursor.0.as_ref())?;
        ok(hub.accounts().sessions(&user.0, &page).await?.into())
    }

    /// Revokes one of the user's sessions
    ///
    /// Revoking the current one signs out.
    #[oai(path = "/api/auth/sessions/:id", method = "delete", operation_id = "deleteSession")]
    async fn delete_session(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        user: User,
        id: Path<SessionId>,
    ) -> WithCookie<Empty> {
        hub.accounts().delete_session(&user.0, id.0).await?;
        let answer = Response::new(ok(Empty {})?);
        let is_current = user.0.user()?.session_id == Some(id.0);
        let cleared = is_current.then(|| cleared_cookie(&settings));
        Ok(match cleared {
            Some(cookie) => answer.header(header::SET_COOKIE, cookie),
            None => answer,
        })
    }
}

impl From<RegisterRequest> for (NewUser, Option<hub_core::secret::Secret>) {
    fn from(request: RegisterRequest) -> Self {
        let new = NewUser {
            username: request.username.into(),
            password: request.password.0,
            display_name: request.display_name.map(String::from),
            email: request.email.map(String::from),
        };
        (new, request.setup_token.or(request.invite).map(|token| token.0))
    }
}

#[cfg(test)]
#[path = "guessing_tests.rs"]
mod guessing_tests;
#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
