//! Files of messages: fetching what could not be fetched.

use hub_core::Hub;
use poem::web::Data;
use poem_openapi::{Object, OpenApi, param::Path};

use super::Tag;
use crate::{
    credentials::User,
    envelope::{ApiResult, ok},
    wire::{BotId, MessageId},
};

/// Files of messages.
#[derive(Debug, Clone, Copy)]
pub struct FilesApi;

/// How many files are fetched anew.
#[derive(Debug, Object)]
pub struct Retried {
    /// Files of the message that had failed.
    pub files: u64,
}

#[OpenApi]
impl FilesApi {
    /// Fetches a message's failed files anew
    ///
    /// The hub tries by itself three times; this starts over. The files are `downloading` then.
    #[oai(
        path = "/api/bots/:id/messages/:messageId/retry_media",
        method = "post",
        operation_id = "retryMedia",
        tag = "Tag::Bots"
    )]
    async fn retry(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "messageId")] message_id: Path<MessageId>,
    ) -> ApiResult<Retried> {
        ok(Retried { files: hub.media().retry(&user.0, id.0.0, message_id.0.0).await? })
    }
}
