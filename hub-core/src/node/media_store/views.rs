//! Files of messages as programs see them.

use std::collections::HashMap;

use crate::{
    config::MediaLimits,
    id::MessageId,
    media_store::links::Links,
    model::media::{MediaState, MediaView},
    network::{MessageItem, MessageKind},
    store::media::MediaRow,
    time::Timestamp,
};

/// Whether there may be files among the parts of a message, which are JSON.
pub(crate) fn has_media(items: &str) -> bool {
    let items: Vec<MessageItem> = serde_json::from_str(items).unwrap_or_default();
    items.iter().any(MessageItem::is_file)
}

/// A name for a file that came without one: `image.jpg`.
pub(crate) fn fallback_name(kind: MessageKind, content_type: &str) -> String {
    let word = if kind == MessageKind::Other { "file" } else { kind.as_str() };
    format!("{word}.{}", crate::file_type::ending(content_type))
}

/// Rows as programs see them, by message.
pub(crate) fn views(rows: Vec<MediaRow>, links: &Links, limits: &MediaLimits, now: Timestamp) -> Views {
    let mut views: Views = HashMap::new();
    for row in rows {
        let Some(message_id) = row.message_id else { continue };
        views.entry(message_id).or_default().push(view(row, links, limits, now));
    }
    views
}

/// The files of messages.
pub type Views = HashMap<MessageId, Vec<MediaView>>;

fn view(row: MediaRow, links: &Links, limits: &MediaLimits, now: Timestamp) -> MediaView {
    let ready = row.state == MediaState::Ready;
    let (url, url_expires_at) =
        (row.state != MediaState::Failed).then(|| links.read(row.id, now, limits.link_lifetime)).unzip();
    MediaView {
        id: row.id,
        item: u32::try_from(row.item).unwrap_or(0),
        kind: row.kind,
        status: row.state,
        file_name: row.file_name,
        content_type: Some(row.content_type).filter(|_| ready),
        size: u64::try_from(row.size).ok().filter(|_| ready),
        url,
        url_expires_at,
        error: row.reason.filter(|_| row.state == MediaState::Failed),
    }
}
