//! What every part of the domain works with: the store, the injected world, and the way to wake the workers.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::broadcast;

use crate::{
    accounts::PasswordHasher,
    config::HubConfig,
    counters::Counters,
    egress::Egress,
    error::{Error, Result},
    events::Events,
    id::{BotId, Ids},
    invariants::Violations,
    network::Network,
    random::Random,
    secret::Sealer,
    store::{Store, work::WorkStore},
    tasks::Computations,
    time::Clock,
};

/// The shared parts of one hub. Nouns get it by reference.
#[derive(Debug, Clone)]
pub struct Context<S = Store> {
    /// The database.
    pub store: S,
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
    /// Compiles filters, off the threads that serve everybody.
    pub computations: Computations,
    /// The guarded HTTP client.
    pub egress: Egress,
    /// Chat networks by name.
    pub networks: Arc<HashMap<String, Arc<dyn Network>>>,
    /// Settings.
    pub config: Arc<HubConfig>,
    /// Hints for the workers.
    pub wake: Wake,
    /// Rules that did not hold.
    pub violations: Violations,
    /// What happens, for who listens.
    pub events: Events,
    /// What is counted.
    pub counters: Arc<Counters>,
}

/// The parts as the workers use them.
pub type WorkContext = Context<Arc<dyn WorkStore>>;

impl Context {
    /// The same parts for the workers.
    pub fn for_work(&self) -> WorkContext {
        Context {
            store: Arc::new(self.store.clone()),
            clock: self.clock.clone(),
            random: self.random.clone(),
            ids: self.ids.clone(),
            sealer: self.sealer.clone(),
            passwords: self.passwords.clone(),
            computations: self.computations.clone(),
            egress: self.egress.clone(),
            networks: Arc::clone(&self.networks),
            config: Arc::clone(&self.config),
            wake: self.wake.clone(),
            violations: self.violations.clone(),
            events: self.events.clone(),
            counters: Arc::clone(&self.counters),
        }
    }

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
pub struct Wake(broadcast::Sender<Heard>);

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hint {
    /// A bot was bound, or its login or wanted state changed.
    Bot(BotId),
    /// A bot's outbox has a new row.
    Outbox(BotId),
    /// A bot's deliveries have a new row that no node holds.
    Delivery(BotId),
}

/// A hint, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// The hint.
    pub hint: Hint,
    /// Whether another node gave it: such a hint is not passed on again.
    pub remote: bool,
}

impl Wake {
    /// A bus that keeps the last 1,024 hints; who lags behind looks at everything.
    pub fn new() -> Self {
        Self(broadcast::Sender::new(1024))
    }

    /// Gives a hint of this node; without listeners it is lost, which is fine.
    pub fn hint(&self, hint: Hint) {
        let _ = self.0.send(Heard { hint, remote: false });
    }

    /// Repeats a hint of another node.
    pub fn relay(&self, hint: Hint) {
        let _ = self.0.send(Heard { hint, remote: true });
    }

    /// Hears every hint from now on.
    pub fn listen(&self) -> broadcast::Receiver<Heard> {
        self.0.subscribe()
    }
}

impl Default for Wake {
    fn default() -> Self {
        Self::new()
    }
}

/// The form in which nodes tell each other: `bot:bot_01…`, `outbox:…`, `delivery:…`.
impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bot(id) => write!(f, "bot:{id}"),
            Self::Outbox(id) => write!(f, "outbox:{id}"),
            Self::Delivery(id) => write!(f, "delivery:{id}"),
        }
    }
}

impl Hint {
    /// Reads the printed form; `None` for what another version may say.
    pub fn parse(text: &str) -> Option<Self> {
        let (what, id) = text.split_once(':')?;
        let id = id.parse().ok()?;
        match what {
            "bot" => Some(Self::Bot(id)),
            "outbox" => Some(Self::Outbox(id)),
            "delivery" => Some(Self::Delivery(id)),
            _ => None,
        }
    }
}
