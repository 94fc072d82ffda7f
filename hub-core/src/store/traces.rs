//! Statements about traces.

use super::conn::Conn;

/// Statements about traces, on a lent connection.
#[derive(Debug)]
pub struct Traces<'c>(pub(super) Conn<'c>);
