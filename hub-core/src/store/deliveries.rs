//! Statements about deliveries.

use super::conn::{Conn, Tx};
use crate::error::Result;

/// The outcome of one attempt.
#[derive(Debug)]
pub struct Finished;

/// Statements about deliveries, on a lent connection.
#[derive(Debug)]
pub struct Deliveries<'c>(pub(super) Conn<'c>);

pub(super) async fn finish(_tx: &mut Tx, _finished: Vec<Finished>) -> Result<()> {
    std::future::ready(()).await;
    Ok(())
}
