//! Statements about accounts.

use super::conn::Conn;

/// Statements about accounts, on a lent connection.
#[derive(Debug)]
pub struct Accounts<'c>(pub(super) Conn<'c>);
