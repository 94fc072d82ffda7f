//! Response bodies.

use hub_core::{
    bots::{BindStatus, BindStep, Bot, BotHealth, BotStatus},
    id::BotId,
    openapi::Api,
    secret::Secret,
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

/// Status of a bind.
#[derive(Debug, Api)]
pub struct BindStepView {
    /// Chat network of the account.
    pub network: String,
    /// The status.
    pub status: BindStatus,
    /// The current code, while it waits to be scanned.
    pub qr_text: Option<String>,
    /// The code as an SVG document, if it differs from the first one.
    pub qr_svg: Option<String>,
    /// Reason for the status, if known.
    pub reason: Option<String>,
    /// The bot, after a successful bind.
    pub bot: Option<Bot>,
}

impl From<BindStep> for BindStepView {
    fn from(step: BindStep) -> Self {
        let shown = |secret: Secret| secret.expose().to_owned();
        Self {
            network: step.network,
            status: step.status,
            qr_text: step.qr_text.map(shown),
            qr_svg: step.qr_svg.map(shown),
            reason: step.reason,
            bot: step.bot,
        }
    }
}
