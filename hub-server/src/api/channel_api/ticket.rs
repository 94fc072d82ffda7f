//! Typing tickets of the older dialect: an opaque text that names a person to one channel. The tickets of the network
//! are not exposed.

use hub_core::{Error, Result, id::ChannelId, page};

/// The ticket for a person.
pub(super) fn issue(channel: ChannelId, user_id: &str) -> String {
    page::encode(&list(channel), user_id)
}

/// The person in a ticket of this channel.
///
/// # Errors
/// `INVALID_PARAMS` for any other text.
pub(super) fn read(channel: ChannelId, ticket: &str) -> Result<String> {
    page::decode(&list(channel), ticket)
        .map_err(|_| Error::invalid("ticket", "is not a typing_ticket of this channel"))
}

fn list(channel: ChannelId) -> String {
    format!("typing:{channel}")
}
