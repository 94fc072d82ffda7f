//! The file of a send: its source, and its storage before the send is accepted.

use bytes::Bytes;
use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::fetch::{Fetched, fetch};
use crate::{
    bots::BotRecord,
    context::Context,
    error::{Error, ErrorCode, Result},
    id::{BotId, ChannelId, MediaId},
    media::{KeptFile, MediaRoom, NewFile},
    model::media::MediaState,
    secret::TokenHash,
    store::Tx,
    time::Timestamp,
};

/// A file to send.
#[derive(Debug, Clone)]
pub enum Attachment {
    /// Id of a file that was uploaded through a link, as returned with the link.
    Upload(String),
    /// URL from which the hub downloads the file first.
    Url(String),
    /// Contents of the file.
    Bytes {
        /// A name; may be empty.
        file_name: String,
        /// A media type, if known.
        content_type: Option<String>,
        /// The bytes.
        bytes: Bytes,
    },
}

impl Attachment {
    /// Returns the source that is set.
    ///
    /// # Errors
    /// `INVALID_PARAMS` unless exactly one is set.
    pub fn either(upload_id: Option<String>, url: Option<String>) -> Result<Self> {
        match (upload_id, url) {
            (Some(id), None) => Ok(Self::Upload(id)),
            (None, Some(url)) => Ok(Self::Url(url)),
            _ => Err(Error::invalid("media", "exactly one of upload_id and url must be set")),
        }
    }

    /// Decodes a base64 file, with or without the prefix `data:<type>;base64,`; white space is ignored.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on `field`.
    pub fn from_base64(field: &'static str, text: &str, file_name: String) -> Result<Self> {
        let bad = || Error::invalid(field, "is not base64");
        let (content_type, body) = match text.strip_prefix("data:") {
            None => (None, text),
            Some(uri) => {
                let (head, body) = uri.split_once(',').ok_or_else(bad)?;
                let media_type = head.strip_suffix(";base64").ok_or_else(bad)?;
                (Some(media_type.to_owned()).filter(|text| !text.is_empty()), body)
            }
        };
        let body: Vec<u8> =
            body.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=').collect();
        let url_safe = body.iter().any(|byte| matches!(byte, b'-' | b'_'));
        let encoding = if url_safe { &BASE64URL_NOPAD } else { &BASE64_NOPAD };
        let bytes = encoding.decode(&body).map_err(|_| bad())?;
        Ok(Self::Bytes { file_name, content_type, bytes: bytes.into() })
    }

    /// Value that distinguishes two sends with one idempotency key.
    pub(super) fn fingerprint(&self) -> impl Serialize + use<> {
        match self {
            Self::Upload(id) => ("upload", id.clone(), String::new()),
            Self::Url(url) => ("url", url.clone(), String::new()),
            Self::Bytes { file_name, bytes, .. } => {
                ("bytes", file_name.clone(), TokenHash::of_bytes(bytes).as_str().to_owned())
            }
        }
    }

    /// Stores the file, and checks that this bot and channel may send it. `stop` cancels a download.
    pub(super) async fn keep(
        self,
        ctx: &Context,
        bot: &BotRecord,
        channel_id: Option<ChannelId>,
        stop: &CancellationToken,
    ) -> Result<KeptFile> {
        if let Self::Upload(id) = self {
            return uploaded(ctx, &id, bot.id, channel_id).await;
        }
        let Some(loaded) = stop.run_until_cancelled(self.load(ctx)).await else {
            let reason = "the caller disconnected before the file was downloaded";
            return Err(Error::new(ErrorCode::Unavailable, reason));
        };
        let (Fetched { file_name, content_type, bytes }, _room) = loaded?;
        let (owner_id, bot_id) = (bot.owner_id, bot.id);
        ctx.files().keep(NewFile { owner_id, bot_id, channel_id, file_name, content_type, bytes }).await
    }

    /// Reads a file that is not an upload; one at a URL is fetched. The room in memory is given back when it is dropped.
    pub(crate) async fn load<S>(self, ctx: &Context<S>) -> Result<(Fetched, Option<MediaRoom>)> {
        match self {
            Self::Upload(_) => Err(unknown_upload()),
            Self::Bytes { file_name, content_type, bytes } => {
                Ok((Fetched { file_name, content_type, bytes }, None))
            }
            Self::Url(url) => {
                let room = ctx.media.room(ctx.config.media.max_outbound).await;
                Ok((fetch(ctx, &url).await?, Some(room)))
            }
        }
    }
}

fn unknown_upload() -> Error {
    Error::invalid("media.upload_id", "is not an uploaded file that waits to be sent")
}

async fn uploaded(ctx: &Context, id: &str, bot_id: BotId, channel_id: Option<ChannelId>) -> Result<KeptFile> {
    let id: MediaId = id.parse().map_err(|_| unknown_upload())?;
    let row = ctx.store.read().await?.media().find(id).await?.ok_or_else(unknown_upload)?;
    let may = row.bot_id == bot_id && (channel_id.is_none() || row.channel_id == channel_id);
    if !may || row.message_id.is_some() || row.state != MediaState::Ready || row.expires_at <= ctx.store.now()
    {
        return Err(unknown_upload());
    }
    let size = u64::try_from(row.size).unwrap_or(0);
    Ok(KeptFile { id, kind: row.kind, file_name: row.file_name, size })
}

/// Checks the file again in the transaction that sends it: two concurrent sends must not share a file.
pub(super) async fn check_unsent(tx: &mut Tx, file: &KeptFile, now: Timestamp) -> Result<()> {
    let row = tx.media().find(file.id).await?;
    let free = row.is_some_and(|row| {
        row.message_id.is_none() && row.state == MediaState::Ready && row.expires_at > now
    });
    if free { Ok(()) } else { Err(unknown_upload()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_in_the_forms_that_programs_write() {
        let read = |text: &str| match Attachment::from_base64("base64", text, "a".to_owned()) {
            Ok(Attachment::Bytes { content_type, bytes, .. }) => Ok((content_type, bytes.to_vec())),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.details()[0].field.to_string()),
        };
        let bytes = vec![0xfb, 0xff, 0x00, 0x41];
        for text in ["+/8AQQ==", "+/8AQQ", "-_8AQQ", "+/8A\r\nQQ==\n"] {
            assert_eq!(read(text), Ok((None, bytes.clone())), "{text}");
        }
        assert_eq!(read("data:image/png;base64,+/8AQQ=="), Ok((Some("image/png".to_owned()), bytes.clone())));
        assert_eq!(read("data:;base64,+/8AQQ=="), Ok((None, bytes)));
        for bad in ["%%%", "a", "data:image/png,abc", "data:image/png;base64", "ä"] {
            assert_eq!(read(bad), Err("base64".to_owned()), "{bad}");
        }
    }
}
