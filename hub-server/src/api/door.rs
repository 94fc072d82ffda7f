//! The door: what every way of signing in works with.

use std::{net::IpAddr, sync::Arc};

use hub_core::{
    ErrorCode, Hub,
    access::Actor,
    accounts::{Browser, ClientInfo, SignedIn},
};
use poem::{
    FromRequest, Request, RequestBody,
    http::{HeaderMap, header},
    web::Data,
};
use poem_openapi::payload::{Json, Response};

use super::auth::Me;
use crate::{
    AppSettings, Client,
    credentials::{
        Presented, authenticate_user, check_origin, cookie, device_cookie_name, entry_cookies, flow_cookie,
        flow_cookie_name,
    },
    envelope::{ApiError, Envelope, ok},
    rate_limit::RateLimits,
};

/// An answer that may set a cookie.
pub(crate) type WithCookie<T> = Result<Response<Json<Envelope<T>>>, ApiError>;

/// What every way of signing in works with: who knocks, and how a session is handed out.
pub(crate) struct Door<'a> {
    pub(crate) hub: &'a Hub,
    pub(crate) settings: &'a AppSettings,
    pub(crate) limits: &'a RateLimits,
    pub(crate) client: ClientInfo,
    /// What one limit applies to.
    pub(crate) network: IpAddr,
    pub(crate) headers: &'a HeaderMap,
    presented: Presented,
    /// The cookie of the browser's ceremonies.
    pub(crate) flow: Option<String>,
    /// The cookie of a browser that somebody has signed in with before.
    device: Option<String>,
}

impl<'a> FromRequest<'a> for Door<'a> {
    async fn from_request(request: &'a Request, body: &mut RequestBody) -> poem::Result<Self> {
        let Data(hub) = Data::<&Hub>::from_request(request, body).await?;
        let Data(settings) = Data::<&AppSettings>::from_request(request, body).await?;
        let Data(limits) = Data::<&Arc<RateLimits>>::from_request(request, body).await?;
        // A browser says on every POST where it comes from; a page of another site must not sign its visitor
        // in as somebody else. What says nothing is no browser, and carries no cookie that could be planted.
        let headers = request.headers();
        if headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site") {
            check_origin(settings, request.method(), headers)?;
        }
        let client = Client::from_request(request, body).await?;
        let network = client.network();
        let user_agent = client.user_agent.unwrap_or_default();
        Ok(Self {
            hub,
            settings,
            limits,
            client: ClientInfo { ip: Some(client.ip), user_agent },
            network,
            headers,
            presented: Presented::of(headers, settings.is_https()),
            flow: cookie(headers, flow_cookie_name(settings)).map(str::to_owned),
            device: cookie(headers, device_cookie_name(settings)).map(str::to_owned),
        })
    }
}

impl Door<'_> {
    /// Takes a token for a sign-in attempt on an account name, before the account is looked up: of the browser's own
    /// when the user of that name has signed in with it before (reliability A6).
    pub(crate) async fn check_account(&self, username: &str) -> Result<(), ApiError> {
        let known = match &self.device {
            Some(cookie) => self.hub.accounts().known_device(cookie, username).await?,
            None => None,
        };
        Ok(self.limits.check_account(username, known.as_ref())?)
    }

    /// Answers with the user and the cookies. The session that the browser held before ends: nobody goes on
    /// with a session from before a sign-in (reliability B2).
    pub(crate) async fn open(&self, signed_in: SignedIn) -> WithCookie<Me> {
        let cookies = self.entry_cookies(&signed_in).await?;
        let answer = Response::new(ok(signed_in.me.into())?);
        Ok(cookies.into_iter().fold(answer, |answer, cookie| answer.header(header::SET_COOKIE, cookie)))
    }

    /// `Set-Cookie` for whoever has just signed in, after the session before has ended.
    pub(crate) async fn entry_cookies(&self, signed_in: &SignedIn) -> Result<Vec<String>, ApiError> {
        let accounts = self.hub.accounts();
        if let Some(before) = &self.presented.cookie
            && let Ok(actor) = accounts.authenticate_session(before.expose()).await
        {
            accounts.logout(&actor).await?;
        }
        entry_cookies(self.hub, self.settings, signed_in.me.user.id, &signed_in.token).await
    }

    /// `Set-Cookie` for the browser that begins a ceremony.
    pub(crate) fn flow_cookie(&self, browser: &Browser) -> String {
        flow_cookie(self.settings, &browser.cookie)
    }
}

/// Somebody at the door who may be signed in already. A bad credential is refused; a session that has ended
/// is none.
pub(crate) struct Visitor<'a> {
    pub(crate) door: Door<'a>,
    pub(crate) actor: Option<Actor>,
}

impl<'a> FromRequest<'a> for Visitor<'a> {
    async fn from_request(request: &'a Request, body: &mut RequestBody) -> poem::Result<Self> {
        let door = Door::from_request(request, body).await?;
        let actor = match authenticate_user(door.hub, door.settings, &door.presented, request).await {
            Ok(actor) => Some(actor),
            Err(error) if error.inner().code() == ErrorCode::Unauthorized => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { door, actor })
    }
}
