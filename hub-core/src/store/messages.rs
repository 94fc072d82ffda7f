//! Statements about messages.

use super::conn::Conn;

/// Statements about messages, on a lent connection.
#[derive(Debug)]
pub struct Messages<'c>(pub(super) Conn<'c>);
