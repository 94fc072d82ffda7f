//! Exchanging a code for the token of an installation.

use data_encoding::BASE64URL_NOPAD;
use futures_util::FutureExt;
use sha2::{Digest, Sha256};

use crate::{
    access::{Actor, Role, UserActor},
    apps::{
        AppEventKind, AppScopes, Apps, InstallationRecord, NewToken, everybody, installation, secret_place,
    },
    audit::Action,
    context::Context,
    error::{Error, Result},
    events::Changed,
    id::{AppId, BotId, InstallationId},
    model::{
        audit::NewEntry,
        revocation::{Revocation, Revoked},
    },
    secret::{Secret, ShownOnce, TokenHash, TokenKind, new_token, parse_token},
    store::{Tx, app_codes::StoredCode},
    time::Timestamp,
};

/// Parameters of the token request of an app's server.
#[derive(Debug, Clone, Default)]
pub struct TokenRequest {
    /// `authorization_code`.
    pub grant_type: Option<String>,
    /// The code.
    pub code: Option<Secret>,
    /// Redirect URI that received the code.
    pub redirect_uri: Option<String>,
    /// The app's id.
    pub client_id: Option<String>,
    /// Its secret; PKCE is proof enough, but a wrong one is refused.
    pub client_secret: Option<Secret>,
    /// The verifier whose hash began the authorization.
    pub code_verifier: Option<Secret>,
    /// Whether it came by the app's own path, which says neither grant nor address.
    pub older: bool,
}

/// A token, with the field names of published apps.
#[derive(Debug, Clone, hub_macros::Api)]
#[api(name = "OlderGranted")]
pub struct Granted {
    /// Id of the installation.
    pub installation_id: InstallationId,
    /// Token of the app on the bot.
    pub app_token: ShownOnce,
    /// Secret that signs events.
    pub webhook_secret: ShownOnce,
    /// Id of the bot.
    pub bot_id: BotId,
    /// What the bot's owner granted.
    #[api(skip)]
    pub scopes: AppScopes,
}

