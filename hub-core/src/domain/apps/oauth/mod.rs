//! Putting an app onto a bot by OAuth 2.0 with PKCE (RFC 6749, RFC 7636).
//!
//! The app sends the browser here; the bot's owner looks at what it asks for and decides; the app's server exchanges
//! the code. Nothing leads to an address that the app has not registered, to the letter.

use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use subtle::ConstantTimeEq;
use url::Url;

use super::{App, AppScopes, Apps, everybody, not_found};
use crate::{
    access::Actor,
    bots::{Bot, Bots},
    error::{Error, ErrorCode, Problems, Result},
    id::{AppId, BotId},
    page::{MAX_LIMIT, PageRequest},
    secret::{TokenHash, TokenKind, new_token},
    store::app_codes::NewCode,
};

mod token;

pub use token::{Granted, TokenError, TokenRequest};

/// Lifetime of a code.
const CODE_LIFE: Duration = Duration::from_secs(60);
/// Longest `state`, in characters.
const MAX_STATE: usize = 512;

/// Parameters of an app's authorization request, unchecked.
#[derive(Debug, Clone, Default)]
pub struct AuthorizationRequest {
    /// The app's id.
    pub client_id: String,
    /// Redirect URI; the app's only registered one when absent.
    pub redirect_uri: Option<String>,
    /// `code`, or absent.
    pub response_type: Option<String>,
    /// Scopes, separated by spaces; all that the app requests when absent.
    pub scope: Option<String>,
    /// Echoed to the letter, at most 512 characters.
    pub state: Option<String>,
    /// The bot; its owner chooses when absent.
    pub bot_id: Option<String>,
    /// SHA-256 of the verifier in base64url: 43 characters.
    pub code_challenge: Option<String>,
    /// `S256`, and nothing else.
    pub code_challenge_method: Option<String>,
}

/// A checked authorization request, to show to the bot's owner.
#[derive(Debug, Clone)]
pub struct Authorization {
    /// The app.
    pub app: App,
    /// Redirect URI that receives the code or the error.
    pub redirect_uri: String,
    /// Scopes to be granted.
    pub scopes: AppScopes,
    /// Echoed with the answer.
    pub state: Option<String>,
    /// SHA-256 of the app's verifier in base64url.
    pub code_challenge: String,
    /// The bot that the app names.
    pub bot: Option<Bot>,
    /// The bots to choose from, when the app names none.
    pub bots: Vec<Bot>,
    /// Proves that the same credential was shown this request before the decision.
    pub consent: String,
}

/// The answer of the bot's owner.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The request that the owner decides on.
    pub request: AuthorizationRequest,
    /// From [`Authorization::consent`].
    pub consent: String,
    /// Whether the owner grants the request.
    pub allow: bool,
}

