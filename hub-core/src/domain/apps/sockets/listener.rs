//! One socket: its position in the events of an app.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;

use super::{PAGE, PAGE_CHARS, WINDOW, watch::ANNOUNCEMENT_LIFETIME};
use crate::{
    apps::events::{add_links, envelope},
    context::Context,
    error::{Error, ErrorCode, Result},
    id::{AppEventId, AppId, SocketId, UserId},
    model::{
        app::SocketScope,
        cause::Cause,
        trace::{PackedSteps, Step, StepDetail, StepKind, StepName, TraceStatus},
    },
    node::app_sockets::{AppSocketState, Pulse, SocketSlot},
    secret::KeyMark,
    store::{
        app_sockets::{OpenSocket, WrittenEvent},
        traces::TraceUpdate,
    },
    time::Timestamp,
};

/// Follows the events of an app. Reads nothing until [`AppListener::read`] is called.
#[derive(Debug)]
pub struct AppListener {
    ctx: Context,
    scope: SocketScope,
    id: SocketId,
    key: KeyMark,
    pulses: watch::Receiver<Pulse>,
    /// Value of the pulse's `news` at the last read.
    seen: u64,
    /// Whether the last page had events: there may be another page.
    more: bool,
    acknowledges: bool,
    /// Events that were read and are not stored as delivered: not written yet, not acknowledged, or the store failed.
    given: Vec<AppEventId>,
    _slot: SocketSlot,
}

/// Reason for closing a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The token was replaced, or the app was deleted or removed from the bot.
    Revoked,
    /// The app was switched off on the bot, or the bot's owner or the app's author was.
    Off,
}

impl Ended {
    /// Returns a human-readable reason.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Revoked => "the app's token or secret was replaced, or the app was taken away",
            Self::Off => "the app is switched off",
        }
    }
}

impl From<Ended> for Error {
    fn from(ended: Ended) -> Self {
        let code = match ended {
            Ended::Revoked => ErrorCode::InvalidToken,
            Ended::Off => ErrorCode::Forbidden,
        };
        Self::new(code, ended.reason())
    }
}

/// An event for the app.
#[derive(Debug, Clone)]
pub struct Given {
    /// Its id.
    pub id: AppEventId,
    /// The whole frame: the same envelope as for a webhook. UTF-8.
    pub frame: Bytes,
}

impl AppListener {
    pub(super) async fn attach(
        ctx: &Context,
        scope: SocketScope,
        key: KeyMark,
        (app_id, user): (AppId, UserId),
        acknowledges: bool,
    ) -> Result<Self> {
        let installation_id = match scope {
            SocketScope::Installation(id) => Some(id),
            SocketScope::App(_) => None,
        };
        let socket = OpenSocket { id: ctx.ids.next(), app_id, installation_id };
        let (pulses, slot) =
            ctx.node.app_sockets.enter(scope, socket, (&ctx.node.socket_slots, user), &ctx.config)?;
        super::watch::refresh(ctx, scope).await?;
        let seen = pulses.borrow().news;
        let listener = Self {
            ctx: ctx.clone(),
            scope,
            id: socket.id,
            key,
            seen,
            pulses,
            more: true,
            acknowledges,
            given: Vec::new(),
            _slot: slot,
        };
        if let Some(ended) = listener.ended() {
            return Err(ended.into());
        }
        let now = ctx.store.now();
        let announce = ctx.store.write(move |tx| {
            Box::pin(
                async move { tx.app_sockets().announce(&[socket], now, now + ANNOUNCEMENT_LIFETIME).await },
            )
        });
        announce.await?;
        Ok(listener)
    }

    /// The installation or app whose events it follows.
    pub fn scope(&self) -> SocketScope {
        self.scope
    }

    /// State of the app.
    pub fn state(&self) -> Arc<AppSocketState> {
        Arc::clone(&self.pulses.borrow().state)
    }

    /// Returns the reason for closing the socket; `None` while it may stay open.
    pub fn ended(&self) -> Option<Ended> {
        let state = self.state();
        if !state.keys.contains(&self.key) {
            Some(Ended::Revoked)
        } else if !state.open {
            Some(Ended::Off)
        } else {
            None
        }
    }

