//! The clients that are connected to a channel over WebSockets.

use hub_core::channels::{ChannelClient, ChannelClients};
use poem_openapi::{Object, types::Example};

use crate::wire::{SocketId, Time, view};

view! {
    /// A client that is connected over a WebSocket.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none, example)]
    pub struct ChannelClientView from client: ChannelClient {
        /// Id of the connection.
        pub id: SocketId,
        /// Network address of the client; absent if unknown.
        pub address: Option<String> = client.address.map(|address| address.to_canonical().to_string()),
        /// Name of the program, from its `User-Agent`; empty if it sent none.
        pub user_agent: String,
        /// When it connected.
        pub connected_at: Time,
        /// Number of the last message that was sent to it.
        pub sent_seq: u64,
        /// Number up to which it acknowledged; absent if it never did.
        pub acked_seq: Option<u64>,
        /// Number of messages of the channel that were not sent to it yet.
        pub lag: u64,
    }
}

view! {
    /// The clients of a channel.
    #[derive(Debug, Object)]
    #[oai(example)]
    pub struct ChannelClientsView from found: ChannelClients {
        /// Those that are connected to the node that responds, oldest first.
        pub clients: Vec<ChannelClientView> = found.clients.into_iter().map(Into::into).collect(),
        /// Number of clients of other nodes, as announced by them at most 10 seconds ago.
        pub on_other_nodes: u64,
    }
}

impl Example for ChannelClientView {
    fn example() -> Self {
        Self {
            id: hub_core::id::Id::from_u128(0x019a_a000_0000_7000_8000_0000_0000_0006).into(),
            address: Some("203.0.113.7".to_owned()),
            user_agent: "orders/1.0".to_owned(),
            connected_at: Time(hub_core::time::Timestamp::from_millis(1_763_717_400_000)),
            sent_seq: 42,
            acked_seq: Some(40),
            lag: 0,
        }
    }
}

impl Example for ChannelClientsView {
    fn example() -> Self {
        Self { clients: vec![ChannelClientView::example()], on_other_nodes: 0 }
    }
}
