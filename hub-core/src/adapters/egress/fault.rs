//! Conversion of the HTTP library's errors to [`EgressError`].

use std::{error::Error as StdError, fmt, io, iter};

use super::{EgressError, EgressFault, resend};

/// The resolver found an address that may not be dialled, for this reason.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Blocked(pub(super) String);

/// The resolver found nothing.
#[derive(Debug, thiserror::Error)]
#[error("the name does not resolve")]
pub(super) struct Unresolved;

/// The name of the proxy was not found.
#[derive(Debug, thiserror::Error)]
#[error("the name of the outbound proxy does not resolve")]
pub(super) struct ProxyUnresolved;

impl EgressError {
    pub(super) fn new(fault: EgressFault, written: bool, message: impl Into<String>) -> Self {
        Self { fault, written, message: message.into() }
    }

    pub(super) fn blocked(reason: impl fmt::Display) -> Self {
        Self::new(EgressFault::BlockedAddress, false, format!("the target {reason}"))
    }

    pub(super) fn too_large(limit: usize) -> Self {
        Self::new(EgressFault::TooLarge, true, format!("the response is larger than {limit} bytes"))
    }

    /// Classifies an error; `written` is whether the request's body was read by then.
    pub(super) fn classify(error: &reqwest::Error, written: bool, route: RequestRoute) -> Self {
        if let Some(blocked) = find::<Blocked>(error) {
            return Self::blocked(blocked);
        }
        if find::<Unresolved>(error).is_some() {
            return Self::new(EgressFault::Dns, false, "the name does not resolve");
        }
        if resend::is_untouched(error) {
            return Self::new(EgressFault::Broken, false, "the other side refused to take the request");
        }
        if find::<ProxyUnresolved>(error).is_some() {
            return Self::new(EgressFault::Connect, false, ProxyUnresolved.to_string());
        }
        if error.is_connect() {
            return not_connected(error, route);
        }
        if find::<hyper::Error>(error).is_some_and(hyper::Error::is_parse_too_large) {
            return Self::new(EgressFault::TooLarge, true, "the headers of the response are too large");
        }
        if io_kind(error) == Some(io::ErrorKind::TimedOut) {
            return Self::new(EgressFault::Timeout, written, "the other side stopped answering");
        }
        if error.is_decode() && find::<hyper::Error>(error).is_none() {
            return Self::new(EgressFault::Broken, true, "the response cannot be decoded as it says");
        }
        Self::new(EgressFault::Broken, written, broken(error))
    }
}

/// Scheme and proxy of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestRoute {
    pub(super) https: bool,
    pub(super) proxied: bool,
}

/// No connection came about, so nothing can have been written.
fn not_connected(error: &reqwest::Error, RequestRoute { https, proxied }: RequestRoute) -> EgressError {
    if error.is_timeout() || io_kind(error) == Some(io::ErrorKind::TimedOut) {
        return EgressError::new(EgressFault::Timeout, false, "no connection within the time limit");
    }
    if let Some(tls) = find::<rustls::Error>(error) {
        return EgressError::new(EgressFault::Tls, false, format!("the TLS handshake failed: {tls}"));
    }
    if proxied {
        return EgressError::new(
            EgressFault::Connect,
            false,
            "no connection could be opened through the outbound proxy",
        );
    }
    match io_kind(error) {
        Some(io::ErrorKind::ConnectionRefused) => {
            EgressError::new(EgressFault::Connect, false, "the connection was refused")
        }
        Some(
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::InvalidData
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe,
        ) if https => EgressError::new(EgressFault::Tls, false, "the TLS handshake was cut off"),
        _ => EgressError::new(EgressFault::Connect, false, "the connection could not be established"),
    }
}

fn broken(error: &(dyn StdError + 'static)) -> &'static str {
    match find::<hyper::Error>(error) {
        Some(error) if error.is_parse() => "what came was not HTTP",
        Some(error) if error.is_incomplete_message() => {
            "the connection was closed before the response was complete"
        }
        _ if io_kind(error) == Some(io::ErrorKind::ConnectionReset) => "the connection was reset",
        _ => "the connection broke",
    }
}

/// The first cause of type `T`.
pub(super) fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// Returns the error kind of the operating system: the innermost I/O error, because layers wrap it in their own.
pub(super) fn io_kind(error: &(dyn StdError + 'static)) -> Option<io::ErrorKind> {
    causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).last().map(io::Error::kind)
}

fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    fn next<'a>(error: &&'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
        let error: &'a (dyn StdError + 'static) = *error;
        match error.downcast_ref::<io::Error>() {
            // An I/O error that wraps another hides it from `source`.
            Some(io) => io.get_ref().map(|inner| inner as &(dyn StdError + 'static)),
            None => error.source(),
        }
    }
    iter::successors(Some(error), next)
}