    /// Whether there may be events to read, and the window of unacknowledged events is not full.
    pub fn is_behind(&self) -> bool {
        self.given.len() < WINDOW && (self.more || self.pulses.borrow().news != self.seen)
    }

    /// Waits until there may be something to read, or the state of the app changes. May be cancelled.
    pub async fn changed(&mut self) {
        // The sender lives as long as the place that this holds.
        let _ = self.pulses.changed().await;
    }

    /// Reads the next page, oldest first; each event once.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the store cannot be read; the page can be read again.
    pub async fn read(&mut self) -> Result<Vec<Given>> {
        let room = PAGE.min(WINDOW - self.given.len().min(WINDOW));
        if room == 0 {
            return Ok(Vec::new());
        }
        self.seen = self.pulses.borrow_and_update().news;
        let (now, limit) = (self.ctx.store.now(), u32::try_from(room).unwrap_or(u32::MAX));
        let mut read = self.ctx.store.read().await?;
        let mut rows =
            read.app_sockets().following(self.scope, self.id, &self.given, (limit, PAGE_CHARS), now).await?;
        drop(read);
        self.more = !rows.is_empty();
        add_links(self.ctx.files(), rows.iter_mut().map(|row| &mut row.event)).await?;
        let mut page = Vec::with_capacity(rows.len());
        for row in rows {
            let frame = envelope(row.trace_id, row.installation_id, row.bot_id, &row.event)?;
            page.push(Given { id: row.id, frame });
        }
        self.given.extend(page.iter().map(|event| event.id));
        Ok(page)
    }

    /// Stores that all events that were read are delivered. Does nothing if the app acknowledges events itself.
    ///
    /// # Errors
    /// `UNAVAILABLE` when that cannot be stored. Unless a further call succeeds, the next connection gets the events
    /// again.
    pub async fn written(&mut self) -> Result<()> {
        if self.acknowledges || self.given.is_empty() {
            return Ok(());
        }
        self.note(self.given.clone()).await
    }

    /// Stores that the app has acknowledged an event. Ignores events that were not sent on this connection or were
    /// acknowledged before.
    ///
    /// # Errors
    /// `UNAVAILABLE` when that cannot be stored.
    pub async fn acknowledge(&mut self, id: AppEventId) -> Result<()> {
        if !self.acknowledges || !self.given.contains(&id) {
            return Ok(());
        }
        self.note(vec![id]).await
    }

    async fn note(&mut self, ids: Vec<AppEventId>) -> Result<()> {
        let (now, noted) = (self.ctx.store.now(), ids.clone());
        let write = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                let written = tx.app_sockets().written(&ids, now).await?;
                let mut traces: Vec<_> = written.iter().filter_map(|event| trace_of(event, now)).collect();
                traces.sort_by_key(|trace| trace.id);
                tx.traces().update(&traces.iter().collect::<Vec<_>>()).await
            })
        });
        write.await?;
        self.given.retain(|id| !noted.contains(id));
        Ok(())
    }
}

impl Drop for AppListener {
    fn drop(&mut self) {
        let id = self.id;
        // If this write is lost, the announcement expires by itself.
        self.ctx.store.write_later(move |tx| Box::pin(async move { tx.app_sockets().close(id).await }));
    }
}

fn trace_of(event: &WrittenEvent, now: Timestamp) -> Option<TraceUpdate> {
    let id = event.trace_id?;
    let detail = StepDetail { event_id: Some(event.id), ..StepDetail::default() };
    let step = Step::new(StepName::Websocket, StepKind::App, TraceStatus::Ok, now, now, detail);
    Some(TraceUpdate {
        id,
        status: event.is_over.then_some(TraceStatus::Ok),
        ended: i64::from(event.is_over),
        summary: event.is_over.then(|| Cause::AppDelivered.to_string()),
        attempts: None,
        ended_at: now,
        steps: PackedSteps::new(id, &[step]),
    })
}
