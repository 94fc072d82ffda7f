//! The people a bot talks to.

use std::sync::atomic::Ordering;

use crate::{
    access::Actor,
    bots::{Bots, pacing::RecentSends},
    error::{Error, Problems, Result},
    id::BotId,
    model::bot::StoredContact,
    network::WindowRules,
    page::{Page, PageRequest},
    text,
    time::Timestamp,
};

/// A person with whom the bot has exchanged messages. Unknown texts are empty, never absent.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
pub struct Contact {
    /// Id on the chat network, case-sensitive.
    pub user_id: String,
    /// Display name on the chat network.
    pub user_name: String,
    /// Your remark.
    pub remark: String,
    /// URL of the picture.
    pub avatar_url: String,
    /// Time of the last message in either direction.
    pub last_message_at: Timestamp,
    /// Number of messages.
    pub message_count: i64,
    /// When the sending window closes unless they write again; absent if it is closed or has no end.
    pub window_expires_at: Option<Timestamp>,
    /// Number of sends that are possible now, within the window and within five minutes; absent if there is no
    /// limit.
    pub sends_left: Option<u32>,
    /// When the next message is sent, if the limit per five minutes is reached (setting `sends_per_five_minutes`).
    /// Messages until then are accepted and queued.
    pub next_send_at: Option<Timestamp>,
}

impl StoredContact {
    fn into_view(self, rules: &WindowRules, now: Timestamp) -> Contact {
        let left = self.window.check(rules, now);
        let recent = RecentSends::parse(&self.recent_sends, now);
        let sends_left = left.as_ref().map_or(Some(0), |left| match (*left, recent.left(rules)) {
            (Some(window), Some(burst)) => Some(window.min(burst)),
            (window, burst) => window.or(burst),
        });
        Contact {
            next_send_at: left.is_ok().then(|| recent.next_at(rules, 0)).flatten(),
            window_expires_at: left.is_ok().then(|| self.window.expires_at(rules)).flatten(),
            sends_left,
            user_id: self.user_id,
            user_name: self.user_name,
            remark: self.remark,
            avatar_url: self.avatar_url,
            last_message_at: self.last_message_at,
            message_count: self.message_count,
        }
    }
}

/// Longest remark, in characters.
const MAX_REMARK: usize = 64;

