//! Meaning of the network's answers: status, codes, texts (`docs/ilink.md#json`).

use std::{fmt, time::Duration};

use http::{StatusCode, header};

use super::{field::Fields, transport::Endpoint};
use crate::{
    egress::{Answer, EgressError},
    network::NetworkError,
};

/// The codes this connector knows; others are logged.
const KNOWN_CODES: [i64; 6] = [-14, -4, -3, -2, -1, 2];
/// The code of an expired session, and one that a single outside client names for the same.
const EXPIRED: [i64; 2] = [-14, -13];
/// A throttling code that a single outside client names.
const THROTTLED: i64 = -12;
/// The longest text of the network that is handed on.
const MESSAGE_CHARS: usize = 200;
/// The longest pause that an answer can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);
/// An HTTP answer of the network.
pub(super) struct Reply {
    pub(super) endpoint: Endpoint,
    pub(super) status: StatusCode,
    pub(super) retry_after: Option<Duration>,
    body: String,
}

/// A code other than zero, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
}

impl Reply {
    pub(super) fn new(endpoint: Endpoint, answer: &Answer) -> Self {
        let seconds = answer.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = seconds.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        Self {
            endpoint,
            status: answer.status,
            retry_after: retry_after.map(|pause| pause.min(MAX_RETRY_AFTER)),
            // Bad bytes in one message must not spoil the batch.
            body: String::from_utf8_lossy(&answer.body).into_owned(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.body.trim().is_empty()
    }

    /// The answer's fields; `None` when the body is not a JSON object.
    pub(super) fn fields(&self) -> Option<Fields<'_>> {
        Fields::parse(&self.body)
    }

    /// The fields of an answer that reports success.
    pub(super) fn accept(&self) -> Result<Fields<'_>, NetworkError> {
        self.accept_status()?;
        let fields =
            self.fields().ok_or_else(|| NetworkError::Unreachable("the response is not JSON".into()))?;
        match self.refusal(&fields) {
            None => Ok(fields),
            Some(refusal) => Err(refusal.into()),
        }
    }

    /// Maps an HTTP status other than success to an error.
    pub(super) fn accept_status(&self) -> Result<(), NetworkError> {
        let message = format!("HTTP {}", self.status.as_u16());
        Err(match self.status {
            status if status.is_success() => return Ok(()),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => NetworkError::LoginExpired(message),
            StatusCode::TOO_MANY_REQUESTS => {
                NetworkError::Throttled { message, retry_after: self.retry_after }
            }
            status if status.is_server_error() => NetworkError::Unreachable(message),
            status => NetworkError::Refused { code: status.as_u16().into(), message },
        })
    }

    /// The error in an answer: `errcode`, else `ret`, the first that is not zero. Unknown codes are logged.
    pub(super) fn refusal(&self, fields: &Fields<'_>) -> Option<Refusal> {
        let code = [fields.integer("errcode"), fields.integer("ret")].into_iter().find(|code| *code != 0)?;
        if !KNOWN_CODES.contains(&code) {
            tracing::warn!(endpoint = self.endpoint.name(), code, "unknown code from the chat network");
        }
        Some(Refusal { code, message: printable(&fields.text("errmsg")) })
    }
}

impl Refusal {
    pub(super) fn is_expired(&self) -> bool {
        EXPIRED.contains(&self.code)
    }

    pub(super) fn is_throttled(&self) -> bool {
        self.code == THROTTLED
    }
}

impl From<Refusal> for NetworkError {
    fn from(refusal: Refusal) -> Self {
        if refusal.is_expired() {
            return Self::LoginExpired(refusal.to_string());
        }
        if refusal.is_throttled() {
            return Self::Throttled { message: refusal.to_string(), retry_after: None };
        }
        let Refusal { code, message } = refusal;
        Self::Refused { code, message: if message.is_empty() { "no reason given".into() } else { message } }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.as_str() {
            "" => write!(f, "code {}", self.code),
            message => write!(f, "{message} (code {})", self.code),
        }
    }
}

impl From<EgressError> for NetworkError {
    fn from(error: EgressError) -> Self {
        Self::Unreachable(error.to_string())
    }
}

/// Makes a text of the network fit for a log or an error: one line, at most 200 characters.
pub(super) fn printable(text: &str) -> String {
    let one_line = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(MESSAGE_CHARS).map(one_line).collect()
}

#[cfg(test)]
pub(super) fn reply(endpoint: Endpoint, status: u16, body: &str) -> Reply {
    let status = StatusCode::from_u16(status).unwrap();
    Reply::new(endpoint, &Answer { status, headers: http::HeaderMap::new(), body: body.to_owned().into() })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue};

    use super::*;

    #[test]
    fn either_code_reports_an_error() {
        use NetworkError::{LoginExpired, Refused, Throttled, Unreachable};
        let result = |status, body| reply(Endpoint::GetUpdates, status, body).accept().map(|_| ());
        assert_eq!(result(200, "{}"), Ok(()));
        assert_eq!(result(200, r#"{"ret":0,"errcode":0}"#), Ok(()));
        let expired = LoginExpired("session timeout (code -14)".into());
        for body in [
            r#"{"errcode":-14,"errmsg":"session timeout"}"#,
            r#"{"ret":-14,"errmsg":"session timeout"}"#,
            r#"{"ret":0,"errcode":"-14","errmsg":"session timeout"}"#,
        ] {
            assert_eq!(result(200, body), Err(expired.clone()), "{body}");
        }
        assert_eq!(result(200, r#"{"ret":-13}"#), Err(LoginExpired("code -13".into())));
        assert_eq!(
            result(200, r#"{"ret":-12}"#),
            Err(Throttled { message: "code -12".into(), retry_after: None })
        );
        assert_eq!(
            result(200, r#"{"ret":-2,"errmsg":"a\nb"}"#),
            Err(Refused { code: -2, message: "a b".into() })
        );
        assert_eq!(result(401, "{}"), Err(LoginExpired("HTTP 401".into())));
        assert_eq!(result(404, ""), Err(Refused { code: 404, message: "HTTP 404".into() }));
        assert_eq!(result(502, "<html>"), Err(Unreachable("HTTP 502".into())));
        for body in ["<html>", "", "[]", r#"{"ret":0"#] {
            assert!(matches!(result(200, body), Err(Unreachable(_))), "{body}");
        }
    }

    #[test]
    fn a_pause_is_read_from_the_answer_and_capped() {
        for (text, pause) in [("7", Some(7)), ("999999", Some(3600)), ("soon", None)] {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(text));
            let answer = Answer { status: StatusCode::TOO_MANY_REQUESTS, headers, body: Bytes::new() };
            let reply = Reply::new(Endpoint::SendMessage, &answer);
            assert_eq!(reply.retry_after, pause.map(Duration::from_secs), "{text}");
        }
    }
}
