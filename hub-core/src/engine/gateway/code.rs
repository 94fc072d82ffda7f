//! Codes of logins that no user has opened. Nothing of them is stored, so that a stranger cannot take a place by
//! beginning one: the text that the program polls with, and the link that a user opens, contain what the hub has to know,
//! each with a keyed hash.

use std::time::Duration;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use serde::{Deserialize, Serialize};

use crate::{
    model::session::ClientInfo,
    network::server::stamp,
    random::Random,
    secret::{Sealer, TokenHash},
    time::Timestamp,
};

/// Time for which a code can be opened and confirmed.
pub(super) const LIFETIME: Duration = Duration::from_secs(2 * 60);
/// Characters of the program's name in a link. A code that a terminal shows has to stay small.
const MAX_NAME: usize = 40;
/// Bytes of random data in a text that is polled with.
const NONCE: usize = 16;
/// Bytes of a keyed hash.
const MARK: usize = 16;
/// Bytes of a login's id.
const ID: usize = 16;

/// A login that a program has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Code {
    /// Hash of the text that the program polls with. It does not allow to collect the token.
    pub id: String,
    pub requested_at: Timestamp,
    /// Network address of the program; empty if unknown.
    pub ip: String,
    /// Name of the program, at most 40 characters; may be empty.
    pub user_agent: String,
}

/// Part of a link: address and name of the program, and time of its request, in Unix milliseconds.
#[derive(Serialize, Deserialize)]
struct Asker(String, String, i64);

impl Code {
    /// Begins a login; returns the text that the program polls with, too.
    pub fn new(sealer: &Sealer, random: &Random, client: &ClientInfo, now: Timestamp) -> (Self, String) {
        let (nonce, at) = (random.bytes::<NONCE>(), now.as_millis().to_be_bytes());
        let mark = stamp::mark(&key(sealer), &[b"poll", &nonce, &at]);
        let qrcode = BASE64URL_NOPAD.encode(&[&nonce[..], &at, &mark[..MARK]].concat());
        let client = client.cleaned();
        let user_agent = client.user_agent.chars().take(MAX_NAME).collect();
        (Self { id: id_of(&qrcode), requested_at: now, ip: client.ip_text(), user_agent }, qrcode)
    }

    /// Until when it can be opened and confirmed.
    pub fn expires_at(&self) -> Timestamp {
        self.requested_at + LIFETIME
    }

    /// The id in the link that a user opens.
    pub fn link_id(&self, sealer: &Sealer) -> String {
        let id = HEXLOWER.decode(self.id.as_bytes()).unwrap_or_default();
        let asker = Asker(self.ip.clone(), self.user_agent.clone(), self.requested_at.as_millis());
        let content = [&id[..], crate::text::json(&asker).as_bytes()].concat();
        let mark = stamp::mark(&key(sealer), &[b"link", &content]);
        BASE64URL_NOPAD.encode(&[&mark[..MARK], &content].concat())
    }

    /// The login behind the id in a link; `None` unless this hub wrote it.
    pub fn of_link(sealer: &Sealer, link_id: &str) -> Option<Self> {
        let bytes = BASE64URL_NOPAD.decode(link_id.as_bytes()).ok()?;
        let (mark, content) = bytes.split_at_checked(MARK)?;
        if !stamp::is_same(mark, &stamp::mark(&key(sealer), &[b"link", content])[..MARK]) {
            return None;
        }
        let (id, asker) = content.split_at_checked(ID)?;
        let Asker(ip, user_agent, at) = serde_json::from_slice(asker).ok()?;
        let requested_at = Timestamp::from_millis(at);
        Some(Self { id: HEXLOWER.encode(id), requested_at, ip, user_agent })
    }
}

/// The id of the login that is polled with this text, and until when it can be confirmed; `None` unless this hub wrote
/// the text.
pub(super) fn polled(sealer: &Sealer, qrcode: &str) -> Option<(String, Timestamp)> {
    let bytes = BASE64URL_NOPAD.decode(qrcode.as_bytes()).ok()?;
    let (nonce, rest) = bytes.split_at_checked(NONCE)?;
    let (at, mark) = rest.split_first_chunk::<8>()?;
    let is_ours = stamp::is_same(mark, &stamp::mark(&key(sealer), &[b"poll", nonce, at])[..MARK]);
    let until = Timestamp::from_millis(i64::from_be_bytes(*at)) + LIFETIME;
    is_ours.then(|| (id_of(qrcode), until))
}

fn id_of(qrcode: &str) -> String {
    TokenHash::of(&format!("ilink login {qrcode}")).as_str()[..2 * ID].to_owned()
}

fn key(sealer: &Sealer) -> stamp::Key {
    sealer.derive("codes of iLink logins", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_from_both_of_its_texts_and_only_unchanged() {
        let (random, now) = (Random::seeded(1), Timestamp::from_millis(1_790_000_000_123));
        let sealer = Sealer::new(&[7; 32], random.clone());
        let agent = format!("agent-host/1.0 {}", "x".repeat(100));
        let client = ClientInfo { ip: Some([203, 0, 113, 7].into()), user_agent: agent };
        let (code, qrcode) = Code::new(&sealer, &random, &client, now);
        let link = code.link_id(&sealer);
        assert!(code.user_agent.starts_with("agent-host/1.0 xx") && link.len() < 160, "{link}");
        assert_eq!(Code::of_link(&sealer, &link), Some(code.clone()));
        assert_eq!(polled(&sealer, &qrcode), Some((code.id.clone(), now + LIFETIME)));
        assert_eq!(code.expires_at(), now + LIFETIME);
        let (other, _) = Code::new(&sealer, &random, &client, now);
        assert_ne!(other.id, code.id);
        for (text, is_read) in [
            (&link, (|sealer, text| Code::of_link(sealer, text).is_some()) as fn(&Sealer, &str) -> bool),
            (&qrcode, |sealer, text| polled(sealer, text).is_some()),
        ] {
            for index in 0..text.len() {
                let mut bytes = text.clone().into_bytes();
                bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
                assert!(!is_read(&sealer, &String::from_utf8(bytes).unwrap()), "{index} of {text}");
            }
            assert!(!is_read(&Sealer::new(&[8; 32], random.clone()), text));
            assert!(
                ["", "AAAA", "9f86d081884c7d659a2feaa0c55ad015"].iter().all(|text| !is_read(&sealer, text))
            );
        }
    }
}
