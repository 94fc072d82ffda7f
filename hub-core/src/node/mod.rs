//! State of this node in memory: connections, counters, and the bus that wakes its workers. It does not outlive the
//! process.

use std::sync::{Arc, atomic::AtomicU64};

pub(crate) mod connected;
pub(crate) mod entry;
pub(crate) mod feed;
pub(crate) mod ilink_polls;
pub(crate) mod live;
pub(crate) mod owners;
pub(crate) mod places;
pub(crate) mod reader;
pub(crate) mod seats;
pub(crate) mod typists;

pub use entry::LogEntry;
pub use ilink_polls::IlinkPolls;
pub use live::Live;
pub use owners::Owners;
pub use places::Places;
pub use seats::Seats;
pub use typists::Typists;

use crate::{ai::Dialects, counters::Counters, events::Events, invariants::Violations, wake::Wake};

/// The state of one node; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// Hints for the workers.
    pub wake: Wake,
    /// Invariants that were violated.
    pub violations: Violations,
    /// Event bus.
    pub events: Events,
    /// Counters.
    pub counters: Arc<Counters>,
    /// Places for WebSockets.
    pub places: Places,
    /// Places for event streams.
    pub streams: Places,
    /// Owners of bots, for event streams.
    pub owners: Owners,
    /// Clients of channels.
    pub live: Live,
    /// Polls of clients of iLink sinks.
    pub ilink_polls: IlinkPolls,
    /// Sockets of apps.
    pub seats: Seats,
    /// The parts of requests that endpoints of models refuse.
    pub dialects: Dialects,
    /// Connections that show people that a bot is typing.
    pub typists: Typists,
    /// Number of changes of remarks on people; after a change, cached names are out of date.
    pub remarks: Arc<AtomicU64>,
}
