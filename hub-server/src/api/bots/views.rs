//! Response bodies.

use hub_core::{
    bots::{BotHealth, BotStatus},
    id::BotId,
    openapi::Api,
    time::Timestamp,
};

use crate::wire::view;

view! {
    /// Connection of a bot.
    #[derive(Debug, Api)]
    pub struct BotHealthView from health: BotHealth {
        /// Id of the bot.
        pub bot_id: BotId = health.bot.id,
        /// Connection status.
        pub status: BotStatus = health.bot.status,
        /// Reason for the status, if known.
        pub status_reason: Option<String> = health.bot.status_reason,
        /// Time of the last change of the status.
        pub since: Timestamp,
        /// When the network last responded to a poll.
        pub last_poll_at: Option<Timestamp>,
        /// The last error.
        pub last_error: Option<String>,
        /// Node that works for the bot; absent if no node does.
        pub poller_node: Option<String>,
        /// Whether a message to the owner of the account can be sent now.
        pub can_send: bool = health.bot.can_send,
        /// Reason if it cannot.
        pub send_disabled_reason: Option<String> = health.bot.send_disabled_reason,
        /// When the last message was received.
        pub last_inbound_at: Option<Timestamp> = health.bot.last_inbound_at,
    }
}
