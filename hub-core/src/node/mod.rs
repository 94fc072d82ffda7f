//! What this node holds in memory: who is connected, what is counted, and the bus that wakes its workers. Nothing
//! here outlives the process.

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
    /// How many remarks on people were set: what is known of their names is old then.
    pub remarks: Arc<AtomicU64>,
}
