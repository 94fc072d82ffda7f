//! Accepting inbound messages: everything that follows from a batch, in multi-row statements.

use super::conn::Tx;
use crate::error::Result;

/// A batch of one bot.
#[derive(Debug)]
pub struct Accept;

/// What became of it.
#[derive(Debug)]
pub struct Accepted;

pub(super) async fn write(_tx: &mut Tx, batches: Vec<Accept>) -> Result<Vec<Accepted>> {
    std::future::ready(()).await;
    Ok(batches.into_iter().map(|_| Accepted).collect())
}
