//! The clients that are connected to a channel over WebSockets.

use std::net::IpAddr;

use super::Channels;
use crate::{
    access::Actor,
    error::{Error, Result},
    id::{BotId, ChannelId, SocketId},
    time::Timestamp,
};

/// A client that is connected over a WebSocket.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
#[api(example = {
    "acked_seq": 40,
    "address": "203.0.113.7",
    "connected_at": "2025-11-21T09:30:00.000Z",
    "id": "sock_01KAG00000E008000000000006",
    "lag": 0,
    "sent_seq": 42,
    "user_agent": "orders/1.0",
})]
pub struct ChannelClient {
    /// Id of the connection.
    pub id: SocketId,
    /// Network address of the client; absent if unknown.
    #[api(with(Option<String>, |address: &Option<IpAddr>| address.map(|address| address.to_canonical().to_string())))]
    pub address: Option<IpAddr>,
    /// Name of the program, from its `User-Agent`; empty if it sent none.
    pub user_agent: String,
    /// When it connected.
    pub connected_at: Timestamp,
    /// Number of the last message that was sent to it.
    pub sent_seq: u64,
    /// Number up to which it acknowledged; absent if it never did.
    pub acked_seq: Option<u64>,
    /// Number of messages of the channel that were not sent to it yet.
    pub lag: u64,
}

/// The clients of a channel.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
#[api(example = {
    "clients": [{"acked_seq": 40, "address": "203.0.113.7", "connected_at": "2025-11-21T09:30:00.000Z", "id": "sock_01KAG00000E008000000000006", "lag": 0, "sent_seq": 42, "user_agent": "orders/1.0"}],
    "on_other_nodes": 0,
})]
pub struct ChannelClients {
    /// Those that are connected to the node that responds, oldest first.
    pub clients: Vec<ChannelClient>,
    /// Number of clients of other nodes, as announced by them at most 10 seconds ago.
    pub on_other_nodes: u64,
}

impl Channels<'_> {
    /// The clients that are connected to a channel over WebSockets. Only those of this node are described.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn clients(&self, actor: &Actor, bot_id: BotId, id: ChannelId) -> Result<ChannelClients> {
        self.get(actor, bot_id, id).await?;
        let (newest, connected) = self.ctx.node.channel_listeners.connected(id);
        let number = |seq: i64| u64::try_from(seq).unwrap_or(0);
        let clients = connected.iter().map(|connected| ChannelClient {
            id: connected.id,
            address: connected.client.ip,
            user_agent: connected.client.user_agent.clone(),
            connected_at: connected.since,
            sent_seq: number(connected.sent()),
            acked_seq: connected.acknowledged().map(number),
            lag: number(newest - connected.sent()),
        });
        let on_other_nodes = self.ctx.node.channel_listeners.sockets_elsewhere(id).into();
        Ok(ChannelClients { clients: clients.collect(), on_other_nodes })
    }

    /// Closes the connection of a client of this node. The client may connect again.
    ///
    /// # Errors
    /// `NOT_FOUND`, also for a client of another node.
    pub async fn close_client(
        &self,
        actor: &Actor,
        bot_id: BotId,
        id: ChannelId,
        client: SocketId,
    ) -> Result<()> {
        self.get(actor, bot_id, id).await?;
        let (_, connected) = self.ctx.node.channel_listeners.connected(id);
        let found = connected.iter().find(|connected| connected.id == client);
        found.ok_or_else(|| Error::not_found("client"))?.closed.cancel();
        Ok(())
    }
}
