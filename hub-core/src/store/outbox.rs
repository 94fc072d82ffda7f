//! Statements about outbox.

use super::conn::Conn;

/// Statements about outbox, on a lent connection.
#[derive(Debug)]
pub struct Outbox<'c>(pub(super) Conn<'c>);
