//! Headers that authenticate a webhook to its receiver: pure, computed over the exact bytes that are sent (Standard
//! Webhooks).

use data_encoding::{BASE64, HEXLOWER};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};
use sha2::Sha256;

use crate::{
    error::{Error, Result},
    random::Random,
    secret::Secret,
    time::Timestamp,
};

mod check;

pub use check::{Finding, Problem, Received};

/// HMAC of the body, for the method of that name.
pub const X_SIGNATURE: HeaderName = HeaderName::from_static("x-signature");
/// The same for every attempt of one delivery.
pub const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
/// Unix seconds of this attempt.
pub const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
/// One signature, or two during a rotation, separated by a space.
pub const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
/// Number of this attempt, from 1.
pub const X_HUB_ATTEMPT: HeaderName = HeaderName::from_static("x-hub-attempt");

/// Unix seconds of a request to an app; signed with the body.
pub const X_TIMESTAMP: HeaderName = HeaderName::from_static("x-timestamp");

/// Before the digest in `X-Signature`.
const DIGEST_PREFIX: &str = "sha256=";
/// Before each signature in `webhook-signature`.
const VERSION_PREFIX: &str = "v1,";
/// Secrets that start like this are base64 of the key behind it.
const KEY_PREFIX: &str = "whsec_";

/// Authentication method of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    /// Not at all, beyond the signature that goes with every secret.
    None,
    /// `Authorization: Bearer <secret>`.
    Bearer,
    /// `<name>: <secret>`.
    Header {
        /// Name of the header.
        name: HeaderName,
    },
    /// `X-Signature: sha256=<hex>`.
    Hmac,
}

/// A secret and its keys, prepared once for many signatures.
#[derive(Debug, Clone)]
pub struct SigningSecret {
    secret: Secret,
    whole: Hmac<Sha256>,
    standard: Hmac<Sha256>,
}

impl From<Secret> for SigningSecret {
    fn from(secret: Secret) -> Self {
        let (whole, standard) = (keyed(secret.expose().as_bytes()), keyed(&standard_key(&secret)));
        Self { secret, whole, standard }
    }
}

impl From<&Secret> for SigningSecret {
    fn from(secret: &Secret) -> Self {
        secret.clone().into()
    }
}

impl SigningSecret {
    /// The secret.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    fn standard_signature(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let parts = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body];
        [VERSION_PREFIX, &BASE64.encode(&digest(self.standard.clone(), &parts))].concat()
    }
}

/// The data to sign, and the secrets.
#[derive(Debug, Clone, Copy)]
pub struct Signing<'a> {
    /// Authentication method of the sink.
    pub method: &'a Method,
    /// The secret.
    pub secret: Option<&'a SigningSecret>,
    /// The secret before the last rotation, while it still counts (24 h).
    pub previous: Option<&'a SigningSecret>,
    /// Id of the message for this sink, the same for every attempt.
    pub id: &'a str,
    /// Start time of this attempt.
    pub at: Timestamp,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// The exact bytes of the request's body.
    pub body: &'a [u8],
}

/// The headers of one attempt.
///
/// # Errors
/// `INVALID_PARAMS` on `auth.secret` when the method needs a secret and there is none, or when it is not valid in a
/// header.
pub fn headers(signing: &Signing<'_>) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    sign(signing, &mut headers)?;
    Ok(headers)
}

/// Adds [`headers`] to those of the request, and replaces any that a plugin set.
pub(crate) fn sign(signing: &Signing<'_>, headers: &mut HeaderMap) -> Result<()> {
    // For what is added here, and by the client.
    headers.reserve(8);
    let plain = |text: String| {
        HeaderValue::try_from(text).map_err(|_| Error::invalid("auth.secret", "is not valid in a header"))
    };
    let secret = || signing.secret.ok_or_else(|| Error::invalid("auth.secret", "is not set"));
    let mut confidential = |name: HeaderName, text: String| {
        plain(text).map(|mut value| {
            value.set_sensitive(true);
            headers.insert(name, value);
        })
    };
    match signing.method {
        Method::None => {}
        Method::Bearer => confidential(AUTHORIZATION, format!("Bearer {}", secret()?.secret.expose()))?,
        Method::Header { name } => confidential(name.clone(), secret()?.secret.expose().to_owned())?,
        Method::Hmac => {
            let digest = digest(secret()?.whole.clone(), &[signing.body]);
            confidential(X_SIGNATURE, [DIGEST_PREFIX, &HEXLOWER.encode(&digest)].concat())?;
        }
    }
    let timestamp = signing.at.as_seconds().to_string();
    if let Some(secret) = signing.secret {
        let mut signatures = secret.standard_signature(signing.id, &timestamp, signing.body);
        if let Some(previous) = signing.previous {
            signatures.push(' ');
            signatures += &previous.standard_signature(signing.id, &timestamp, signing.body);
        }
        confidential(WEBHOOK_SIGNATURE, signatures)?;
    }
    // Without a secret, too: a receiver drops repeats by the id.
    headers.insert(WEBHOOK_ID, plain(signing.id.to_owned())?);
    headers.insert(WEBHOOK_TIMESTAMP, plain(timestamp)?);
    headers.insert(X_HUB_ATTEMPT, signing.attempt.into());
    Ok(())
}

/// `X-Signature` of an event for an app: over `timestamp:body`.
pub fn app_signature(secret: &Secret, timestamp: &str, body: &[u8]) -> String {
    let digest = hmac(secret.expose().as_bytes(), &[timestamp.as_bytes(), b":", body]);
    format!("{DIGEST_PREFIX}{}", HEXLOWER.encode(&digest))
}

