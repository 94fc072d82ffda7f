//! The server side of the iLink protocol (`docs/ilink.md`): routing, headers, parsing, error codes and wire types, once
//! for every [`Backend`]. The simulator is one, with a simulated world; the [gateway](crate::gateway) the other, with
//! the hub's channels.
//!
//! It shares no code with the connector, which has its own types, so that a mistake in one of the two is found.

use async_trait::async_trait;

mod requests;
pub(crate) mod stamp;
mod wire;

pub use wire::Endpoint;

#[cfg(test)]
pub(crate) use requests::MAX_TEXT;
pub(crate) use requests::{FileItem, FileItemKind, Item, SendRequest, UploadRequest};
pub(crate) use wire::{Call, MAX_API_BODY, Reply, parse_query, text_of, token_of};

/// The response to a call; the error is a refusal.
pub(crate) type Answer = Result<Reply, Reply>;

/// A backend that responds to the calls of the protocol. The required fields of a call were checked before.
#[async_trait]
pub(crate) trait Backend: Sync {
    /// The account or program that a token belongs to.
    type Caller: Send + Sync;

    /// Returns the caller that the token of a call belongs to; the refusal is -14.
    async fn authenticate(&self, call: &Call) -> Result<Self::Caller, Reply>;
    /// Starts a login. `tokens` are those that the client still holds.
    async fn get_bot_qrcode(&self, call: &Call, tokens: Vec<&str>) -> Answer;
    /// Waits for a change of a login.
    async fn get_qrcode_status(&self, call: &Call, qrcode: &str, verify_code: Option<&str>) -> Answer;
    /// Handles the announcement that the client begins or stops to poll.
    async fn notify(&self, caller: Self::Caller, started: bool) -> Answer;
    /// Waits for messages after a cursor, which is empty at first.
    async fn get_updates(&self, caller: Self::Caller, cursor: &str) -> Answer;
    async fn send_message(&self, caller: Self::Caller, send: SendRequest<'_>) -> Answer;
    /// Returns the ticket for typing indicators.
    async fn get_config(&self, caller: Self::Caller, user_id: &str) -> Answer;
    /// Shows or removes the typing indicator.
    async fn send_typing(&self, caller: Self::Caller, user_id: &str, ticket: &str, on: bool) -> Answer;
    async fn get_upload_url(&self, caller: Self::Caller, call: &Call, upload: UploadRequest) -> Answer;
    /// Takes the ciphertext of a file.
    async fn cdn_upload(&self, call: &Call, param: &str, filekey: &str) -> Answer;
    /// Returns the ciphertext of a file.
    async fn cdn_download(&self, param: &str) -> Answer;
}

/// Tokens that are read from `local_token_list`.
const MAX_LOCAL_TOKENS: usize = 10;

/// Responds to a call.
pub(crate) async fn respond<B: Backend>(backend: &B, call: &Call) -> Reply {
    dispatch(backend, call).await.unwrap_or_else(|refusal| refusal)
}

async fn dispatch<B: Backend>(backend: &B, call: &Call) -> Answer {
    let query = |name| call.query(name).unwrap_or_default();
    match call.endpoint {
        Endpoint::GetBotQrcode => {
            if call.query("bot_type") != Some("3") {
                return Err(Reply::refuse(2, "unknown bot_type"));
            }
            let tokens = call.json.get("local_token_list").and_then(serde_json::Value::as_array);
            let tokens = tokens.into_iter().flatten().filter_map(serde_json::Value::as_str);
            backend.get_bot_qrcode(call, tokens.take(MAX_LOCAL_TOKENS).collect()).await
        }
        Endpoint::GetQrcodeStatus => {
            backend.get_qrcode_status(call, query("qrcode"), call.query("verify_code")).await
        }
        Endpoint::CdnUpload => {
            backend.cdn_upload(call, query("encrypted_query_param"), query("filekey")).await
        }
        Endpoint::CdnDownload => backend.cdn_download(query("encrypted_query_param")).await,
        Endpoint::NotifyStart => backend.notify(backend.authenticate(call).await?, true).await,
        Endpoint::NotifyStop => backend.notify(backend.authenticate(call).await?, false).await,
        Endpoint::GetUpdates => {
            backend.get_updates(backend.authenticate(call).await?, call.text("get_updates_buf")).await
        }
        Endpoint::SendMessage => {
            let caller = backend.authenticate(call).await?;
            backend.send_message(caller, SendRequest::read(&call.json)?).await
        }
        Endpoint::GetConfig => {
            let caller = backend.authenticate(call).await?;
            backend.get_config(caller, requests::user_of(call)?).await
        }
        Endpoint::SendTyping => {
            let caller = backend.authenticate(call).await?;
            let (user_id, on) = (requests::user_of(call)?, requests::typing_status(call)?);
            backend.send_typing(caller, user_id, call.text("typing_ticket"), on).await
        }
        Endpoint::GetUploadUrl => {
            let caller = backend.authenticate(call).await?;
            match UploadRequest::read(&call.json)? {
                Some(upload) => backend.get_upload_url(caller, call, upload).await,
                // As the real service: accepted, and no URL in it.
                None => Ok(Reply::done()),
            }
        }
    }
}
