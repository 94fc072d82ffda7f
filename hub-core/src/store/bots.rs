//! Statements about bots.

use super::conn::Conn;

/// Statements about bots, on a lent connection.
#[derive(Debug)]
pub struct Bots<'c>(pub(super) Conn<'c>);
