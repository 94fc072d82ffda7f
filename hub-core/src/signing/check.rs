//! What a receiver has to check, and what is wrong when it does not fit, as far as that can be found out.

use std::time::Duration;

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::Serialize;
use subtle::ConstantTimeEq;

use crate::{
    secret::Secret,
    signing::{DIGEST_PREFIX, KEY_PREFIX, VERSION_PREFIX, hmac, rewritten, standard_key},
    time::Timestamp,
};

/// A request as it arrived.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// Headers, in whatever spelling: `X-Signature`, `x-signature`, `HTTP_X_SIGNATURE`.
    pub headers: &'a [(String, String)],
    /// Body.
    pub body: &'a [u8],
    /// The secret that was agreed on.
    pub secret: &'a Secret,
    /// Now.
    pub now: Timestamp,
    /// How old, or how far ahead, a timestamp may be; Standard Webhooks say five minutes.
    pub tolerance: Duration,
}

/// What was found about one header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The header.
    pub header: &'static str,
    /// What is wrong; `None` when it is as it should be.
    pub problem: Option<Problem>,
    /// The same in words.
    pub message: String,
}

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// It is not there.
    Missing,
    /// It is nothing that the hub writes.
    Malformed,
    /// The digest is the right one, written in another way.
    Encoding,
    /// The body is another one than was signed, and how is known.
    Body,
    /// The secret was used in another way than the signer did.
    Secret,
    /// Another part of what is signed is not the one that was.
    Signed,
    /// Either the secret or the body is another one.
    SecretOrBody,
    /// The timestamp is too old.
    TooOld,
    /// The timestamp is of the future.
    TooEarly,
}

const X_SIGNATURE: &str = "X-Signature";
const X_TIMESTAMP: &str = "X-Timestamp";
const WEBHOOK_ID: &str = "webhook-id";
const WEBHOOK_TIMESTAMP: &str = "webhook-timestamp";
const WEBHOOK_SIGNATURE: &str = "webhook-signature";

