//! Hints between the nodes of one PostgreSQL database: collected for a moment and sent in one notification
//! outside any transaction of the hot path, since a notification inside one takes a lock over the whole
//! database. A lost one costs a second: every node also polls. Events for clients travel in the same way; lost ones make the
//! clients of the other nodes start over.

use std::{collections::HashSet, time::Duration};

use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::{
    context::Context,
    error::Result,
    events::{self, Batch},
    id::NodeId,
    store::Store,
    tasks::Tasks,
    wake::Hint,
};

/// Time for which hints are collected. It limits a node to fifty notifications per second.
const COLLECT: Duration = Duration::from_millis(20);
/// Hints in one notification; PostgreSQL takes less than 8,000 bytes. More are left to polling.
const MAX_HINTS: usize = 150;
/// Pause before the listening connection is opened again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Notifies other nodes that this one released its leases: they need not wait for their next poll.
pub(super) async fn announce_release(store: &Store, node: NodeId) {
    if !store.is_shared() {
        return;
    }
    if let Err(error) = store.notify(&format!("{node} {}", Hint::Released)).await {
        tracing::debug!(%error, "other nodes could not be notified; they poll");
    }
}

/// Starts to send hints to other nodes and to receive theirs.
pub(super) fn start(ctx: &Context, node: NodeId, tasks: &Tasks) {
    let hints = Hints { ctx: ctx.clone(), node, tasks: tasks.clone() };
    let (sender, receiver) = (hints.clone(), hints.clone());
    tasks.supervise("hints to other nodes", ctx.clock.clone(), move || sender.clone().send_hints());
    let events = hints.clone();
    tasks.supervise("hints of other nodes", ctx.clock.clone(), move || receiver.clone().receive_hints());
    tasks.supervise("events to other nodes", ctx.clock.clone(), move || events.clone().send_events());
}

#[derive(Clone)]
struct Hints {
    ctx: Context,
    node: NodeId,
    tasks: Tasks,
}

impl Hints {
    async fn send_hints(self) {
        let mut hints = self.ctx.node.wake.listen();
        loop {
            let first = tokio::select! {
                received = hints.recv() => received,
                () = self.tasks.stop_token().cancelled() => return,
            };
            let first = match first {
                Ok(received) if !received.remote => received.hint,
                Ok(_) | Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return,
            };
            let mut together = HashSet::from([first]);
            self.ctx.clock.sleep(COLLECT).await;
            loop {
                match hints.try_recv() {
                    Ok(received) if !received.remote && together.len() < MAX_HINTS => {
                        together.insert(received.hint);
                    }
                    Ok(_) | Err(TryRecvError::Lagged(_)) => {}
                    Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                }
            }
            let mut text = self.node.to_string();
            for hint in together {
                text.push(' ');
                text.push_str(&hint.to_string());
            }
            if let Err(error) = self.ctx.store.notify(&text).await {
                tracing::debug!(%error, "other nodes could not be notified; they poll");
            }
        }
    }

    /// Sends this node's events to the other nodes, in order. If some cannot be sent, or the queue overflows, the
    /// other nodes are notified of the gap as soon as possible.
    async fn send_events(self) {
        let mut events = self.ctx.node.events.outgoing();
        // Events that a predecessor of this task did not send are lost.
        let mut is_missing = true;
        while !self.tasks.stopping() {
            let mut batch = Batch::default();
            if is_missing {
                batch.add(None);
            } else {
                tokio::select! {
                    received = events.recv() => match received {
                        Ok(event) => batch.add(event.as_ref()),
                        Err(RecvError::Lagged(_)) => batch.add(None),
                        Err(RecvError::Closed) => return,
                    },
                    () = self.tasks.stop_token().cancelled() => return,
                }
                tokio::select! {
                    () = self.ctx.clock.sleep(COLLECT) => {}
                    () = self.tasks.stop_token().cancelled() => {}
                }
            }
            while !batch.is_full() {
                match events.try_recv() {
                    Ok(event) => batch.add(event.as_ref()),
                    Err(TryRecvError::Lagged(_)) => batch.add(None),
                    Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                }
            }
            let sent = self.ctx.store.notify(&format!("{} {}", self.node, batch.finish())).await;
            is_missing = sent.is_err();
            if let Err(error) = sent {
                tracing::debug!(%error, "events could not be sent to other nodes");
                tokio::select! {
                    () = self.ctx.clock.sleep(RETRY_PAUSE) => {}
                    () = self.tasks.stop_token().cancelled() => return,
                }
            }
        }
    }

    async fn receive_hints(self) {
        while !self.tasks.stopping() {
            if let Err(error) = self.receive_until_error().await {
                tracing::debug!(%error, "hints of other nodes cannot be received");
            }
            tokio::select! {
                () = self.ctx.clock.sleep(RETRY_PAUSE) => {}
                () = self.tasks.stop_token().cancelled() => return,
            }
        }
    }

    async fn receive_until_error(&self) -> Result<()> {
        let own = self.node.to_string();
        let mut notices = self.ctx.store.notices().await?;
        // Events that were sent while no connection was open are lost.
        self.ctx.node.events.forget();
        loop {
            let text = tokio::select! {
                text = notices.next() => text?,
                () = self.tasks.stop_token().cancelled() => return Ok(()),
            };
            let Some(text) = text else {
                self.ctx.node.events.forget();
                continue;
            };
            let mut words = text.split(' ');
            if words.next() != Some(own.as_str()) {
                words.for_each(|word| self.receive(word));
            }
        }
    }

    fn receive(&self, word: &str) {
        if let Some(hint) = Hint::parse(word) {
            self.ctx.node.wake.relay(hint);
        }
        for event in events::parse(word).into_iter().flatten() {
            match event {
                Some(event) => self.ctx.node.events.relay(event),
                None => self.ctx.node.events.forget(),
            }
        }
    }
}
