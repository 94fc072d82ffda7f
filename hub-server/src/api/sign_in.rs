//! What all sign-in methods share.

use std::{net::IpAddr, sync::Arc};

use hub_core::{
    ErrorCode, Hub,
    access::Actor,
    accounts::{Browser, ClientInfo, Me, SignedIn},
};
use poem::{
    FromRequest, Request, RequestBody,
    http::{HeaderMap, header},
    web::Data,
};
use poem_openapi::payload::{Json, Response};

use crate::{
    AppSettings, Client,
    credentials::{
        Presented, authenticate_user, check_origin, devices, entry_cookies, flow_cookie, flow_of,
        reports_origin,
    },
    envelope::{ApiError, Envelope, ok},
    rate_limit::RateLimits,
};

/// A response that may set a cookie.
pub(crate) type WithCookie<T> = Result<Response<Json<Envelope<T>>>, ApiError>;

/// What all sign-in methods share: the client, and the creation of the session cookie.
pub(crate) struct SignIn<'a> {
    pub(crate) hub: &'a Hub,
    pub(crate) settings: &'a AppSettings,
    pub(crate) limits: &'a RateLimits,
    pub(crate) client: ClientInfo,
    /// Key of a rate limit.
    pub(crate) network: IpAddr,
    pub(crate) headers: &'a HeaderMap,
    presented: Presented,
    /// The cookie of sign-in ceremonies of a browser.
    pub(crate) flow: Option<String>,
    /// The cookies that may be of a browser in which someone has signed in before.
    devices: Vec<String>,
}

impl<'a> FromRequest<'a> for SignIn<'a> {
    async fn from_request(request: &'a Request, body: &mut RequestBody) -> poem::Result<Self> {
        let Data(hub) = Data::<&Hub>::from_request(request, body).await?;
        let Data(settings) = Data::<&AppSettings>::from_request(request, body).await?;
        let Data(limits) = Data::<&Arc<RateLimits>>::from_request(request, body).await?;
        // A browser sends the origin with every POST; a page of another site must not sign its visitor in as another
        // user. A request without an origin does not come from a browser, and carries no cookie that could be
        // planted.
        let headers = request.headers();
        if reports_origin(headers) {
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
            flow: flow_of(settings, headers),
            devices: devices(settings, headers),
        })
    }
}

impl SignIn<'_> {
    /// Takes a token for a sign-in attempt on an account name, before the account is looked up: from the browser's
    /// own bucket if the user of that name has signed in with it before.
    pub(crate) async fn check_account(&self, username: &str) -> Result<(), ApiError> {
        let mut known = None;
        for cookie in &self.devices {
            known = self.hub.accounts().known_device(cookie, username).await?;
            if known.is_some() {
                break;
            }
        }
        Ok(self.limits.check_account(username, known.as_ref())?)
    }

    /// Responds with the user and the cookies. The previous session of the browser is revoked.
    pub(crate) async fn respond(&self, signed_in: SignedIn) -> WithCookie<Me> {
        let cookies = self.session_cookies(&signed_in).await?;
        let answer = Response::new(ok(signed_in.me)?);
        Ok(cookies.into_iter().fold(answer, |answer, cookie| answer.header(header::SET_COOKIE, cookie)))
    }

    /// `Set-Cookie` headers of a successful sign-in; the previous session is revoked.
    pub(crate) async fn session_cookies(&self, signed_in: &SignedIn) -> Result<Vec<String>, ApiError> {
        let accounts = self.hub.accounts();
        for before in &self.presented.cookies {
            if let Ok(actor) = accounts.authenticate_session(before.expose()).await {
                accounts.logout(&actor).await?;
            }
        }
        entry_cookies(self.hub, self.settings, signed_in.me.user.id, &signed_in.token).await
    }

    /// `Set-Cookie` for a browser that begins a ceremony.
    pub(crate) fn flow_cookie(&self, browser: &Browser) -> String {
        flow_cookie(self.settings, &browser.cookie)
    }
}

/// A client that may be signed in already. A bad credential is rejected; an expired session counts as none.
pub(crate) struct Visitor<'a> {
    pub(crate) sign_in: SignIn<'a>,
    pub(crate) actor: Option<Actor>,
}

impl<'a> FromRequest<'a> for Visitor<'a> {
    async fn from_request(request: &'a Request, body: &mut RequestBody) -> poem::Result<Self> {
        let sign_in = SignIn::from_request(request, body).await?;
        let actor = match authenticate_user(sign_in.hub, sign_in.settings, &sign_in.presented, request).await
        {
            Ok(actor) => Some(actor),
            Err(error) if error.inner().code() == ErrorCode::Unauthorized => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { sign_in, actor })
    }
}
