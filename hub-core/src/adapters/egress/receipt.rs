//! A response whose status decides: its body is kept as far as it came.

use std::ops::ControlFlow;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};

use super::{Call, Egress, EgressError, Reader};

/// A response with the beginning of its body.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// The body, or its first [`Call::max_answer`] bytes, or what came before it broke off.
    pub body: Bytes,
    /// The end of the body.
    pub end: BodyEnd,
}

/// The end of a body: complete, cut at the limit, or broken off.
#[derive(Debug, Clone)]
pub enum BodyEnd {
    /// All of it is there.
    Complete,
    /// It is longer than the limit.
    Cut {
        /// The limit in bytes.
        limit: usize,
    },
    /// The connection or the time ended first, or it could not be decoded.
    Broken(EgressError),
}

impl BodyEnd {
    /// A sentence about a body that is not complete.
    pub fn problem(&self) -> Option<String> {
        match self {
            Self::Complete => None,
            Self::Cut { limit } => Some(format!("the body is cut: it is larger than {} KiB", limit / 1024)),
            Self::Broken(error) => Some(format!("the body ended early: {error}")),
        }
    }
}

impl Egress {
    /// Sends one request and reads the first [`Call::max_answer`] bytes of its response. Once the head came, neither a
    /// longer body nor one that ends late, early or never is an error.
    ///
    /// # Errors
    /// As [`Egress::send`], while there is no status.
    pub async fn receive(&self, call: Call) -> Result<Receipt, EgressError> {
        let mut prefix = Prefix { limit: call.max_answer, ..Prefix::default() };
        let read = self.read(Call { max_answer: usize::MAX, ..call }, &mut prefix).await;
        let Prefix { head, body, limit, is_cut } = prefix;
        let end = match read {
            _ if is_cut => BodyEnd::Cut { limit },
            Ok(()) => BodyEnd::Complete,
            Err(error) if head.is_none() => return Err(error),
            Err(error) => BodyEnd::Broken(error),
        };
        let (status, headers) = head.unwrap_or_default();
        Ok(Receipt { status, headers, body: body.freeze(), end })
    }
}

/// Keeps the head of a response and the beginning of its body.
#[derive(Debug, Default)]
struct Prefix {
    head: Option<(StatusCode, HeaderMap)>,
    body: BytesMut,
    limit: usize,
    is_cut: bool,
}

impl Reader for Prefix {
    fn begin(&mut self, status: StatusCode, headers: &HeaderMap) {
        self.head = Some((status, headers.clone()));
    }

    fn take(&mut self, piece: &[u8]) -> ControlFlow<()> {
        let left = self.limit - self.body.len();
        self.body.extend_from_slice(&piece[..piece.len().min(left)]);
        self.is_cut = piece.len() > left;
        if self.is_cut { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
