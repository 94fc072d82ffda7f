//! Statements about binds.

use super::conn::Conn;

/// Statements about binds, on a lent connection.
#[derive(Debug)]
pub struct Binds<'c>(pub(super) Conn<'c>);
