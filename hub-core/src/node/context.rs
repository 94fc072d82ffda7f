//! Parts that all modules of the domain share: the store, clock, randomness and clients, and the state of this node.

use std::{collections::HashMap, sync::Arc};

use crate::{
    ai::Tools,
    config::HubConfig,
    egress::Egress,
    error::{Error, Result},
    id::Ids,
    media_store::MediaStore,
    model::revocation::{Revocation, Revoked},
    network::Network,
    node::Node,
    password::PasswordHasher,
    random::Random,
    sandbox::Sandbox,
    secret::Sealer,
    store::Store,
    tasks::Computations,
    time::Clock,
    wake::Hint,
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
    /// Compiles filters, off the async threads.
    pub computations: Computations,
    /// The guarded HTTP client.
    pub egress: Egress,
    /// Runs plugins.
    pub sandbox: Sandbox,
    /// Tools that models may call.
    pub tools: Arc<dyn Tools>,
    /// Chat networks by name.
    pub networks: Arc<HashMap<String, Arc<dyn Network>>>,
    /// Settings.
    pub config: Arc<HubConfig>,
    /// Storage of files, and the links to them.
    pub media: MediaStore,
    /// State of this node.
    pub node: Node,
}

impl Context {
    /// The same parts with another view of the store.
    pub(crate) fn with_store<T>(&self, store: T) -> Context<T> {
        Context {
            store,
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
            node: self.node.clone(),
        }
    }

    /// Creates the row that notifies other nodes of a revocation. Add it in the transaction of the revocation
    /// (`tx.revocations().add(&row)`), and call [`notify_revoked`](Self::notify_revoked) after its commit.
    pub fn revocation(&self, revoked: Revoked) -> Revocation {
        Revocation { id: self.ids.next(), revoked, at: self.store.now() }
    }

    /// Tells this node and the others that something was ended; the transaction that did it is committed.
    pub fn notify_revoked(&self, revoked: Revoked) {
        self.node.events.revoke(revoked);
        self.node.wake.hint(Hint::Revoked);
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
