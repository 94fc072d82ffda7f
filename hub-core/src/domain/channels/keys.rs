//! API keys of channels: creation, replacement, authentication.

use std::time::Duration;

use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Channels;
use crate::{
    access::Actor,
    audit::Action,
    context::Context,
    error::{Error, ErrorCode, Result},
    id::{BotId, ChannelId},
    idempotency::{self, Idempotent},
    model::{channel::NewKey, revocation::Revoked},
    secret::{Secret, ShownOnce, TokenHash, TokenKind, new_token, parse_token},
    time::Timestamp,
    wake::Hint,
};

/// The longest time that an old key may stay valid.
pub const MAX_GRACE_HOURS: u32 = 72;

/// Returns the part of a key that is shown after its creation: its prefix and the last four characters.
pub fn key_prefix(last4: &str) -> String {
    format!("{}…{last4}", TokenKind::ChannelKey.prefix())
}

/// A new API key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
pub struct RegeneratedKey {
    /// The key, shown only in this response.
    pub api_key: ShownOnce,
    /// Until when the old key stays valid; absent if it is invalid already.
    pub old_key_expires_at: Option<Timestamp>,
}

impl NewKey {
    /// A fresh key, and the text to show once.
    pub(super) fn generate(ctx: &Context, old_until: Option<Timestamp>) -> (Secret, Self) {
        let key = new_token(TokenKind::ChannelKey, &ctx.random);
        let new =
            Self { hash: TokenHash::of(key.expose()), last4: key.last4(), at: ctx.store.now(), old_until };
        (key, new)
    }
}

impl Channels<'_> {
    /// Gives a channel a new key. The old one ends at once, or after `grace_hours`; of two old keys only the newer
    /// lives on. Parallel calls leave exactly one current key. `idempotency_key` is the caller's `Idempotency-Key`: the
    /// same key with the same request gives the first answer again, new channel key included.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on `grace_hours` outside 1..=72, `NOT_FOUND`, `CONFLICT` when the idempotency key was used for
    /// something else.
    pub async fn regenerate_key(
        &self,
        actor: &Actor,
        bot_id: BotId,
        id: ChannelId,
        grace_hours: Option<u32>,
        idempotency_key: Option<&str>,
    ) -> Result<RegeneratedKey> {
        let scope = actor.scope()?;
        if grace_hours.is_some_and(|hours| !(1..=MAX_GRACE_HOURS).contains(&hours)) {
            return Err(Error::invalid("grace_hours", "must be between 1 and 72"));
        }
        let wanted = (bot_id, id, grace_hours);
        let once = Idempotent::read(self.ctx, actor, "channel.regenerate_key", &wanted, idempotency_key)?;
        let old_key_expires_at =
            grace_hours.map(|hours| self.ctx.store.now() + Duration::from_secs(u64::from(hours) * 60 * 60));
        let (api_key, new) = NewKey::generate(self.ctx, old_key_expires_at);
        let revocation = self.ctx.revocation(Revoked::Channel(id));
        let entry = self.ctx.audit(actor, Action::ChannelKeyRegenerated).target(id, "");
        let entry = entry.detail(json!({ "grace_hours": grace_hours }));
        let revoked = revocation.revoked;
        let write = idempotency::write_once(&self.ctx.store, once, move |tx| {
            async move {
                tx.channels().begin_change(scope, bot_id).await?;
                if !tx.channels().replace_key(bot_id, id, &new).await? {
                    return Err(Error::not_found("channel"));
                }
                tx.audit().add(&entry).await?;
                tx.revocations().add(&revocation).await?;
                Ok(RegeneratedKey { api_key: api_key.into(), old_key_expires_at })
            }
            .boxed()
        });
        let regenerated = write.await?;
        self.ctx.notify_revoked(revoked);
        self.ctx.node.wake.hint(Hint::Bot(bot_id));
        Ok(regenerated)
    }

    /// Authenticates a channel client by its key. Malformed keys are rejected without a query.
    ///
    /// # Errors
    /// `INVALID_TOKEN` unless the key is current, or a replaced one within its grace period; `FORBIDDEN` if the
    /// channel or its owner is disabled: the key is valid, and a retry with another key cannot succeed.
    pub async fn authenticate_key(&self, key: &str) -> Result<Actor> {
        let unknown = || Error::new(ErrorCode::InvalidToken, "the channel key is unknown or was replaced");
        let hash = parse_token(TokenKind::ChannelKey, key).ok_or_else(unknown)?;
        let mut read = self.ctx.store.read().await?;
        match read.channels().find_by_key(&hash, self.ctx.store.now()).await? {
            None => Err(unknown()),
            Some((_, false)) => Err(Error::new(ErrorCode::Forbidden, "the channel is switched off")),
            Some((actor, true)) => Ok(Actor::Channel(actor)),
        }
    }
}
