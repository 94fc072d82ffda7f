//! State of this node in memory: connections, counters, and the bus that wakes its workers. It does not outlive the
//! process.

pub mod app_status;
pub mod audit;
pub mod context;
pub mod event_feed;
pub mod idempotency;
pub mod media_store;
pub mod payload;
pub mod revocation;

use std::sync::{Arc, atomic::AtomicU64};

pub(crate) mod app_sockets;
pub(crate) mod bot_owners;
pub(crate) mod channel_listeners;
pub(crate) mod connected_client;
pub(crate) mod connection_slots;
pub(crate) mod feed;
pub(crate) mod ilink_polls;
pub(crate) mod log_entry;
pub(crate) mod log_reader;
pub(crate) mod typing_connections;

pub use app_sockets::AppSockets;
pub use bot_owners::BotOwners;
pub use channel_listeners::ChannelListeners;
pub use connection_slots::ConnectionSlots;
pub use ilink_polls::IlinkPolls;
pub use log_entry::LogEntry;
pub use typing_connections::TypingConnections;

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
    /// Slots for WebSockets.
    pub socket_slots: ConnectionSlots,
    /// Slots for event streams.
    pub stream_slots: ConnectionSlots,
    /// Owners of bots, for event streams.
    pub bot_owners: BotOwners,
    /// Listeners of channels.
    pub channel_listeners: ChannelListeners,
    /// Polls of clients of iLink sinks.
    pub ilink_polls: IlinkPolls,
    /// Sockets of apps.
    pub app_sockets: AppSockets,
    /// The parts of requests that endpoints of models refuse.
    pub dialects: Dialects,
    /// Connections that show people that a bot is typing.
    pub typing_connections: TypingConnections,
    /// Number of changes of remarks on people; after a change, cached names are out of date.
    pub remarks: Arc<AtomicU64>,
}
