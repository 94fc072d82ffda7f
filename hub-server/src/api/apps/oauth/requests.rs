//! What is sent to the authorization page and the token endpoint.

use data_encoding::BASE64;
use hub_core::{
    Error,
    apps::{AuthorizationRequest, Decision, TokenRequest},
    secret,
};
use poem::http::{HeaderMap, header};
use poem_openapi::{Enum, Object};

use crate::{
    envelope::ApiError,
    wire::{Secret, Text},
};

type Word = Text<0, 4096>;
type Hidden = Secret<4096>;

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum Choice {
    /// The app gets onto the bot.
    Allow,
    /// It does not.
    Deny,
}

/// A decision about an app: the parameters of the question, and the answer.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none)]
pub struct DecideApp {
    /// The app's id.
    pub client_id: Word,
    /// As in the question.
    pub redirect_uri: Option<Word>,
    /// As in the question.
    pub response_type: Option<Word>,
    /// As in the question.
    pub scope: Option<Word>,
    /// As in the question.
    pub state: Option<Word>,
    /// The bot.
    pub bot_id: Option<Word>,
    /// As in the question.
    pub code_challenge: Option<Word>,
    /// As in the question.
    pub code_challenge_method: Option<Word>,
    /// From the question.
    pub consent: Word,
    /// Yes or no.
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
                state: text(body.state),
                bot_id: text(body.bot_id),
                code_challenge: text(body.code_challenge),
                code_challenge_method: text(body.code_challenge_method),
            },
            consent: body.consent.into(),
            allow: body.decision == Choice::Allow,
        }
    }
}

/// A code to be exchanged. Parameters that are not known are ignored, as RFC 6749 §3.2 wants.
#[derive(Debug, Default, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct ExchangeCode {
    /// `authorization_code`.
    pub grant_type: Option<Word>,
    /// The code.
    pub code: Option<Hidden>,
    /// Where the code was sent.
    pub redirect_uri: Option<Word>,
    /// The app's id; may come as the user of HTTP Basic instead.
    pub client_id: Option<Word>,
    /// The app's secret, or as the password of HTTP Basic. PKCE is proof enough; a wrong one is refused.
    pub client_secret: Option<Hidden>,
    /// The verifier: 43 to 128 characters.
    pub code_verifier: Option<Hidden>,
}

impl ExchangeCode {
    /// The request, with what the head says of the client.
    ///
    /// # Errors
    /// `INVALID_PARAMS` when the head and the body name two clients.
    pub(super) fn into_request(self, headers: &HeaderMap) -> Result<TokenRequest, ApiError> {
        let mut client_id = self.client_id.map(String::from);
        let mut client_secret = self.client_secret.map(|secret| secret.0);
        if let Some((user, password)) = basic(headers) {
            if client_id.as_ref().is_some_and(|id| *id != user) || client_secret.is_some() {
                return Err(Error::invalid("client_id", "must not stand beside HTTP Basic").into());
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

/// User and password of HTTP Basic, each written as a form writes them (RFC 6749 §2.3.1).
fn basic(headers: &HeaderMap) -> Option<(String, String)> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, body) = text.split_once(' ')?;
    let bytes =
        BASE64.decode(body.trim().as_bytes()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let text = String::from_utf8(bytes).ok()?;
    let (user, password) = text.split_once(':')?;
    let plain = |text: &str| {
        let pair = format!("v={}", text.replace('&', "%26"));
        url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned())
    };
    Some((plain(user)?, plain(password)?))
}

/// A code to be exchanged, as published apps send it.
#[derive(Debug, Object)]
pub struct ExchangeCodeOlder {
    /// The code.
    pub code: Hidden,
    /// The verifier: 43 to 128 characters.
    pub code_verifier: Hidden,
}
