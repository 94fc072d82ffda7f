//! Verifies the signatures of a received request, and finds the usual causes of a mismatch.

use std::time::Duration;

use data_encoding::{BASE64, HEXLOWER};
use serde::Serialize;
use subtle::ConstantTimeEq;

use crate::{
    secret::Secret,
    signing::{DIGEST_PREFIX, KEY_PREFIX, VERSION_PREFIX, hmac, standard_key},
    time::Timestamp,
};

/// A request as it arrived.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// Headers, in any spelling: `X-Signature`, `x-signature`, `HTTP_X_SIGNATURE`.
    pub headers: &'a [(String, String)],
    /// Body.
    pub body: &'a [u8],
    /// The shared secret.
    pub secret: &'a Secret,
    /// Now.
    pub now: Timestamp,
    /// Largest age of a timestamp, and largest time ahead; Standard Webhooks recommends five minutes.
    pub tolerance: Duration,
}

/// The result for one header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The header.
    pub header: &'static str,
    /// The problem; `None` if the header is correct.
    pub problem: Option<Problem>,
    /// The same in words.
    pub message: String,
}

/// Problem of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// The header is absent.
    Missing,
    /// The value has another form than the hub writes.
    Malformed,
    /// The body was changed in a known way.
    Body,
    /// The key was derived from the secret in another way than the hub does.
    Secret,
    /// Secret and body are correct; the id or the timestamp differs.
    Signed,
    /// Either the secret or the body differs.
    SecretOrBody,
    /// The timestamp is too old.
    TooOld,
    /// The timestamp is in the future.
    TooEarly,
}

const X_SIGNATURE: &str = "X-Signature";
const X_TIMESTAMP: &str = "X-Timestamp";
const WEBHOOK_ID: &str = "webhook-id";
const WEBHOOK_TIMESTAMP: &str = "webhook-timestamp";
const WEBHOOK_SIGNATURE: &str = "webhook-signature";

