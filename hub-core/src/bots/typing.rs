//! "Is typing", shown for a program that asks for it (`contract.md` §5.2, `protocols/ilink.md` §11).

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{BotStatus, Bots, credentials, login_expired, private, sender};
use crate::{
    access::Actor,
    error::{Error, Problems, Result},
    id::BotId,
    network::Connection,
    text,
};

/// How long the network may take.
const LONGEST: Duration = Duration::from_secs(10);
/// Accounts whose tickets are remembered; beyond that all are forgotten, and asked for again.
const REMEMBERED: usize = 256;

/// Connections that only type. They keep the network's tickets, which are asked for once per person.
#[derive(Clone, Default)]
pub struct Typists(Arc<Mutex<HashMap<BotId, Typist>>>);

struct Typist {
    credentials_rev: i64,
    connection: Arc<dyn Connection>,
}

impl fmt::Debug for Typists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_tuple("Typists").field(&known).finish()
    }
}

impl Typists {
    fn find(
        &self,
        bot: BotId,
        credentials_rev: i64,
        connect: impl FnOnce() -> Result<Arc<dyn Connection>>,
    ) -> Result<Arc<dyn Connection>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(typist) = known.get(&bot).filter(|typist| typist.credentials_rev == credentials_rev) {
            return Ok(Arc::clone(&typist.connection));
        }
        let connection = connect()?;
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(bot, Typist { credentials_rev, connection: Arc::clone(&connection) });
        Ok(connection)
    }
}

impl Bots<'_> {
    /// Shows a person that the bot is typing, or takes the sign away; to the person who owns the account when
    /// nobody is named. The sign is a courtesy: whether the network took it is told and is no error. It goes
    /// away by itself, so whoever works for longer says it again every few seconds.
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
        let connection = self.ctx.typists.find(bot_id, login.credentials_rev, || {
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
