//! Messages from people to bots: their creation and their retention.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use serde_json::{Map, Value, json};

use super::{
    account::{BoundBot, Peer},
    world::{Env, World, random_hex},
};
use crate::{
    error::{Error, Result},
    network::server::{stamp, text_of},
    time::Timestamp,
};

/// Scheduled repeats per account; a further one is dropped.
const MAX_SCHEDULED: usize = 1_000;
/// Longest user id taken, in bytes.
const MAX_USER_ID: usize = 128;

/// The fields of an injected message that are instructions to the simulator; all others are raw fields of the
/// message.
const INSTRUCTIONS: [&str; 4] = ["wx_id", "from_user_id", "text", "items"];

/// Messages that were injected for one account, in order.
#[derive(Default)]
pub(super) struct Inbox {
    /// Contiguous positions, oldest first.
    queue: VecDeque<Stored>,
    /// Repeats to come (fault `repeat`).
    scheduled: Vec<(Timestamp, String)>,
    /// The last position given out.
    head: u64,
    /// Everything up to here was acknowledged by a later cursor, or consumed.
    acknowledged: u64,
    /// The highest position handed out.
    pub handed: u64,
    pub held: usize,
    seq: u64,
}

struct Stored {
    position: u64,
    json: String,
}

impl Inbox {
    /// Appends a message in its wire format.
    pub(super) fn push(&mut self, json: String) {
        self.head += 1;
        self.queue.push_back(Stored { position: self.head, json });
    }

    /// Appends a message later; `false` when too many wait already.
    pub(super) fn schedule(&mut self, at: Timestamp, json: String) -> bool {
        let room = self.scheduled.len() < MAX_SCHEDULED;
        if room {
            self.scheduled.push((at, json));
        }
        room
    }

    /// Appends the repeats that are due, and returns the time of the next one.
    pub(super) fn release_due(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.scheduled.sort_by_key(|(at, _)| *at);
        let due = self.scheduled.partition_point(|(at, _)| *at <= now);
        for (_, json) in self.scheduled.drain(..due).collect::<Vec<_>>() {
            self.push(json);
        }
        self.scheduled.first().map(|(at, _)| *at)
    }

    /// Returns up to `limit` messages after a position, and the position of the last of them.
    pub(super) fn behind(&self, position: u64, limit: usize) -> (Vec<&str>, u64) {
        let first = self.queue.front().map_or(0, |stored| stored.position);
        let skip = usize::try_from((position + 1).saturating_sub(first)).unwrap_or(usize::MAX);
        let found = self.queue.iter().skip(skip).take(limit);
        let last = found.clone().next_back().map_or(position, |stored| stored.position);
        (found.map(|stored| stored.json.as_str()).collect(), last)
    }

    /// Records that a cursor acknowledged everything up to it; keeps `retained` of that for old cursors.
    pub(super) fn acknowledge(&mut self, position: u64, retained: usize) {
        self.acknowledged = self.acknowledged.max(position);
        while self.queue.len() > self.pending() + retained {
            self.queue.pop_front();
        }
    }

    /// The position before the oldest message that was not acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// The position of the newest message.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    pub(super) fn pending(&self) -> usize {
        usize::try_from(self.head - self.acknowledged).unwrap_or(usize::MAX)
    }

    pub(super) fn pollers(&self) -> usize {
        self.held
    }
}

/// A message that was found acceptable and changed nothing yet.
struct Draft {
    wx_id: String,
    from: String,
    items: Option<Vec<Value>>,
    /// Fields that replace the simulator's own; null removes one.
    raw: Map<String, Value>,
}

impl World {
    /// Injects messages, all or none, and answers their ids.
    ///
    /// # Errors
    /// `NOT_FOUND` for an account, `INVALID_PARAMS` for a message, `CONFLICT` when an account is full.
    pub(super) fn inject(&mut self, env: &Env<'_>, messages: Vec<Value>) -> Result<Vec<String>> {
        let mut drafts =
            messages.into_iter().map(|message| self.draft(message)).collect::<Result<Vec<_>>>()?;
        self.check_room(env, &drafts)?;
        for draft in &mut drafts {
            self.with_files(env, &draft.wx_id, draft.items.as_deref_mut().unwrap_or_default())?;
        }
        Ok(drafts.into_iter().map(|draft| self.deliver(env, draft)).collect())
    }

