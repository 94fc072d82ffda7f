//! An archive under a passphrase: argon2id makes a key of it, XChaCha20-Poly1305 seals the bytes in chunks of 64 KiB
//! as the STREAM construction says, so that nothing can be changed, left out, moved or cut off unnoticed.

use std::io::{self, Read, Write};

use aead_stream::{DecryptorBE32, EncryptorBE32};
use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::XChaCha20Poly1305;
use zeroize::Zeroizing;

use crate::{
    error::{Error, Result},
    random::Random,
    secret::Secret,
};

/// First bytes of a sealed archive; another version of the format has another number.
pub(super) const MAGIC: &[u8; 24] = b"message-hub sealed tar 1";
/// Bytes of a chunk before it is sealed, and what sealing adds.
const CHUNK: usize = 64 * 1024;
const TAG: usize = 16;
/// 64 MiB, three passes, one lane: a passphrase is weaker than a key, and a backup may be tried for years.
const MEMORY_KIB: u32 = 64 * 1024;
const PASSES: u32 = 3;

fn key(passphrase: &Secret, salt: &[u8; 16]) -> Result<Zeroizing<[u8; 32]>> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, Some(32)).map_err(Error::internal)?;
    let mut key = Zeroizing::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.expose().as_bytes(), salt, &mut *key)
        .map_err(Error::internal)?;
    Ok(key)
}

/// Seals what is written to it. Without [`finish`](Self::finish) there is no last chunk, and the rest cannot be
/// opened.
pub(super) struct Sealing<W: Write> {
    inner: W,
    stream: EncryptorBE32<XChaCha20Poly1305>,
    chunk: Zeroizing<Vec<u8>>,
}

impl<W: Write> Sealing<W> {
    pub(super) fn new(mut inner: W, passphrase: &Secret, random: &Random) -> Result<Self> {
        let (salt, nonce): ([u8; 16], [u8; 19]) = (random.bytes(), random.bytes());
        let stream = EncryptorBE32::new(&(*key(passphrase, &salt)?).into(), &nonce.into());
        let wrote = inner.write_all(MAGIC).and_then(|()| inner.write_all(&salt));
        wrote.and_then(|()| inner.write_all(&nonce)).map_err(Error::internal)?;
        Ok(Self { inner, stream, chunk: Zeroizing::new(Vec::with_capacity(CHUNK)) })
    }

    pub(super) fn finish(mut self) -> io::Result<W> {
        let sealed = self.stream.encrypt_last(self.chunk.as_slice()).map_err(|_| too_long())?;
        self.inner.write_all(&sealed)?;
        Ok(self.inner)
    }
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full chunk waits until it is known not to be the last.
        if self.chunk.len() == CHUNK {
            let sealed = self.stream.encrypt_next(self.chunk.as_slice()).map_err(|_| too_long())?;
            self.inner.write_all(&sealed)?;
            self.chunk.clear();
        }
        let taken = bytes.len().min(CHUNK - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn too_long() -> io::Error {
    io::Error::other("the archive is too long to be sealed")
}

/// Opens what [`Sealing`] wrote.
pub(super) struct Opening<R: Read> {
    inner: R,
    /// Gone when the last chunk was opened.
    stream: Option<DecryptorBE32<XChaCha20Poly1305>>,
    /// The next chunk, still sealed.
    ahead: Vec<u8>,
    chunk: Zeroizing<Vec<u8>>,
    read: usize,
}

impl<R: Read> Opening<R> {
    /// Opens an archive whose [`MAGIC`] was read already.
    pub(super) fn new(mut inner: R, passphrase: &Secret) -> Result<Self> {
        let (mut salt, mut nonce) = ([0; 16], [0; 19]);
        let cut = |_| Error::invalid("backup", "is cut off");
        inner.read_exact(&mut salt).map_err(cut)?;
        inner.read_exact(&mut nonce).map_err(cut)?;
        let stream = DecryptorBE32::new(&(*key(passphrase, &salt)?).into(), &nonce.into());
        let ahead = next_chunk(&mut inner).map_err(cut)?;
        let mut opening =
            Self { inner, stream: Some(stream), ahead, chunk: Zeroizing::new(Vec::new()), read: 0 };
        // The first chunk shows whether the passphrase is the right one.
        opening
            .open_next()
            .map_err(|_| Error::invalid("passphrase", "is wrong, or the backup was changed"))?;
        Ok(opening)
    }

    fn open_next(&mut self) -> io::Result<()> {
        let sealed = std::mem::take(&mut self.ahead);
        if sealed.len() == CHUNK + TAG {
            self.ahead = next_chunk(&mut self.inner)?;
        }
        let changed = || io::Error::new(io::ErrorKind::InvalidData, "the backup was changed or is cut off");
        let mut stream = self.stream.take().ok_or_else(changed)?;
        let opened = if self.ahead.is_empty() {
            stream.decrypt_last(sealed.as_slice()).map_err(|_| changed())?
        } else {
            let opened = stream.decrypt_next(sealed.as_slice()).map_err(|_| changed())?;
            self.stream = Some(stream);
            opened
        };
        self.chunk = Zeroizing::new(opened);
        self.read = 0;
        Ok(())
    }
}

impl<R: Read> Read for Opening<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.chunk.len() && self.stream.is_some() {
            self.open_next()?;
        }
        let taken = buffer.len().min(self.chunk.len() - self.read);
        buffer[..taken].copy_from_slice(&self.chunk[self.read..self.read + taken]);
        self.read += taken;
        Ok(taken)
    }
}

/// As much of the next sealed chunk as there is.
fn next_chunk(inner: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut chunk = Vec::with_capacity(CHUNK + TAG);
    inner.by_ref().take((CHUNK + TAG) as u64).read_to_end(&mut chunk)?;
    Ok(chunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(text: &[u8]) -> Vec<u8> {
        let mut sealing = Sealing::new(Vec::new(), &"open sesame".into(), &Random::seeded(1)).unwrap();
        sealing.write_all(text).unwrap();
        sealing.finish().unwrap()
    }

    fn open(sealed: &[u8], passphrase: &str) -> Result<Vec<u8>> {
        let (magic, rest) = sealed.split_at(MAGIC.len());
        assert_eq!(magic, MAGIC);
        let mut text = Vec::new();
        let opened = Opening::new(rest, &passphrase.into())?.read_to_end(&mut text);
        opened.map_err(Error::internal).map(|_| text)
    }

    #[test]
    fn a_sealed_file_opens_whole_or_not_at_all() {
        for length in [0, 1, CHUNK, 2 * CHUNK + 5] {
            let text: Vec<u8> = (0..length).map(|n| u8::try_from(n % 251).unwrap()).collect();
            let sealed = seal(&text);
            assert!(open(&sealed, "open sesame").unwrap() == text, "{length}");
        }
        let text = vec![7; 2 * CHUNK + 5];
        let sealed = seal(&text);
        assert!(open(&sealed, "open simsim").unwrap_err().to_string().contains("passphrase"));
        let start = MAGIC.len() + 16 + 19;
        for cut in [start + CHUNK + TAG, start + 2 * (CHUNK + TAG), sealed.len() - 1] {
            assert!(open(&sealed[..cut], "open sesame").is_err(), "cut off at {cut}");
        }
        for place in [start - 30, start - 3, start + 9, sealed.len() - 1] {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert!(open(&changed, "open sesame").is_err(), "changed at {place}");
        }
    }
}
