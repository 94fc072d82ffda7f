//! What is secret in stored messages and contacts, and the places it is sealed for.

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    id::{BotId, MessageId},
    secret::{Sealed, Sealer, Secret},
};

/// The secret half of a message: sealed as one JSON text, for the message's own row.
#[derive(Serialize, Deserialize)]
struct Private {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context_token: Option<String>,
    raw: String,
}

/// Seals what is secret in a message for its row.
pub(crate) fn seal(sealer: &Sealer, id: MessageId, token: Option<&Secret>, raw: &Secret) -> Sealed {
    let private =
        Private { context_token: token.map(|token| token.expose().to_owned()), raw: raw.expose().to_owned() };
    sealer.seal(&place(id), &Secret::new(crate::text::json(&private)))
}

/// The permission to answer a stored message, as far as it has one.
///
/// # Errors
/// `INTERNAL_ERROR` when it was sealed under another key or is damaged.
pub(crate) fn context_token(
    sealer: &Sealer,
    id: MessageId,
    sealed: Option<&Sealed>,
) -> Result<Option<Secret>> {
    let Some(sealed) = sealed else { return Ok(None) };
    let text = sealer.open(&place(id), sealed)?;
    let private: Private = serde_json::from_str(text.expose()).map_err(Error::internal)?;
    Ok(private.context_token.map(Secret::new))
}

/// Where a person's permission to answer is sealed for.
pub(crate) fn token_place(bot_id: BotId, user_id: &str) -> String {
    format!("contacts.context_token:{bot_id}:{user_id}")
}

fn place(id: MessageId) -> String {
    format!("messages.private:{id}")
}
