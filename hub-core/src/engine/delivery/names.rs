//! Names of a bot's senders, for messages whose network gives none: most people who write wrote a moment ago, so that
//! few batches need a query.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::work_store::WorkStore;
use crate::{error::Result, id::BotId, time::Instant};

/// A remark that another process sets shows in messages after this long; one of this process does so at once.
const KEPT: Duration = Duration::from_secs(10);
/// Most names of one bot.
const MOST: usize = 1024;

/// Cache of the names that were read recently.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<NameCache>);

#[derive(Debug, Default)]
struct NameCache {
    /// `None` for people who have no name.
    names: HashMap<String, Option<String>>,
    until: Option<Instant>,
    /// Number of remarks that this process had set when the names were read.
    remarks: u64,
}

impl Names {
    /// The names of these people, as far as they have some, after so many `remarks`.
    pub(super) async fn of(
        &self,
        store: &dyn WorkStore,
        bot_id: BotId,
        users: &[&str],
        remarks: u64,
        now: Instant,
    ) -> Result<HashMap<String, String>> {
        let (mut names, mut unknown) = (HashMap::new(), Vec::new());
        {
            let mut known = self.known();
            if known.remarks != remarks || known.until.is_none_or(|until| until <= now) {
                *known = NameCache { names: HashMap::new(), until: Some(now + KEPT), remarks };
            }
            for &user in users {
                match known.names.get(user) {
                    Some(Some(name)) => drop(names.insert(user.to_owned(), name.clone())),
                    Some(None) => {}
                    None => unknown.push(user),
                }
            }
        }
        if unknown.is_empty() {
            return Ok(names);
        }
        let found = store.names(bot_id, &unknown).await?;
        let mut known = self.known();
        for user in unknown.into_iter().take(MOST.saturating_sub(known.names.len())) {
            known.names.insert(user.to_owned(), found.get(user).cloned());
        }
        names.extend(found);
        Ok(names)
    }

    /// Removes a person from the cache after the network gave them a name, which the store has by now.
    pub(super) fn forget(&self, user: &str) {
        self.known().names.remove(user);
    }

    fn known(&self) -> MutexGuard<'_, NameCache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