/// The decoded part after `whsec_`; of every other secret the text.
fn standard_key(secret: &Secret) -> Vec<u8> {
    let text = secret.expose();
    let decoded = text.strip_prefix(KEY_PREFIX).and_then(|key| BASE64.decode(key.as_bytes()).ok());
    decoded.unwrap_or_else(|| text.as_bytes().to_vec())
}

/// A fresh secret in the form that the libraries of Standard Webhooks take: `whsec_` and base64 of 24 random bytes.
pub(crate) fn new_secret(random: &Random) -> Secret {
    Secret::new(format!("{KEY_PREFIX}{}", BASE64.encode(&random.bytes::<24>())))
}

/// Whether a secret that claims to be base64 is: every library decodes what follows the prefix.
pub(crate) fn is_readable(secret: &str) -> bool {
    secret.strip_prefix(KEY_PREFIX).is_none_or(|key| BASE64.decode(key.as_bytes()).is_ok())
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    digest(keyed(key), parts)
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

fn digest(mut mac: Hmac<Sha256>, parts: &[&[u8]]) -> [u8; 32] {
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sinks::{AuthMethod, AuthSettings};

    /// RFC 4231, test cases 1, 2, 6.
    #[test]
    fn hmac_matches_the_published_vectors() {
        for (key, data, digest) in [
            (
                &[0x0b; 20][..],
                &b"Hi There"[..],
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            assert_eq!(HEXLOWER.encode(&hmac(key, &[data])), digest);
        }
    }

    fn signed(method: &Method, secret: Option<&str>, previous: Option<&str>) -> Result<HeaderMap> {
        let prepared = |secret: Option<&str>| secret.map(|text| SigningSecret::from(Secret::from(text)));
        let (secret, previous) = (prepared(secret), prepared(previous));
        headers(&Signing {
            method,
            secret: secret.as_ref(),
            previous: previous.as_ref(),
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
            at: Timestamp::from_millis(1_614_265_330_999),
            attempt: 3,
            body: br#"{"test": 2432232314}"#,
        })
    }

    const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    /// The key, id, time and body that the libraries of Standard Webhooks are tested with.
    #[test]
    fn every_secret_signs() {
        let headers = signed(&Method::None, Some(KEY), None).unwrap();
        assert_eq!(headers[WEBHOOK_SIGNATURE], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(headers[WEBHOOK_ID], "msg_p5jXN8AQM9LWM0D4loKWxJek");
        assert_eq!(headers[WEBHOOK_TIMESTAMP], "1614265330");
        assert_eq!(headers[X_HUB_ATTEMPT], "3");
        assert_eq!(headers.len(), 4);
        assert!(headers[WEBHOOK_SIGNATURE].is_sensitive());
    }

    #[test]
    fn a_generated_secret_signs_with_its_decoded_bytes() {
        let secret = new_secret(&Random::seeded(1));
        let key = BASE64.decode(secret.expose().strip_prefix("whsec_").unwrap().as_bytes()).unwrap();
        assert_eq!(key.len(), 24);
        let headers = signed(&Method::Hmac, Some(secret.expose()), None).unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(br#"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}"#);
        let expected = format!("v1,{}", BASE64.encode(&mac.finalize().into_bytes()));
        assert_eq!(headers[WEBHOOK_SIGNATURE], expected);
        assert!(is_readable(secret.expose()) && is_readable("typed") && !is_readable("whsec_%%%"));
    }

    #[test]
    fn a_rotation_signs_twice() {
        let old = signed(&Method::Hmac, Some("old secret of 24 bytes.."), None).unwrap();
        let new = signed(&Method::Hmac, Some(KEY), None).unwrap();
        let both = signed(&Method::Hmac, Some(KEY), Some("old secret of 24 bytes..")).unwrap();
        let [old_value, new_value, both_value] =
            [&old, &new, &both].map(|headers| headers[WEBHOOK_SIGNATURE].to_str().unwrap());
        assert_eq!(both_value, format!("{new_value} {old_value}"));
        assert_eq!(both[X_SIGNATURE], new[X_SIGNATURE]);
        assert_ne!(both[X_SIGNATURE], old[X_SIGNATURE]);
    }

    #[test]
    fn methods_set_their_header() {
        // Computed with an independent implementation: the key is the secret's text, prefix and all.
        let hmac = signed(&Method::Hmac, Some(KEY), None).unwrap();
        assert_eq!(hmac[X_SIGNATURE], HMAC_OF_BODY);
        let bearer = signed(&Method::Bearer, Some("tok"), None).unwrap();
        assert_eq!(bearer[AUTHORIZATION], "Bearer tok");
        assert_eq!(bearer.get(X_SIGNATURE), None);
        assert!(bearer[AUTHORIZATION].is_sensitive());
        let auth = AuthSettings { method: AuthMethod::Header, header_name: None };
        let header = signed(&Method::try_from(&auth).unwrap(), Some("v"), None).unwrap();
        assert_eq!(header["x-custom-auth"], "v");
        let none = signed(&Method::None, None, Some("previous")).unwrap();
        let mut names: Vec<_> = none.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["webhook-id", "webhook-timestamp", "x-hub-attempt"]);
    }

    const HMAC_OF_BODY: &str = "sha256=80ec8a89ce3cd22133a1066caecb4d04fea7467657c8514d717ec42c38a5c94c";

    #[test]
    fn unusable_secrets_are_errors() {
        for method in [Method::Bearer, Method::Hmac, Method::Header { name: AUTHORIZATION }] {
            let error = signed(&method, None, None).unwrap_err();
            assert_eq!(error.details()[0].field, "auth.secret");
        }
        assert!(signed(&Method::Bearer, Some("a\nb"), None).is_err());
        let reserved = AuthSettings { method: AuthMethod::Header, header_name: Some("Host".into()) };
        assert!(Method::try_from(&reserved).is_err());
    }
}
