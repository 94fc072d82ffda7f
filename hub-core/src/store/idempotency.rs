//! Statements about idempotency.

use super::conn::Conn;

/// Statements about idempotency, on a lent connection.
#[derive(Debug)]
pub struct Idempotency<'c>(pub(super) Conn<'c>);
