//! Storage form of a bot's login: one JSON text, sealed for the bot's row. It is written by hand, so that no derived
//! form of a token exists anywhere else.

use serde::Deserialize;
use serde_json::json;

use crate::{
    error::{Error, Result},
    id::BotId,
    network::Credentials,
    secret::{Sealed, Sealer, Secret},
};

/// Seals a login for its bot.
pub fn seal(sealer: &Sealer, bot_id: BotId, credentials: &Credentials) -> Sealed {
    let text = json!({
        "token": credentials.token.expose(),
        "account_id": credentials.account_id,
        "owner_user_id": credentials.owner_user_id,
        "base_url": credentials.base_url,
    });
    sealer.seal(&place(bot_id), &Secret::new(text.to_string()))
}

/// Opens a login that [`seal`] sealed for the same bot.
///
/// # Errors
/// `INTERNAL_ERROR` when the key is another one, or the value is corrupt.
pub fn open(sealer: &Sealer, bot_id: BotId, sealed: &Sealed) -> Result<Credentials> {
    #[derive(Deserialize)]
    struct Stored {
        token: Secret,
        account_id: String,
        owner_user_id: String,
        base_url: String,
    }
    let text = sealer.open(&place(bot_id), sealed)?;
    // The error is dropped, because it may quote the text.
    let stored: Stored = serde_json::from_str(text.expose())
        .map_err(|_| Error::internal(format!("the login of {bot_id} does not parse")))?;
    let Stored { token, account_id, owner_user_id, base_url } = stored;
    Ok(Credentials { token, account_id, owner_user_id, base_url })
}

fn place(bot_id: BotId) -> String {
    format!("bots.credentials:{bot_id}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn sealed_credentials_open_only_for_their_bot() {
        let sealer = Sealer::new(&[7; 32], Random::seeded(1));
        let (mine, other) = (BotId::from_u128(1), BotId::from_u128(2));
        let credentials = Credentials {
            token: "t\"o\\ken".into(),
            account_id: "1@im.bot".into(),
            owner_user_id: "o9Cq@im.wechat".into(),
            base_url: String::new(),
        };
        let sealed = seal(&sealer, mine, &credentials);
        assert!(!sealed.as_str().contains("o9Cq"));
        assert_eq!(open(&sealer, mine, &sealed).unwrap(), credentials);
        assert!(open(&sealer, other, &sealed).is_err());
    }
}
