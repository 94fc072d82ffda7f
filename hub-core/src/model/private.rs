//! Secret parts of stored messages and contacts, and the places that they are sealed for.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    id::{BotId, MessageId},
    secret::{Sealed, Sealer, Secret},
};

/// The secret half of a message: sealed as one JSON text, for the message's own row. A message of which only the
/// permission to answer is secret has what its sender's contact has.
#[derive(Serialize, Deserialize)]
struct Private<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context_token: Option<Cow<'a, str>>,
    /// The network's own form, where the other columns do not contain all of it.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    raw: Cow<'a, str>,
}

/// Seals what is secret in a message for its row. `raw` may be empty.
pub(crate) fn seal(sealer: &Sealer, id: MessageId, token: Option<&Secret>, raw: &Secret) -> Sealed {
    let (context_token, raw) = (token.map(|token| token.expose().into()), raw.expose().into());
    sealer.seal(&place(id), &Secret::new(crate::text::json(&Private { context_token, raw })))
}

/// The permission to answer a stored message, as far as it has one: a message of this bot from this person.
///
/// # Errors
/// `INTERNAL_ERROR` when it was sealed under another key or is damaged.
pub(crate) fn context_token(
    sealer: &Sealer,
    id: MessageId,
    (bot_id, user_id): (BotId, &str),
    sealed: Option<&Sealed>,
) -> Result<Option<Secret>> {
    let Some(sealed) = sealed else { return Ok(None) };
    if sealed.is_of_contact() {
        return sealer.open(&token_place(bot_id, user_id), sealed).map(Some);
    }
    let text = sealer.open(&place(id), sealed)?;
    let private: Private<'_> = serde_json::from_str(text.expose()).map_err(Error::internal)?;
    Ok(private.context_token.map(|token| Secret::new(token.into_owned())))
}

/// Returns the place that a person's context token is sealed for.
pub(crate) fn token_place(bot_id: BotId, user_id: &str) -> String {
    format!("contacts.context_token:{bot_id}:{user_id}")
}

fn place(id: MessageId) -> String {
    format!("messages.private:{id}")
}
