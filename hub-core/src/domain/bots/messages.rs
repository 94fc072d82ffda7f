//! The messages of a bot, in both directions.

use crate::{
    access::Actor,
    bots::Bots,
    error::{Error, Problems, Result},
    id::{BotId, MessageId},
    model::message::{Message, MessageFilter},
    page::{Page, PageRequest},
};

/// Longest text to look for, in characters.
const MAX_QUERY: usize = 200;

impl MessageFilter {
    pub(super) fn check(&self) -> Result<()> {
        let mut problems = Problems::default();
        let fits = |text: &Option<String>| {
            text.as_ref().is_none_or(|text| text.chars().count() <= MAX_QUERY && !text.contains('\0'))
        };
        problems.check(fits(&self.q), "q", "must be at most 200 characters without NUL");
        problems.check(fits(&self.user_id), "user_id", "must be at most 200 characters without NUL");
        let ordered = self.since.zip(self.until).is_none_or(|(since, until)| since <= until);
        problems.check(ordered, "until", "must not be before since");
        problems.finish()
    }
}

impl Bots<'_> {
    /// A bot's messages, newest first. A page with `direction` or `q` looks at [`MAX_SCANNED`] messages: it may have
    /// fewer items than its limit, or none, and a cursor.
    ///
    /// [`MAX_SCANNED`]: crate::page::MAX_SCANNED
    ///
    /// # Errors
    /// `NOT_FOUND` unless the bot is the actor's; `INVALID_PARAMS` on a bad filter.
    pub async fn messages(
        &self,
        actor: &Actor,
        bot_id: BotId,
        filter: &MessageFilter,
        page: &PageRequest,
    ) -> Result<Page<Message>> {
        let owner = actor.scope()?.owner();
        filter.check()?;
        let mut read = self.ctx.store.read().await?;
        if read.bots().find(owner, bot_id).await?.is_none() {
            return Err(Error::not_found("bot"));
        }
        let found = read.messages().page(bot_id, filter, page).await?;
        drop(read);
        let list = Self::message_list(bot_id, filter);
        let mut page = Page::from_found(&list, page, found, |message| message.id.to_string());
        let ids: Vec<MessageId> = page.items.iter().map(|message| message.id).collect();
        let mut media = self.ctx.files().of_messages(&ids).await?;
        for message in &mut page.items {
            message.media = media.remove(&message.id).unwrap_or_default();
        }
        Ok(page)
    }

    /// One message of a bot.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the bot is the actor's and has the message.
    pub async fn message(&self, actor: &Actor, bot_id: BotId, id: MessageId) -> Result<Message> {
        let owner = actor.scope()?.owner();
        let mut read = self.ctx.store.read().await?;
        if read.bots().find(owner, bot_id).await?.is_none() {
            return Err(Error::not_found("bot"));
        }
        let message = read.messages().find(bot_id, id).await?;
        drop(read);
        let mut message = message.ok_or_else(|| Error::not_found("message"))?;
        message.media = self.ctx.files().of_messages(&[id]).await?.remove(&id).unwrap_or_default();
        Ok(message)
    }

    /// The name of a bot's list of messages under a filter, for [`PageRequest::parse`]: a cursor goes on only
    /// under the filter it was made with.
    pub fn message_list(bot_id: BotId, filter: &MessageFilter) -> String {
        format!("messages:{bot_id}:{filter:?}")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        bots::{Direction, testing::*},
        error::ErrorCode,
        network::MessageKind,
        time::Timestamp,
    };

    #[tokio::test]
    async fn filters_combine_and_searches_are_literal() {
        let world = World::open().await;
        let ann = world.user("ann").await;
        let bot = world.bot(&ann, "wx-a").await;
        world.person_writes(bot, "Peer").await;
        let bots = world.hub.bots();
        let send = async |text: &str| bots.send(&ann, bot, to("Peer", text), None).await.unwrap().message_id;
        let first = send("100% of A_B").await;
        let second = send(r"100 percent \ of AxB").await;
        world.clock.advance(Duration::from_secs(10));
        let late = world.clock.now();
        let third = send("later").await;
        let ids = async |filter: MessageFilter| -> Vec<MessageId> {
            let page = bots.messages(&ann, bot, &filter, &PageRequest::default()).await.unwrap();
            page.items.iter().map(|message| message.id).collect()
        };
        let q = |text: &str| MessageFilter { q: Some(text.into()), ..MessageFilter::default() };
        assert_eq!(ids(q("100% OF a_b")).await, [first]);
        assert_eq!(ids(q(r"\ of")).await, [second]);
        assert_eq!(ids(q("100")).await, [second, first]);
        assert_eq!(ids(q("%")).await, [first]);
        let none = MessageFilter::default;
        assert_eq!(ids(none()).await, [third, second, first]);
        assert_eq!(ids(MessageFilter { since: Some(late), ..none() }).await, [third]);
        assert_eq!(ids(MessageFilter { until: Some(late), ..none() }).await, [second, first]);
        assert_eq!(ids(MessageFilter { direction: Some(Direction::Inbound), ..none() }).await, []);
        assert_eq!(ids(MessageFilter { user_id: Some("peer".into()), ..none() }).await, []);
        assert_eq!(ids(MessageFilter { user_id: Some("Peer".into()), ..q("later") }).await, [third]);
    }

    #[tokio::test]
    async fn a_message_names_each_of_its_channels_once() {
        let world = World::open().await;
        let ann = world.user("ann").await;
        let bot = world.bot(&ann, "wx-a").await;
        world.person_writes(bot, "wx-a").await;
        let sender = world.channel_actor(&ann, bot).await;
        let Actor::Channel(first) = sender else { unreachable!() };
        let Actor::Channel(second) = world.channel_actor(&ann, bot).await else { unreachable!() };
        let channels = [first.channel_id, second.channel_id];
        let bots = world.hub.bots();
        let sent = bots.send(&sender, bot, say("hi"), None).await.unwrap().message_id;
        for channel in channels {
            let log = "INSERT INTO channel_log (channel_id, seq, message_id)";
            world.sql(format!("{log} VALUES ('{channel}', 1, '{sent}')")).await;
        }
        let page =
            bots.messages(&ann, bot, &MessageFilter::default(), &PageRequest::default()).await.unwrap();
        assert_eq!(page.items[0].channel_ids, channels);
    }

    #[tokio::test]
    async fn pages_are_stable_under_inserts_and_bound_to_their_filter() {
        let world = World::open().await;
        let ann = world.user("ann").await;
        let bot = world.bot(&ann, "wx-a").await;
        world.person_writes(bot, "Peer").await;
        let bots = world.hub.bots();
        let one = bots.send(&ann, bot, to("Peer", "one"), None).await.unwrap().message_id;
        let two = bots.send(&ann, bot, to("Peer", "two"), None).await.unwrap().message_id;
        let filter = MessageFilter::default();
        let request = |filter: &MessageFilter, cursor: Option<&str>| {
            PageRequest::parse(&Bots::message_list(bot, filter), Some(1), cursor)
        };
        let start = request(&filter, None).unwrap();
        let first = bots.messages(&ann, bot, &filter, &start).await.unwrap();
        bots.send(&ann, bot, to("Peer", "three"), None).await.unwrap();
        let cursor = first.next_cursor.as_deref();
        let second = bots.messages(&ann, bot, &filter, &request(&filter, cursor).unwrap()).await.unwrap();
        assert_eq!((first.items[0].id, second.items[0].id), (two, one));
        assert_eq!(second.next_cursor, None);
        let message = &second.items[0];
        assert_eq!((message.direction, message.kind), (Direction::Outbound, MessageKind::Text));
        assert_eq!((message.from_user_id.as_str(), message.to_user_id.as_str()), ("wx-a@bot", "Peer"));
        assert_eq!(message.items[0].text.as_deref(), Some("one"));
        let other = MessageFilter { q: Some("o".into()), ..filter.clone() };
        for (filter, cursor) in [(&other, cursor), (&filter, Some("garbage"))] {
            assert_eq!(request(filter, cursor).unwrap_err().code(), ErrorCode::InvalidParams);
        }
        let backwards =
            MessageFilter { since: Some(world.clock.now()), until: Some(Timestamp::MIN), ..filter };
        let refused = bots.messages(&ann, bot, &backwards, &PageRequest::default()).await;
        assert_eq!(refused.unwrap_err().details()[0].field, "until");
    }
}
