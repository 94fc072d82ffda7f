//! Types of secrets: values that cannot be printed, tokens that are stored as hashes, and sealing of secrets that
//! have to be sent again.

use std::{fmt, sync::Arc};

use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use data_encoding::{BASE64, Encoding, HEXLOWER, Specification};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use crate::{
    error::{Error, Result},
    random::Random,
};

pub mod authorization;

/// The mask of a secret. Where a response shows masks, a value with this prefix in a request keeps the stored secret.
pub const MASK: &str = "***";

/// A text that must not leak: no `Display`, no `Serialize`, a masked `Debug`, wiped when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a text under guard.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Returns the text. Every call needs a careful review.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the last four characters, to tell keys apart in lists; empty for short texts.
    pub fn last4(&self) -> String {
        let chars: Vec<char> = self.0.chars().collect();
        if chars.len() < 12 { String::new() } else { chars[chars.len() - 4..].iter().collect() }
    }

    /// The [mask](MASK) with the [last four characters](Self::last4).
    pub fn masked(&self) -> String {
        [MASK, &self.last4()].concat()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl<'de> serde::Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// A secret in a response that contains it, for its one-time display or for the app that uses it: unlike [`Secret`]
/// it is serialized.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(transparent)]
pub struct ShownOnce(pub Secret);

impl std::ops::Deref for ShownOnce {
    type Target = Secret;

    fn deref(&self) -> &Secret {
        &self.0
    }
}

impl From<Secret> for ShownOnce {
    fn from(secret: Secret) -> Self {
        Self(secret)
    }
}

impl serde::Serialize for ShownOnce {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.expose())
    }
}

/// The kinds of tokens that the hub issues, by prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A browser session; the cookie's value.
    Session,
    /// A user's API key.
    UserKey,
    /// A channel's API key.
    ChannelKey,
    /// The one-time token that lets the first user of a server that listens beyond loopback become admin.
    Setup,
    /// An invitation to register, usable once.
    Invite,
    /// A link with which a user sets a new password, usable once.
    Reset,
    /// A sign-in ceremony that a browser has started; also the `state` sent to external providers.
    Flow,
    /// The browser that started it; the value of a cookie.
    Browser,
    /// A login by QR code. Not a secret: the code contains it.
    Qr,
    /// The token of an app on a bot.
    App,
    /// The client secret of an app.
    AppClient,
    /// The code of an authorization of an app.
    AppCode,
    /// The key that signs an app's events.
    AppWebhook,
    /// The secret that reads the status and collects the outcome of a login by QR code.
    QrPoll,
    /// The ticket for the session of a confirmed login by QR code.
    QrExchange,
    /// The token of a program that speaks the iLink protocol to the hub.
    IlinkClient,
}

impl TokenKind {
    /// The printed prefix.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Session => "hubs_",
            Self::UserKey => "hubu_",
            Self::ChannelKey => "hubc_",
            Self::App => "huba_",
            Self::AppClient => "huby_",
            Self::AppCode => "hubo_",
            Self::AppWebhook => "hubh_",
            Self::Setup => "hubt_",
            Self::Invite => "hubi_",
            Self::Reset => "hubr_",
            Self::Flow => "hubf_",
            Self::Browser => "hubw_",
            Self::Qr => "hubq_",
            Self::QrPoll => "hubp_",
            Self::QrExchange => "hubx_",
            Self::IlinkClient => "hubl_",
        }
    }
}

/// SHA-256 of a token, as hex: what the store keeps and looks up. Tokens carry 256 random bits, so a plain
/// hash is enough, and an index lookup leaks no timing that helps.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TokenHash(String);

impl TokenHash {
    /// The hash of a presented text.
    pub fn of(text: &str) -> Self {
        Self(HEXLOWER.encode(&Sha256::digest(text.as_bytes())))
    }

