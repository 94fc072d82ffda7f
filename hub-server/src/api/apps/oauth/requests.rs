//! Requests to the authorization page and the token endpoint.

use data_encoding::BASE64;
use hub_core::{
    Error,
    apps::{AuthorizationRequest, Decision, TokenRequest},
    id::AppId,
    openapi::Api,
    secret::{self, authorization::authorizations},
};
use poem::http::HeaderMap;
use poem_openapi::Enum;

use crate::{
    envelope::ApiError,
    wire::{Checked, Secret, Text},
};

type Word = Text<0, 4096>;
pub type State = Checked<0, 512>;
type Hidden = Secret<4096>;

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum Choice {
    /// Install the app on the bot.
    Allow,
    /// Do not install it.
    Deny,
}

/// A decision about an app: the parameters of the authorization request, and the decision.
#[derive(Debug, Api)]
#[api(input)]
pub struct DecideApp {
    /// Id of the app.
    pub client_id: Word,
    /// As in the authorization request.
    pub redirect_uri: Option<Word>,
    /// As in the authorization request.
    pub response_type: Option<Word>,
    /// As in the authorization request.
    pub scope: Option<Word>,
    /// As in the authorization request.
    pub state: Option<State>,
    /// Id of the bot.
    pub bot_id: Option<Word>,
    /// As in the authorization request.
    pub code_challenge: Option<Word>,
    /// As in the authorization request.
    pub code_challenge_method: Option<Word>,
    /// From the authorization page.
    pub consent: Word,
    /// The decision.
    pub decision: Choice,
}

impl From<DecideApp> for Decision {
    fn from(body: DecideApp) -> Self {
        let text = |text: Option<Word>| text.map(String::from);
        Self {
            request: AuthorizationRequest {
                client_id: body.client_id.into(),
                redirect_uri: text(body.redirect_uri),
                response_type: text(body.response_type),
                scope: text(body.scope),
                state: body.state.map(String::from),
                bot_id: text(body.bot_id),
                code_challenge: text(body.code_challenge),
                code_challenge_method: text(body.code_challenge_method),
            },
            consent: body.consent.into(),
            allow: body.decision == Choice::Allow,
        }
    }
}

/// A code to exchange. Unknown parameters are ignored, as RFC 6749, section 3.2, requires.
#[derive(Debug, Default, Api)]
#[api(input, lenient)]
pub struct ExchangeCode {
    /// `authorization_code`.
    pub grant_type: Option<Word>,
    /// The code.
    pub code: Option<Hidden>,
    /// The redirect URI of the authorization request.
    pub redirect_uri: Option<Word>,
    /// Id of the app; alternatively the user of HTTP Basic.
    pub client_id: Option<Word>,
    /// Secret of the app; alternatively the password of HTTP Basic. Optional because of PKCE; a wrong one is
    /// rejected.
    pub client_secret: Option<Hidden>,
    /// The verifier: 43 to 128 characters.
    pub code_verifier: Option<Hidden>,
}

impl ExchangeCode {
    /// The request, with the client from the headers.
    ///
    /// # Errors
    /// `INVALID_PARAMS` if headers and body name different clients.
    pub(super) fn into_request(self, headers: &HeaderMap) -> Result<TokenRequest, ApiError> {
        let mut client_id = self.client_id.map(String::from);
        let mut client_secret = self.client_secret.map(|secret| secret.0);
        // The user and password of a proxy before the hub name no app.
        let is_client = |user: &str| client_id.is_none() || user.parse::<AppId>().is_ok();
        if let Some((user, password)) = basic(headers).find(|(user, _)| is_client(user)) {
            if client_id.as_ref().is_some_and(|id| *id != user) || client_secret.is_some() {
                return Err(Error::invalid("client_id", "must be absent with HTTP Basic").into());
            }
            (client_id, client_secret) = (Some(user), Some(secret::Secret::new(password)));
        }
        Ok(TokenRequest {
            grant_type: self.grant_type.map(String::from),
            code: self.code.map(|code| code.0),
            redirect_uri: self.redirect_uri.map(String::from),
            client_id,
            client_secret,
            code_verifier: self.code_verifier.map(|verifier| verifier.0),
            older: false,
        })
    }
}

/// Users and passwords of HTTP Basic, each form-encoded (RFC 6749, section 2.3.1).
fn basic(headers: &HeaderMap) -> impl Iterator<Item = (String, String)> {
    authorizations(headers, "Basic").filter_map(user_and_password)
}

fn user_and_password(encoded: &[u8]) -> Option<(String, String)> {
    let text = String::from_utf8(BASE64.decode(encoded).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    let plain = |text: &str| {
        let pair = format!("v={}", text.replace('&', "%26"));
        url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned())
    };
    Some((plain(user)?, plain(password)?))
}

/// A code to exchange, as published apps send it.
#[derive(Debug, Api)]
#[api(input, lenient)]
pub struct ExchangeCodeOlder {
    /// The code.
    pub code: Hidden,
    /// The verifier: 43 to 128 characters.
    pub code_verifier: Hidden,
}
