//! Checks of a receiver, written from the specification alone (Standard Webhooks). They share no code with the side
//! that signs, so that a mistake in one of the two is found.

use std::time::Duration;

use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use serde::Serialize;
use sha2::Sha256;

use crate::{secret::Secret, time::Timestamp};

/// A signature this far from now is a replay.
const TOLERANCE: Duration = Duration::from_secs(300);

/// Result of a receiver's check of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether the request is what the hub signed.
    pub verified: bool,
    /// The headers that were checked, or what is wrong.
    pub reason: String,
}

impl Verdict {
    /// Checks `X-Signature` and the Standard Webhooks headers, as far as they are there; one has to be.
    pub(super) fn of(headers: &HeaderMap, body: &[u8], secret: Option<&Secret>, now: Timestamp) -> Self {
        match check(headers, body, secret, now) {
            Ok(checked) => Self { verified: true, reason: checked.join(", ") },
            Err(reason) => Self { verified: false, reason: reason.to_owned() },
        }
    }
}

fn check(
    headers: &HeaderMap,
    body: &[u8],
    secret: Option<&Secret>,
    now: Timestamp,
) -> Result<Vec<&'static str>, &'static str> {
    let secret = secret.ok_or("the receiver knows no secret")?;
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let mut checked = Vec::new();
    if let Some(given) = text("x-signature") {
        let digest = given.strip_prefix("sha256=").ok_or("X-Signature does not start with sha256=")?;
        let digest = HEXLOWER_PERMISSIVE.decode(digest.as_bytes()).map_err(|_| "X-Signature is not hex")?;
        if !matches(secret.expose().as_bytes(), &[body], &digest) {
            return Err("X-Signature does not fit the body");
        }
        checked.push("X-Signature");
    }
    if let Some(given) = text("webhook-signature") {
        let id = text("webhook-id").ok_or("webhook-id is missing")?;
        let at = text("webhook-timestamp").ok_or("webhook-timestamp is missing")?;
        let seconds: i64 = at.parse().map_err(|_| "webhook-timestamp is not a number")?;
        let signed_at = Timestamp::from_millis(seconds.saturating_mul(1000));
        if now.since(signed_at).max(signed_at.since(now)) > TOLERANCE {
            return Err("webhook-timestamp is more than five minutes away");
        }
        let key = secret.expose().strip_prefix("whsec_");
        let key = key.and_then(|key| BASE64.decode(key.as_bytes()).ok());
        let key = key.as_deref().unwrap_or(secret.expose().as_bytes());
        let signed: [&[u8]; 5] = [id.as_bytes(), b".", at.as_bytes(), b".", body];
        let fits = given.split(' ').filter_map(|one| one.strip_prefix("v1,")).any(|digest| {
            BASE64.decode(digest.as_bytes()).is_ok_and(|digest| matches(key, &signed, &digest))
        });
        if !fits {
            return Err("webhook-signature does not fit id, timestamp and body");
        }
        checked.push("webhook-signature");
    }
    if checked.is_empty() { Err("the request is not signed") } else { Ok(checked) }
}

/// Compares in constant time.
fn matches(key: &[u8], parts: &[&[u8]], digest: &[u8]) -> bool {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac.verify_slice(digest).is_ok()
}
