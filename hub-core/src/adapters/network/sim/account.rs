//! Bots and the people they talk to.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;

use super::{
    inbound::Inbox,
    world::{Bell, Env, random_hex},
};
use crate::{random::Random, time::Timestamp};

/// Time for which a `client_id` is remembered.
const CLIENT_ID_LIFE: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// A bot that a confirmed login created or found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Account {
    /// The bot's id on the network, `<12 hex>@im.bot`.
    pub wx_id: String,
    /// The person it belongs to, `o9cq80…@im.wechat`.
    pub owner_user_id: String,
}

/// State of a bot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AccountStatus {
    /// The bot and its owner.
    #[serde(flatten)]
    pub account: Account,
    /// `notifystart` was called, and `notifystop` not since.
    pub started: bool,
    /// The token is dead.
    pub expired: bool,
    /// Polls held now.
    pub pollers: usize,
    /// Inbound messages no cursor has acknowledged.
    pub pending: usize,
}

/// A person whom a bot may write to, or might.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SimContact {
    /// The bot.
    pub wx_id: String,
    /// The person.
    pub user_id: String,
    /// Whether the bot is theirs.
    pub owner: bool,
    /// Time of their last message.
    pub last_message_at: Option<Timestamp>,
    /// Messages that the bot may still send them before they write again.
    pub sends_left: u32,
}

pub(super) struct BoundBot {
    pub wx_id: String,
    pub owner: String,
    pub token: String,
    /// Part of every cursor, so that one from an earlier binding is recognised.
    pub generation: u32,
    pub started: bool,
    pub inbox: Inbox,
    pub peers: HashMap<String, Peer>,
    pub client_ids: ClientIds,
    pub last_uin: String,
    /// Rung by everything a held poll waits for.
    pub bell: Bell,
    pub expires_at: Option<Timestamp>,
}

/// A person who wrote to a bot, and the window that opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    pub last_inbound: Timestamp,
    pub sends: u32,
}

impl BoundBot {
    /// A fresh bot with ids and a token in the form of the real ones.
    pub(super) fn new(env: &Env<'_>, owner: String) -> Self {
        let wx_id = format!("{}@im.bot", random_hex::<6>(env.random));
        Self {
            token: format!("{wx_id}:{}", random_hex::<24>(env.random)),
            wx_id,
            owner,
            generation: u32::from_be_bytes(env.random.bytes()),
            started: false,
            inbox: Inbox::default(),
            peers: HashMap::new(),
            client_ids: ClientIds::default(),
            last_uin: String::new(),
            bell: Bell::default(),
            expires_at: None,
        }
    }

    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Whether the bot may address this person.
    pub(super) fn knows(&self, user_id: &str) -> bool {
        self.owner == user_id || self.peers.contains_key(user_id)
    }

    /// The open window of a person.
    pub(super) fn window(&mut self, env: &Env<'_>, user_id: &str) -> Option<&mut Peer> {
        let config = env.config;
        self.peers.get_mut(user_id).filter(|peer| {
            env.now.since(peer.last_inbound) < config.window && peer.sends < config.window_sends
        })
    }

    /// Its owner, and every person who wrote to it.
    pub(super) fn contacts(&self, env: &Env<'_>) -> Vec<SimContact> {
        let silent = (!self.peers.contains_key(&self.owner)).then_some((&self.owner, None));
        let wrote = self.peers.iter().map(|(user_id, peer)| (user_id, Some(peer)));
        let contact = |(user_id, peer): (&String, Option<&Peer>)| {
            let open = peer.filter(|peer| env.now.since(peer.last_inbound) < env.config.window);
            SimContact {
                wx_id: self.wx_id.clone(),
                user_id: user_id.clone(),
                owner: *user_id == self.owner,
                last_message_at: peer.map(|peer| peer.last_inbound),
                sends_left: open.map_or(0, |peer| env.config.window_sends.saturating_sub(peer.sends)),
            }
        };
        silent.into_iter().chain(wrote).map(contact).collect()
    }

    pub(super) fn public(&self) -> Account {
        Account { wx_id: self.wx_id.clone(), owner_user_id: self.owner.clone() }
    }

    pub(super) fn status(&self, now: Timestamp) -> AccountStatus {
        AccountStatus {
            account: self.public(),
            started: self.started,
            expired: self.is_expired(now),
            pollers: self.inbox.pollers(),
            pending: self.inbox.pending(),
        }
    }
}

/// The `client_id`s of delivered sends, so that a repeat is not delivered again.
#[derive(Default)]
pub(super) struct ClientIds {
    sent: HashMap<String, Sent>,
    order: VecDeque<(Timestamp, String)>,
}

/// The first delivery under a `client_id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub message_id: u64,
    /// Number in the outbound list.
    pub n: u64,
}

impl ClientIds {
    /// The delivery made under an id within the last 24 hours.
    pub(super) fn find(&mut self, env: &Env<'_>, client_id: &str) -> Option<Sent> {
        while self.order.front().is_some_and(|(at, _)| env.now.since(*at) >= CLIENT_ID_LIFE) {
            self.forget_oldest();
        }
        self.sent.get(client_id).copied()
    }

    /// Remembers a delivery; forgets the oldest above the cap.
    pub(super) fn remember(&mut self, env: &Env<'_>, client_id: &str, sent: Sent) {
        if self.order.len() >= env.config.caps.client_ids {
            self.forget_oldest();
        }
        self.order.push_back((env.now, client_id.to_owned()));
        self.sent.insert(client_id.to_owned(), sent);
    }

    fn forget_oldest(&mut self) {
        if let Some((_, client_id)) = self.order.pop_front() {
            self.sent.remove(&client_id);
        }
    }
}

/// A person's id in the form of the real ones: mixed case, so that a client that changes the case shows.
pub(super) fn new_user_id(random: &Random) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    let tail = random.bytes::<20>().map(|byte| char::from(ALPHABET[usize::from(byte % 64)]));
    // Two fixed letters make the mix certain.
    format!("o9cq80aB{}@im.wechat", String::from_iter(tail))
}