impl Apps<'_> {
    /// Checks an app's request and returns it for the bot's owner to decide on. Changes nothing.
    ///
    /// # Errors
    /// `NOT_FOUND` for an app that does not exist and for a bot of another user; for an unlisted app of another author
    /// also when the redirect URI is not one of the app's, or when the caller has no bot to install it on.
    /// `INVALID_PARAMS` for everything else that is wrong. The browser must not be redirected after an error.
    pub async fn authorization(
        &self,
        actor: &Actor,
        request: &AuthorizationRequest,
    ) -> Result<Authorization> {
        actor.user()?;
        let id: AppId = request.client_id.parse()?;
        let mut read = self.ctx.store.read().await?;
        let is_visible = read.apps().find(actor.scope()?, id).await?.is_some();
        // An app is shared before it is listed by sending people here, with an address that only the app knows.
        let app = read.apps().find(everybody()?, id).await?;
        drop(read);
        let app = app.ok_or_else(not_found)?.shown_to(actor.user().ok().map(|user| user.user_id));
        let redirect_uri = match registered(&app, request.redirect_uri.as_deref()) {
            Err(_) if !is_visible => return Err(not_found()),
            redirect_uri => redirect_uri?,
        };
        let (scopes, code_challenge) = check(&app, request)?;
        let bots = Bots::new(self.ctx);
        let bot = match request.bot_id.as_deref().filter(|id| !id.is_empty()) {
            Some(id) => Some(bots.get(actor, id.parse()?).await?),
            None => None,
        };
        let page = PageRequest::parse(&Bots::bot_list(actor), Some(MAX_LIMIT), None)?;
        let bots = if bot.is_none() { bots.list(actor, &page).await?.items } else { Vec::new() };
        if !is_visible && bot.is_none() && bots.is_empty() {
            return Err(not_found());
        }
        let state = request.state.clone();
        let consent = self.consent(actor, &app, &redirect_uri, scopes, state.as_deref(), &code_challenge);
        Ok(Authorization { app, redirect_uri, scopes, state, code_challenge, bot, bots, consent })
    }

    /// Returns the URL to which the browser is redirected: with a code that is valid once within 60 seconds, or with
    /// the refusal.
    ///
    /// # Errors
    /// As [`Apps::authorization`]; `FORBIDDEN` when this credential has not seen this question; `INVALID_PARAMS` on
    /// `bot_id` when no bot was chosen.
    pub async fn decide(&self, actor: &Actor, decision: Decision) -> Result<String> {
        let authorization = self.authorization(actor, &decision.request).await?;
        if !bool::from(authorization.consent.as_bytes().ct_eq(decision.consent.as_bytes())) {
            return Err(Error::new(ErrorCode::Forbidden, "the question is another one than was seen")
                .with_hint("open the authorization page again"));
        }
        if !decision.allow {
            return led_to(
                &authorization.redirect_uri,
                ("error", "access_denied"),
                authorization.state.as_deref(),
            );
        }
        let bot_id: BotId = match &authorization.bot {
            Some(bot) => bot.id,
            None => return Err(Error::invalid("bot_id", "must name a bot")),
        };
        let code = new_token(TokenKind::AppCode, &self.ctx.random);
        let hash = TokenHash::of(code.expose());
        let stored = NewCode {
            app_id: authorization.app.id,
            bot_id,
            user_id: actor.user()?.user_id,
            redirect_uri: authorization.redirect_uri.clone(),
            scopes: authorization.scopes,
            challenge: authorization.code_challenge,
            expires_at: self.ctx.store.now() + CODE_LIFE,
        };
        let write = self
            .ctx
            .store
            .write(move |tx| Box::pin(async move { tx.app_codes().insert(&hash, &stored).await }));
        write.await?;
        led_to(&authorization.redirect_uri, ("code", code.expose()), authorization.state.as_deref())
    }

    /// Returns the app's `setup_url`, with the hub, the app, the bot, a random state and the return URL as
    /// parameters. For apps that start their installation themselves.
    ///
    /// # Errors
    /// `NOT_FOUND` for an app that does not exist and for a bot of another user; `CONFLICT` when the app has no such
    /// address.
    pub async fn setup(&self, actor: &Actor, id: AppId, bot_id: BotId) -> Result<String> {
        Bots::new(self.ctx).get(actor, bot_id).await?;
        let app = self.ctx.store.read().await?.apps().find(everybody()?, id).await?.ok_or_else(not_found)?;
        let setup = app.setup_url.ok_or_else(|| Error::conflict("the app has no setup_url"))?;
        let mut url = Url::parse(&setup).map_err(Error::internal)?;
        let hub = self.ctx.config.public_url.as_str().trim_end_matches('/');
        let state = BASE64URL_NOPAD.encode(&self.ctx.random.bytes::<16>());
        url.query_pairs_mut()
            .append_pair("hub", hub)
            .append_pair("app_id", &id.to_string())
            .append_pair("bot_id", &bot_id.to_string())
            .append_pair("state", &state)
            .append_pair("return_url", self.ctx.config.address("/oauth/complete").as_str());
        Ok(url.into())
    }

    fn consent(
        self,
        actor: &Actor,
        app: &App,
        redirect_uri: &str,
        scopes: AppScopes,
        state: Option<&str>,
        challenge: &str,
    ) -> String {
        let user = actor.user().ok();
        let session = user.and_then(|user| user.session_id).map(|id| id.to_string());
        let key = user.and_then(|user| user.key_id).map(|id| id.to_string());
        let parts = (actor.principal(), session, key, app.id, redirect_uri, scopes, state, challenge);
        BASE64URL_NOPAD.encode(&self.ctx.sealer.derive("app.consent", &crate::text::json(&parts)))
    }
}

/// The address that was asked for, when the app has registered exactly it.
fn registered(app: &App, wanted: Option<&str>) -> Result<String> {
    match (wanted, &app.redirect_uris[..]) {
        (Some(wanted), all) if all.iter().any(|uri| uri == wanted) => Ok(wanted.to_owned()),
        (Some(_), _) => Err(Error::invalid("redirect_uri", "is not one that the app has registered")),
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(Error::invalid("redirect_uri", "must be one of the app's redirect URIs")),
    }
}

fn check(app: &App, request: &AuthorizationRequest) -> Result<(AppScopes, String)> {
    let mut problems = Problems::default();
    let is_code = request.response_type.as_deref().is_none_or(|kind| kind == "code");
    problems.check(is_code, "response_type", "must be code");
    let is_s256 = request.code_challenge_method.as_deref() == Some("S256");
    problems.check(is_s256, "code_challenge_method", "must be S256");
    let challenge = request.code_challenge.clone().unwrap_or_default();
    let is_hash = BASE64URL_NOPAD.decode(challenge.as_bytes()).is_ok_and(|bytes| bytes.len() == 32);
    problems.check(is_hash, "code_challenge", "must be the SHA-256 of the verifier in base64url");
    let state = request.state.as_deref().unwrap_or_default();
    let is_short = state.chars().count() <= MAX_STATE;
    problems.check(is_short, "state", format!("must be at most {MAX_STATE} characters"));
    let words = request.scope.as_deref().map(str::split_whitespace);
    let scopes = match words.map(AppScopes::parse) {
        None => app.scopes,
        Some(Ok(scopes)) if scopes.is_within(app.scopes) => scopes,
        Some(_) => {
            problems.add("scope", format!("must be of those that the app asks for: {}", app.scopes));
            AppScopes::default()
        }
    };
    problems.finish()?;
    Ok((scopes, challenge))
}

/// An address with an answer in its query.
fn led_to(redirect_uri: &str, answer: (&str, &str), state: Option<&str>) -> Result<String> {
    let mut url = Url::parse(redirect_uri).map_err(Error::internal)?;
    url.query_pairs_mut().append_pair(answer.0, answer.1);
    if let Some(state) = state {
        url.query_pairs_mut().append_pair("state", state);
    }
    Ok(url.into())
}
