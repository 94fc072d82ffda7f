//! Signed, expiring links: to read a file, and to upload one.

use std::{fmt, time::Duration};

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::{
    error::{Error, ErrorCode, Result},
    id::MediaId,
    model::media::SignedUrl,
    time::Timestamp,
};

/// Links to one file made within this span are the same, so that caches can keep what they lead to.
const STEP_S: i64 = 3600;

/// Makes and checks links. The key is derived from the hub's, so that all nodes agree.
#[derive(Clone)]
pub(crate) struct Links {
    key: Zeroizing<[u8; 32]>,
    base: String,
}

impl Links {
    /// Links under a hub's key and its public address; without an address they are paths.
    pub(crate) fn new(key: &[u8; 32], public_url: &str) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
        mac.update(b"links to files, v1");
        let key = Zeroizing::new(mac.finalize().into_bytes().into());
        Self { key, base: public_url.trim_end_matches('/').to_owned() }
    }

    /// A link to read a file, and when it ends.
    pub(crate) fn read(&self, id: MediaId, now: Timestamp, lifetime: Duration) -> (SignedUrl, Timestamp) {
        let until = (now + lifetime).as_seconds();
        let expires = (until + STEP_S - 1).div_euclid(STEP_S) * STEP_S;
        (self.link("media", "GET", id, expires, ""), Timestamp::from_millis(expires * 1000))
    }

    /// A link to upload a file as it was announced.
    pub(crate) fn upload(&self, id: MediaId, expires_at: Timestamp, announced: &str) -> SignedUrl {
        self.link("uploads", "PUT", id, expires_at.as_seconds(), announced)
    }

    fn link(&self, path: &str, method: &str, id: MediaId, expires: i64, announced: &str) -> SignedUrl {
        let signature = HEXLOWER.encode(&self.mac(method, id, expires, announced).finalize().into_bytes());
        SignedUrl::new(format!("{}/api/{path}/{id}?expires={expires}&sig={signature}", self.base))
    }

    fn mac(&self, method: &str, id: MediaId, expires: i64, announced: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&*self.key).expect("HMAC takes keys of any length");
        mac.update(format!("{method}\n{id}\n{expires}\n{announced}").as_bytes());
        mac
    }

    /// The file that a link allows to read.
    ///
    /// # Errors
    /// `INVALID_TOKEN` for one that was changed, is for something else or has expired.
    pub(crate) fn check_read(
        &self,
        id: &str,
        expires: &str,
        signature: &str,
        now: Timestamp,
    ) -> Result<MediaId> {
        let id: MediaId = id.parse().map_err(|_| invalid())?;
        self.check("GET", id, expires, signature, "", now)?;
        Ok(id)
    }

    /// Whether a link allows to upload a file as it was announced.
    ///
    /// # Errors
    /// As [`check_read`](Self::check_read).
    pub(crate) fn check_upload(
        &self,
        id: MediaId,
        expires: &str,
        signature: &str,
        announced: &str,
        now: Timestamp,
    ) -> Result<()> {
        self.check("PUT", id, expires, signature, announced, now)
    }

    fn check(
        &self,
        method: &str,
        id: MediaId,
        expires: &str,
        signature: &str,
        announced: &str,
        now: Timestamp,
    ) -> Result<()> {
        let until: i64 = expires.parse().map_err(|_| invalid())?;
        let given = HEXLOWER.decode(signature.as_bytes()).map_err(|_| invalid())?;
        // One spelling of a number only: `+5` is not what was signed.
        if until.to_string() != expires {
            return Err(invalid());
        }
        self.mac(method, id, until, announced).verify_slice(&given).map_err(|_| invalid())?;
        if now.as_seconds() >= until {
            return Err(Error::new(ErrorCode::InvalidToken, "the link has expired"));
        }
        Ok(())
    }
}

fn invalid() -> Error {
    Error::new(ErrorCode::InvalidToken, "the link is not valid")
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Links")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
    const HOUR: Duration = Duration::from_secs(3600);

    fn parts(url: &SignedUrl) -> (String, String, String) {
        let url: url::Url = url.as_str().parse().unwrap();
        let value = |name: &str| url.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
        (url.path().rsplit('/').next().unwrap().to_owned(), value("expires"), value("sig"))
    }

    #[test]
    fn a_link_opens_one_file_until_it_expires() {
        let links = Links::new(&[7; 32], "https://hub.example/");
        let file = MediaId::from_u128(5);
        let (url, until) = links.read(file, NOW, HOUR);
        assert!(url.as_str().starts_with(&format!("https://hub.example/api/media/{file}?")));
        let (id, expires, sig) = parts(&url);
        assert_eq!(links.check_read(&id, &expires, &sig, NOW).unwrap(), file);
        assert_eq!(
            links.check_read(&id, &expires, &sig, until + Duration::from_secs(1)).unwrap_err().message(),
            "the link has expired"
        );
        assert!(until >= NOW + HOUR && until.since(NOW) <= 2 * HOUR);
        let later = (expires.parse::<i64>().unwrap() + 3600).to_string();
        let other = MediaId::from_u128(6).to_string();
        for (id, expires, sig) in [
            (other.as_str(), expires.as_str(), sig.as_str()),
            (&id, &later, &sig),
            (&id, &format!("+{expires}"), &sig),
            (&id, "soon", &sig),
            (&id, &expires, &sig.to_uppercase()),
            (&id, &expires, &sig[..62]),
            (&id, &expires, ""),
            ("../../etc/passwd", &expires, &sig),
        ] {
            let refused = links.check_read(id, expires, sig, NOW).unwrap_err();
            assert_eq!(refused.code(), ErrorCode::InvalidToken, "{id} {expires} {sig}");
        }
        let strangers = Links::new(&[8; 32], "");
        assert!(strangers.check_read(&id, &expires, &sig, NOW).is_err());
        assert!(strangers.read(file, NOW, HOUR).0.as_str().starts_with("/api/media/"));
        assert_eq!(format!("{url:?}"), "SignedUrl(***)");
    }

    #[test]
    fn a_link_to_upload_is_for_what_was_announced() {
        let links = Links::new(&[7; 32], "");
        let (file, until) = (MediaId::from_u128(5), NOW + HOUR);
        let (_, expires, sig) =
            parts(&SignedUrl::new(format!("http://x{}", links.upload(file, until, "text/plain 5").as_str())));
        links.check_upload(file, &expires, &sig, "text/plain 5", NOW).unwrap();
        assert!(links.check_upload(file, &expires, &sig, "text/plain 6", NOW).is_err());
        assert!(links.check_upload(file, &expires, &sig, "text/plain 5", until).is_err());
        assert!(links.check_read(&file.to_string(), &expires, &sig, NOW).is_err(), "it is not for reading");
    }
}
