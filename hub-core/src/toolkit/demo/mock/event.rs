//! Messages of people to the app under test, and messages of the app to people.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Inner, fixture::Fixture};
use crate::{
    access::Actor,
    bots::{Bots, Direction, Message, MessageFilter},
    error::{Error, Result},
    network::sim::Outbound,
    page::{MAX_LIMIT, PageRequest},
};

/// The default sender; also the owner of the simulated account.
pub(super) const SENDER: &str = "user_test";
/// Messages of the app that are listed; older ones are left out.
const MAX_LISTED: usize = 1_000;
/// Time for which a reset waits for messages that are not sent yet.
const RESET_WAIT: Duration = Duration::from_secs(2);
/// Interval of the checks for them.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Default picture, in base64: one grey point.
const POINT: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// Default content of any other file, in base64: the word `mock`.
const WORD: &str = "bW9jaw==";

/// A message that a person writes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NewEvent {
    sender: String,
    content: String,
    r#type: String,
    group_id: String,
    base64: String,
    filename: String,
}

impl NewEvent {
    /// Returns the sender, and the message as the simulator takes it.
    ///
    /// # Errors
    /// `INVALID_PARAMS` for a text without content, and a type that no one can write.
    pub(super) fn into_message(self, wx_id: &str) -> Result<(String, Value)> {
        let or = |text: String, other: &str| if text.is_empty() { other.to_owned() } else { text };
        let sender = or(self.sender, SENDER);
        let mut message = json!({ "wx_id": wx_id, "from_user_id": sender, "group_id": self.group_id });
        let file = |kind: u8, fallback: &str, filename: &str| {
            let bytes = if self.base64.is_empty() { fallback } else { &*self.base64 };
            json!([{ "type": kind, "bytes": bytes, "text": self.content, "file_name": filename }])
        };
        match &*self.r#type {
            "" | "text" if self.content.is_empty() => {
                return Err(Error::invalid("content", "must not be empty"));
            }
            "" | "text" => message["text"] = self.content.into(),
            "image" => message["items"] = file(2, POINT, ""),
            "voice" => message["items"] = file(3, WORD, ""),
            "file" => message["items"] = file(4, WORD, &or(self.filename, "mock.txt")),
            "video" => message["items"] = file(5, WORD, ""),
            _ => return Err(Error::invalid("type", "must be text, image, voice, video or file")),
        }
        Ok((sender, message))
    }
}

impl Inner {
    /// Returns the messages of the app since the last reset, oldest first: as the hub accepted them, and as people
    /// got them. Waits, at most `wait`, for the first one that people get.
    pub(super) async fn messages(&self, fixture: &Fixture, wait: Duration) -> Result<Value> {
        let wx_id = self.hub.bots().get(&Actor::Operator, fixture.bot_id).await?.wx_id;
        let got = self.simulator.wait_outbound(Some(&wx_id), fixture.after, wait).await;
        let mut sent = self.sent(fixture, MAX_LISTED).await?;
        sent.reverse();
        Ok(json!({
            "store_messages": sent.iter().map(sent_document).collect::<Vec<_>>(),
            "provider_messages": got.iter().filter(|one| one.shown).map(got_document).collect::<Vec<_>>(),
        }))
    }

    /// Hides all messages so far from later lists. Waits for messages in the outbox to be sent, at most
    /// [`RESET_WAIT`].
    pub(super) async fn forget(&self, fixture: &mut Fixture) -> Result<()> {
        let clock = &self.hub.context().clock;
        let until = clock.instant() + RESET_WAIT;
        while clock.instant() < until
            && self
                .sent(fixture, MAX_LISTED)
                .await?
                .iter()
                .any(|message| message.status == crate::model::message::MessageStatus::Queued)
        {
            clock.sleep(POLL_INTERVAL).await;
        }
        fixture.since = self.sent(fixture, 1).await?.first().map(|message| message.id).or(fixture.since);
        let wx_id = self.hub.bots().get(&Actor::Operator, fixture.bot_id).await?.wx_id;
        loop {
            let listed = self.simulator.outbound(Some(&wx_id), fixture.after);
            let Some(last) = listed.last() else { return Ok(()) };
            fixture.after = last.n;
        }
    }

    /// Messages of the app since the last reset, newest first.
    async fn sent(&self, fixture: &Fixture, most: usize) -> Result<Vec<Message>> {
        let filter = MessageFilter { direction: Some(Direction::Outbound), ..MessageFilter::default() };
        let (mut sent, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let list = Bots::message_list(fixture.bot_id, &filter);
            let page = PageRequest::parse(&list, Some(MAX_LIMIT), cursor.as_deref())?;
            let page = self.hub.bots().messages(&Actor::Operator, fixture.bot_id, &filter, &page).await?;
            for message in page.items {
                if fixture.since.is_some_and(|since| message.id <= since) || sent.len() >= most {
                    return Ok(sent);
                }
                sent.push(message);
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(sent);
            }
        }
    }
}

fn sent_document(message: &Message) -> Value {
    let files = message.media.iter().map(
        |file| json!({ "type": file.kind.as_str(), "filename": file.file_name, "content_type": file.content_type }),
    );
    let mut items: Vec<Value> = files.collect();
    // The name of a file without a caption replaces the text.
    let is_name = message.media.first().is_some_and(|file| file.file_name == message.content);
    if !message.content.is_empty() && !is_name {
        items.insert(0, json!({ "type": "text", "text": message.content }));
    }
    json!({
        "id": message.id,
        "to": message.to_user_id,
        "items": items,
        "status": message.status,
        "trace_id": message.trace_id,
        "created_at": message.created_at.as_seconds(),
    })
}

fn got_document(sent: &Outbound) -> Value {
    let mut document = json!({ "to": sent.to_user_id });
    if !sent.text.is_empty() {
        document["text"] = sent.text.clone().into();
    }
    if let Some(media) = &sent.media {
        document["has_media"] = true.into();
        document["type"] = media.kind.into();
        if let Some(name) = &media.file_name {
            document["filename"] = name.clone().into();
        }
    }
    document
}
