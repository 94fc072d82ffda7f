//! Tokens of installations: made, replaced, recognised.

use std::time::Duration;

use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Apps, installation::find};
use crate::{
    access::Actor,
    audit::Action,
    context::Context,
    error::{Error, ErrorCode, Result},
    id::{AppId, BotId},
    idempotency::{self, Idempotent},
    model::{
        app::NewToken,
        revocation::{Revocation, Revoked},
    },
    secret::{Secret, ShownOnce, TokenHash, TokenKind, new_token, parse_token},
    time::Timestamp,
};

/// The longest time that an old token may stay valid.
pub const MAX_GRACE_HOURS: u32 = 72;

/// A new token, shown only here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
pub struct RegeneratedToken {
    /// The token.
    pub app_token: ShownOnce,
    /// Until when the old token works; absent if it is invalid already.
    pub old_token_expires_at: Option<Timestamp>,
}

impl NewToken {
    /// A fresh token, and the text to show once.
    pub(super) fn generate(ctx: &Context, old_until: Option<Timestamp>) -> (Secret, Self) {
        let token = new_token(TokenKind::App, &ctx.random);
        let new = Self {
            hash: TokenHash::of(token.expose()),
            last4: token.last4(),
            at: ctx.store.now(),
            old_until,
        };
        (token, new)
    }
}

fn switched_off() -> Error {
    Error::new(ErrorCode::Forbidden, "the app is switched off on this bot")
}

impl Apps<'_> {
    /// Gives an app on a bot a new token. The old one ends at once, or after `grace_hours`; of two old tokens only
    /// the newer lives on. Parallel calls leave exactly one current token. `idempotency_key` is the caller's
    /// `Idempotency-Key`: the same key with the same request gives the first answer again, new token included.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on `grace_hours` outside 1..=72, `NOT_FOUND`, `CONFLICT` when the idempotency key was used for
    /// something else.
    pub async fn regenerate_token(
        &self,
        actor: &Actor,
        bot_id: BotId,
        app_id: AppId,
        grace_hours: Option<u32>,
        idempotency_key: Option<&str>,
    ) -> Result<RegeneratedToken> {
        let scope = actor.scope()?;
        if grace_hours.is_some_and(|hours| !(1..=MAX_GRACE_HOURS).contains(&hours)) {
            return Err(Error::invalid("grace_hours", format!("must be between 1 and {MAX_GRACE_HOURS}")));
        }
        let wanted = (bot_id, app_id, grace_hours);
        let once = Idempotent::read(self.ctx, actor, "app.regenerate_token", &wanted, idempotency_key)?;
        let now = self.ctx.store.now();
        let old_token_expires_at =
            grace_hours.map(|hours| now + Duration::from_secs(u64::from(hours) * 60 * 60));
        let (app_token, new) = NewToken::generate(self.ctx, old_token_expires_at);
        let entry = self.ctx.audit(actor, Action::AppTokenRegenerated);
        let revocation_id = self.ctx.ids.next();
        let write = idempotency::write_once(&self.ctx.store, once, move |tx| {
            async move {
                tx.channels().begin_change(scope, bot_id).await?;
                let installation = find(tx, scope, bot_id, app_id).await?.installation;
                tx.installations().replace_token(installation.id, &new).await?;
                let entry = entry.target(installation.id, installation.app_name);
                tx.audit().add(&entry.detail(json!({ "grace_hours": grace_hours }))).await?;
                let revoked = Revoked::Installation(installation.id);
                tx.revocations().add(&Revocation { id: revocation_id, revoked, at: now }).await?;
                Ok((installation.id, RegeneratedToken { app_token: app_token.into(), old_token_expires_at }))
            }
            .boxed()
        });
        let (installation, regenerated) = write.await?;
        self.ctx.notify_revoked(Revoked::Installation(installation));
        Ok(regenerated)
    }

    /// An app on a bot, for the operator of the hub, who needs no token to act for it.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is the operator, and for an app that is switched off on its bot, or whose author
    /// or whose bot's owner is; `NOT_FOUND`.
    pub async fn acting(&self, actor: &Actor, bot_id: BotId, app_id: AppId) -> Result<Actor> {
        if *actor != Actor::Operator {
            return Err(Error::new(ErrorCode::Forbidden, "only the operator of the hub can do this"));
        }
        let missing = || Error::not_found("app on this bot");
        let mut read = self.ctx.store.read().await?;
        let installed =
            read.installations().find(actor.scope()?, bot_id, app_id).await?.ok_or_else(missing)?;
        match read.installations().find_of_app(app_id, installed.installation.id).await? {
            None => Err(missing()),
            Some((_, false)) => Err(switched_off()),
            Some((app, true)) => Ok(Actor::App(app)),
        }
    }

    /// Authenticates an installation by its token. Malformed tokens are rejected without a query.
    ///
    /// # Errors
    /// `INVALID_TOKEN` unless the token is current, or a replaced one within its grace period; `FORBIDDEN` if the app
    /// is disabled on its bot, or if the app's author or the bot's owner is disabled.
    pub async fn authenticate_token(&self, token: &str) -> Result<Actor> {
        let unknown = || Error::new(ErrorCode::InvalidToken, "the app token is unknown or was replaced");
        let hash = parse_token(TokenKind::App, token).ok_or_else(unknown)?;
        let mut read = self.ctx.store.read().await?;
        match read.installations().find_by_token(&hash, self.ctx.store.now()).await? {
            None => Err(unknown()),
            Some((_, false)) => Err(switched_off()),
            Some((actor, true)) => Ok(Actor::App(actor)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        apps::{AppPatch, InstallationPatch, NewApp, NewInstallation},
        bots::NewSend,
        testing::TestHub,
    };

    #[tokio::test]
    async fn the_operator_acts_as_an_installed_app_within_its_scopes() {
        let hub = TestHub::start().await;
        let ada = hub.register("ada").await;
        let bot = hub.bind(&ada).await;
        let apps = hub.hub().apps();
        let rest = AppPatch { scopes: Some(vec!["message:write".to_owned()]), ..AppPatch::default() };
        let new = NewApp { name: "Weather".to_owned(), slug: None, rest };
        let app_id = apps.create(&ada, new, None).await.unwrap().app.id;
        let acting = async |actor: &Actor| apps.acting(actor, bot.id, app_id).await;
        assert_eq!(acting(&Actor::Operator).await.unwrap_err().code(), ErrorCode::NotFound);
        let new = NewInstallation { app_id, scopes: None, handle: None, config: None };
        apps.install(&ada, bot.id, new, None).await.unwrap();
        assert_eq!(acting(&ada).await.unwrap_err().code(), ErrorCode::Forbidden);

        let app = acting(&Actor::Operator).await.unwrap();
        assert_eq!(app.app().unwrap().app_id, app_id);
        hub.say(&bot, "hello");
        hub.advance_until("she is known", Duration::from_millis(100), async || {
            let send = NewSend { content: "sunny".to_owned(), ..NewSend::default() };
            hub.hub().bots().send(&app, bot.id, send, None).await.ok()
        })
        .await;

        let off = InstallationPatch { enabled: Some(false), ..InstallationPatch::default() };
        apps.change_installation(&ada, bot.id, app_id, off).await.unwrap();
        assert_eq!(acting(&Actor::Operator).await.unwrap_err().code(), ErrorCode::Forbidden);
    }
}
