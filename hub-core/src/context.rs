//! What every part of the domain works with: the store, the injected world, and the way to wake the workers.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::broadcast;

use crate::{
    accounts::PasswordHasher,
    ai::Tools,
    apps::sockets::Seats,
    bots::Typists,
    channels::log::Live,
    config::HubConfig,
    counters::Counters,
    egress::Egress,
    error::{Error, Result},
    events::Events,
    id::{BotId, ChannelId, Ids},
    invariants::Violations,
    media::MediaStore,
    network::Network,
    random::Random,
    revocation::{Revocation, Revoked},
    sandbox::Sandbox,
    secret::Sealer,
    sockets::Places,
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
    /// Where plugins run.
    pub sandbox: Sandbox,
    /// What models may call while they answer.
    pub tools: Arc<dyn Tools>,
    /// Chat networks by name.
    pub networks: Arc<HashMap<String, Arc<dyn Network>>>,
    /// Settings.
    pub config: Arc<HubConfig>,
    /// Where files lie, and the links to them.
    pub media: MediaStore,
    /// Hints for the workers.
    pub wake: Wake,
    /// Rules that did not hold.
    pub violations: Violations,
    /// What happens, for who listens.
    pub events: Events,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// Places for WebSockets on this node.
    pub places: Places,
    /// Who listens to channels on this node.
    pub live: Live,
    /// Which apps have sockets on this node.
    pub seats: Seats,
    /// Connections that show people that a bot is typing.
    pub typists: Typists,
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
            sandbox: self.sandbox.clone(),
            tools: Arc::clone(&self.tools),
            networks: Arc::clone(&self.networks),
            config: Arc::clone(&self.config),
            media: self.media.clone(),
            wake: self.wake.clone(),
            violations: self.violations.clone(),
            events: self.events.clone(),
            counters: Arc::clone(&self.counters),
            places: self.places.clone(),
            live: self.live.clone(),
            seats: self.seats.clone(),
            typists: self.typists.clone(),
        }
    }

    /// The row by which other nodes learn that something is ended: to be added in the transaction that ends it
    /// (`tx.revocations().add(&row)`), and told by [`tell_revoked`](Self::tell_revoked) after its commit.
    pub fn revocation(&self, revoked: Revoked) -> Revocation {
        Revocation { id: self.ids.next(), revoked, at: self.store.now() }
    }

    /// Tells this node and the others that something was ended; the transaction that did it is committed.
    pub fn tell_revoked(&self, revoked: Revoked) {
        self.events.revoke(revoked);
        self.wake.hint(Hint::Revoked);
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
    /// Something was ended: look at the revocations.
    Revoked,
    /// A bot has files to be fetched again.
    Media(BotId),
    /// A channel's log has a new entry; for nodes that have clients of it.
    Log(ChannelId),
    /// There is something to tell apps.
    AppEvents,
    /// This node has a first client of a channel.
    Listening(ChannelId),
    /// A node released its leases: its bots have no holder.
    Released,
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

/// The form in which nodes tell each other: `bot:bot_01…`, `outbox:…`, `log:ch_01…`, `revoked`.
impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bot(id) => write!(f, "bot:{id}"),
            Self::Outbox(id) => write!(f, "outbox:{id}"),
            Self::Delivery(id) => write!(f, "delivery:{id}"),
            Self::Revoked => f.write_str("revoked"),
            Self::Media(id) => write!(f, "media:{id}"),
            Self::Log(id) => write!(f, "log:{id}"),
            Self::AppEvents => f.write_str("apps"),
            Self::Listening(id) => write!(f, "listening:{id}"),
            Self::Released => f.write_str("released"),
        }
    }
}

impl Hint {
    /// Reads the printed form; `None` for what another version may say.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "revoked" => return Some(Self::Revoked),
            "apps" => return Some(Self::AppEvents),
            "released" => return Some(Self::Released),
            _ => {}
        }
        let (what, id) = text.split_once(':')?;
        match what {
            "media" => Some(Self::Media(id.parse().ok()?)),
            "bot" => Some(Self::Bot(id.parse().ok()?)),
            "outbox" => Some(Self::Outbox(id.parse().ok()?)),
            "delivery" => Some(Self::Delivery(id.parse().ok()?)),
            "log" => Some(Self::Log(id.parse().ok()?)),
            "listening" => Some(Self::Listening(id.parse().ok()?)),
            _ => None,
        }
    }
}
