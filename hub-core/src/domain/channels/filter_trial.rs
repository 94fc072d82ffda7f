//! Trying a filter on the messages that a bot has received.

use super::Channels;
use crate::{
    access::Actor,
    error::{Error, Problems, Result},
    filter::{Filter, FilterInput},
    id::{BotId, ChannelId, MessageId},
    model::{cause::Cause, message::ReceivedMessage},
    time::Timestamp,
};

/// Messages that a filter is tried on.
pub const MAX_TESTED: u32 = 100;
/// Length of the shown part of a text, in characters.
const MAX_EXCERPT: usize = 200;

/// What a filter decides about a message.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
#[api(example = {
    "created_at": "2026-11-21T09:30:00.000Z",
    "excerpt": "hello",
    "from_user_id": "ann@im.wechat",
    "message_id": "msg_01KAJJS8P00000000000000005",
    "passed": false,
    "reason": "keyword",
    "reason_cause": {"code": "not_matched", "parts": ["keyword"]},
})]
pub struct FilterVerdict {
    /// The message.
    pub message_id: MessageId,
    /// Id of the sender.
    pub from_user_id: String,
    /// Beginning of the text, at most 200 characters.
    pub excerpt: String,
    /// When the hub received the message.
    pub created_at: Timestamp,
    /// Whether the channel would receive the message.
    pub passed: bool,
    /// The same words as in traces: `passed`, or what did not match: `handle`, `sender`, `keyword`, `type` (several
    /// separated by commas), `expression`, or `expression error: …`.
    #[api(cause)]
    pub reason: String,
}

/// What a filter decides about the last messages of a bot.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
pub struct TestedFilter {
    /// Number of messages that pass.
    pub passed: u32,
    /// The messages, newest first.
    pub messages: Vec<FilterVerdict>,
}

impl From<Vec<FilterVerdict>> for TestedFilter {
    fn from(messages: Vec<FilterVerdict>) -> Self {
        let passed = messages.iter().filter(|message| message.passed).count();
        Self { passed: u32::try_from(passed).unwrap_or(u32::MAX), messages }
    }
}

impl Channels<'_> {
    /// Tries a filter on the last messages that people sent to the bot, newest first. It decides as if the channel had
    /// the filter and were enabled; nothing is stored.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every bad field of the filter, below `filter`, also when the expression does not compile,
    /// and unless `last` is from 1 to [`MAX_TESTED`]; `NOT_FOUND`.
    pub async fn test_filter(
        &self,
        actor: &Actor,
        bot_id: BotId,
        id: ChannelId,
        filter: Filter,
        last: u32,
    ) -> Result<TestedFilter> {
        let handle = self.get(actor, bot_id, id).await?.handle;
        if !(1..=MAX_TESTED).contains(&last) {
            return Err(Error::invalid("last", format!("must be between 1 and {MAX_TESTED}")));
        }
        let messages = self.ctx.store.read().await?.messages().received(bot_id, last).await?;
        let test = move || {
            let compiled = filter.compile().map_err(|error| {
                let mut problems = Problems::default();
                problems.merge("filter", &error);
                problems.finish().err().unwrap_or(error)
            })?;
            let (bot, channel) = (bot_id.to_string(), id.to_string());
            let verdict = |message: ReceivedMessage| {
                let content = match &handle {
                    None => Some(message.content.as_str()),
                    Some(handle) => handle.addressed(&message.content),
                };
                let decision = content.map(|content| {
                    compiled.matches(&FilterInput {
                        content,
                        user_id: &message.from_user_id,
                        user_name: &message.user_name,
                        session_id: &message.session_id,
                        kind: message.kind,
                        timestamp: message.sent_at.as_seconds(),
                        bot_id: &bot,
                        channel_id: &channel,
                    })
                });
                let (passed, reason) = match decision {
                    Some(decision) => (decision.passed, decision.reason.into_owned()),
                    None => (false, Cause::NotAddressed.to_string()),
                };
                let excerpt = message.content.chars().take(MAX_EXCERPT).collect();
                let ReceivedMessage { id: message_id, from_user_id, created_at, .. } = message;
                FilterVerdict { message_id, from_user_id, excerpt, created_at, passed, reason }
            };
            Ok(messages.into_iter().map(verdict).collect::<Vec<_>>().into())
        };
        self.ctx.computations.run(test).await?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{channels::NewChannel, error::ErrorCode, testing::TestHub};

    #[tokio::test]
    async fn a_tested_filter_names_the_rule_that_refuses_each_message() {
        let hub = TestHub::start().await;
        let (ada, eve) = (hub.register("ada").await, hub.register("eve").await);
        let bot = hub.bind(&ada).await;
        let texts = ["@shop order 41", "order 42", "@shop hello", "@shop order of ten"];
        for text in texts {
            hub.say(&bot, text);
        }
        let new = NewChannel { handle: Some("shop".to_owned()), ..NewChannel::named("orders") };
        let channel = hub.channel(&ada, bot.id, new).await;
        let channels = hub.hub().channels();
        let filter = Filter {
            keywords: vec!["order".to_owned()],
            expression: Some("content.size() < 10".to_owned()),
            ..Filter::default()
        };
        let test = async |last| channels.test_filter(&ada, bot.id, channel, filter.clone(), last).await;
        let all = hub
            .until("the messages", async || {
                Some(test(100).await.unwrap().messages).filter(|all| all.len() == 4)
            })
            .await;
        let seen: Vec<_> = all.iter().map(|one| (&*one.excerpt, one.passed, &*one.reason)).collect();
        assert_eq!(
            seen,
            [
                ("@shop order of ten", false, "expression"),
                ("@shop hello", false, "keyword"),
                ("order 42", false, "handle"),
                ("@shop order 41", true, "passed"),
            ]
        );
        assert_eq!(test(2).await.unwrap().messages, all[..2], "the newest ones");
        assert_eq!(test(4).await.unwrap().passed, 1);

        let invalid = Filter { expression: Some("content +".to_owned()), ..Filter::default() };
        let refused = channels.test_filter(&ada, bot.id, channel, invalid, 1).await.unwrap_err();
        assert_eq!(refused.details()[0].field, "filter.expression");
        assert!(refused.details()[0].reason.starts_with("does not compile (line 1, column "), "{refused}");
        for last in [0, 101] {
            assert_eq!(test(last).await.unwrap_err().details()[0].field, "last");
        }
        let refused = channels.test_filter(&eve, bot.id, channel, Filter::default(), 1).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::NotFound);
        assert_eq!(channels.get(&ada, bot.id, channel).await.unwrap().filter, Filter::default());
    }
}
