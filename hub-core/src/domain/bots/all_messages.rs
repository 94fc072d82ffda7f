//! The messages of all bots of a user.

use std::collections::HashMap;

use crate::{
    access::Actor,
    bots::Bots,
    error::Result,
    id::{BotId, MessageId},
    model::message::{ListedMessage, MessageOutcome, MessageSearch},
    page::{CountedPage, MAX_SCANNED, PageRequest},
};

impl Bots<'_> {
    /// The messages of all bots of the actor, newest first, each with its outcome in every channel. A page reads at most
    /// [`MAX_SCANNED`] messages: with filters it may have fewer items than its limit, or none, and a cursor.
    ///
    /// # Errors
    /// `FORBIDDEN` for a channel client and for an app; `INVALID_PARAMS` on a bad filter.
    pub async fn all_messages(
        &self,
        actor: &Actor,
        search: &MessageSearch,
        page: &PageRequest,
    ) -> Result<CountedPage<ListedMessage>> {
        let scope = actor.scope()?;
        search.filter.check()?;
        let list = Self::all_messages_list(actor, search);
        let mut search = search.effective();
        let mut read = self.ctx.store.read().await?;
        if let Some(channel) = search.channel_id {
            let bot = read.channels().bot_of(scope, channel).await?;
            let Some(bot) = bot.filter(|bot| search.bot_id.is_none_or(|wanted| wanted == *bot)) else {
                return Ok(CountedPage::empty());
            };
            search.bot_id = Some(bot);
        }
        let (scan, matching) = read.messages().search(scope.owner(), &search, page, MAX_SCANNED).await?;
        let CountedPage { items: ids, next_cursor, total } = scan.page(&list, matching);
        let messages = read.messages().listed(&ids).await?;
        let mut outcomes: HashMap<MessageId, Vec<MessageOutcome>> = HashMap::new();
        for outcome in read.traces().outcomes(&ids).await? {
            outcomes.entry(outcome.message_id).or_default().push(outcome);
        }
        let mut bots: Vec<BotId> = messages.iter().map(|message| message.bot_id).collect();
        bots.sort_unstable();
        bots.dedup();
        let names = read.bots().names(&bots).await?;
        drop(read);
        let mut media = self.ctx.files().of_messages(&ids).await?;
        let items = messages.into_iter().map(|mut message| {
            message.media = media.remove(&message.id).unwrap_or_default();
            ListedMessage {
                bot_name: names.get(&message.bot_id).cloned().unwrap_or_default(),
                outcomes: outcomes.remove(&message.id).unwrap_or_default(),
                message,
            }
        });
        Ok(CountedPage { items: items.collect(), next_cursor, total })
    }

    /// The name of the list under a search, for [`PageRequest::parse`].
    pub fn all_messages_list(actor: &Actor, search: &MessageSearch) -> String {
        format!("all-messages:{}:{search:?}", actor.principal())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bots::{MessageFilter, Outcome, testing::*},
        error::ErrorCode,
        model::trace::TraceStatus,
    };

    #[tokio::test]
    async fn a_list_over_all_bots_names_the_bot_and_the_outcomes() {
        let world = World::open().await;
        let (ann, bob) = (world.user("ann").await, world.user("bob").await);
        let (one, two) = (world.bot(&ann, "wx-a").await, world.bot(&ann, "wx-b").await);
        let bots = world.hub.bots();
        bots.rename(&ann, two, "Shop").await.unwrap();
        for bot in [one, two] {
            world.person_writes(bot, "Peer").await;
        }
        let first = bots.send(&ann, one, to("Peer", "first"), None).await.unwrap();
        let second = bots.send(&ann, two, to("Peer", "second"), None).await.unwrap();
        let all = MessageSearch::default();
        let list = Bots::all_messages_list(&ann, &all);
        let page = |cursor: Option<&str>| PageRequest::parse(&list, Some(1), cursor).unwrap();
        let newest = bots.all_messages(&ann, &all, &page(None)).await.unwrap();
        let item = &newest.items[0];
        assert_eq!(
            (item.message.id, item.bot_name.as_str(), newest.total),
            (second.message_id, "Shop", Some(2))
        );
        assert_eq!(item.outcomes.len(), 1);
        assert_eq!(
            (item.outcomes[0].trace_id, item.outcomes[0].status),
            (second.trace_id, TraceStatus::Pending)
        );
        assert_eq!(item.outcomes[0].reason.as_deref(), Some("queued for the chat"));
        let rest = bots.all_messages(&ann, &all, &page(newest.next_cursor.as_deref())).await.unwrap();
        assert_eq!((rest.items[0].message.id, rest.total, rest.next_cursor), (first.message_id, None, None));

        let whole = PageRequest::default();
        let ids = async |actor: &Actor, search: MessageSearch| -> Vec<MessageId> {
            let page = bots.all_messages(actor, &search, &whole).await.unwrap();
            page.items.iter().map(|item| item.message.id).collect()
        };
        let in_flight = MessageSearch { outcome: Some(Outcome::InFlight), ..MessageSearch::default() };
        assert_eq!(ids(&ann, in_flight).await, [second.message_id, first.message_id]);
        assert_eq!(ids(&ann, MessageSearch { bot_id: Some(one), ..all.clone() }).await, [first.message_id]);
        let q = MessageFilter { q: Some(first.trace_id.to_string()), ..MessageFilter::default() };
        let named = MessageSearch { filter: q, ..MessageSearch::default() };
        assert_eq!(ids(&ann, named.clone()).await, [first.message_id]);
        let elsewhere = MessageSearch { bot_id: Some(two), outcome: Some(Outcome::Failed), ..named.clone() };
        assert_eq!(ids(&ann, elsewhere).await, [first.message_id], "an id needs no other filter");
        assert_eq!(ids(&bob, named).await, []);
        assert_eq!(ids(&bob, MessageSearch { bot_id: Some(one), ..all.clone() }).await, []);
        let Actor::Channel(channel) = world.channel_actor(&ann, one).await else { unreachable!() };
        let of_channel = MessageSearch { channel_id: Some(channel.channel_id), ..MessageSearch::default() };
        for search in [of_channel.clone(), MessageSearch { bot_id: Some(two), ..of_channel }] {
            assert_eq!(ids(&ann, search).await, []);
        }
        let refused = bots.all_messages(&Actor::Channel(channel), &all, &whole).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Forbidden);
    }
}