impl Bots<'_> {
    /// Lists a bot's contacts, the last active first.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the bot is the actor's.
    pub async fn contacts(&self, actor: &Actor, bot_id: BotId, page: &PageRequest) -> Result<Page<Contact>> {
        let owner = actor.scope()?.owner();
        let after = page.after().and_then(|position| {
            let (at, user) = position.split_once(' ')?;
            Some((Timestamp::from_millis(at.parse().ok()?), user))
        });
        let mut read = self.ctx.store.read().await?;
        let bot = read.bots().find(owner, bot_id).await?.ok_or_else(|| Error::not_found("bot"))?;
        let rows = read.contacts().page(bot_id, after, page.limit() + 1).await?;
        let page = Page::from_rows(&Self::contact_list(bot_id), page, rows, |contact| {
            format!("{} {}", contact.last_message_at.as_millis(), contact.user_id)
        });
        let (rules, now) = (self.rules(&bot.network), self.ctx.store.now());
        Ok(page.map(|contact| contact.into_view(&rules, now)))
    }

    /// The name of a bot's list of contacts, for [`PageRequest::parse`].
    pub fn contact_list(bot_id: BotId) -> String {
        format!("contacts:{bot_id}")
    }

    /// Sets the owner's note on a person; the empty text removes it.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the bot is the actor's and knows the person; `INVALID_PARAMS` on a bad remark.
    pub async fn set_remark(
        &self,
        actor: &Actor,
        bot_id: BotId,
        user_id: &str,
        remark: &str,
    ) -> Result<Contact> {
        let owner = actor.scope()?.owner();
        let mut problems = Problems::default();
        text::check_name(&mut problems, "remark", remark, 0..=MAX_REMARK);
        problems.finish()?;
        let (user, remark) = (user_id.to_owned(), remark.trim().to_owned());
        let updated = self
            .ctx
            .store
            .write(move |tx| {
                Box::pin(async move {
                    if !tx.contacts().set_remark(owner, bot_id, &user, &remark).await? {
                        return Ok(None);
                    }
                    let bot = tx.bots().find(owner, bot_id).await?;
                    Ok(bot.zip(tx.contacts().find(bot_id, &user).await?))
                })
            })
            .await?;
        self.ctx.node.remarks.fetch_add(1, Ordering::Release);
        let (bot, contact) = updated.ok_or_else(|| Error::not_found("contact"))?;
        Ok(contact.into_view(&self.rules(&bot.network), self.ctx.store.now()))
    }

    /// Returns the rules of a network. Defaults are fine for a network that this hub does not have: nothing can be
    /// sent.
    fn rules(self, network: &str) -> WindowRules {
        let network = self.ctx.networks.get(network);
        network.map(|network| self.ctx.config.window_rules(&**network)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{bots::testing::*, error::ErrorCode};

    #[tokio::test]
    async fn pages_run_from_the_last_active_backwards() {
        let world = World::open().await;
        let ann = world.user("ann").await;
        let bot = world.bot(&ann, "wx-a").await;
        for n in 0..3 {
            // Two contacts wrote in the same millisecond.
            if n != 1 {
                world.clock.advance(Duration::from_secs(1));
            }
            world.person_writes(bot, &format!("Peer{n}")).await;
        }
        let bots = world.hub.bots();
        let list = Bots::contact_list(bot);
        let one = |cursor: Option<&str>| PageRequest::parse(&list, Some(1), cursor).unwrap();
        let first = bots.contacts(&ann, bot, &one(None)).await.unwrap();
        let second = bots.contacts(&ann, bot, &one(first.next_cursor.as_deref())).await.unwrap();
        let third = bots.contacts(&ann, bot, &one(second.next_cursor.as_deref())).await.unwrap();
        let seen: Vec<_> =
            [first.items, second.items, third.items].concat().into_iter().map(|c| c.user_id).collect();
        assert_eq!(seen, ["Peer2", "Peer1", "Peer0"]);
        assert_eq!(third.next_cursor, None);
    }

    #[tokio::test]
    async fn a_contact_shows_its_window_and_its_remark() {
        let world = World::open().await;
        let ann = world.user("ann").await;
        let bot = world.bot(&ann, "wx-a").await;
        let start = world.clock.now();
        world.person_writes(bot, "Peer").await;
        let bots = world.hub.bots();
        let only = |page: Page<Contact>| page.items.into_iter().next().unwrap();
        let contact = only(bots.contacts(&ann, bot, &PageRequest::default()).await.unwrap());
        assert_eq!(contact.sends_left, Some(3));
        assert_eq!(contact.window_expires_at, Some(start + Duration::from_secs(3600)));
        assert_eq!((contact.remark.as_str(), contact.avatar_url.as_str()), ("", ""));
        let noted = bots.set_remark(&ann, bot, "Peer", " 同事 ").await.unwrap();
        assert_eq!(noted.remark, "同事");
        assert_eq!(only(bots.contacts(&ann, bot, &PageRequest::default()).await.unwrap()), noted);
        let unknown = bots.set_remark(&ann, bot, "peer", "x").await;
        assert_eq!(unknown.unwrap_err().code(), ErrorCode::NotFound, "ids are case-sensitive");
        let bad = bots.set_remark(&ann, bot, "Peer", "a\nb").await;
        assert_eq!(bad.unwrap_err().code(), ErrorCode::InvalidParams);
        world.clock.advance(Duration::from_secs(3600));
        let contact = only(bots.contacts(&ann, bot, &PageRequest::default()).await.unwrap());
        assert_eq!((contact.sends_left, contact.window_expires_at), (Some(0), None));
    }
}
