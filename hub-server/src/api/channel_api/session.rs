//! One open WebSocket: what the client says, what the channel received, and the signs of life between them.
//!
//! The client pulls: the next page is read when the one before went out. While a page waits for a client that does
//! not read, nothing else waits with it.

use std::{sync::Arc, time::Duration};

use futures_util::{SinkExt, StreamExt};
use hub_core::{
    Error, ErrorCode, Hub,
    access::Actor,
    channels::log::{Item, Listener, News, PAGE},
    time::{Clock, Timestamp},
};
use poem_openapi::types::ToJSON;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::{
    self, Message, Utf8Bytes,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use super::{
    frames::{self, Frame, Wish},
    ticket, views,
};
use crate::{AppSettings, rate_limit::RateLimits, serve::websocket::Socket};

/// How often a client that says nothing is asked for a sign of life (`contract.md` §5.1).
const PING: Duration = Duration::from_secs(30);
/// Whoever says nothing for this long is gone.
const SILENCE: Duration = Duration::from_secs(60);
/// A frame that does not go out for this long ends the connection (reliability W4).
const STALL: Duration = Duration::from_secs(10);
/// How long the client's end is waited for.
const GOODBYE: Duration = Duration::from_secs(1);
/// Pause before the store is asked again.
const AGAIN: Duration = Duration::from_secs(1);
/// Frames that are not understood, after which the connection ends (reliability W3).
const MAX_BAD: u32 = 50;
/// Read and thrown away after a goodbye, so that unread bytes do not turn it into a reset.
const MAX_DISCARD: usize = 1024 * 1024;

/// The key ended.
const REVOKED: u16 = 4401;
/// The channel or its sink was switched off.
const OFF: u16 = 4403;
/// The client does not read, or says nothing.
const TIMEOUT: u16 = 4408;

/// Whether the query speaks the dialect that has no `ack`.
pub(super) fn is_old_dialect(query: &str) -> bool {
    url::form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == "key")
}

/// A client and everything it needs.
pub(super) struct Session {
    hub: Hub,
    settings: AppSettings,
    limits: Arc<RateLimits>,
    actor: Actor,
    listener: Listener,
    /// Whether the client acknowledges; otherwise what is written to it counts as acknowledged.
    acks_itself: bool,
    heard_at: Timestamp,
    ping_at: Timestamp,
    bad_frames: u32,
}

/// Why a connection ends from this side.
enum End {
    /// With a goodbye.
    Close(u16, String),
    /// The client said goodbye, or is gone.
    Gone,
}

type Flow = Result<(), End>;

impl From<tungstenite::Error> for End {
    fn from(error: tungstenite::Error) -> Self {
        use tungstenite::error::{CapacityError, Error as Failure, ProtocolError};
        match error {
            Failure::Utf8(_) => Self::Close(1007, "a text frame is not UTF-8".to_owned()),
            Failure::Capacity(CapacityError::MessageTooLong { max_size, .. }) => {
                Self::Close(1009, format!("a frame or message is over {max_size} bytes"))
            }
            Failure::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Self::Gone,
            Failure::Protocol(error) => Self::Close(1002, error.to_string()),
            _ => Self::Gone,
        }
    }
}

impl Session {
    pub(super) fn new(
        hub: &Hub,
        settings: &AppSettings,
        limits: &Arc<RateLimits>,
        actor: Actor,
        listener: Listener,
        acks_itself: bool,
    ) -> Self {
        let now = hub.context().clock.now();
        Self {
            hub: hub.clone(),
            settings: settings.clone(),
            limits: Arc::clone(limits),
            actor,
            listener,
            acks_itself,
            heard_at: now,
            ping_at: now + PING,
            bad_frames: 0,
        }
    }

    /// Serves a socket until it ends.
    pub(super) async fn serve(mut self, mut socket: Socket) {
        let Err(end) = self.converse(&mut socket).await;
        if let End::Close(code, reason) = end {
            tracing::debug!(channel = %self.listener.channel_id(), code, reason, "a WebSocket is closed");
            Box::pin(goodbye(&mut socket, self.clock(), code, reason)).await;
        }
    }

    fn clock(&self) -> &Clock {
        &self.hub.context().clock
    }

