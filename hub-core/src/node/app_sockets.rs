//! Apps with sockets on this node, and how notifications reach them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, watch};

use crate::{
    config::HubConfig,
    error::Result,
    id::{AppId, BotId, InstallationId, SocketId, UserId},
    model::app::SocketScope,
    node::connection_slots::{ConnectionSlot, ConnectionSlots, too_many},
    secret::{KeyMark, TokenHash},
    store::app_sockets::{OpenSocket, PulseRow},
    time::Timestamp,
};

/// The sockets of apps on this node; clones share them.
#[derive(Debug, Clone, Default)]
pub struct AppSockets(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    open: Mutex<HashMap<SocketScope, Open>>,
    /// A first socket was opened: its app is loaded and other nodes are notified.
    work: Notify,
}

#[derive(Debug)]
struct Open {
    pulse: Arc<watch::Sender<Pulse>>,
    sockets: Vec<OpenSocket>,
}

/// State of an app, as needed by its sockets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pulse {
    /// Grows whenever there may be events to read.
    pub news: u64,
    pub state: Arc<AppSocketState>,
}

/// State of an app, as needed by its sockets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppSocketState {
    /// The app's name.
    pub name: String,
    /// Its short name.
    pub slug: String,
    /// The bot, for the socket of one installation.
    pub bot_id: Option<BotId>,
    /// Whether the app, its installation and their users are enabled.
    pub(crate) open: bool,
    /// Valid credentials; none when the app is gone.
    pub(crate) keys: Vec<KeyMark>,
}

impl AppSocketState {
    fn of(scope: SocketScope, row: &PulseRow, now: Timestamp) -> Self {
        let keys = match scope {
            SocketScope::Installation(_) => {
                let old = row.old_until.filter(|until| now < *until);
                let old = old.and(row.old_credential.as_deref());
                [Some(row.credential.as_str()), old].into_iter().flatten().map(KeyMark::of).collect()
            }
            SocketScope::App(_) => vec![secret_mark(&row.credential)],
        };
        Self { name: row.name.clone(), slug: row.slug.clone(), bot_id: row.bot_id, open: row.open, keys }
    }
}

impl AppSockets {
    /// Sockets of apps on this node.
    pub fn count(&self) -> usize {
        self.open().values().map(|open| open.sockets.len()).sum()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.open().is_empty()
    }

    /// Waits for a socket.
    pub(crate) async fn work(&self) {
        self.0.work.notified().await;
    }

    pub(crate) fn sockets(&self) -> Vec<OpenSocket> {
        self.open().values().flat_map(|open| open.sockets.iter().copied()).collect()
    }

    /// Returns the installations and apps with open sockets.
    pub(crate) fn scopes(&self) -> (Vec<InstallationId>, Vec<AppId>) {
        let (mut installations, mut apps) = (Vec::new(), Vec::new());
        for scope in self.open().keys() {
            match scope {
                SocketScope::Installation(id) => installations.push(*id),
                SocketScope::App(id) => apps.push(*id),
            }
        }
        (installations, apps)
    }

    /// Notifies the sockets that there may be new events.
    pub(crate) fn notify(&self, scope: SocketScope) {
        if let Some(open) = self.open().get(&scope) {
            open.pulse.send_modify(|pulse| pulse.news += 1);
        }
    }

    /// Updates the state from the store; `None` when it does not have this app.
    pub(crate) fn refresh(&self, scope: SocketScope, row: Option<&PulseRow>, now: Timestamp) {
        let state = row.map(|row| AppSocketState::of(scope, row, now)).unwrap_or_default();
        let has_due = row.is_some_and(|row| row.has_due);
        if let Some(open) = self.open().get(&scope) {
            open.pulse.send_if_modified(|pulse| {
                let is_new = *pulse.state != state;
                if is_new {
                    pulse.state = Arc::new(state);
                }
                pulse.news += u64::from(has_due);
                is_new || has_due
            });
        }
    }

    /// Takes a slot for a socket.
    ///
    /// # Errors
    /// `RATE_LIMITED` when there is none.
    pub(crate) fn enter(
        &self,
        scope: SocketScope,
        socket: OpenSocket,
        (slots, user): (&ConnectionSlots, UserId),
        limits: &HubConfig,
    ) -> Result<(watch::Receiver<Pulse>, SocketSlot)> {
        let mut all = self.open();
        if all.get(&scope).is_some_and(|open| open.sockets.len() >= MAX_SOCKETS_PER_SCOPE) {
            return Err(too_many("WebSockets of this app"));
        }
        let connection_slot = slots.take(user, limits)?;
        let open = all
            .entry(scope)
            .or_insert_with(|| Open { pulse: Arc::default(), sockets: Vec::with_capacity(1) });
        open.sockets.push(socket);
        self.0.work.notify_one();
        let slot = SocketSlot {
            app_sockets: self.clone(),
            scope,
            socket: socket.id,
            _connection_slot: connection_slot,
        };
        Ok((open.pulse.subscribe(), slot))
    }

    fn open(&self) -> MutexGuard<'_, HashMap<SocketScope, Open>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of a socket, which is released when it is dropped.
#[derive(Debug)]
pub(crate) struct SocketSlot {
    app_sockets: AppSockets,
    scope: SocketScope,
    socket: SocketId,
    _connection_slot: ConnectionSlot,
}

impl Drop for SocketSlot {
    fn drop(&mut self) {
        let mut all = self.app_sockets.open();
        if let Some(open) = all.get_mut(&self.scope) {
            open.sockets.retain(|socket| socket.id != self.socket);
            if open.sockets.is_empty() {
                all.remove(&self.scope);
            } else {
                // A standby socket may be the active one now.
                open.pulse.send_modify(|pulse| pulse.news += 1);
            }
        }
    }
}

/// Maximum number of sockets of one installation, or of one app as a whole.
pub const MAX_SOCKETS_PER_SCOPE: usize = 5;

/// The mark of a sealed secret.
pub(crate) fn secret_mark(sealed: &str) -> KeyMark {
    KeyMark::of(TokenHash::of(sealed).as_str())
}
