//! Errors of a call to a model that brought no usable answer.

use std::borrow::Cow;

use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::lenient_json::{self, error_names, error_words, page_words};
use crate::{egress::EgressFault, sse::Events};

/// Error codes with which endpoints report an account without credit, in lower case.
const NO_BALANCE_NAMES: [&str; 10] = [
    "insufficient_quota",
    "insufficient_balance",
    "insufficient_credits",
    "insufficient_user_quota",
    "exceeded_current_quota_error",
    "billing_hard_limit_reached",
    "billing_not_active",
    "arrearage",
    "accountoverdueerror",
    "1113",
];
/// Phrases with which endpoints report an account without credit, in lower case.
const NO_BALANCE_WORDS: [&str; 9] = [
    "insufficient balance",
    "insufficient_quota",
    "insufficient credit",
    "insufficient account balance",
    "balance is too low",
    "not enough credit",
    "余额不足",
    "欠费",
    "额度不足",
];

/// A call to a model that brought no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", class.as_str())]
pub struct AiFault {
    /// The class, which decides about a retry and is shown in traces.
    pub class: AiFaultClass,
    /// A sentence for the trace, without the endpoint's own text.
    pub message: Cow<'static, str>,
    /// The endpoint's error text, at most 2 KiB, for its owner.
    pub endpoint_message: Option<String>,
    /// Whether a retry cannot succeed.
    pub permanent: bool,
    /// Headers of the response, which may request a delay.
    pub headers: Box<HeaderMap>,
    /// Identifiers in the error: its code, its type, the parameter that it is about.
    pub(crate) names: Vec<String>,
}

/// The kinds of [`AiFault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AiFaultClass {
    /// No response, or only a part of it.
    Egress(EgressFault),
    /// The base URL may not be called.
    BadUrl,
    /// A status other than 2xx, of the response or of the error in it.
    Status(u16),
    /// A response that is not a chat completion.
    NotUnderstood,
    /// The stream ended or reported an error before the answer was complete.
    Cut,
}

impl AiFaultClass {
    /// The name in traces and counters.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Egress(fault) => fault.as_str(),
            Self::BadUrl => "bad_url",
            Self::Status(429) => "rate_limited",
            Self::Status(400..=499) => "refused",
            Self::Status(_) => "failed",
            Self::NotUnderstood => "not_understood",
            Self::Cut => "cut",
        }
    }
}

impl AiFault {
    pub(crate) fn new(class: AiFaultClass, message: impl Into<Cow<'static, str>>) -> Self {
        let permanent = match class {
            // A retry of a response above the limit costs tokens and exceeds it again; a bad URL stays bad.
            AiFaultClass::BadUrl | AiFaultClass::Egress(EgressFault::TooLarge) => true,
            // Redirects are not followed, and the same request gets the other 4xx errors again.
            AiFaultClass::Status(status) => !matches!(status, 408 | 409 | 425 | 429 | 500..),
            _ => false,
        };
        Self {
            class,
            message: message.into(),
            endpoint_message: None,
            permanent,
            headers: Box::default(),
            names: Vec::new(),
        }
    }

    pub(super) fn not_understood(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(AiFaultClass::NotUnderstood, message)
    }

    /// Reads the error in a response whose status is 2xx. A code that is an HTTP status counts as the status.
    pub(super) fn reported_in_answer(answer: &Value) -> Self {
        let names = error_names(answer);
        let status = names.iter().find_map(|name| name.parse().ok().filter(|code| (400..600).contains(code)));
        let class = status.map_or(AiFaultClass::Cut, AiFaultClass::Status);
        let message = match status {
            Some(status) => format!("the endpoint answered with error {status}").into(),
            None => Cow::Borrowed("the endpoint broke off with an error"),
        };
        Self::new(class, message).with_words(error_words(answer), names)
    }

    /// Reads the error of a response whose status is not 2xx.
    pub(super) fn refused(status: StatusCode, headers: HeaderMap, body: &[u8]) -> Self {
        let status = status.as_u16();
        let message = match status {
            404 => Cow::Borrowed(
                "the endpoint answered 404; the base URL usually ends with /v1, or names the model",
            ),
            _ => format!("the endpoint answered {status}").into(),
        };
        let body = String::from_utf8_lossy(body);
        let (words, names) =
            match lenient_json::parse(body.trim_start_matches('\u{feff}')).or_else(|_| event(&body)) {
                Ok(json) => (error_words(&json), error_names(&json)),
                Err(()) => (page_words(&body), Vec::new()),
            };
        let fault = Self::new(AiFaultClass::Status(status), message).with_words(words, names);
        Self { headers: Box::new(headers), ..fault }
    }

    fn with_words(mut self, words: String, names: Vec<String>) -> Self {
        let lower = words.to_lowercase();
        // A retry cannot succeed before the account is charged, which takes longer than all retries.
        self.permanent |= names.iter().any(|name| NO_BALANCE_NAMES.contains(&name.as_str()))
            || NO_BALANCE_WORDS.iter().any(|known| lower.contains(known));
        self.endpoint_message = Some(words).filter(|words| !words.is_empty());
        self.names = names;
        self
    }
}

/// Returns the error in a body of server-sent events.
fn event(body: &str) -> Result<Value, ()> {
    let mut events = Events::new(body.len());
    let mut data = events.feed(body.as_bytes()).unwrap_or_default();
    data.extend(events.pending());
    data.iter().find_map(|data| lenient_json::parse(data).ok().filter(Value::is_object)).ok_or(())
}
