//! One open WebSocket of an app: events, sends, pings.
//!
//! The app pulls: the next page of events is read when the previous one was written. While a page waits for an app
//! that does not read, nothing else waits with it.

use std::sync::Arc;

use hub_core::{
    Error, ErrorCode, Hub,
    access::Actor,
    apps::{
        NewAppCall,
        sockets::{AppHolder, AppListener, Ended},
    },
    bots::Sent,
    id::InstallationId,
    secret::Secret,
    time::Stopwatch,
};
use serde_json::Value;
use tokio_tungstenite::tungstenite::Message;

use super::frames::{self, Command, Frame};
use crate::{
    AppSettings, app_calls, envelope,
    rate_limit::RateLimits,
    serve::{
        conversation::{End, Flow, Line, OFF, RESTART, RETRY_PAUSE, REVOKED, public_error, text},
        websocket::Socket,
    },
};

pub(super) enum Speaker {
    /// An app on one bot. Its token is looked up for every send, as for every call of the Bot API.
    Installation { installation_id: InstallationId, token: Secret },
    /// An app as a whole.
    App(AppHolder),
}

/// An app and everything it needs.
pub(super) struct Session {
    hub: Hub,
    settings: AppSettings,
    limits: Arc<RateLimits>,
    speaker: Speaker,
    listener: AppListener,
}

impl Session {
    pub(super) fn new(
        hub: &Hub,
        settings: &AppSettings,
        limits: &Arc<RateLimits>,
        speaker: Speaker,
        listener: AppListener,
    ) -> Self {
        Self { hub: hub.clone(), settings: settings.clone(), limits: Arc::clone(limits), speaker, listener }
    }

    /// Serves a socket until it is closed.
    pub(super) async fn serve(mut self, socket: Socket) {
        let mut line = Line::new(socket, &self.hub.context().clock);
        let Err(end) = self.converse(&mut line).await;
        // A standby socket takes over while this one closes.
        let Self { listener, .. } = self;
        let scope = listener.scope();
        drop(listener);
        if let End::Close(code, reason) = end {
            tracing::debug!(seat = ?scope, code, reason, "a WebSocket of an app is closed");
            Box::pin(line.goodbye(code, reason)).await;
        }
    }

    async fn converse(&mut self, line: &mut Line) -> Result<std::convert::Infallible, End> {
        line.send(&[frames::init(&self.listener)]).await?;
        loop {
            if let Some(ended) = self.listener.ended() {
                let code = if ended == Ended::Revoked { REVOKED } else { OFF };
                return Err(End::Close(code, ended.reason().to_owned()));
            }
            let is_behind = self.listener.is_behind();
            tokio::select! {
                biased;
                () = self.settings.draining.cancelled() => {
                    return Err(End::Close(RESTART, "the hub restarts; connect again".to_owned()));
                }
                frame = line.receive() => Box::pin(self.handle(line, frame?)).await?,
                () = std::future::ready(()), if is_behind => Box::pin(self.show_page(line)).await?,
                () = self.listener.changed(), if !is_behind => {}
            }
        }
    }

    /// Reads the next page, writes it, and records that.
    async fn show_page(&mut self, line: &mut Line) -> Flow {
        match self.listener.read().await {
            Ok(page) => line.write(page.into_iter().map(|event| text(event.frame)).collect()).await?,
            Err(error) => return self.later(&error).await,
        }
        // Also what could not be recorded the last time.
        match self.listener.written().await {
            Ok(()) => Ok(()),
            Err(error) => self.later(&error).await,
        }
    }

    async fn later(&self, error: &Error) -> Flow {
        tracing::debug!(seat = ?self.listener.scope(), %error, "events of an app cannot be read or recorded");
        self.hub.context().clock.sleep(RETRY_PAUSE).await;
        Ok(())
    }

    async fn handle(&mut self, line: &mut Line, message: Message) -> Flow {
        match message {
            Message::Text(text) => match Frame::read(&text) {
                Ok(frame) => self.obey(line, &frame, &text).await,
                Err(error) => refuse(line, None, &error).await,
            },
            Message::Binary(_) => refuse(line, None, &Error::invalid("frame", "must be a text frame")).await,
            // The library has responded; the next read reports the end of the conversation.
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => Ok(()),
        }
    }

    async fn obey(&mut self, line: &mut Line, frame: &Frame, text: &str) -> Flow {
        let id = frame.request_id();
        let id = id.as_ref();
        match frame.command() {
            Ok(Command::Ping) => line.send(&[frames::pong(id)]).await,
            Ok(Command::Ack(event)) => match self.listener.acknowledge(event).await {
                Ok(()) => Ok(()),
                Err(error) => line.send(&[frames::error(id, &public_error(&error))]).await,
            },
            Ok(Command::Send) => {
                let answer = self.send(frame, text, id).await;
                line.send(&[answer]).await
            }
            Ok(Command::Unknown(kind)) => {
                line.count_bad()?;
                line.send(&[frames::unknown(id, &kind)]).await
            }
            Err(error) => refuse(line, id, &error).await,
        }
    }

    /// A call of the Bot API, with an entry in its log; the response is a frame.
    async fn send(&self, frame: &Frame, text: &str, id: Option<&Value>) -> Value {
        let watch = Stopwatch::start();
        let (installation_id, path) = match &self.speaker {
            Speaker::Installation { installation_id, .. } => (Some(*installation_id), "/bot/v1/ws"),
            Speaker::App(_) => (frame.installation().ok(), "/bot/v1/app/ws"),
        };
        let actor = self.actor(frame).await;
        // An installation of another app has its own log.
        let installation_id = installation_id.filter(|_| match &actor {
            Ok(_) => true,
            Err(error) => error.code() != ErrorCode::NotFound && error.code() != ErrorCode::InvalidToken,
        });
        let sent = match actor {
            Ok(actor) => self.send_as(&actor, frame).await,
            Err(error) => Err(error),
        };
        let (status, answer) = match &sent {
            Ok(sent) => (200, frames::sent(id, sent)),
            Err(error) => (envelope::status(error.code()).as_u16(), frames::error(id, &public_error(error))),
        };
        if let Some(installation_id) = installation_id {
            self.hub.apps().note_call(NewAppCall {
                installation_id,
                trace_id: sent.as_ref().ok().map(|sent| sent.trace_id),
                method: "WS".to_owned(),
                path: path.to_owned(),
                request_body: app_calls::shown(text.as_bytes(), text.len()),
                status,
                response_body: answer.to_string(),
                duration_ms: u64::try_from(watch.elapsed().as_millis()).unwrap_or(u64::MAX),
            });
        }
        answer
    }

    /// The sender, with its current rights.
    async fn actor(&self, frame: &Frame) -> Result<Actor, Error> {
        match &self.speaker {
            Speaker::Installation { token, .. } => self.hub.apps().authenticate_token(token.expose()).await,
            Speaker::App(app) => self.hub.apps().acting_on(app, frame.installation()?).await,
        }
    }

    async fn send_as(&self, actor: &Actor, frame: &Frame) -> Result<Sent, Error> {
        self.limits.check_send(actor)?;
        let (message, key) = frame.message()?;
        let new = message.into_send(None, None)?;
        self.hub.bots().send(actor, actor.app()?.bot_id, new, key.as_deref()).await
    }
}

/// Responds to an invalid frame; too many of them close the connection.
async fn refuse(line: &mut Line, id: Option<&Value>, error: &Error) -> Flow {
    line.count_bad()?;
    line.send(&[frames::error(id, &public_error(error))]).await
}