/// Error of a token request (RFC 6749 §5.2).
#[derive(Debug)]
pub enum TokenError {
    /// A parameter is missing or malformed.
    InvalidRequest(&'static str),
    /// The app does not exist, or its secret is wrong.
    InvalidClient,
    /// The code is wrong, used or expired, or the other parameters do not match it.
    InvalidGrant(&'static str),
    /// The grant type is not `authorization_code`.
    UnsupportedGrantType,
    /// A fault of the hub.
    Failed(Error),
}

impl From<Error> for TokenError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A request in which everything is there.
struct Presented {
    app_id: AppId,
    hash: TokenHash,
    redirect_uri: Option<String>,
    challenge: String,
}

enum Exchanged {
    Done(InstallationId, BotId, AppScopes),
    Refused(&'static str),
    /// The code was used before: the token that it was exchanged for is revoked.
    Replayed(Option<InstallationId>),
}

impl Apps<'_> {
    /// Exchanges a code for a token, and puts the app onto the bot; an app that is there already gets another
    /// token and the scopes that were granted now. A code that was used before ends the token it was used for.
    ///
    /// # Errors
    /// [`TokenError`].
    pub async fn exchange(&self, request: TokenRequest) -> Result<Granted, TokenError> {
        let presented = read(&request)?;
        let secrets = self.ctx.store.read().await?.apps().secrets(presented.app_id).await?;
        let secrets = secrets.ok_or(TokenError::InvalidClient)?;
        let is_right =
            |secret: &Secret| TokenHash::of(secret.expose()).as_str() == secrets.client_secret_hash;
        if !request.client_secret.as_ref().is_none_or(is_right) {
            return Err(TokenError::InvalidClient);
        }
        let app_id = presented.app_id;
        let (app_token, token) = NewToken::generate(self.ctx, None);
        let exchange = Exchange {
            ctx: self.ctx.clone(),
            presented,
            token,
            dead: TokenHash::of(new_token(TokenKind::App, &self.ctx.random).expose()),
            now: self.ctx.store.now(),
            installation_id: self.ctx.ids.next(),
            revocation_id: self.ctx.ids.next(),
            entry: self.ctx.audit(&Actor::Operator, Action::AppInstalled),
        };
        let exchanged = self.ctx.store.write(move |tx| exchange.run(tx).boxed()).await?;
        let (installation_id, bot_id, scopes) = match exchanged {
            Exchanged::Done(installation, bot, scopes) => (installation, bot, scopes),
            Exchanged::Refused(why) => return Err(TokenError::InvalidGrant(why)),
            Exchanged::Replayed(ended) => {
                if let Some(id) = ended {
                    tracing::warn!(app = %app_id, installation = %id, "a code was used twice; its token was ended");
                    self.ctx.notify_revoked(Revoked::Installation(id));
                }
                return Err(TokenError::InvalidGrant("the code was used before"));
            }
        };
        // A token that the app had there before has ended.
        self.ctx.notify_revoked(Revoked::Installation(installation_id));
        self.notify_changed(bot_id, app_id, Changed::Installed);
        let webhook_secret = self.ctx.sealer.open(&secret_place(app_id), &secrets.webhook_secret)?.into();
        Ok(Granted { app_token: app_token.into(), scopes, installation_id, bot_id, webhook_secret })
    }
}

/// Reads what has to be there; nothing is looked up for it.
fn read(request: &TokenRequest) -> Result<Presented, TokenError> {
    if !request.older {
        match request.grant_type.as_deref() {
            Some("authorization_code") => {}
            Some(_) => return Err(TokenError::UnsupportedGrantType),
            None => return Err(TokenError::InvalidRequest("grant_type is missing")),
        }
        if request.redirect_uri.is_none() {
            return Err(TokenError::InvalidRequest("redirect_uri is missing"));
        }
    }
    let app_id = request.client_id.as_deref().ok_or(TokenError::InvalidRequest("client_id is missing"))?;
    let app_id = app_id.parse().map_err(|_: Error| TokenError::InvalidClient)?;
    let code = request.code.as_ref().ok_or(TokenError::InvalidRequest("code is missing"))?;
    let verifier = request.code_verifier.as_ref();
    let verifier = verifier.ok_or(TokenError::InvalidRequest("code_verifier is missing"))?.expose();
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if !(43..=128).contains(&verifier.len()) || !verifier.bytes().all(unreserved) {
        return Err(TokenError::InvalidRequest("code_verifier must be 43 to 128 of A-Z a-z 0-9 - . _ ~"));
    }
    let hash = parse_token(TokenKind::AppCode, code.expose());
    Ok(Presented {
        app_id,
        hash: hash.ok_or(TokenError::InvalidGrant("the code is unknown"))?,
        redirect_uri: request.redirect_uri.clone(),
        challenge: BASE64URL_NOPAD.encode(&Sha256::digest(verifier)),
    })
}

/// One exchange, within its transaction.
struct Exchange {
    ctx: Context,
    presented: Presented,
    token: NewToken,
    /// Replaces a revoked token: it matches no token.
    dead: TokenHash,
    now: Timestamp,
    installation_id: InstallationId,
    revocation_id: crate::id::RevocationId,
    entry: NewEntry,
}

impl Exchange {
    async fn run(self, tx: &mut Tx) -> Result<Exchanged> {
        let hash = &self.presented.hash;
        let Some(stored) = tx.app_codes().find(hash).await? else {
            return Ok(Exchanged::Refused("the code is unknown"));
        };
        let Presented { app_id, redirect_uri, challenge, .. } = &self.presented;
        if stored.code.app_id != *app_id
            || redirect_uri.as_ref().is_some_and(|uri| *uri != stored.code.redirect_uri)
            || stored.code.challenge != *challenge
        {
            // The code is known to a client without the rest: it is invalid from now on. The result of a used code is
            // kept.
            tx.app_codes().consume(hash, self.now).await?;
            return Ok(Exchanged::Refused("the code was given for something else"));
        }
        if stored.used {
            return self.replayed(tx, &stored).await;
        }
        if stored.code.expires_at <= self.now {
            return Ok(Exchanged::Refused("the code has expired"));
        }
        if !tx.app_codes().consume(hash, self.now).await? {
            // Another node was faster; it has noted by now what came of it.
            let stored = tx.app_codes().find(hash).await?.unwrap_or(stored);
            return self.replayed(tx, &stored).await;
        }
        self.install(tx, stored).await
    }

    async fn install(self, tx: &mut Tx, stored: StoredCode) -> Result<Exchanged> {
        let (everybody, code) = (everybody()?, stored.code);
        let app = tx.apps().find(everybody, code.app_id).await?;
        let (Some(app), Some(_)) = (app, tx.bots().find(Some(code.user_id), code.bot_id).await?) else {
            return Ok(Exchanged::Refused("the bot or the app was deleted"));
        };
        let scopes = code.scopes.intersection(app.scopes);
        tx.channels().begin_change(everybody, code.bot_id).await?;
        let there = tx.installations().find(everybody, code.bot_id, app.id).await?;
        let id = if let Some(InstallationRecord { installation: there, .. }) = there {
            tx.installations().update(there.id, &there.handle, scopes, true, self.now).await?;
            tx.installations().replace_token(there.id, &self.token).await?;
            let revoked = Revoked::Installation(there.id);
            let ended = Revocation { id: self.revocation_id, revoked, at: self.now };
            tx.revocations().add(&ended).await?;
            there.id
        } else {
            let handle = free_handle(tx, code.bot_id, &app.slug, self.installation_id).await?;
            let new =
                installation::fresh(self.installation_id, &app, code.bot_id, handle, scopes, &self.token);
            installation::insert(tx, everybody, &new, &self.token).await?;
            installation::notify(tx, &self.ctx, &app, &new, AppEventKind::AppInstalled).await?;
            self.installation_id
        };
        tx.app_codes().note(&self.presented.hash, id, &self.token.hash).await?;
        let by = Actor::User(UserActor::embedded(code.user_id, Role::Member)).principal();
        let detail =
            serde_json::json!({ "app": app.id, "bot": code.bot_id, "scopes": scopes, "by": "oauth" });
        let entry = NewEntry { actor: by, ..self.entry };
        tx.audit().add(&entry.target(id, app.name).detail(detail)).await?;
        Ok(Exchanged::Done(id, code.bot_id, scopes))
    }

    async fn replayed(&self, tx: &mut Tx, stored: &StoredCode) -> Result<Exchanged> {
        let (Some(id), Some(token)) = (stored.installation_id, &stored.token_hash) else {
            return Ok(Exchanged::Replayed(None));
        };
        if !tx.installations().end_token(id, token, &self.dead).await? {
            return Ok(Exchanged::Replayed(None));
        }
        let revoked = Revoked::Installation(id);
        tx.revocations().add(&Revocation { id: self.revocation_id, revoked, at: self.now }).await?;
        Ok(Exchanged::Replayed(Some(id)))
    }
}

/// The short name as a handle, with an end that makes it unlike others where it is taken.
async fn free_handle(tx: &mut Tx, bot_id: BotId, slug: &str, id: InstallationId) -> Result<String> {
    let plain = &slug[..slug.len().min(32)];
    if !tx.installations().has_handle(bot_id, plain).await? {
        return Ok(plain.to_owned());
    }
    let id = id.to_string().to_lowercase();
    Ok(format!("{}-{}", &slug[..slug.len().min(25)], &id[id.len() - 6..]))
}