    async fn converse(&mut self, socket: &mut Socket) -> Result<std::convert::Infallible, End> {
        self.tell(socket, &[frames::init(&self.listener)]).await?;
        loop {
            while let Some(news) = self.listener.news() {
                Box::pin(self.tell_news(socket, news)).await?;
            }
            let is_behind = self.listener.is_behind();
            let wake_at = self.ping_at.min(self.heard_at + SILENCE);
            tokio::select! {
                biased;
                () = self.settings.draining.cancelled() => {
                    let reason = format!("the hub restarts; go on with since={}", self.listener.position());
                    return Err(End::Close(1001, reason));
                }
                () = self.hub.context().clock.sleep_until(wake_at) => self.look_at_the_clock(socket).await?,
                frame = socket.next() => {
                    let frame = frame.ok_or(End::Gone)??;
                    self.heard_at = self.hub.context().clock.now();
                    Box::pin(self.hear(socket, frame)).await?;
                }
                () = std::future::ready(()), if is_behind => Box::pin(self.show_page(socket)).await?,
                () = self.listener.changed(), if !is_behind => {}
            }
        }
    }

    async fn look_at_the_clock(&mut self, socket: &mut Socket) -> Flow {
        let now = self.clock().now();
        if now >= self.heard_at + SILENCE {
            return Err(End::Close(TIMEOUT, "nothing was heard for 60 seconds".to_owned()));
        }
        if now >= self.ping_at {
            self.ping_at = now + PING;
            self.write(socket, vec![Message::Ping(bytes::Bytes::new())]).await?;
        }
        Ok(())
    }

    async fn tell_news(&mut self, socket: &mut Socket, news: News) -> Flow {
        match news {
            News::Ended(ended) => {
                let code = if ended == hub_core::channels::log::Ended::Revoked { REVOKED } else { OFF };
                Err(End::Close(code, ended.reason().to_owned()))
            }
            News::Status(status) => self.tell(socket, &frames::status(&self.listener, status)).await,
            News::Settings => self.tell_config(socket, None).await,
        }
    }

    /// Reads the next page and writes it out.
    async fn show_page(&mut self, socket: &mut Socket) -> Flow {
        let items = match self.listener.read(PAGE).await {
            Ok(items) => items,
            Err(error) => {
                tracing::debug!(channel = %self.listener.channel_id(), %error, "a log cannot be read");
                self.clock().sleep(AGAIN).await;
                return Ok(());
            }
        };
        self.write(socket, items.into_iter().map(shown).collect()).await?;
        if !self.acks_itself {
            // The log has given this number out.
            let _ = self.listener.acknowledge(self.listener.position());
        }
        Ok(())
    }

    async fn hear(&mut self, socket: &mut Socket, message: Message) -> Flow {
        match message {
            Message::Text(text) => match Frame::read(&text) {
                Ok(frame) => self.obey(socket, frame).await,
                Err(error) => self.refuse(socket, None, &error).await,
            },
            Message::Binary(_) => {
                self.refuse(socket, None, &Error::invalid("frame", "must be a text frame")).await
            }
            // The library has answered; the next read says that the conversation is over.
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => Ok(()),
        }
    }

    async fn obey(&mut self, socket: &mut Socket, frame: Frame) -> Flow {
        let (id, is_send) = (frame.request_id(), frame.is_send());
        let id = id.as_ref();
        match frame.wish() {
            Ok(Wish::Ping) => self.tell(socket, &[frames::pong(id)]).await,
            Ok(Wish::Ack(seq)) => {
                self.acks_itself = true;
                match self.listener.acknowledge(seq) {
                    Ok(()) => Ok(()),
                    Err(error) => self.refuse(socket, id, &error).await,
                }
            }
            Ok(Wish::Config) => self.tell_config(socket, id).await,
            Ok(Wish::Send { message, idempotency_key }) => {
                let key = idempotency_key.as_deref();
                let sent = match self.limits.check_send(&self.actor) {
                    Ok(()) => self.hub.bots().send(&self.actor, self.listener.bot_id(), message, key).await,
                    Err(error) => Err(error),
                };
                let answer = match &sent {
                    Ok(sent) => frames::sent(id, sent),
                    Err(error) => frames::not_sent(id, &told(error)),
                };
                self.tell(socket, &[answer]).await
            }
            Ok(Wish::Typing { to_user_id, ticket, on }) => match self.show_typing(to_user_id, ticket, on) {
                Ok(()) => Ok(()),
                Err(error) => self.tell_error(socket, id, &error).await,
            },
            Ok(Wish::Unknown(kind)) => {
                self.count_bad()?;
                let message = format!("there is no frame of the type {kind}");
                self.tell(socket, &[frames::error(id, "unknown_type", &message)]).await
            }
            Err(error) if is_send => {
                self.count_bad()?;
                self.tell(socket, &[frames::not_sent(id, &told(&error))]).await
            }
            Err(error) => self.refuse(socket, id, &error).await,
        }
    }

