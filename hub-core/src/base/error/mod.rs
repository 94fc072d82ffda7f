//! Error codes, and the error type of the library.

mod advice;

pub use advice::{Advice, Setting};

use crate::words::words;

use std::{borrow::Cow, fmt, time::Duration};

use serde::Serialize;

/// Result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

words! {
    /// Why something failed, as a closed list. The spelling of [`ErrorCode::as_str`] is what HTTP clients, the command
    /// line and logs show.
    #[derive(Hash)]
    pub enum ErrorCode {
        /// No credential was sent, or the session has ended.
        Unauthorized = "UNAUTHORIZED",
        /// A credential was sent but is unknown, expired, revoked or of the wrong kind.
        InvalidToken = "INVALID_TOKEN",
        /// The caller is known and may not do this.
        Forbidden = "FORBIDDEN",
        /// The object does not exist, or belongs to another user: the two are indistinguishable.
        NotFound = "NOT_FOUND",
        /// The input breaks a rule; the details name the fields.
        InvalidParams = "INVALID_PARAMS",
        /// The method does not exist on this path.
        MethodNotAllowed = "METHOD_NOT_ALLOWED",
        /// The state of the thing forbids the act now.
        Conflict = "CONFLICT",
        /// The chat network refuses a send to this person now; they have to write first.
        WindowClosed = "WINDOW_CLOSED",
        /// The body exceeds its limit.
        PayloadTooLarge = "PAYLOAD_TOO_LARGE",
        /// The body is not of a type this call reads.
        UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE",
        /// Too many requests; try again after [`Error::retry_after`].
        RateLimited = "RATE_LIMITED",
        /// The chat network or another service behind the hub failed.
        UpstreamError = "UPSTREAM_ERROR",
        /// The hub cannot do this at the moment (storage full, draining); try again later.
        Unavailable = "UNAVAILABLE",
        /// A fault of the hub. Nothing about it leaves the process but a request id.
        Internal = "INTERNAL_ERROR",
    }
}

/// One field that broke a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// Path of the field as the caller wrote it, for example `webhook.url`.
    pub field: Cow<'static, str>,
    /// The rule, as half a sentence: `must be at most 64 characters`.
    pub reason: Cow<'static, str>,
}

type Source = Box<dyn std::error::Error + Send + Sync>;

/// An error: a [`code`](Error::code), a sentence that a user can act on, and for bad input the fields.
///
/// The error is one pointer wide, so that `Result<T>` stays small on the hot path.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    code: ErrorCode,
    message: Cow<'static, str>,
    details: Vec<FieldError>,
    retry_after: Option<Duration>,
    hint: Option<Cow<'static, str>>,
    advice: Vec<Advice>,
    reason: Option<Reason>,
    source: Option<Source>,
}

words! {
    /// Why an operation is rejected, where a program can do something about it that the code does not tell.
    pub enum Reason {
        /// The session was opened too long ago for this: the user has to sign in again.
        SessionTooOld = "session_too_old",
        /// Only a session can do this, not an API key.
        SessionRequired = "session_required",
    }
}

