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
    model::app::Seat,
    node::places::{Places, Taking, too_many},
    secret::{KeyMark, TokenHash},
    store::app_sockets::{OpenSocket, PulseRow},
    time::Timestamp,
};

/// The sockets of apps on this node; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Seats(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    open: Mutex<HashMap<Seat, Open>>,
    /// A first socket was opened: its app is loaded and other nodes are notified.
    work: Notify,
}

#[derive(Debug)]
struct Open {
    seat: Arc<watch::Sender<Pulse>>,
    sockets: Vec<OpenSocket>,
}

/// State of an app, as needed by its sockets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pulse {
    /// Grows whenever there may be events to read.
    pub news: u64,
    pub state: Arc<SeatState>,
}

/// State of an app, as needed by its sockets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeatState {
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

impl SeatState {
    fn of(seat: Seat, row: &PulseRow, now: Timestamp) -> Self {
        let keys = match seat {
            Seat::Installation(_) => {
                let old = row.old_until.filter(|until| now < *until);
                let old = old.and(row.old_credential.as_deref());
                [Some(row.credential.as_str()), old].into_iter().flatten().map(KeyMark::of).collect()
            }
            Seat::App(_) => vec![secret_mark(&row.credential)],
        };
        Self { name: row.name.clone(), slug: row.slug.clone(), bot_id: row.bot_id, open: row.open, keys }
    }
}

impl Seats {
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
    pub(crate) fn seats(&self) -> (Vec<InstallationId>, Vec<AppId>) {
        let (mut installations, mut apps) = (Vec::new(), Vec::new());
        for seat in self.open().keys() {
            match seat {
                Seat::Installation(id) => installations.push(*id),
                Seat::App(id) => apps.push(*id),
            }
        }
        (installations, apps)
    }

    /// Notifies the sockets that there may be new events.
    pub(crate) fn notify(&self, seat: Seat) {
        if let Some(open) = self.open().get(&seat) {
            open.seat.send_modify(|pulse| pulse.news += 1);
        }
    }

    /// Updates the state from the store; `None` when it does not have this app.
    pub(crate) fn look(&self, seat: Seat, row: Option<&PulseRow>, now: Timestamp) {
        let state = row.map(|row| SeatState::of(seat, row, now)).unwrap_or_default();
        let has_due = row.is_some_and(|row| row.has_due);
        if let Some(open) = self.open().get(&seat) {
            open.seat.send_if_modified(|pulse| {
                let is_new = *pulse.state != state;
                if is_new {
                    pulse.state = Arc::new(state);
                }
                pulse.news += u64::from(has_due);
                is_new || has_due
            });
        }
    }

    /// Takes a place for a socket.
    ///
    /// # Errors
    /// `RATE_LIMITED` when there is none.
    pub(crate) fn enter(
        &self,
        seat: Seat,
        socket: OpenSocket,
        (places, user): (&Places, UserId),
        limits: &HubConfig,
    ) -> Result<(watch::Receiver<Pulse>, Place)> {
        let mut all = self.open();
        if all.get(&seat).is_some_and(|open| open.sockets.len() >= MAX_PER_SEAT) {
            return Err(too_many("WebSockets of this app"));
        }
        let taking = places.take(user, limits)?;
        let open =
            all.entry(seat).or_insert_with(|| Open { seat: Arc::default(), sockets: Vec::with_capacity(1) });
        open.sockets.push(socket);
        self.0.work.notify_one();
        let place = Place { seats: self.clone(), seat, socket: socket.id, _taking: taking };
        Ok((open.seat.subscribe(), place))
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Seat, Open>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A socket's place; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    seats: Seats,
    seat: Seat,
    socket: SocketId,
    _taking: Taking,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.seats.open();
        if let Some(open) = all.get_mut(&self.seat) {
            open.sockets.retain(|socket| socket.id != self.socket);
            if open.sockets.is_empty() {
                all.remove(&self.seat);
            } else {
                // A standby socket may be the active one now.
                open.seat.send_modify(|pulse| pulse.news += 1);
            }
        }
    }
}

/// Sockets of one installation, or of one app as a whole.
pub const MAX_PER_SEAT: usize = 5;

/// The mark of a sealed secret.
pub(crate) fn secret_mark(sealed: &str) -> KeyMark {
    KeyMark::of(TokenHash::of(sealed).as_str())
}
