//! Statements about contacts.

use super::conn::Conn;

/// Statements about contacts, on a lent connection.
#[derive(Debug)]
pub struct Contacts<'c>(pub(super) Conn<'c>);