/// Something that may be tried, and what it means when it is the one that fits; without a meaning it is how it should
/// be.
type Try = (Vec<u8>, Option<(Problem, &'static str)>);

/// Everything that may be tried for one header.
struct Tries {
    digests: Vec<Try>,
    keys: Vec<Try>,
    /// What is signed before the body.
    heads: Vec<Try>,
}

impl Received<'_> {
    /// Checks `X-Signature` and the headers of Standard Webhooks, as far as they are there. The request is what the hub
    /// sent when there are findings and none has a problem.
    pub fn check(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let own = self.header(X_SIGNATURE).map(|value| self.own(value, &mut findings));
        let standard = self.header(WEBHOOK_SIGNATURE).map(|value| self.standard(value, &mut findings));
        if own.is_none() && standard.is_none() {
            findings.push(found(
                X_SIGNATURE,
                Some(Problem::Missing),
                "the request carries no signature: neither X-Signature nor webhook-signature",
            ));
        }
        // One that fits proves the secret and the body for the other.
        if own == Some(true) {
            clear(
                &mut findings,
                WEBHOOK_SIGNATURE,
                "does not fit, though secret and body are right: webhook-id or webhook-timestamp is not the one that was signed",
            );
        } else if standard == Some(true) {
            clear(
                &mut findings,
                X_SIGNATURE,
                "does not fit, though secret and body are right: it is of another request",
            );
        }
        findings
    }

    /// `X-Signature` over the body, or in the dialect of apps over timestamp and body. Whether it fits.
    fn own(&self, value: &str, findings: &mut Vec<Finding>) -> bool {
        let timestamp = self.header(X_TIMESTAMP);
        let mut heads = Vec::new();
        match timestamp {
            Some(timestamp) => {
                self.fresh(X_TIMESTAMP, timestamp, findings);
                heads.push((format!("{timestamp}:").into_bytes(), None));
                let alone =
                    "the body alone was signed, as for a webhook; with X-Timestamp it is timestamp:body";
                heads.push((Vec::new(), Some((Problem::Signed, alone))));
            }
            None => heads.push((Vec::new(), None)),
        }
        let mut keys = vec![(self.secret.expose().as_bytes().to_vec(), None)];
        if self.secret.expose().starts_with(KEY_PREFIX) {
            let decoded = "the key was decoded; for X-Signature it is the secret's text, whsec_ and all";
            keys.push((standard_key(self.secret), Some((Problem::Secret, decoded))));
        }
        let tries = Tries { digests: own_digests(value), keys: self.other_keys(keys), heads };
        self.fits(X_SIGNATURE, "it is sha256= and 64 digits in hex", &tries, findings)
    }

    /// `webhook-signature` over id, timestamp and body. Whether it fits.
    fn standard(&self, value: &str, findings: &mut Vec<Finding>) -> bool {
        let (Some(id), Some(timestamp)) = (self.header(WEBHOOK_ID), self.header(WEBHOOK_TIMESTAMP)) else {
            for name in [WEBHOOK_ID, WEBHOOK_TIMESTAMP] {
                if self.header(name).is_none() {
                    findings.push(found(name, Some(Problem::Missing), "is not there, and is signed"));
                }
            }
            return false;
        };
        self.fresh(WEBHOOK_TIMESTAMP, timestamp, findings);
        let alone = "the body alone was signed; it is id.timestamp.body";
        let heads = vec![
            (format!("{id}.{timestamp}.").into_bytes(), None),
            (Vec::new(), Some((Problem::Signed, alone))),
        ];
        let mut keys = vec![(standard_key(self.secret), None)];
        if self.secret.expose().starts_with(KEY_PREFIX) {
            let text =
                "the text of the secret was used as the key; the key is the decoded base64 after whsec_";
            keys.push((self.secret.expose().as_bytes().to_vec(), Some((Problem::Secret, text))));
        }
        let tries = Tries { digests: standard_digests(value), keys: self.other_keys(keys), heads };
        self.fits(WEBHOOK_SIGNATURE, "it is v1, and base64", &tries, findings)
    }

    /// Ways in which secrets go wrong on their way.
    fn other_keys(&self, mut keys: Vec<Try>) -> Vec<Try> {
        let text = self.secret.expose();
        let mut other = |key: Vec<u8>, what| {
            if keys.iter().all(|(known, _)| *known != key) {
                keys.push((key, Some((Problem::Secret, what))));
            }
        };
        other(text.trim().into(), "the secret here has white space around it");
        other(format!("{text}\n").into(), "the signer's secret ends with a newline");
        if let Ok(decoded) = HEXLOWER_PERMISSIVE.decode(text.as_bytes()) {
            other(decoded, "the signer decoded the secret as hex; it is used as text");
        }
        if let Ok(decoded) = BASE64.decode(text.as_bytes()) {
            other(decoded, "the signer decoded the secret as base64; it is used as text");
        }
        keys
    }

    /// Looks for the combination that departs least from how it should be, and in two things at most.
    fn fits(&self, header: &'static str, form: &str, tries: &Tries, findings: &mut Vec<Finding>) -> bool {
        if tries.digests.is_empty() {
            let message = format!("is no signature of the hub: {form}");
            findings.push(found(header, Some(Problem::Malformed), &message));
            return false;
        }
        let mut bodies: Vec<Try> = vec![(self.body.to_vec(), None)];
        let rewritten = rewritten::forms(self.body).into_iter();
        bodies.extend(rewritten.map(|(body, how)| (body, Some((Problem::Body, how)))));
        for most in 0..=2 {
            if let Some(departures) = departures(tries, &bodies, most) {
                findings.extend(departures.iter().map(|(problem, how)| found(header, Some(*problem), how)));
                if departures.is_empty() {
                    findings.push(found(header, None, "fits"));
                }
                return departures.is_empty();
            }
        }
        let message =
            "does not fit: either the secret is another one, or the body is not the one that was signed";
        findings.push(found(header, Some(Problem::SecretOrBody), message));
        false
    }

    fn fresh(&self, header: &'static str, timestamp: &str, findings: &mut Vec<Finding>) {
        let Ok(seconds) = timestamp.parse::<i64>() else {
            findings.push(found(header, Some(Problem::Malformed), "is no number of seconds"));
            return;
        };
        let at = Timestamp::from_millis(seconds.saturating_mul(1_000));
        let (age, ahead) = (self.now.since(at), at.since(self.now));
        let allowed = self.tolerance.as_secs();
        if age > self.tolerance {
            let message = format!(
                "is {} s old, and {allowed} s are allowed: an old request, or a clock that is wrong",
                age.as_secs()
            );
            findings.push(found(header, Some(Problem::TooOld), &message));
        } else if ahead > self.tolerance {
            let unit =
                if seconds > 100_000_000_000 { "milliseconds, not seconds" } else { "a clock that is wrong" };
            let message = format!("is {} s ahead, and {allowed} s are allowed: {unit}", ahead.as_secs());
            findings.push(found(header, Some(Problem::TooEarly), &message));
        }
    }

    /// The value of a header. Names have no case, and some programs write them in their own way.
    fn header(&self, name: &str) -> Option<&str> {
        let is_it = |spelled: &str| {
            let spelled = spelled.replace('_', "-").to_ascii_lowercase();
            spelled.strip_prefix("http-").unwrap_or(&spelled) == name.to_ascii_lowercase()
        };
        self.headers.iter().find(|(spelled, _)| is_it(spelled)).map(|(_, value)| value.as_str())
    }
}

fn found(header: &'static str, problem: Option<Problem>, message: &str) -> Finding {
    Finding { header, problem, message: message.to_owned() }
}

/// What is known better once the other header fits.
fn clear(findings: &mut [Finding], header: &str, message: &str) {
    for finding in findings {
        if finding.header == header && finding.problem == Some(Problem::SecretOrBody) {
            finding.problem = Some(Problem::Signed);
            message.clone_into(&mut finding.message);
        }
    }
}

/// The meanings of a combination that fits and departs in exactly `count` things.
fn departures(tries: &Tries, bodies: &[Try], count: usize) -> Option<Vec<(Problem, &'static str)>> {
    for (key, of_key) in &tries.keys {
        for (head, of_head) in &tries.heads {
            for (body, of_body) in bodies {
                let without_digest: Vec<_> =
                    [of_key, of_head, of_body].into_iter().flatten().copied().collect();
                if without_digest.len() > count || without_digest.len() + 1 < count {
                    continue;
                }
                let made = hmac(key, &[head, body]);
                for (digest, of_digest) in &tries.digests {
                    let all = without_digest.len() + usize::from(of_digest.is_some());
                    if all == count && bool::from(made.as_slice().ct_eq(digest)) {
                        return Some(without_digest.into_iter().chain(*of_digest).collect());
                    }
                }
            }
        }
    }
    None
}

/// The digest in `X-Signature`, in every way in which it may be written.
fn own_digests(value: &str) -> Vec<Try> {
    let trimmed = value.trim().trim_matches('"');
    let encoding = |how| Some((Problem::Encoding, how));
    let (digits, prefix) = match trimmed.get(..DIGEST_PREFIX.len()) {
        Some(DIGEST_PREFIX) => (&trimmed[DIGEST_PREFIX.len()..], None),
        Some(prefix) if prefix.eq_ignore_ascii_case(DIGEST_PREFIX) => (
            &trimmed[DIGEST_PREFIX.len()..],
            encoding("begins with sha256= in capital letters; small ones are written"),
        ),
        _ => (trimmed, encoding("lacks sha256= before the digest")),
    };
    let around = if trimmed == value { None } else { encoding("has white space or quotes around it") };
    let hex = HEXLOWER.decode(digits.as_bytes()).map(|digest| (digest, prefix.or(around)));
    let capitals = || {
        let how = "is written in capital letters; small ones are written";
        HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).map(|digest| (digest, encoding(how)))
    };
    let base64 = || Some((base64(digits)?, encoding("is written in base64; it is written in hex")));
    hex.or_else(|_| capitals()).ok().or_else(base64).into_iter().filter(is_digest).collect()
}

