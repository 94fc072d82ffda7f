//! The typing indicator, on request of a program (`docs/ilink.md#typing`).

use std::time::Duration;

use super::{BotStatus, Bots, credentials, login_expired, sender};
use crate::{
    access::Actor,
    error::{Error, Problems, Result},
    id::BotId,
    model::private,
    text,
};

/// Time limit for the network.
const LONGEST: Duration = Duration::from_secs(10);

impl Bots<'_> {
    /// Shows or removes the typing indicator, to the owner of the account if no person is named. Returns whether the
    /// network accepted it; a refusal is not an error. The indicator disappears by itself, so callers repeat it every
    /// few seconds.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the bot is the actor's (or, for a channel client, its channel's); `INVALID_PARAMS` on
    /// a bad id; `CONFLICT` when the bot needs a new login.
    pub async fn typing(
        &self,
        actor: &Actor,
        bot_id: BotId,
        to_user_id: Option<&str>,
        on: bool,
    ) -> Result<bool> {
        let (owner, _) = sender(actor, bot_id)?;
        if let Some(user) = to_user_id {
            let mut problems = Problems::default();
            text::check_name(&mut problems, "to_user_id", user, 1..=super::send::MAX_USER_ID);
            problems.finish()?;
        }
        let mut read = self.ctx.store.read().await?;
        let bot = read.bots().find(owner, bot_id).await?.ok_or_else(|| Error::not_found("bot"))?;
        let login = read.bots().login(bot_id).await?.ok_or_else(|| Error::not_found("bot"))?;
        let to = to_user_id.unwrap_or(&bot.owner_user_id);
        let token = read.contacts().context_token(bot_id, to).await?;
        drop(read);
        if login.status == BotStatus::Expired {
            return Err(login_expired());
        }
        let token =
            token.map(|token| self.ctx.sealer.open(&private::token_place(bot_id, to), &token)).transpose()?;
        let connection = self.ctx.node.typing_connections.find(bot_id, login.credentials_rev, || {
            let credentials = credentials::open(&self.ctx.sealer, bot_id, &login.credentials)?;
            Ok(self.ctx.network(&login.network)?.connect(&credentials))
        })?;
        let shown = self.ctx.clock.timeout(LONGEST, connection.typing(to, token.as_ref(), on)).await;
        if let Some(Err(error)) = &shown {
            tracing::debug!(bot = %bot_id, %error, "the typing sign was not shown");
        }
        Ok(matches!(shown, Some(Ok(()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bots::testing::*, error::ErrorCode};

    #[tokio::test]
    async fn only_for_people_of_the_actors_own_bot() {
        let world = World::open().await;
        let (ann, bob) = (world.user("ann").await, world.user("bob").await);
        let bot = world.bot(&ann, "wx-a").await;
        let other = world.bot(&ann, "wx-b").await;
        let client = world.channel_actor(&ann, bot).await;
        let bots = world.hub.bots();
        for (actor, bot) in [(&bob, bot), (&client, other)] {
            let refused = bots.typing(actor, bot, None, true).await.unwrap_err();
            assert_eq!(refused.code(), ErrorCode::NotFound);
        }
        let bad = bots.typing(&ann, bot, Some("a\nb"), true).await.unwrap_err();
        assert_eq!(bad.details()[0].field, "to_user_id");
        world.set_status(bot, BotStatus::Expired, None).await;
        assert_eq!(bots.typing(&ann, bot, None, true).await.unwrap_err().code(), ErrorCode::Conflict);
    }
}
