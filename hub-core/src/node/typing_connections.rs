//! Connections that show people that a bot is typing.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{error::Result, id::BotId, network::Connection};

/// Maximum number of accounts with cached tickets. When it is exceeded, the cache is cleared.
const MAX_REMEMBERED: usize = 256;

/// Connections that only show typing. They cache the network's tickets, one per person.
#[derive(Clone, Default)]
pub struct TypingConnections(Arc<Mutex<HashMap<BotId, TypingConnection>>>);

struct TypingConnection {
    credentials_rev: i64,
    connection: Arc<dyn Connection>,
}

impl fmt::Debug for TypingConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_tuple("TypingConnections").field(&known).finish()
    }
}

impl TypingConnections {
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
        known.insert(bot, TypingConnection { credentials_rev, connection: Arc::clone(&connection) });
        Ok(connection)
    }
}
