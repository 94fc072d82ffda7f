//! Files of messages: retrying failed downloads.

use hub_core::{
    Hub,
    id::{BotId, MessageId},
    openapi::Api,
};
use poem::web::Data;
use poem_openapi::{OpenApi, param::Path};

use super::Tag;
use crate::{
    credentials::User,
    envelope::{ApiResult, ok},
};

/// Files of messages.
#[derive(Debug, Clone, Copy)]
pub struct FilesApi;

/// Number of files that are downloaded again.
#[derive(Debug, Api)]
pub struct Retried {
    /// Failed files of the message.
    pub files: u64,
}

#[OpenApi]
impl FilesApi {
    /// Downloads the failed files of a message again
    ///
    /// The hub makes four attempts by itself; this starts again. The files are `downloading` then.
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
        ok(Retried { files: hub.media().retry(&user.0, id.0, message_id.0).await? })
    }
}
