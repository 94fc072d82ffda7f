//! What every part of the domain works with: the store, the injected world, and the way to wake the workers.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::broadcast;

use crate::{
    accounts::PasswordHasher,
    config::HubConfig,
    egress::Egress,
    error::{Error, Result},
    events::Events,
    id::{BotId, Ids},
    network::Network,
    random::Random,
    secret::Sealer,
    store::Store,
    time::Clock,
};

/// The shared parts of one hub. Nouns get it by reference, workers clone it.
#[derive(Debug, Clone)]
pub struct Context {
    /// The database.
    pub store: Store,
    /// Time.
    pub clock: Clock,
    /// Randomness.
    pub random: Random,
    /// Ids.
    pub ids: Ids,
    /// Seals secrets at rest.
    pub sealer: Sealer,
    /// Hashes passwords, a few at a time.
    pub passwords: PasswordHasher,
    /// The guarded HTTP client.
    pub egress: Egress,
    /// Chat networks by name.
    pub networks: Arc<HashMap<String, Arc<dyn Network>>>,
    /// Settings.
    pub config: Arc<HubConfig>,
    /// Hints for the workers.
    pub wake: Wake,
    /// What happens, for who listens.
    pub events: Events,
}

impl Context {
    /// A chat network by name.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on the field `network` when this hub does not have it.
    pub fn network(&self, name: &str) -> Result<&Arc<dyn Network>> {
        self.networks.get(name).ok_or_else(|| {
            let mut known: Vec<_> = self.networks.keys().map(String::as_str).collect();
            known.sort_unstable();
            Error::invalid("network", format!("must be one of: {}", known.join(", ")))
        })
    }
}

/// Tells the workers that the store has something new. A hint only: polling finds everything without it, so
/// a lost hint costs a second, never a message.
#[derive(Debug, Clone)]
pub struct Wake(broadcast::Sender<Hint>);

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// A bot was bound, or its login or wanted state changed.
    Bot(BotId),
    /// A bot's outbox has a new row.
    Outbox(BotId),
    /// A bot's deliveries have a new row that no node holds.
    Delivery(BotId),
}

impl Wake {
    /// A bus that keeps the last 1,024 hints; who lags behind looks at everything.
    pub fn new() -> Self {
        Self(broadcast::Sender::new(1024))
    }

    /// Sends a hint; without listeners it is lost, which is fine.
    pub fn hint(&self, hint: Hint) {
        let _ = self.0.send(hint);
    }

    /// Hears every hint from now on.
    pub fn listen(&self) -> broadcast::Receiver<Hint> {
        self.0.subscribe()
    }
}

impl Default for Wake {
    fn default() -> Self {
        Self::new()
    }
}
