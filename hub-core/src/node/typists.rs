//! Connections that show people that a bot is typing.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{error::Result, id::BotId, network::Connection};

/// Accounts whose tickets are remembered; beyond that all are forgotten, and asked for again.
const MAX_REMEMBERED: usize = 256;

/// Connections that only type. They keep the network's tickets, which are asked for once per person.
#[derive(Clone, Default)]
pub struct Typists(Arc<Mutex<HashMap<BotId, Typist>>>);

struct Typist {
    credentials_rev: i64,
    connection: Arc<dyn Connection>,
}

impl fmt::Debug for Typists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_tuple("Typists").field(&known).finish()
    }
}

impl Typists {
    pub(crate) fn find(
        &self,
        bot: BotId,
        credentials_rev: i64,
        connect: impl FnOnce() -> Result<Arc<dyn Connection>>,
    ) -> Result<Arc<dyn Connection>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(typist) = known.get(&bot).filter(|typist| typist.credentials_rev == credentials_rev) {
            return Ok(Arc::clone(&typist.connection));
        }
        let connection = connect()?;
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(bot, Typist { credentials_rev, connection: Arc::clone(&connection) });
        Ok(connection)
    }
}