/// The digests in `webhook-signature`, of which one has to fit.
fn standard_digests(value: &str) -> Vec<Try> {
    let encoding = |how| Some((Problem::Encoding, how));
    let one = |signature: &str| {
        let (digest, prefix) = match signature.strip_prefix(VERSION_PREFIX) {
            Some(digest) => (digest, None),
            None => (signature, encoding("lacks v1, before the signature")),
        };
        if let Ok(exact) = BASE64.decode(digest.as_bytes())
            && exact.len() == 32
        {
            return Some((exact, prefix));
        }
        if let Ok(hex) = HEXLOWER_PERMISSIVE.decode(digest.as_bytes()) {
            return Some((hex, encoding("is written in hex; it is written in base64")));
        }
        base64(digest)
            .map(|digest| (digest, encoding("is written in another base64 than the one with + and / and =")))
    };
    value.trim().trim_matches('"').split_whitespace().filter_map(one).filter(is_digest).collect()
}

fn is_digest((digest, _): &Try) -> bool {
    digest.len() == 32
}

fn base64(text: &str) -> Option<Vec<u8>> {
    [BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD]
        .iter()
        .find_map(|encoding| encoding.decode(text.as_bytes()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signing::{self, Method, Signing, app_signature};

    const SECRET: &str = "a-secret-of-some-length";
    const BODY: &str = r#"{"type":"message","content":"order 42","msg_type":1}"#;
    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

    fn signed(secret: &str, body: &str) -> Vec<(String, String)> {
        let headers = signing::headers(&Signing {
            method: &Method::Hmac,
            secret: Some(&secret.into()),
            previous: None,
            id: "dlv_1",
            at: NOW,
            attempt: 1,
            body: body.as_bytes(),
        });
        let pairs = headers.unwrap();
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect()
    }

    fn check(headers: &[(String, String)], body: &str, secret: &str) -> Vec<(&'static str, Option<Problem>)> {
        let secret = secret.into();
        let received = Received {
            headers,
            body: body.as_bytes(),
            secret: &secret,
            now: NOW,
            tolerance: Duration::from_secs(300),
        };
        let mut found: Vec<_> =
            received.check().into_iter().map(|finding| (finding.header, finding.problem)).collect();
        found.sort_by_key(|(header, _)| *header);
        found
    }

    fn set(headers: &mut [(String, String)], name: &str, value: impl Fn(&str) -> String) {
        let header = headers.iter_mut().find(|(known, _)| known == name).unwrap();
        header.1 = value(&header.1);
    }

    const FITS: [(&str, Option<Problem>); 2] = [(X_SIGNATURE, None), (WEBHOOK_SIGNATURE, None)];

    fn both(problem: Problem) -> [(&'static str, Option<Problem>); 2] {
        [(X_SIGNATURE, Some(problem)), (WEBHOOK_SIGNATURE, Some(problem))]
    }

    #[test]
    fn what_the_hub_signs_fits_however_the_headers_are_spelled() {
        let mut headers = signed(SECRET, BODY);
        assert_eq!(check(&headers, BODY, SECRET), FITS);
        for (name, _) in &mut headers {
            *name = format!("HTTP_{}", name.to_ascii_uppercase().replace('-', "_"));
        }
        assert_eq!(check(&headers, BODY, SECRET), FITS);
        let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        assert_eq!(check(&signed(key, BODY), BODY, key), FITS);
        let ts = NOW.as_seconds().to_string();
        let app = [
            ("X-Timestamp".to_owned(), ts.clone()),
            ("X-Signature".to_owned(), app_signature(&SECRET.into(), &ts, BODY.as_bytes())),
        ];
        assert_eq!(check(&app, BODY, SECRET), [(X_SIGNATURE, None)]);
    }

    #[test]
    fn what_happened_to_the_body_is_found() {
        let headers = signed(SECRET, BODY);
        for body in [
            format!("{BODY}\n"),
            format!("{BODY}\r\n"),
            format!("\u{feff}{BODY}"),
            BODY.replace(':', ": ").replace(',', ", "),
            r#"{"content":"order 42","msg_type":1,"type":"message"}"#.to_owned(),
        ] {
            assert_eq!(check(&headers, &body, SECRET), both(Problem::Body), "{body}");
        }
        assert_eq!(check(&signed(SECRET, "a\n"), "a", SECRET), both(Problem::Body));
        assert_eq!(check(&headers, "{}", SECRET), both(Problem::SecretOrBody));
    }

    #[test]
    fn what_happened_to_the_secret_is_found() {
        assert_eq!(check(&signed(SECRET, BODY), BODY, &format!("{SECRET}\n")), both(Problem::Secret));
        assert_eq!(check(&signed(&format!("{SECRET}\n"), BODY), BODY, SECRET), both(Problem::Secret));
        assert_eq!(check(&signed(SECRET, BODY), BODY, "another"), both(Problem::SecretOrBody));
    }

    #[test]
    fn how_the_digest_is_written_is_found() {
        let own = |value: &dyn Fn(&str) -> String| {
            let mut headers = signed(SECRET, BODY);
            set(&mut headers, "x-signature", value);
            check(&headers, BODY, SECRET)[0].1
        };
        assert_eq!(own(&str::to_owned), None);
        for (what, value) in [
            ("no prefix", &(|value: &str| value[7..].to_owned()) as &dyn Fn(&str) -> String),
            ("capital prefix", &|value| value.replace("sha256", "SHA256")),
            ("capital digits", &|value| format!("sha256={}", value[7..].to_uppercase())),
            ("base64", &|value| {
                format!("sha256={}", BASE64.encode(&HEXLOWER.decode(&value.as_bytes()[7..]).unwrap()))
            }),
            ("quotes", &|value| format!("\"{value}\"")),
        ] {
            assert_eq!(own(value), Some(Problem::Encoding), "{what}");
        }
        assert_eq!(own(&|_| "sha256=zz".to_owned()), Some(Problem::Malformed));
        let mut headers = signed(SECRET, BODY);
        set(&mut headers, "webhook-signature", |value| {
            format!("v1,{}", HEXLOWER.encode(&BASE64.decode(&value.as_bytes()[3..]).unwrap()))
        });
        assert_eq!(check(&headers, BODY, SECRET)[1].1, Some(Problem::Encoding));
    }

    #[test]
    fn the_rest_of_what_is_signed_is_checked_too() {
        let mut headers = signed(SECRET, BODY);
        set(&mut headers, "webhook-id", |_| "dlv_2".to_owned());
        assert_eq!(check(&headers, BODY, SECRET), [FITS[0], (WEBHOOK_SIGNATURE, Some(Problem::Signed))]);
        set(&mut headers, "webhook-timestamp", |_| "1789999000".to_owned());
        assert!(check(&headers, BODY, SECRET).contains(&(WEBHOOK_TIMESTAMP, Some(Problem::TooOld))));
        set(&mut headers, "webhook-timestamp", |_| "1790000000000".to_owned());
        assert!(check(&headers, BODY, SECRET).contains(&(WEBHOOK_TIMESTAMP, Some(Problem::TooEarly))));
        headers.retain(|(name, _)| name != "webhook-timestamp");
        assert!(check(&headers, BODY, SECRET).contains(&(WEBHOOK_TIMESTAMP, Some(Problem::Missing))));
        assert_eq!(check(&[], BODY, SECRET), [(X_SIGNATURE, Some(Problem::Missing))]);
    }
}
