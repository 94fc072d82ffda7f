//! The cipher of files: AES-128, ECB, PKCS#7, and the three ways in which keys are written (`docs/ilink.md#cipher`).

use std::fmt;

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};
use ecb::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyInit, block_padding::Pkcs7};

use crate::random::Random;

/// Bytes of a block.
const BLOCK: usize = 16;

/// The key of one file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key([u8; BLOCK]);

impl Key {
    /// A new random key.
    pub(crate) fn fresh(random: &Random) -> Self {
        Self(random.bytes())
    }

    /// The key with these bytes.
    pub(crate) const fn from_bytes(bytes: [u8; BLOCK]) -> Self {
        Self(bytes)
    }

    /// Reads 32 hex digits.
    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        let bytes = HEXLOWER_PERMISSIVE.decode(text.trim().as_bytes()).ok()?;
        bytes.try_into().ok().map(Self)
    }

    /// Reads `aes_key`: base64 of the bytes (form A), base64 of their hex digits (form B), or bare hex digits.
    pub(crate) fn from_reference(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(key) = Self::from_hex(text) {
            return Some(key);
        }
        let alphabets = [BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD];
        let bytes = alphabets.iter().find_map(|alphabet| alphabet.decode(text.as_bytes()).ok())?;
        match bytes.len() {
            BLOCK => bytes.try_into().ok().map(Self),
            _ => std::str::from_utf8(&bytes).ok().and_then(Self::from_hex),
        }
    }

    pub(crate) fn hex(self) -> String {
        HEXLOWER.encode(&self.0)
    }

    /// Form B, the only one that phones can open.
    pub(crate) fn reference(self) -> String {
        BASE64.encode(self.hex().as_bytes())
    }

    /// Encrypts; the result has [`sealed_len`] bytes.
    pub(crate) fn encrypt(self, plain: &[u8]) -> Vec<u8> {
        ecb::Encryptor::<aes::Aes128>::new(&self.0.into()).encrypt_padded_vec::<Pkcs7>(plain)
    }

    /// Decrypts; `None` when the padding is wrong, which is how another key shows, as a rule.
    pub(crate) fn decrypt(self, sealed: &[u8]) -> Option<Vec<u8>> {
        let decryptor = || ecb::Decryptor::<aes::Aes128>::new(&self.0.into());
        // The last block alone tells most wrong keys, however long the rest is.
        let last = sealed.len().checked_sub(BLOCK).filter(|_| sealed.len().is_multiple_of(BLOCK))?;
        decryptor().decrypt_padded_vec::<Pkcs7>(&sealed[last..]).ok()?;
        decryptor().decrypt_padded_vec::<Pkcs7>(sealed).ok()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(***)")
    }
}

/// Bytes of the ciphertext of so many bytes; there is always padding.
pub(crate) const fn sealed_len(plain: usize) -> usize {
    (plain / BLOCK + 1) * BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "00112233445566778899aabbccddeeff";

    #[test]
    fn files_are_sealed_as_published() {
        let key = Key::from_hex(HEX).unwrap();
        for (plain, sealed) in [
            ("", "00657ea140655a44782747705d422fad"),
            ("iLink", "e9c38060304236ca71ab80833c3e499c"),
            ("0123456789abcdef", "aebdd39b144089d5e31cacd35b7a113a00657ea140655a44782747705d422fad"),
        ] {
            let sealed = HEXLOWER.decode(sealed.as_bytes()).unwrap();
            assert_eq!(key.encrypt(plain.as_bytes()), sealed);
            assert_eq!(sealed.len(), sealed_len(plain.len()));
            assert_eq!(key.decrypt(&sealed).unwrap(), plain.as_bytes());
        }
        for broken in [&[][..], &[0; 15], &[0; 17], &[0; 16]] {
            assert_eq!(key.decrypt(broken), None);
        }
    }

    #[test]
    fn every_form_of_a_key_is_read_and_only_form_b_written() {
        let key = Key::from_hex(HEX).unwrap();
        let b = "MDAxMTIyMzM0NDU1NjY3Nzg4OTlhYWJiY2NkZGVlZmY=";
        for form in [HEX, &HEX.to_uppercase(), "ABEiM0RVZneImaq7zN3u/w==", "ABEiM0RVZneImaq7zN3u_w", b] {
            assert_eq!(Key::from_reference(form), Some(key), "{form}");
        }
        for wrong in ["", "AA==", "ABEiM0RVZneImaq7zN3u", "not a key", &HEX[1..]] {
            assert_eq!(Key::from_reference(wrong), None, "{wrong}");
        }
        assert_eq!((key.hex().as_str(), key.reference().as_str()), (HEX, b));
        assert_eq!(format!("{key:?}"), "Key(***)");
    }
}
