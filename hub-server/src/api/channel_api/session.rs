//! One open WebSocket of a channel: frames of the client, messages, pings.
//!
//! The client pulls: the next page is read when the previous one was written. While a page waits for a client that
//! does not read, nothing else waits with it.

use std::sync::Arc;

use hub_core::{
    Error, ErrorCode, Hub,
    access::Actor,
    channels::log::{Ended, Item, Listener, News, PAGE},
};
use poem_openapi::types::ToJSON;
use serde_json::Value;
use tokio_tungstenite::tungstenite::Message;

use super::{
    frames::{self, Command, Frame},
    ticket, views,
};
use crate::{
    AppSettings,
    rate_limit::RateLimits,
    serve::{
        conversation::{End, Flow, Line, OFF, RESTART, RETRY_PAUSE, REVOKED, public_error, text},
        websocket::Socket,
    },
};

/// The owner closed the connection.
const CLOSED: u16 = 4410;

/// A client and everything it needs.
pub(super) struct Session {
    hub: Hub,
    settings: AppSettings,
    limits: Arc<RateLimits>,
    actor: Actor,
    listener: Listener,
}

impl Session {
    pub(super) fn new(
        hub: &Hub,
        settings: &AppSettings,
        limits: &Arc<RateLimits>,
        actor: Actor,
        listener: Listener,
    ) -> Self {
        Self { hub: hub.clone(), settings: settings.clone(), limits: Arc::clone(limits), actor, listener }
    }

    /// Serves a socket until it is closed.
    pub(super) async fn serve(mut self, socket: Socket) {
        let mut line = Line::new(socket, &self.hub.context().clock);
        let Err(end) = self.converse(&mut line).await;
        if let End::Close(code, reason) = end {
            tracing::debug!(channel = %self.listener.channel_id(), code, reason, "a WebSocket is closed");
            Box::pin(line.goodbye(code, reason)).await;
        }
    }

    async fn converse(&mut self, line: &mut Line) -> Result<std::convert::Infallible, End> {
        line.send(&[frames::init(&self.listener)]).await?;
        loop {
            while let Some(news) = self.listener.news() {
                Box::pin(self.send_news(line, news)).await?;
            }
            let is_behind = self.listener.is_behind();
            tokio::select! {
                biased;
                () = self.settings.draining.cancelled() => {
                    let reason = format!("the hub restarts; continue with since={}", self.listener.position());
                    return Err(End::Close(RESTART, reason));
                }
                frame = line.receive() => Box::pin(self.handle(line, frame?)).await?,
                () = std::future::ready(()), if is_behind => Box::pin(self.show_page(line)).await?,
                () = self.listener.changed(), if !is_behind => {}
            }
        }
    }

    async fn send_news(&mut self, line: &mut Line, news: News) -> Flow {
        match news {
            News::Ended(ended) => {
                let code = match ended {
                    Ended::Revoked => REVOKED,
                    Ended::Closed => CLOSED,
                    _ => OFF,
                };
                Err(End::Close(code, ended.reason().to_owned()))
            }
            News::Status(status) => line.send(&frames::status(&self.listener, status)).await,
            News::Settings => self.send_config(line, None).await,
        }
    }

    /// Reads the next page and writes it.
    async fn show_page(&mut self, line: &mut Line) -> Flow {
        let items = match self.listener.read(PAGE).await {
            Ok(items) => items,
            Err(error) => {
                tracing::debug!(channel = %self.listener.channel_id(), %error, "a log cannot be read");
                self.hub.context().clock.sleep(RETRY_PAUSE).await;
                return Ok(());
            }
        };
        line.write(items.into_iter().map(shown).collect()).await
    }

    async fn handle(&mut self, line: &mut Line, message: Message) -> Flow {
        match message {
            Message::Text(text) => match Frame::read(&text) {
                Ok(frame) => self.obey(line, frame).await,
                Err(error) => refuse(line, None, &error).await,
            },
            Message::Binary(_) => refuse(line, None, &Error::invalid("frame", "must be a text frame")).await,
            // The library has responded; the next read reports the end of the conversation.
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => Ok(()),
        }
    }

    async fn obey(&mut self, line: &mut Line, frame: Frame) -> Flow {
        let (id, is_send) = (frame.request_id(), frame.is_send());
        let id = id.as_ref();
        match frame.command() {
            Ok(Command::Ping) => line.send(&[frames::pong(id)]).await,
            Ok(Command::Ack(seq)) => match self.listener.acknowledge(seq).await {
                Ok(()) => Ok(()),
                Err(error) if error.code() == ErrorCode::Unavailable => send_error(line, id, &error).await,
                Err(error) => refuse(line, id, &error).await,
            },
            Ok(Command::Config) => self.send_config(line, id).await,
            Ok(Command::Send { message, idempotency_key }) => {
                let key = idempotency_key.as_deref();
                let sent = match self.limits.check_send(&self.actor) {
                    Ok(()) => self.hub.bots().send(&self.actor, self.listener.bot_id(), *message, key).await,
                    Err(error) => Err(error),
                };
                let answer = match &sent {
                    Ok(sent) => frames::sent(id, sent),
                    Err(error) => frames::not_sent(id, &public_error(error)),
                };
                line.send(&[answer]).await
            }
            Ok(Command::Typing { to_user_id, ticket, on }) => {
                match self.show_typing(to_user_id, ticket, on) {
                    Ok(()) => Ok(()),
                    Err(error) => send_error(line, id, &error).await,
                }
            }
            Ok(Command::Unknown(kind)) => {
                line.count_bad()?;
                let message = format!("there is no frame of the type {kind}");
                line.send(&[frames::error(id, "unknown_type", &message)]).await
            }
            Err(error) if is_send => {
                line.count_bad()?;
                line.send(&[frames::not_sent(id, &public_error(&error))]).await
            }
            Err(error) => refuse(line, id, &error).await,
        }
    }

    /// In the background: the network may be slow, and the indicator is a courtesy.
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
                tracing::debug!(%bot, %error, "a typing indicator was refused");
            }
        });
        Ok(())
    }

    async fn send_config(&mut self, line: &mut Line, id: Option<&Value>) -> Flow {
        match views::config(&self.hub, &self.settings, &self.actor).await {
            Ok(config) => {
                let config = config.to_json().unwrap_or_default();
                line.send(&[frames::config(id, config)]).await
            }
            Err(error) => send_error(line, id, &error).await,
        }
    }
}

/// Responds to an invalid frame; too many of them close the connection.
async fn refuse(line: &mut Line, id: Option<&Value>, error: &Error) -> Flow {
    line.count_bad()?;
    send_error(line, id, error).await
}

async fn send_error(line: &mut Line, id: Option<&Value>, error: &Error) -> Flow {
    let error = public_error(error);
    line.send(&[frames::error(id, error.code().as_str(), error.message())]).await
}

fn shown(item: Item) -> Message {
    match item {
        Item::Message(entry) => text(entry.frame()),
        Item::Lagged { from, to } => text(frames::lagged(from, to, false).to_string()),
        Item::Gone { from, to } => text(frames::lagged(from, to, true).to_string()),
    }
}
