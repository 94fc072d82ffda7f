//! Statements about channels.

use super::conn::Conn;

/// Statements about channels, on a lent connection.
#[derive(Debug)]
pub struct Channels<'c>(pub(super) Conn<'c>);