impl Error {
    /// An error with a code and a sentence without a trailing period.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            code,
            message: message.into(),
            details: Vec::new(),
            retry_after: None,
            hint: None,
            advice: Vec::new(),
            reason: None,
            source: None,
        }))
    }

    /// `NOT_FOUND` for a kind of thing, for example `Error::not_found("bot")`.
    pub fn not_found(what: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("{what} not found"))
    }

    /// `INVALID_PARAMS` about one field.
    pub fn invalid(field: impl Into<Cow<'static, str>>, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::invalid_fields(vec![FieldError { field: field.into(), reason: reason.into() }])
    }

    /// `INVALID_PARAMS` about several fields at once. The message repeats the first.
    pub fn invalid_fields(details: Vec<FieldError>) -> Self {
        let message = details.first().map_or_else(
            || "invalid parameters".to_owned(),
            |first| format!("{} {}", first.field, first.reason),
        );
        let mut error = Self::new(ErrorCode::InvalidParams, message);
        error.0.details = details;
        error
    }

    /// `CONFLICT` with a sentence.
    pub fn conflict(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::Conflict, message)
    }

    /// `INTERNAL_ERROR` that keeps its cause for the log.
    pub fn internal(source: impl Into<Source>) -> Self {
        Self::new(ErrorCode::Internal, "internal error").with_source(source)
    }

    /// Adds the cause; it is logged, never shown to a remote caller.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Adds the time to wait before the next attempt.
    #[must_use]
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.0.retry_after = Some(after);
        self
    }

    /// Adds a next step, as a sentence.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds a step that each frontend says in its own words, behind the hint.
    #[must_use]
    pub fn with_advice(mut self, advice: impl IntoIterator<Item = Advice>) -> Self {
        self.0.advice.extend(advice);
        self
    }

    /// Adds the hint and the advice of another error.
    #[must_use]
    pub fn with_hint_of(mut self, other: &Self) -> Self {
        self.0.hint.clone_from(&other.0.hint);
        self.with_advice(other.advice().iter().cloned())
    }

    /// Adds the reason for a program.
    #[must_use]
    pub fn with_reason(mut self, reason: Reason) -> Self {
        self.0.reason = Some(reason);
        self
    }

    /// The code of the closed list.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The sentence, safe to show to the caller.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The fields that broke a rule; empty unless the code is `INVALID_PARAMS`.
    pub fn details(&self) -> &[FieldError] {
        &self.0.details
    }

    /// Returns the time to wait before the next attempt, if known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns the next step, if known, without the [`advice`](Self::advice).
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The steps that a frontend has words for.
    pub fn advice(&self) -> &[Advice] {
        &self.0.advice
    }

    /// The hint, followed by the advice in the words of a frontend.
    pub fn hint_in(&self, words: impl Fn(&Advice) -> String) -> Option<String> {
        let advice: Vec<_> = self.advice().iter().map(words).collect();
        let advice = (!advice.is_empty()).then(|| advice.join(", "));
        match (self.hint(), advice) {
            (Some(hint), Some(advice)) => Some(format!("{hint}: {advice}")),
            (hint, advice) => hint.map(str::to_owned).or(advice),
        }
    }

    /// The reason for a program, where there is one.
    pub fn reason(&self) -> Option<Reason> {
        self.0.reason
    }

    /// Returns the causes, outermost first, for the operator. A cause that an error already quotes is left out.
    pub fn causes(&self) -> Vec<String> {
        let sources = std::iter::successors(std::error::Error::source(self), |error| error.source());
        let mut causes: Vec<String> = Vec::new();
        for cause in sources.map(ToString::to_string) {
            if causes.last().is_none_or(|said| !said.ends_with(&cause)) {
                causes.push(cause);
            }
        }
        causes
    }

    /// The message and the causes in one line, for the operator.
    pub fn chain(&self) -> String {
        let causes = self.causes();
        std::iter::once(self.message())
            .chain(causes.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(": ")
    }

    /// Whether the same call may succeed later without a change by the caller.
    pub fn is_retryable(&self) -> bool {
        matches!(self.code(), ErrorCode::RateLimited | ErrorCode::Unavailable | ErrorCode::UpstreamError)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// Collects every broken rule of one input, so that a caller sees all of them at once.
#[derive(Debug, Default)]
pub struct Problems {
    fields: Vec<FieldError>,
    advice: Vec<Advice>,
}

impl Problems {
    /// Notes one broken rule.
    pub fn add(&mut self, field: impl Into<Cow<'static, str>>, reason: impl Into<Cow<'static, str>>) {
        self.fields.push(FieldError { field: field.into(), reason: reason.into() });
    }

    /// Notes a broken rule unless `ok`.
    pub fn check(
        &mut self,
        ok: bool,
        field: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) {
        if !ok {
            self.add(field, reason);
        }
    }

    /// Takes over another `INVALID_PARAMS` error, with `prefix.` before each field.
    pub fn merge(&mut self, prefix: &str, error: &Error) {
        self.take_as(error, |field| format!("{prefix}.{field}").into());
    }

    /// Takes over another `INVALID_PARAMS` error.
    pub fn take(&mut self, error: &Error) {
        self.take_as(error, Clone::clone);
    }

    /// Takes over another `INVALID_PARAMS` error with other names of its fields.
    pub fn take_as(&mut self, error: &Error, name: impl Fn(&Cow<'static, str>) -> Cow<'static, str>) {
        for detail in error.details() {
            self.add(name(&detail.field), detail.reason.clone());
        }
        self.advice.extend_from_slice(error.advice());
    }

    /// Notes the problems of a part, with `prefix.` before each field.
    pub(crate) fn within(&mut self, prefix: &str, check: impl FnOnce(&mut Self)) {
        let mut part = Self::default();
        check(&mut part);
        if let Err(error) = part.finish() {
            self.merge(prefix, &error);
        }
    }

    /// `Ok` when nothing was noted.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every noted field.
    pub fn finish(self) -> Result<()> {
        if self.fields.is_empty() {
            return Ok(());
        }
        Err(Error::invalid_fields(self.fields).with_advice(self.advice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_reported_together() {
        let mut problems = Problems::default();
        problems.check(true, "a", "fine");
        problems.check(false, "b", "must be set");
        problems.merge("webhook", &Error::invalid("url", "must be http or https"));
        let error = problems.finish().unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidParams);
        assert_eq!(
            error.details().iter().map(|d| d.field.as_ref()).collect::<Vec<_>>(),
            ["b", "webhook.url"]
        );
        assert_eq!(error.to_string(), "INVALID_PARAMS: b must be set");
    }

    #[test]
    fn a_hint_ends_with_the_advice_in_the_words_of_a_frontend() {
        let words = |advice: &Advice| format!("<{advice:?}>");
        let error = || Error::conflict("no");
        assert_eq!(error().hint_in(words), None);
        assert_eq!(error().with_hint("wait").hint_in(words).as_deref(), Some("wait"));
        let bind = error().with_advice([Advice::BindBot, Advice::RotateKey]);
        assert_eq!(bind.hint_in(words).as_deref(), Some("<BindBot>, <RotateKey>"));
        let copied = error().with_hint_of(&bind.with_hint("do it"));
        assert_eq!(copied.hint_in(words).as_deref(), Some("do it: <BindBot>, <RotateKey>"));
        let mut problems = Problems::default();
        problems.merge("webhook", &Error::invalid("url", "is private").with_advice([Advice::BindBot]));
        assert_eq!(problems.finish().unwrap_err().advice(), [Advice::BindBot]);
    }

    #[test]
    fn a_cause_that_repeats_its_own_cause_is_listed_once() {
        let malformed = || std::io::Error::other("disk image is malformed");
        let inner = Error::new(ErrorCode::Unavailable, "from the database: disk image is malformed")
            .with_source(malformed());
        let error = Error::internal(inner);
        assert_eq!(error.causes(), ["UNAVAILABLE: from the database: disk image is malformed"]);
        assert_eq!(error.chain(), "internal error: UNAVAILABLE: from the database: disk image is malformed");
        let other = Error::conflict("no").with_source(malformed());
        assert_eq!(other.chain(), "no: disk image is malformed");
    }
}
