//! Values that a server issues and verifies without storing them: context tokens, typing tickets, cursors. Each
//! contains a keyed hash of its meaning.

use data_encoding::{BASE64, BASE64URL_NOPAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::{random::Random, time::Timestamp};

/// Current prefix of every context token.
const CONTEXT_PREFIX: &str = "AARz";

/// Signs the values of one server, or of one of its accounts.
pub(crate) type Key = [u8; 32];

/// A new context token for answers of a bot to a person: 111 characters.
pub(crate) fn context_token(key: &Key, wx_id: &str, user_id: &str, random: &Random) -> String {
    let nonce: [u8; 48] = random.bytes();
    let mark = mark(key, &[b"context", wx_id.as_bytes(), user_id.as_bytes(), &nonce]);
    format!("{CONTEXT_PREFIX}{}", BASE64URL_NOPAD.encode(&[&nonce[..], &mark].concat()))
}

/// Whether a context token was made for this bot and this person.
pub(crate) fn context_token_fits(key: &Key, wx_id: &str, user_id: &str, token: &str) -> bool {
    let bytes =
        token.strip_prefix(CONTEXT_PREFIX).and_then(|text| BASE64URL_NOPAD.decode(text.as_bytes()).ok());
    bytes.is_some_and(|bytes| {
        bytes.split_at_checked(48).is_some_and(|(nonce, given)| {
            is_same(given, &mark(key, &[b"context", wx_id.as_bytes(), user_id.as_bytes(), nonce]))
        })
    })
}

/// A typing ticket of a bot for a person, as of now.
pub(crate) fn typing_ticket(key: &Key, wx_id: &str, user_id: &str, now: Timestamp) -> String {
    let at = now.as_millis().to_be_bytes();
    let mark = mark(key, &[b"typing", wx_id.as_bytes(), user_id.as_bytes(), &at]);
    BASE64.encode(&[&at[..], &mark].concat())
}

/// Returns the creation time of a typing ticket; `None` unless it was created for this bot and this person.
pub(crate) fn typing_ticket_time(key: &Key, wx_id: &str, user_id: &str, ticket: &str) -> Option<Timestamp> {
    let bytes = BASE64.decode(ticket.as_bytes()).ok()?;
    let (at, given) = bytes.split_first_chunk::<8>()?;
    let expected = mark(key, &[b"typing", wx_id.as_bytes(), user_id.as_bytes(), at]);
    is_same(given, &expected).then(|| Timestamp::from_millis(i64::from_be_bytes(*at)))
}

/// A cursor: base64 of generation, position and checksum. The generation is the account's own, so a cursor of an
/// earlier binding is not taken for one of the new.
pub(crate) fn cursor(key: &Key, generation: u32, position: u64) -> String {
    let mut bytes = [generation.to_be_bytes().as_slice(), &position.to_be_bytes()].concat();
    bytes.extend(&mark(key, &[b"cursor", &bytes])[..8]);
    BASE64.encode(&bytes)
}

/// The position of a cursor of this generation; `None` when a byte was changed.
pub(crate) fn cursor_position(key: &Key, generation: u32, text: &str) -> Option<u64> {
    let bytes = BASE64.decode(text.as_bytes()).ok()?;
    let position = u64::from_be_bytes(*bytes.get(4..)?.first_chunk()?);
    is_same(cursor(key, generation, position).as_bytes(), text.as_bytes()).then_some(position)
}

/// Compares a given value with the issued one, in constant time.
pub(crate) fn is_same(given: &[u8], issued: &[u8]) -> bool {
    given.ct_eq(issued).into()
}

/// A keyed hash over parts, each with its length before it so that none can grow into the next.
pub(crate) fn mark(key: &Key, parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_token_fits_one_bot_and_one_person() {
        let (key, random) = ([7; 32], Random::seeded(1));
        let token = context_token(&key, "bot", "user", &random);
        assert!(token.starts_with("AARz") && (100..=150).contains(&token.len()), "{token}");
        assert_ne!(token, context_token(&key, "bot", "user", &random));
        assert!(context_token_fits(&key, "bot", "user", &token));
        assert!(!context_token_fits(&key, "bot", "USER", &token));
        assert!(!context_token_fits(&key, "botu", "ser", &token));
        assert!(!context_token_fits(&[8; 32], "bot", "user", &token));
        assert!(!context_token_fits(&key, "bot", "user", &token[..110]));
        assert!(!context_token_fits(&key, "bot", "user", ""));
    }

    #[test]
    fn a_typing_ticket_contains_its_time() {
        let (key, now) = ([7; 32], Timestamp::from_millis(1_790_000_000_123));
        let ticket = typing_ticket(&key, "bot", "user", now);
        assert_eq!(typing_ticket_time(&key, "bot", "user", &ticket), Some(now));
        assert_eq!(typing_ticket_time(&key, "bot", "other", &ticket), None);
        assert_eq!(typing_ticket_time(&key, "bot", "user", "AAAA"), None);
    }

    #[test]
    fn a_cursor_is_read_only_unchanged_and_in_its_generation() {
        let key = [7; 32];
        let text = cursor(&key, 3, u64::MAX);
        assert_eq!(cursor_position(&key, 3, &text), Some(u64::MAX));
        assert_eq!(cursor_position(&key, 4, &text), None);
        for index in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(cursor_position(&key, 3, &changed), None, "{changed}");
        }
        assert_eq!(cursor_position(&key, 3, "AAAA"), None);
    }
}