    /// The hash of bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(HEXLOWER.encode(&Sha256::digest(bytes)))
    }

    /// A hash from the store.
    pub(crate) fn stored(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// 64 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Distinguishes the keys of one object without revealing them: the beginning of a [`TokenHash`]. It grants no
/// access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyMark(u64);

impl KeyMark {
    /// The mark of a stored hash.
    pub fn of(hash: &str) -> Self {
        Self(hash.get(..16).and_then(|start| u64::from_str_radix(start, 16).ok()).unwrap_or_default())
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(***)")
    }
}

/// A fresh token: 256 random bits and a checksum behind the kind's prefix, in lower-case base32.
pub fn new_token(kind: TokenKind, random: &Random) -> Secret {
    token_of_bytes(kind, random.bytes())
}

/// The token of 256 bits: those of [`new_token`] are random, others come from [`Sealer::derive`].
pub(crate) fn token_of_bytes(kind: TokenKind, mut body: [u8; 32]) -> Secret {
    let mut bytes = [0; 36];
    bytes[..32].copy_from_slice(&body);
    bytes[32..].copy_from_slice(&crc32fast::hash(&body).to_be_bytes());
    body.zeroize();
    let token = Secret::new(format!("{}{}", kind.prefix(), base32().encode(&bytes)));
    bytes.zeroize();
    token
}

/// The hash of a presented token, or `None` when its prefix, length or checksum is wrong: such a token was
/// never handed out, and no query is spent on it.
pub fn parse_token(kind: TokenKind, text: &str) -> Option<TokenHash> {
    let bytes = base32().decode(text.strip_prefix(kind.prefix())?.as_bytes()).ok()?;
    let (body, checksum) = bytes.split_at_checked(32)?;
    (checksum == crc32fast::hash(body).to_be_bytes()).then(|| TokenHash::of(text))
}

fn base32() -> Encoding {
    let mut spec = Specification::new();
    spec.symbols.push_str("abcdefghijklmnopqrstuvwxyz234567");
    spec.encoding().expect("32 distinct symbols are an encoding")
}

/// Seals secrets that must be sent out again (XChaCha20-Poly1305). What is sealed is bound to the place it
/// is stored in: a sealed value copied to another row does not open. Cheap to clone.
#[derive(Clone)]
pub struct Sealer {
    cipher: Arc<XChaCha20Poly1305>,
    key_id: String,
    /// Opens, and never seals.
    further: Option<Arc<Sealer>>,
    derivation: Zeroizing<[u8; 32]>,
    random: Random,
}

/// A sealed text in the store: `v1.<key id>.<base64 of nonce and ciphertext>`, and `.contact` behind it where a message
/// has what was sealed for the row of its sender's contact.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(String);

/// Marks what was sealed for a contact.
const OF_CONTACT: &str = ".contact";

impl Sealed {
    /// The text of a column.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The [`key_id`](Sealer::key_id) of the key it was sealed with, when it is a sealed text at all.
    pub fn key_id(&self) -> Option<&str> {
        self.0.strip_prefix("v1.")?.split_once('.').map(|(key_id, _)| key_id)
    }

    /// The same, for the row of a message.
    pub(crate) fn of_contact(&self) -> Self {
        Self([&self.0, OF_CONTACT].concat())
    }

    /// Whether it is in the row of a message and was sealed for the row of the sender's contact.
    pub(crate) fn is_of_contact(&self) -> bool {
        self.0.ends_with(OF_CONTACT)
    }
}

impl From<String> for Sealed {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealed(***)")
    }
}

impl Sealer {
    /// A sealer with a 256-bit key.
    pub fn new(key: &[u8; 32], random: Random) -> Self {
        let key_id = HEXLOWER.encode(&Sha256::digest(key)[..4]);
        let derivation =
            Zeroizing::new(Sha256::new().chain_update(b"derive\n").chain_update(key).finalize().into());
        let cipher = Arc::new(XChaCha20Poly1305::new(key.into()));
        Self { cipher, key_id, further: None, derivation, random }
    }

    /// Also opens what was sealed with another key: as long as a rotation of keys is under way, both are needed.
    #[must_use]
    pub fn opening(self, key: &[u8; 32]) -> Self {
        let further = Some(Arc::new(Self::new(key, self.random.clone())));
        Self { further, ..self }
    }

    /// Whether it has the key of this [`key_id`](Self::key_id).
    pub fn has_key(&self, key_id: &str) -> bool {
        self.key_id == key_id || self.further.as_ref().is_some_and(|further| further.key_id == key_id)
    }

    /// A sealer with a key written as 64 hex digits or as base64 of 32 bytes, as `HUB_SECRET_KEY` holds it.
    ///
    /// # Errors
    /// `INVALID_PARAMS` when the text is neither.
    pub fn from_text(text: &Secret, random: Random) -> Result<Self> {
        let text = text.expose().trim().as_bytes();
        let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(text).or_else(|_| BASE64.decode(text));
        let key = bytes.ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let mut key = key
            .ok_or_else(|| Error::invalid("secret_key", "must be 32 bytes, as 64 hex digits or as base64"))?;
        let sealer = Self::new(&key, random);
        key.zeroize();
        Ok(sealer)
    }

