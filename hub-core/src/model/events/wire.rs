//! Events on their way to other nodes: one word of a notification, `events:[…]`, without spaces.

use super::Event;

const PREFIX: &str = "events:";
/// Length of the word in bytes; PostgreSQL takes notifications of less than 8,000.
const MAX_LENGTH: usize = 7_500;
/// Longest event in bytes, with the comma after it.
const MAX_EVENT: usize = 300;

/// Events that are sent together.
#[derive(Debug, Default)]
pub(crate) struct Batch(String);

impl Batch {
    /// Whether the next event may not fit.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() > MAX_LENGTH - MAX_EVENT
    }

    /// Adds an event; `None` means that events were lost.
    pub(crate) fn add(&mut self, event: Option<&Event>) {
        self.0.push(if self.0.is_empty() { '[' } else { ',' });
        // An event consists of ids and words.
        self.0.push_str(&serde_json::to_string(&event).unwrap_or_else(|_| "null".to_owned()));
    }

    pub(crate) fn finish(self) -> String {
        format!("{PREFIX}{}]", self.0)
    }
}

/// Reads a word: `None` when it is another one. An event that this version does not know counts as lost.
pub(crate) fn parse(word: &str) -> Option<Vec<Option<Event>>> {
    let events = word.strip_prefix(PREFIX)?;
    let Ok(events) = serde_json::from_str::<Vec<serde_json::Value>>(events) else { return Some(vec![None]) };
    Some(events.into_iter().map(|event| serde_json::from_value(event).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        events::Changed,
        id::{AppId, BotId, ChannelId, MessageId, PluginId, UserId},
        model::{app::Listing, bot::BotStatus},
    };

    #[test]
    fn events_arrive_as_they_were_sent() {
        let (bot_id, channel_id, plugin_id) =
            (BotId::from_u128(1), ChannelId::from_u128(2), PluginId::from_u128(3));
        let (app_id, message_id, owner_id) =
            (AppId::from_u128(4), MessageId::from_u128(5), UserId::from_u128(6));
        let sent = [
            Some(Event::Message { bot_id, message_id }),
            Some(Event::Bot { bot_id, status: BotStatus::ALL[0] }),
            Some(Event::Plugin { bot_id, channel_id, plugin_id, change: Changed::Removed }),
            Some(Event::AppReview { owner_id, app_id, state: Listing::ALL[0] }),
            None,
            Some(Event::Sent { bot_id, message_id, status: "accepted".into() }),
        ];
        let mut batch = Batch::default();
        for event in &sent {
            batch.add(event.as_ref());
        }
        let word = batch.finish();
        assert!(!word.contains(' '), "{word}");
        assert_eq!(parse(&word), Some(sent.to_vec()));
    }

    #[test]
    fn an_event_of_another_version_counts_as_lost() {
        assert_eq!(parse(r#"events:[{"event":"of_tomorrow"}]"#), Some(vec![None]));
        assert_eq!(parse("events:{"), Some(vec![None]));
        assert_eq!(parse("outbox:bot_01"), None);
    }

    #[test]
    fn a_full_batch_fits_into_a_notification() {
        let (bot_id, channel_id, plugin_id) =
            (BotId::from_u128(u128::MAX), ChannelId::from_u128(2), PluginId::from_u128(3));
        let event = Event::Plugin { bot_id, channel_id, plugin_id, change: Changed::Installed };
        let mut batch = Batch::default();
        while !batch.is_full() {
            batch.add(Some(&event));
        }
        batch.add(Some(&event));
        let length = batch.finish().len();
        assert!((7_000..7_900).contains(&length), "{length}");
    }
}
