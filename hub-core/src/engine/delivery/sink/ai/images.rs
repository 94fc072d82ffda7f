//! The images of the message to answer, as the model gets them: in the request itself, since no model may be sent to
//! a link of the hub.

use data_encoding::BASE64;

use crate::{
    ai::{ImageUrl, Part},
    delivery::{job::Job, work_store::WorkContext},
    error::{ErrorCode, Result},
    media::MediaRoom,
    model::media::MediaState,
    network::MessageKind,
};

/// Most images that a model is shown; the message says in words that there are further ones.
const MAX_IMAGES: usize = 4;
/// Their bytes together; one that goes beyond is left out.
const MAX_BYTES: usize = 5 << 20;
/// Bytes in memory for each byte of an image: as stored, in base64, and in the request.
const COPIES: usize = 4;
/// Image types that models can read.
const READABLE: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Images, and the memory reserved for them.
pub(super) struct Images {
    pub parts: Vec<Part>,
    _room: Option<MediaRoom>,
}

/// Returns the images of a job's message that are available. A missing image is not waited for any longer: the
/// model reads that there was an image.
///
/// # Errors
/// `UNAVAILABLE` when the store of files does not answer.
pub(super) async fn of(ctx: &WorkContext, job: &Job) -> Result<Images> {
    let mut left = MAX_BYTES;
    let mut chosen = Vec::new();
    for file in &job.media {
        let readable = READABLE.into_iter().find(|known| file.content_type.as_deref() == Some(known));
        let size = file.size.and_then(|size| usize::try_from(size).ok());
        let (Some(content_type), Some(size)) = (readable, size) else { continue };
        let is_there = file.kind == MessageKind::Image && file.status == MediaState::Ready;
        if let Some(rest) = left.checked_sub(size).filter(|_| is_there && chosen.len() < MAX_IMAGES) {
            left = rest;
            chosen.push((file.id, size, content_type));
        }
    }
    if chosen.is_empty() {
        return Ok(Images { parts: Vec::new(), _room: None });
    }
    let room = ctx.media.room((MAX_BYTES - left) * COPIES).await;
    let mut parts = Vec::with_capacity(chosen.len());
    for (id, size, content_type) in chosen {
        let bytes = match ctx.files().read(id, size).await {
            Ok(bytes) => bytes,
            // Swept meanwhile.
            Err(error) if error.code() == ErrorCode::NotFound => continue,
            Err(error) => return Err(error),
        };
        let url = format!("data:{content_type};base64,{}", BASE64.encode(&bytes));
        parts.push(Part::ImageUrl { image_url: ImageUrl { url } });
    }
    Ok(Images { parts, _room: Some(room) })
}
