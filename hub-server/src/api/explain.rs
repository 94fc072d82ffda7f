//! Why a message did or did not arrive.

use hub_core::{
    Hub,
    id::{BotId, ChannelId, MessageId},
    traces::Explanation,
};
use poem::web::Data;
use poem_openapi::{
    OpenApi,
    param::{Path, Query},
};

use super::Tag;
use crate::{
    credentials::User,
    envelope::{ApiResult, ok},
};

/// Explanations.
#[derive(Debug, Clone, Copy)]
pub struct ExplanationApi;

#[OpenApi(tag = "Tag::Bots")]
impl ExplanationApi {
    /// Explains why a message did or did not arrive
    ///
    /// A verdict from what is stored: the bot, the channel, the newest trace and its deliveries. Each verdict but
    /// `delivered` and `sent` has `remedies`.
    #[oai(
        path = "/api/bots/:id/messages/:messageId/explain",
        method = "get",
        operation_id = "explainMessage"
    )]
    async fn explain(
        &self,
        hub: Data<&Hub>,
        user: User,
        /// Id of the bot.
        id: Path<BotId>,
        /// Id of the message.
        #[oai(name = "messageId")]
        message_id: Path<MessageId>,
        /// The channel to explain; the one with the worst outcome if absent.
        channel_id: Query<Option<ChannelId>>,
    ) -> ApiResult<Explanation> {
        let channel = channel_id.0;
        ok(hub.traces().explain(&user.0, id.0, message_id.0, channel).await?)
    }
}