    /// Short public name of the key; stored with every sealed value, so that a wrong key is recognised.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// 32 bytes that are the same for the same key, purpose and text, and that cannot be distinguished from random
    /// ones without the key.
    pub fn derive(&self, purpose: &str, text: &str) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&*self.derivation).expect("a key of any length fits");
        mac.update(purpose.as_bytes());
        mac.update(b"\n");
        mac.update(text.as_bytes());
        mac.finalize().into_bytes().into()
    }

    /// Compares bytes with those that [`derive`](Self::derive) returns, in constant time.
    pub fn is_derived(&self, purpose: &str, text: &str, claimed: &[u8]) -> bool {
        self.derive(purpose, text).ct_eq(claimed).into()
    }

    /// Seals a text for one place, for example `bots.credentials:bot_01…`.
    pub fn seal(&self, place: &str, secret: &Secret) -> Sealed {
        let nonce: [u8; 24] = self.random.bytes();
        let payload = Payload { msg: secret.expose().as_bytes(), aad: place.as_bytes() };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.expect("texts are far below the cipher's limit of 256 GiB");
        Sealed(["v1.", &self.key_id, ".", &BASE64.encode(&[&nonce[..], &sealed].concat())].concat())
    }

    /// Opens what [`Sealer::seal`] made for the same place.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when the key or the place is another one, or the value was changed.
    pub fn open(&self, place: &str, sealed: &Sealed) -> Result<Secret> {
        self.try_open(place, sealed).ok_or_else(|| {
            Error::internal(format!(
                "the encrypted value of {place} cannot be decrypted with key {}",
                self.key_id
            ))
            .with_hint("the secret key of the data folder was replaced; put the old key file back")
        })
    }

    fn try_open(&self, place: &str, sealed: &Sealed) -> Option<Secret> {
        let further = || self.further.as_ref().and_then(|further| further.try_open(place, sealed));
        self.open_own(place, sealed).or_else(further)
    }

    fn open_own(&self, place: &str, sealed: &Sealed) -> Option<Secret> {
        let mut parts = sealed.0.split('.');
        if parts.next()? != "v1" || parts.next()? != self.key_id {
            return None;
        }
        let bytes = BASE64.decode(parts.next()?.as_bytes()).ok()?;
        let (nonce, ciphertext) = bytes.split_first_chunk::<24>()?;
        let payload = Payload { msg: ciphertext, aad: place.as_bytes() };
        let plain = self.cipher.decrypt(&XNonce::from(*nonce), payload).ok()?;
        String::from_utf8(plain).ok().map(Secret::new)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealer({})", self.key_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_checked_before_any_lookup() {
        let random = Random::seeded(3);
        let token = new_token(TokenKind::ChannelKey, &random);
        assert!(token.expose().starts_with("hubc_"));
        assert_eq!(parse_token(TokenKind::ChannelKey, token.expose()), Some(TokenHash::of(token.expose())));
        assert_eq!(parse_token(TokenKind::Session, token.expose()), None);
        let mut flipped = token.expose().to_owned().into_bytes();
        flipped[20] = if flipped[20] == b'a' { b'b' } else { b'a' };
        assert_eq!(parse_token(TokenKind::ChannelKey, std::str::from_utf8(&flipped).unwrap()), None);
        assert_eq!(parse_token(TokenKind::ChannelKey, "hubc_"), None);
        assert_eq!(format!("{token:?}"), "***");
        assert_eq!(token.last4().len(), 4);
        assert_eq!(token.masked(), format!("***{}", token.last4()));
        assert_eq!(Secret::from("too short").masked(), "***");
    }

    #[test]
    fn sealed_values_open_only_in_their_place_and_with_their_key() {
        let random = Random::seeded(4);
        let sealer = Sealer::new(&[1; 32], random.clone());
        let sealed = sealer.seal("a:1", &"secret".into());
        assert_eq!(sealer.open("a:1", &sealed).unwrap().expose(), "secret");
        assert!(sealer.open("a:2", &sealed).is_err());
        assert!(Sealer::new(&[2; 32], random.clone()).open("a:1", &sealed).is_err());
        let mut changed = sealed.as_str().to_owned();
        changed.pop();
        assert!(sealer.open("a:1", &changed.into()).is_err());
        let both = Sealer::new(&[2; 32], random.clone()).opening(&[1; 32]);
        assert_eq!(both.open("a:1", &sealed).unwrap().expose(), "secret");
        assert!(both.has_key(sealer.key_id()) && sealed.key_id() == Some(sealer.key_id()));
        assert!(sealer.open("a:1", &both.seal("a:1", &"secret".into())).is_err(), "it seals with its own");
        let hex = Secret::new("01".repeat(32));
        assert_eq!(Sealer::from_text(&hex, random.clone()).unwrap().key_id(), sealer.key_id());
        assert!(Sealer::from_text(&"short".into(), random).is_err());
    }
}