    /// In the background: the network may take its time, and the sign is a courtesy.
    fn show_typing(&self, to: Option<String>, ticket: Option<String>, on: bool) -> Result<(), Error> {
        self.limits.check_send(&self.actor)?;
        let to = match (to, ticket) {
            (Some(user), _) => Some(user),
            (None, Some(text)) => Some(ticket::read(self.listener.channel_id(), &text)?),
            (None, None) => None,
        };
        let (hub, actor, bot) = (self.hub.clone(), self.actor, self.listener.bot_id());
        self.settings.sockets.spawn("typing", async move {
            if let Err(error) = hub.bots().typing(&actor, bot, to.as_deref(), on).await {
                tracing::debug!(%bot, %error, "a typing sign was refused");
            }
        });
        Ok(())
    }

    async fn tell_config(&mut self, socket: &mut Socket, id: Option<&Value>) -> Flow {
        match views::config(&self.hub, &self.settings, &self.actor).await {
            Ok(config) => {
                let config = config.to_json().unwrap_or_default();
                self.tell(socket, &[frames::config(id, config)]).await
            }
            Err(error) => self.tell_error(socket, id, &error).await,
        }
    }

    /// Answers a frame that is wrong in itself; too many of them end the connection.
    async fn refuse(&mut self, socket: &mut Socket, id: Option<&Value>, error: &Error) -> Flow {
        self.count_bad()?;
        self.tell_error(socket, id, error).await
    }

    fn count_bad(&mut self) -> Flow {
        self.bad_frames += 1;
        if self.bad_frames >= MAX_BAD {
            return Err(End::Close(1008, "too many frames that nobody understands".to_owned()));
        }
        Ok(())
    }

    async fn tell_error(&mut self, socket: &mut Socket, id: Option<&Value>, error: &Error) -> Flow {
        let error = told(error);
        self.tell(socket, &[frames::error(id, error.code().as_str(), error.message())]).await
    }

    async fn tell(&mut self, socket: &mut Socket, frames: &[Value]) -> Flow {
        self.write(socket, frames.iter().map(|frame| text(frame.to_string())).collect()).await
    }

    /// Writes frames, each of which has to go out in time.
    async fn write(&self, socket: &mut Socket, messages: Vec<Message>) -> Flow {
        let clock = self.hub.context().clock.clone();
        let stalled = || End::Close(TIMEOUT, "the client does not read".to_owned());
        for message in messages {
            clock.timeout(STALL, socket.feed(message)).await.ok_or_else(stalled)??;
        }
        clock.timeout(STALL, socket.flush()).await.ok_or_else(stalled)??;
        Ok(())
    }
}

/// What the client of a channel may know of a failure; what went wrong inside stands in the log.
fn told(error: &Error) -> Error {
    if error.code() != ErrorCode::Internal {
        return match error.details().first() {
            Some(detail) => Error::invalid(detail.field.clone(), detail.reason.clone()),
            None => Error::new(error.code(), error.message().to_owned()),
        };
    }
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::error!(cause, "internal error on a WebSocket");
    Error::new(ErrorCode::Internal, "something went wrong in the hub")
}

fn shown(item: Item) -> Message {
    match item {
        Item::Message(entry) => text(entry.frame()),
        Item::Lagged { from, to } => text(frames::lagged(from, to, false).to_string()),
        Item::Gone { from, to } => text(frames::lagged(from, to, true).to_string()),
    }
}

fn text(text: impl Into<bytes::Bytes>) -> Message {
    Message::Text(Utf8Bytes::try_from(text.into()).unwrap_or_default())
}

/// Says goodbye, closes this half, and reads on until the client has closed the other. What it was still saying is
/// thrown away: closing on unread bytes resets the connection, and a reset may overtake the goodbye.
async fn goodbye(socket: &mut Socket, clock: &Clock, code: u16, reason: String) {
    // A control frame takes 125 bytes, two of which are the code.
    let reason = reason.get(..reason.floor_char_boundary(120)).unwrap_or_default().to_owned();
    let frame = CloseFrame { code: CloseCode::from(code), reason: reason.into() };
    let farewell = async {
        if socket.close(Some(frame)).await.is_err() || socket.get_mut().shutdown().await.is_err() {
            return;
        }
        let (mut buffer, mut read) = ([0; 512], 0);
        while read < MAX_DISCARD {
            match socket.get_mut().read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(count) => read += count,
            }
        }
    };
    let _ = clock.timeout(GOODBYE, farewell).await;
}