/// A body or a key that the signer may have used, and the cause if it did.
type Guess = (Vec<u8>, &'static str);

/// Content of a signature header, and its computation by the hub.
struct Expected {
    header: &'static str,
    /// The form of the value, for the error.
    form: &'static str,
    /// The digests in the value; one has to match.
    digests: Vec<Vec<u8>>,
    key: Vec<u8>,
    /// Signed text before the body.
    head: String,
}

impl Expected {
    fn is_signature_of(&self, key: &[u8], body: &[u8]) -> bool {
        let digest = hmac(key, &[self.head.as_bytes(), body]);
        self.digests.iter().any(|found| digest.as_slice().ct_eq(found).into())
    }
}

impl Received<'_> {
    /// Checks `X-Signature` and the headers of Standard Webhooks, as far as they are present. The request is authentic
    /// if there are findings and none has a problem.
    pub fn check(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let own = self.header(X_SIGNATURE).map(|value| self.own(value, &mut findings));
        let standard = self.header(WEBHOOK_SIGNATURE).map(|value| self.standard(value, &mut findings));
        if own.is_none() && standard.is_none() {
            let message = "the request carries no signature: neither X-Signature nor webhook-signature";
            findings.push(found(X_SIGNATURE, Some(Problem::Missing), message));
        }
        // A correct signature proves the secret and the body for the other one.
        if own == Some(true) {
            let message = "does not match, although secret and body are correct: webhook-id or webhook-timestamp \
                           differs from the signed one";
            clear(&mut findings, WEBHOOK_SIGNATURE, message);
        } else if standard == Some(true) {
            let message =
                "does not match, although secret and body are correct: it belongs to another request";
            clear(&mut findings, X_SIGNATURE, message);
        }
        findings
    }

    /// `X-Signature` over the body, or for an app over timestamp and body. Returns whether it is correct.
    fn own(&self, value: &str, findings: &mut Vec<Finding>) -> bool {
        let timestamp = self.header(X_TIMESTAMP);
        if let Some(timestamp) = timestamp {
            self.fresh(X_TIMESTAMP, timestamp, findings);
        }
        let digits = value.trim().strip_prefix(DIGEST_PREFIX);
        let digest = digits.and_then(|digits| HEXLOWER.decode(digits.as_bytes()).ok());
        let expected = Expected {
            header: X_SIGNATURE,
            form: "sha256= and 64 hexadecimal digits in lower case",
            digests: digest.into_iter().filter(|digest| digest.len() == 32).collect(),
            key: self.secret.expose().into(),
            head: timestamp.map(|timestamp| format!("{timestamp}:")).unwrap_or_default(),
        };
        self.verify(&expected, findings)
    }

    /// `webhook-signature` over id, timestamp and body. Returns whether it is correct.
    fn standard(&self, value: &str, findings: &mut Vec<Finding>) -> bool {
        let (Some(id), Some(timestamp)) = (self.header(WEBHOOK_ID), self.header(WEBHOOK_TIMESTAMP)) else {
            for name in [WEBHOOK_ID, WEBHOOK_TIMESTAMP] {
                if self.header(name).is_none() {
                    findings.push(found(
                        name,
                        Some(Problem::Missing),
                        "is absent; it is part of what is signed",
                    ));
                }
            }
            return false;
        };
        self.fresh(WEBHOOK_TIMESTAMP, timestamp, findings);
        let digests = value.split_whitespace().filter_map(|one| one.strip_prefix(VERSION_PREFIX));
        let digests = digests.filter_map(|digest| BASE64.decode(digest.as_bytes()).ok());
        let expected = Expected {
            header: WEBHOOK_SIGNATURE,
            form: "v1, and base64 of 32 bytes",
            digests: digests.filter(|digest| digest.len() == 32).collect(),
            key: standard_key(self.secret),
            head: format!("{id}.{timestamp}."),
        };
        self.verify(&expected, findings)
    }

    fn verify(&self, expected: &Expected, findings: &mut Vec<Finding>) -> bool {
        let (problem, message) = if expected.digests.is_empty() {
            (Problem::Malformed, format!("is no signature of the hub: it is {}", expected.form))
        } else if expected.is_signature_of(&expected.key, self.body) {
            findings.push(found(expected.header, None, "matches"));
            return true;
        } else if let Some((_, cause)) = changed_bodies(self.body)
            .into_iter()
            .find(|(body, _)| expected.is_signature_of(&expected.key, body))
        {
            (Problem::Body, cause.to_owned())
        } else if let Some((_, cause)) =
            other_keys(self.secret).into_iter().find(|(key, _)| expected.is_signature_of(key, self.body))
        {
            (Problem::Secret, cause.to_owned())
        } else {
            let message = "does not match: the secret or the body differs; the signature covers the exact bytes of \
                           the body, before any program parsed it";
            (Problem::SecretOrBody, message.to_owned())
        };
        findings.push(found(expected.header, Some(problem), &message));
        false
    }

    fn fresh(&self, header: &'static str, timestamp: &str, findings: &mut Vec<Finding>) {
        let Ok(seconds) = timestamp.parse::<i64>() else {
            findings.push(found(header, Some(Problem::Malformed), "is not a number of seconds"));
            return;
        };
        let at = Timestamp::from_millis(seconds.saturating_mul(1_000));
        let (age, ahead) = (self.now.since(at), at.since(self.now));
        let allowed = self.tolerance.as_secs();
        if age > self.tolerance {
            let message = format!(
                "is {} s old, and {allowed} s are allowed: an old request, or a wrong clock",
                age.as_secs()
            );
            findings.push(found(header, Some(Problem::TooOld), &message));
        } else if ahead > self.tolerance {
            let unit = if seconds > 100_000_000_000 { "milliseconds, not seconds" } else { "a wrong clock" };
            let message = format!("is {} s ahead, and {allowed} s are allowed: {unit}", ahead.as_secs());
            findings.push(found(header, Some(Problem::TooEarly), &message));
        }
    }

    /// The value of a header; its name in any case, with `_` for `-`, and with the prefix `HTTP_` of CGI.
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

/// Narrows the problem of a header down once the other one is correct.
fn clear(findings: &mut [Finding], header: &str, message: &str) {
    for finding in findings {
        if finding.header == header && finding.problem == Some(Problem::SecretOrBody) {
            finding.problem = Some(Problem::Signed);
            message.clone_into(&mut finding.message);
        }
    }
}

/// The bodies that commonly become this one.
fn changed_bodies(body: &[u8]) -> Vec<Guess> {
    let mut bodies = vec![([body, b"\n"].concat(), "the body lost the newline at its end")];
    if let Some(shorter) = body.strip_suffix(b"\n") {
        let shorter = shorter.strip_suffix(b"\r").unwrap_or(shorter);
        bodies.push((shorter.to_vec(), "the body has a newline at its end that was not signed"));
    }
    if let Some(compact) = std::str::from_utf8(body).ok().and_then(compact_json) {
        let cause =
            "the body was parsed and serialized again: the signed one has other white space or escapes";
        bodies.push((compact.into(), cause));
    }
    bodies
}

/// JSON as the hub serializes it: without white space, and with the necessary escapes only.
fn compact_json(text: &str) -> Option<String> {
    let (mut compact, mut rest) = (String::new(), text);
    while let Some(next) = rest.chars().next() {
        if next == '"' {
            let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            compact += &serde_json::to_string(&strings.next()?.ok()?).ok()?;
            rest = &rest[strings.byte_offset()..];
        } else {
            if !next.is_ascii_whitespace() {
                compact.push(next);
            }
            rest = &rest[next.len_utf8()..];
        }
    }
    Some(compact)
}

/// The keys that a signer commonly derives from a secret.
fn other_keys(secret: &Secret) -> Vec<Guess> {
    let text = secret.expose();
    let bare = text.strip_prefix(KEY_PREFIX).unwrap_or(text);
    let mut keys = vec![
        (
            text.into(),
            "the signer used the text of the secret as the key; the key is the decoded base64 after whsec_",
        ),
        (bare.into(), "the signer used the secret without whsec_"),
        (format!("{KEY_PREFIX}{bare}").into(), "the signer's secret starts with whsec_, this one does not"),
    ];
    if let Ok(decoded) = BASE64.decode(bare.as_bytes()) {
        keys.push((decoded, "the signer decoded the secret as base64; the key is its text"));
    }
    keys
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
            secret: Some(&Secret::from(secret).into()),
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

    const MATCHES: [(&str, Option<Problem>); 2] = [(X_SIGNATURE, None), (WEBHOOK_SIGNATURE, None)];

    fn both(problem: Problem) -> [(&'static str, Option<Problem>); 2] {
        [(X_SIGNATURE, Some(problem)), (WEBHOOK_SIGNATURE, Some(problem))]
    }

    #[test]
    fn a_signature_of_the_hub_matches_in_any_spelling_of_the_headers() {
        let mut headers = signed(SECRET, BODY);
        assert_eq!(check(&headers, BODY, SECRET), MATCHES);
        for (name, _) in &mut headers {
            *name = format!("HTTP_{}", name.to_ascii_uppercase().replace('-', "_"));
        }
        assert_eq!(check(&headers, BODY, SECRET), MATCHES);
        let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        assert_eq!(check(&signed(key, BODY), BODY, key), MATCHES);
        let ts = NOW.as_seconds().to_string();
        let app = [
            ("X-Timestamp".to_owned(), ts.clone()),
            ("X-Signature".to_owned(), app_signature(&SECRET.into(), &ts, BODY.as_bytes())),
        ];
        assert_eq!(check(&app, BODY, SECRET), [(X_SIGNATURE, None)]);
    }

    #[test]
    fn a_changed_body_is_recognised() {
        let headers = signed(SECRET, BODY);
        for body in [
            format!("{BODY}\n"),
            format!("{BODY}\r\n"),
            BODY.replace(':', ": ").replace(',', ", "),
            BODY.replace(',', ",\n  ").replace("order", "\\u006frder"),
        ] {
            assert_eq!(check(&headers, &body, SECRET), both(Problem::Body), "{body}");
        }
        assert_eq!(check(&signed(SECRET, "a\n"), "a", SECRET), both(Problem::Body));
        assert_eq!(check(&headers, "{}", SECRET), both(Problem::SecretOrBody));
        assert_eq!(check(&headers, "{\"", SECRET), both(Problem::SecretOrBody));
    }

    #[test]
    fn another_use_of_the_secret_is_recognised() {
        let key = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let prefixed = format!("whsec_{key}");
        assert_eq!(check(&signed(&prefixed, BODY), BODY, key), both(Problem::Secret));
        assert_eq!(check(&signed(key, BODY), BODY, &prefixed), both(Problem::Secret));
        let decoded = HEXLOWER.encode(&hmac(&BASE64.decode(key.as_bytes()).unwrap(), &[BODY.as_bytes()]));
        let headers = [("x-signature".to_owned(), format!("sha256={decoded}"))];
        assert_eq!(check(&headers, BODY, &prefixed), [(X_SIGNATURE, Some(Problem::Secret))]);
        assert_eq!(check(&signed(SECRET, BODY), BODY, "another"), both(Problem::SecretOrBody));
    }

    #[test]
    fn a_digest_in_another_encoding_is_malformed() {
        for value in ["sha256=zz", "sha256=00", &"0".repeat(64), &format!("sha256={}", "A".repeat(64))] {
            let mut headers = signed(SECRET, BODY);
            set(&mut headers, "x-signature", |_| value.to_owned());
            assert_eq!(check(&headers, BODY, SECRET)[0].1, Some(Problem::Malformed), "{value}");
        }
    }

    #[test]
    fn the_id_and_the_timestamp_are_checked() {
        let mut headers = signed(SECRET, BODY);
        set(&mut headers, "webhook-id", |_| "dlv_2".to_owned());
        assert_eq!(check(&headers, BODY, SECRET), [MATCHES[0], (WEBHOOK_SIGNATURE, Some(Problem::Signed))]);
        set(&mut headers, "webhook-timestamp", |_| "1789999000".to_owned());
        assert!(check(&headers, BODY, SECRET).contains(&(WEBHOOK_TIMESTAMP, Some(Problem::TooOld))));
        set(&mut headers, "webhook-timestamp", |_| "1790000000000".to_owned());
        assert!(check(&headers, BODY, SECRET).contains(&(WEBHOOK_TIMESTAMP, Some(Problem::TooEarly))));
        headers.retain(|(name, _)| name != "webhook-timestamp");
        assert!(check(&headers, BODY, SECRET).contains(&(WEBHOOK_TIMESTAMP, Some(Problem::Missing))));
        assert_eq!(check(&[], BODY, SECRET), [(X_SIGNATURE, Some(Problem::Missing))]);
    }
}