    fn draft(&self, message: Value) -> Result<Draft> {
        let Value::Object(mut raw) = message else {
            return Err(Error::invalid("messages", "must be objects"));
        };
        let wx_id = text_of(&raw, "wx_id").to_owned();
        let account = self.accounts.get(&wx_id).ok_or_else(|| Error::not_found("account"))?;
        let from = match raw.get("from_user_id") {
            None | Some(Value::Null) => account.owner.clone(),
            Some(Value::String(id)) if (1..=MAX_USER_ID).contains(&id.len()) => id.clone(),
            Some(_) => return Err(Error::invalid("from_user_id", "must be a text of 1 to 128 bytes")),
        };
        let items = match (raw.get("text"), raw.get("items")) {
            (Some(Value::String(text)), None) => Some(vec![json!({"type": 1, "text_item": {"text": text}})]),
            (None, Some(Value::Array(items))) => Some(items.clone()),
            (None, None) if raw.contains_key("item_list") => None,
            _ => return Err(Error::invalid("text", "exactly one of text, items and item_list must be set")),
        };
        for name in INSTRUCTIONS {
            raw.remove(name);
        }
        Ok(Draft { wx_id, from, items, raw })
    }

    fn check_room(&self, env: &Env<'_>, drafts: &[Draft]) -> Result<()> {
        let mut wanted: HashMap<&str, (usize, Vec<&str>)> = HashMap::new();
        for draft in drafts {
            let (messages, people) = wanted.entry(&draft.wx_id).or_default();
            *messages += 1;
            people.push(&draft.from);
        }
        for (wx_id, (messages, mut people)) in wanted {
            let Some(account) = self.accounts.get(wx_id) else { continue };
            if account.inbox.pending() + messages > env.config.caps.pending {
                return Err(Error::conflict("the account has as many undelivered messages as it may"));
            }
            people.sort_unstable();
            people.dedup();
            let new = people.iter().filter(|from| !account.peers.contains_key(**from)).count();
            if account.peers.len() + new > env.config.caps.peers {
                return Err(Error::conflict("the account knows as many people as it may"));
            }
        }
        Ok(())
    }

    fn deliver(&mut self, env: &Env<'_>, draft: Draft) -> String {
        let id = self.next_id(env.random);
        let context = stamp::context_token(&self.secret, &draft.wx_id, &draft.from, env.random);
        let Some(account) = self.accounts.get_mut(&draft.wx_id) else { return id.to_string() };
        let from = draft.from.clone();
        let message = account.compose(env, id, &context, draft);
        // Only a person's message opens the window.
        if message.get("message_type").and_then(Value::as_u64) == Some(1) {
            account.peers.insert(from, Peer { last_inbound: env.now, sends: 0 });
        }
        let given = match message.get("message_id") {
            Some(Value::String(id)) => id.clone(),
            Some(Value::Number(id)) => id.to_string(),
            _ => id.to_string(),
        };
        account.inbox.push(Value::Object(message).to_string());
        account.bell.ring();
        given
    }
}

impl BoundBot {
    /// The JSON of a message: the simulator's fields, the defaults of items, then the raw fields.
    fn compose(&mut self, env: &Env<'_>, id: u64, context: &str, draft: Draft) -> Map<String, Value> {
        self.inbox.seq += 1;
        let now = env.now.as_millis();
        let mut items = draft.items.unwrap_or_default();
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            for (name, value) in [
                ("create_time_ms", json!(now)),
                ("update_time_ms", json!(now)),
                ("is_completed", json!(true)),
                ("msg_id", json!(id.to_string())),
            ] {
                item.entry(name).or_insert(value);
            }
        }
        let base = json!({
            "seq": self.inbox.seq,
            "message_id": id,
            "from_user_id": draft.from,
            "to_user_id": self.wx_id,
            "client_id": random_hex::<8>(env.random),
            "session_id": format!("{}#{}", draft.from, self.wx_id),
            "group_id": "",
            "create_time_ms": now,
            "update_time_ms": now,
            "delete_time_ms": 0,
            // Most clients drop a message without these two.
            "message_type": 1,
            "message_state": 2,
            "context_token": context,
            "item_list": items,
        });
        let Value::Object(mut message) = base else { return draft.raw };
        for (name, value) in draft.raw {
            if value.is_null() {
                message.remove(&name);
            } else {
                message.insert(name, value);
            }
        }
        message
    }

    /// Puts a message that was handed out back into the stream after a while (fault `repeat`).
    pub(super) fn repeat(&mut self, env: &Env<'_>, after: Duration, message: &Value) -> bool {
        let fits = self.inbox.schedule(env.now + after, message.to_string());
        self.bell.ring();
        fits
    }
}
