//! Bots of all users. An administrator sees their existence and status, never their messages.

use super::Admin;
use crate::{
    access::Actor,
    error::Result,
    id::UserId,
    model::bot::{Bot, BotStatus},
    page::{Page, PageRequest},
};

/// Filter of the list; `None` matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BotQuery {
    /// Of this user.
    pub owner_id: Option<UserId>,
    /// In this status.
    pub status: Option<BotStatus>,
}

impl BotQuery {
    /// The name of this list for [`PageRequest::parse`]: cursors of another filter are rejected.
    pub fn list_name(&self) -> String {
        format!("admin.bots:{self:?}")
    }
}

/// A bot and its owner, without messages.
#[derive(Debug, Clone, hub_macros::Api)]
pub struct AdminBot {
    /// The bot.
    #[api(flatten)]
    pub bot: Bot,
    /// Username of its owner.
    pub owner_name: String,
}

impl Admin<'_> {
    /// Lists the bots of all users, newest first.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator.
    pub async fn bots(&self, actor: &Actor, query: &BotQuery, page: &PageRequest) -> Result<Page<AdminBot>> {
        actor.admin()?;
        let mut read = self.ctx.store.read().await?;
        let found = read.bots().page_in_status(query.owner_id, query.status, page).await?;
        let owners: Vec<UserId> = found.rows.iter().map(|bot| bot.owner_id).collect();
        let names = read.users().names(&owners).await?;
        let page = Page::from_found(&query.list_name(), page, found, |bot| bot.id.to_string());
        let now = self.ctx.store.now();
        Ok(page.map(|bot| {
            let owner_name = names.get(&bot.owner_id).cloned().unwrap_or_default();
            let rules = self.ctx.networks.get(&bot.network).map(|network| network.window_rules());
            AdminBot { bot: bot.into_view(rules, now), owner_name }
        }))
    }
}
