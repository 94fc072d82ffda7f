//! Queries of an app about its bot. Sending is [`Bots::send`], as for other actors.

use futures_util::FutureExt;

use super::{AppConfig, AppScope, AppTool, Apps, everybody, not_found, tool};
use crate::{
    access::{Actor, AppActor, Role, UserActor},
    bots::{Bot, Bots, Contact},
    error::{Error, ErrorCode, Result},
    page::{Page, PageRequest},
    wake::Hint,
};

/// The bot's owner, for whom an app reads what it was granted to read.
fn owner(app: &AppActor) -> Actor {
    Actor::User(UserActor::embedded(app.owner_id, Role::Member))
}

impl Apps<'_> {
    /// The contacts of the app's bot, most recently active first.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an app with the scope `contact:read`.
    pub async fn contacts(&self, actor: &Actor, page: &PageRequest) -> Result<Page<Contact>> {
        let app = actor.app()?;
        app.scopes.require(AppScope::ContactRead)?;
        Bots::new(self.ctx).contacts(&owner(app), app.bot_id, page).await
    }

    /// The app's bot.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an app with the scope `bot:read`.
    pub async fn bot(&self, actor: &Actor) -> Result<Bot> {
        let app = actor.app()?;
        app.scopes.require(AppScope::BotRead)?;
        Bots::new(self.ctx).get(&owner(app), app.bot_id).await
    }

    /// Returns the configuration that the bot's owner set for the app; empty if none is set.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an app with the scope `config:read`.
    pub async fn config(&self, actor: &Actor) -> Result<AppConfig> {
        let app = actor.app()?;
        app.scopes.require(AppScope::ConfigRead)?;
        let sealed = self.ctx.store.read().await?.installations().config(app.installation_id).await?;
        AppConfig::open(&self.ctx.sealer, app.installation_id, sealed.as_ref())
    }

    /// Replaces the tools that the app has on its bot alone; answers how many there are.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an app with the scope `tools:write`; `INVALID_PARAMS` with every bad field.
    pub async fn set_installation_tools(&self, actor: &Actor, tools: Vec<AppTool>) -> Result<usize> {
        let app = *actor.app()?;
        app.scopes.require(AppScope::ToolsWrite)?;
        let tools = self.ctx.computations.run(move || tool::checked(tools)).await??;
        let (count, now) = (tools.len(), self.ctx.store.now());
        let write = self.ctx.store.write(move |tx| {
            async move {
                tx.channels().begin_change(everybody()?, app.bot_id).await?;
                tx.installations().set_tools(app.installation_id, &tools, now).await
            }
            .boxed()
        });
        write.await?;
        self.ctx.node.wake.hint(Hint::Bot(app.bot_id));
        Ok(count)
    }

    /// Replaces the tools that the app has everywhere; answers how many there are. Only an installation on a bot of
    /// the app's own author may: others must not change the app for all users.
    ///
    /// # Errors
    /// As [`Apps::set_installation_tools`], and `FORBIDDEN` on a bot of another user.
    pub async fn set_app_tools(&self, actor: &Actor, tools: Vec<AppTool>) -> Result<usize> {
        let app = *actor.app()?;
        app.scopes.require(AppScope::ToolsWrite)?;
        if !app.is_own {
            return Err(Error::new(
                ErrorCode::Forbidden,
                "only on a bot of its author may the app change its tools everywhere",
            )
            .with_hint("PUT /bot/v1/installation/tools changes them on this bot"));
        }
        let patch = super::AppPatch { tools: Some(tools), ..super::AppPatch::default() };
        let egress = self.ctx.egress.clone();
        let checked = self.ctx.computations.run(move || patch.check(&egress)).await??;
        let now = self.ctx.store.now();
        let write = self.ctx.store.write(move |tx| {
            async move {
                let mut stored = tx.apps().find_own(everybody()?, app.app_id).await?.ok_or_else(not_found)?;
                checked.apply(&mut stored);
                stored.updated_at = now;
                tx.apps().update(&stored).await?;
                Ok((stored.tools.len(), tx.apps().begin_change(app.app_id).await?))
            }
            .boxed()
        });
        let (count, bots) = write.await?;
        for bot_id in bots {
            self.ctx.node.wake.hint(Hint::Bot(bot_id));
        }
        Ok(count)
    }
}
