//! Cache of the owners of bots: one query per bot, not per event and stream.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    error::Result,
    id::{BotId, UserId},
    store::Store,
};

/// Maximum number of cached bots. When it is exceeded, the cache is cleared.
const MAX_REMEMBERED: usize = 10_000;

/// The owners of bots. A bot never changes its owner.
#[derive(Debug, Clone, Default)]
pub struct BotOwners(Arc<Mutex<HashMap<BotId, Option<UserId>>>>);

impl BotOwners {
    /// Returns the owners of these bots; bots that do not exist are left out.
    pub(crate) async fn of(&self, store: &Store, bots: BTreeSet<BotId>) -> Result<HashMap<BotId, UserId>> {
        let (mut found, mut unknown) = (HashMap::new(), Vec::new());
        {
            let known = self.lock();
            for bot in bots {
                match known.get(&bot) {
                    Some(owner) => found.extend(owner.map(|owner| (bot, owner))),
                    None => unknown.push(bot),
                }
            }
        }
        if unknown.is_empty() {
            return Ok(found);
        }
        let rows = store.read().await?.bots().owners(&unknown).await?;
        let rows: HashMap<_, _> = rows.into_iter().map(|row| (row.bot_id, row.owner_id)).collect();
        let mut known = self.lock();
        if known.len() + unknown.len() > MAX_REMEMBERED {
            known.clear();
        }
        known.extend(unknown.into_iter().map(|bot| (bot, rows.get(&bot).copied())));
        found.extend(rows);
        Ok(found)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<BotId, Option<UserId>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
