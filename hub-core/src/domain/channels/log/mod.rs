//! A channel's log as its clients follow it, over WebSockets and by long polling.
//!
//! The store is the queue here too: a client is a position in the log, and pulls what follows at its own pace.
//! Nothing is pushed into buffers, so a client that does not read costs only a position. Commits only signal that
//! there is more: on this node at once, on others by a hint, and without either within a second.
//!
//! Clients of one channel share a [`Feed`](crate::node::feed::Feed) with its newest number, the valid keys and the
//! newest entries, so that a message is read and rendered once for all clients. A client that lags behind these
//! entries reads its own pages.
//!
//! | what | cap | at the cap |
//! |---|---|---|
//! | clients | [`max_sockets`](crate::config::HubConfig::max_sockets) and its like | `RATE_LIMITED` |
//! | entries kept per channel with clients | 64, 256 KiB | the oldest are forgotten; the store has them |
//! | a page | 64 entries, 256 KiB of text | the rest is the next page |
//! | pages read at the same time | 3 | the others wait |

use std::time::Duration;

use crate::{
    access::{Actor, ChannelActor},
    error::{Error, Result},
    id::ChannelId,
    model::session::ClientInfo,
    page,
};

use super::Channels;

mod listener;
#[cfg(test)]
mod tests;
mod watch;

pub use crate::node::{
    LogEntry,
    channel_listeners::{ChannelListeners, ListenerKind},
    feed::{ChannelState, Ended},
    log_reader::PAGE,
};
pub use listener::{Item, Listener, News, Start};
pub(crate) use watch::start;

/// Longest wait of a long poll.
pub const MAX_POLL: Duration = Duration::from_secs(60);
/// Size of the texts in a response to a poll, in bytes, after which no further page is added.
const MAX_ANSWER: usize = 1024 * 1024;

/// Result of a poll.
#[derive(Debug)]
pub struct Polled {
    /// Messages that the channel received, oldest first, without those that are no longer kept.
    pub entries: Vec<std::sync::Arc<LogEntry>>,
    /// Cursor of the next poll. Presenting it acknowledges everything before.
    pub next_cursor: String,
}

impl Channels<'_> {
    /// Follows the channel's log as one of its clients, from a [`Start`].
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is a channel client, and for a socket when the sink is switched off;
    /// `RATE_LIMITED` when there are too many clients; `NOT_FOUND`, `INVALID_TOKEN` when the channel or the key is
    /// gone meanwhile.
    pub async fn listen(&self, actor: &Actor, kind: ListenerKind, start: Start) -> Result<Listener> {
        Listener::attach(self.ctx, actor.client()?, kind, start, ClientInfo::default()).await
    }

    /// As [`Channels::listen`] over a WebSocket; the owner of the channel sees `client` in the list of
    /// [clients](Channels::clients).
    ///
    /// # Errors
    /// As [`Channels::listen`].
    pub async fn connect(&self, actor: &Actor, start: Start, client: ClientInfo) -> Result<Listener> {
        Listener::attach(self.ctx, actor.client()?, ListenerKind::Socket, start, client).await
    }

    /// As [`Channels::listen`], for a poll of an iLink client that has everything up to a number.
    ///
    /// # Errors
    /// As [`Channels::listen`].
    pub(crate) async fn listen_ilink(&self, client: &ChannelActor, after: i64) -> Result<Listener> {
        let (kind, start) = (ListenerKind::Ilink, Start::After(after));
        Listener::attach(self.ctx, client, kind, start, ClientInfo::default()).await
    }

    /// Waits up to `wait` for entries after `cursor`, and returns at most `limit`. Acknowledges everything before the
    /// cursor; without a cursor, starts after the last acknowledged entry. Stops waiting when `stop` completes.
    ///
    /// # Errors
    /// As [`Channels::listen`]; `INVALID_PARAMS` for a cursor of another list, a limit outside 1..=200 or a wait
    /// of more than [`MAX_POLL`].
    pub async fn poll(
        &self,
        actor: &Actor,
        cursor: Option<&str>,
        limit: Option<u32>,
        wait: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<Polled> {
        let client = actor.client()?;
        if wait > MAX_POLL {
            return Err(Error::invalid("timeout", "must be between 0 and 60 seconds"));
        }
        let list = log_list(client.channel_id);
        let request = page::PageRequest::parse(&list, limit, cursor)?;
        let since = request.after().map(|seq| seq.parse::<i64>().map_err(Error::internal)).transpose()?;
        let start = since.map_or(Start::Acknowledged, Start::After);
        let mut listener =
            Listener::attach(self.ctx, client, ListenerKind::Poll, start, ClientInfo::default()).await?;
        if start != Start::Acknowledged {
            listener.acknowledge(listener.position()).await?;
        }
        let until = self.ctx.clock.sleep(wait);
        tokio::pin!(until, stop);
        while !listener.is_behind() {
            if let Some(News::Ended(ended)) = listener.news() {
                return Err(ended.into());
            }
            tokio::select! {
                biased;
                () = listener.changed() => {}
                () = &mut until => break,
                () = &mut stop => break,
            }
        }
        let limit = request.limit() as usize;
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while listener.is_behind() && entries.len() < limit && bytes < MAX_ANSWER {
            for item in listener.read((limit - entries.len()).min(PAGE)).await? {
                if let Item::Message(entry) = item {
                    bytes += entry.data().len();
                    entries.push(entry);
                }
            }
        }
        Ok(Polled { entries, next_cursor: page::encode(&list, &listener.position().to_string()) })
    }
}

/// The name of a channel's log, for its cursors.
fn log_list(channel_id: ChannelId) -> String {
    format!("log:{channel_id}")
}
