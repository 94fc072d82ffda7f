//! The simulated chat network: a server of the iLink protocol (`docs/ilink.md#simulator`), with a control API for what
//! people do with their phones, and faults on demand.
//!
//! A [`Simulator`] is an HTTP service: called inside the process under [`SIM_HOST`], or
//! [served](Simulator::serve) on a listener. Tests use its methods; programs in other languages and other
//! processes the control API under `/_sim/`, which is the same in JSON.
//!
//! It is an independent witness: nothing is shared with the connector in [`network::ilink`](super::ilink), so
//! a misreading of the protocol on one side fails against the other. Routing, parsing and error codes are those of every
//! [server](super::server). Every held answer and every expiry goes
//! by the [`Clock`], so a test with a manual clock never sleeps. Everything kept is bounded by [`SimCaps`].
//!
//! ```
//! use bytes::Bytes;
//! use hub_core::{local_http::LocalService, network::sim::*, random::Random, time::Clock};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let sim = Simulator::new(SimConfig::default(), Clock::system(), Random::seeded(1));
//! // A hub asks for a QR code …
//! let request = http::Request::get("http://sim.local/ilink/bot/get_bot_qrcode?bot_type=3");
//! let answer = sim.call(request.body(Bytes::new()).unwrap()).await.unwrap();
//! let answer: serde_json::Value = serde_json::from_slice(answer.body()).unwrap();
//! // … a person scans and confirms it, and writes.
//! let account = sim.confirm(answer["qrcode_img_content"].as_str().unwrap(), None).unwrap();
//! let message_id = sim.say(&account.wx_id, None, "hello").unwrap();
//! assert!(message_id.parse::<u64>().unwrap() > 1 << 53);
//! // From the bot's next send on, sends are too fast for half a minute.
//! sim.add_fault(Fault::new(Action::RateLimit { penalty_ms: 30_000 })).unwrap();
//! # });
//! ```

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    error::{Error, Result},
    local_http::{self, Limits},
    random::Random,
    tasks::Tasks,
    time::Clock,
};

mod account;
mod cdn;
mod config;
mod control;
mod distort;
pub mod faults;
mod files;
mod host;
mod inbound;
mod outbound;
mod qr;
mod serve;
#[cfg(test)]
mod testing;
mod typing;
mod updates;
mod violation;
mod world;

pub use super::server::Endpoint;
pub use account::{Account, AccountStatus, SimContact};
pub use config::{DeliveryMode, SimCaps, SimConfig, TokenlessSend, UploadUrls};
pub use faults::{Action, Fault, FaultStatus, IdForm};
pub use files::StoredFile;
pub use host::SIM_HOST;
pub use outbound::{Outbound, OutboundMedia};
pub use qr::QrAction;
pub use typing::Typing;
pub use violation::{Violation, ViolationKind};

use world::{Env, World};

/// Most messages that one call to list or wait for sends returns.
const MAX_LISTED: usize = 1_000;

/// A simulated chat network. Cheap to clone; clones share the state.
#[derive(Clone)]
pub struct Simulator(Arc<Inner>);

struct Inner {
    config: SimConfig,
    clock: Clock,
    random: Random,
    world: Mutex<World>,
}

impl Simulator {
    /// A network without accounts.
    pub fn new(config: SimConfig, clock: Clock, random: Random) -> Self {
        let world = Mutex::new(World::new(&random));
        Self(Arc::new(Inner { config, clock, random, world }))
    }

    /// Serves the protocol and the control API until `tasks` are asked to stop. Every account's poll holds a
    /// connection, so the cap on connections is the one on accounts and a little more.
    pub async fn serve(self, listener: TcpListener, tasks: Tasks) {
        let connections = self.config().caps.accounts.saturating_add(1_000);
        let limits = Limits { connections, ..Limits::default() };
        local_http::serve(listener, Arc::new(self), limits, tasks).await;
    }

    /// Scans a QR code.
    ///
    /// # Errors
    /// `NOT_FOUND` for a text that is no QR code of this simulator, `CONFLICT` in a state that cannot be scanned.
    pub fn scan(&self, qr_text: &str) -> Result<()> {
        self.act(|world, env| world.scan(env, qr_text))
    }

    /// Confirms a login, scanned or not. Creates a new person with a new bot unless `user_id` names a person; a
    /// known person is bound to a new bot, which ends the token of the old one, unless the client showed that very
    /// token: then the bot stays and the client gets `binded_redirect`.
    ///
    /// # Errors
    /// As [`scan`](Self::scan); `CONFLICT` also when the simulator is full.
    pub fn confirm(&self, qr_text: &str, user_id: Option<&str>) -> Result<Account> {
        self.act(|world, env| world.confirm(env, qr_text, user_id))
    }

    /// Does something else to a QR code.
    ///
    /// # Errors
    /// `NOT_FOUND`, `CONFLICT` in a state that is final, `INVALID_PARAMS` for a pairing code.
    pub fn qr(&self, qr_text: &str, action: QrAction) -> Result<()> {
        self.act(|world, env| world.move_qr(env, qr_text, action))
    }

    /// A person writes a text to a bot; the bot's owner unless `from` names another. Answers the message's id.
    ///
    /// # Errors
    /// As [`inject`](Self::inject).
    pub fn say(&self, wx_id: &str, from: Option<&str>, text: &str) -> Result<String> {
        self.inject(json!({"wx_id": wx_id, "from_user_id": from, "text": text}))
    }

    /// Injects one message: `wx_id`, `from_user_id?`, one of `text`, `items` and `item_list`, and raw fields of a
    /// message (`docs/ilink.md#messages`) that replace the usual ones (null leaves one out). An entry of `items` with
    /// `bytes` (base64) and a `type` of 2 to 5 is a file that goes to the CDN first. Answers the message's id.
    ///
    /// # Errors
    /// `NOT_FOUND` for the bot, `INVALID_PARAMS` for the message, `CONFLICT` when the bot's inbox is full.
    pub fn inject(&self, message: Value) -> Result<String> {
        Ok(self.inject_all(vec![message])?.remove(0))
    }

    /// Injects messages, all or none.
    ///
    /// # Errors
    /// As [`inject`](Self::inject).
    pub fn inject_all(&self, messages: Vec<Value>) -> Result<Vec<String>> {
        self.act(|world, env| world.inject(env, messages))
    }

    /// Puts a file on the CDN as a person's phone does, for a bot; its items can then be injected.
    ///
    /// # Errors
    /// `NOT_FOUND` for the bot, `INVALID_PARAMS` for a file over 200 MiB.
    pub fn store_file(&self, wx_id: &str, bytes: &[u8]) -> Result<StoredFile> {
        self.act(|world, env| world.store_file(env, wx_id, bytes))
    }

    /// The bytes that the receiver of a message sees when they open its file; `None` when they cannot.
    pub fn opened(&self, sent: &Outbound) -> Option<Bytes> {
        self.act(|world, env| world.open_sent(env, sent))
    }

    /// Returns the sends of bots with a number above `after`, oldest first, at most 1 000.
    pub fn outbound(&self, wx_id: Option<&str>, after: u64) -> Vec<Outbound> {
        self.act(|world, _| world.outbox.list(wx_id, after, MAX_LISTED))
    }

    /// As [`outbound`](Self::outbound), and waits for the first message at most `wait` of the simulator's clock.
    pub async fn wait_outbound(&self, wx_id: Option<&str>, after: u64, wait: Duration) -> Vec<Outbound> {
        self.wait_listed(wx_id, after, MAX_LISTED, wait).await
    }

    async fn wait_listed(
        &self,
        wx_id: Option<&str>,
        after: u64,
        limit: usize,
        wait: Duration,
    ) -> Vec<Outbound> {
        let until = self.clock().instant() + wait;
        loop {
            let (items, mut bell) =
                self.act(|world, _| (world.outbox.list(wx_id, after, limit), world.outbox.bell.listen()));
            if !items.is_empty() || self.clock().instant() >= until {
                return items;
            }
            tokio::select! {
                // An error means a reset; the next round listens to the new bell.
                _ = bell.changed() => {}
                () = self.clock().sleep_until(until) => {}
            }
        }
    }

    /// Returns the typing calls that were accepted, oldest first.
    pub fn typing(&self, wx_id: Option<&str>) -> Vec<Typing> {
        self.act(|world, _| world.typing.list(wx_id))
    }

    /// Returns the protocol violations of clients, oldest first.
    pub fn violations(&self, wx_id: Option<&str>) -> Vec<Violation> {
        self.act(|world, _| world.violations.list(wx_id))
    }

    /// Returns the status of every bot, by `wx_id`.
    pub fn accounts(&self) -> Vec<AccountStatus> {
        let mut all: Vec<_> =
            self.act(|world, env| world.accounts.values().map(|account| account.status(env.now)).collect());
        all.sort_by(|a, b| a.account.wx_id.cmp(&b.account.wx_id));
        all
    }

    /// The people of a bot, or of all: by bot, then by person.
    pub fn contacts(&self, wx_id: Option<&str>) -> Vec<SimContact> {
        let mut all: Vec<_> = self.act(|world, env| {
            let bots = world.accounts.values().filter(|bot| wx_id.is_none_or(|wx_id| bot.wx_id == wx_id));
            bots.flat_map(|bot| bot.contacts(env)).collect()
        });
        all.sort_by(|a, b| (&a.wx_id, &a.user_id).cmp(&(&b.wx_id, &b.user_id)));
        all
    }

    /// Adds a fault and answers its number.
    ///
    /// # Errors
    /// `INVALID_PARAMS`, and `CONFLICT` when too many are in force.
    pub fn add_fault(&self, fault: Fault) -> Result<u64> {
        Ok(self.add_faults(vec![fault])?.remove(0))
    }

    /// Adds faults, all or none.
    ///
    /// # Errors
    /// As [`add_fault`](Self::add_fault).
    pub fn add_faults(&self, faults: Vec<Fault>) -> Result<Vec<u64>> {
        self.act(|world, env| world.faults.add(faults, env.config.caps.faults))
    }

    /// The faults in force.
    pub fn faults(&self) -> Vec<FaultStatus> {
        self.act(|world, _| world.faults.list())
    }

    /// Ends one fault, or all.
    pub fn clear_faults(&self, id: Option<u64>) {
        self.act(|world, _| world.faults.remove(id));
    }

    /// Ends a bot's token: -14 from now on, for a held poll too.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub fn expire(&self, wx_id: &str) -> Result<()> {
        self.act(|world, env| {
            let account = world.account(wx_id)?;
            account.expires_at = Some(env.now);
            account.bell.ring();
            Ok(())
        })
    }

    /// Moves the clock.
    ///
    /// # Errors
    /// `CONFLICT` unless the simulator has a manual clock.
    pub fn advance(&self, by: Duration) -> Result<()> {
        let manual = self.clock().as_manual();
        manual.ok_or_else(|| Error::conflict("the simulator runs on the system clock"))?.advance(by);
        Ok(())
    }

    /// Forgets everything. Held polls answer -14, QR codes are unknown, numbers of sends start again.
    pub fn reset(&self) {
        *self.world() = World::new(&self.0.random);
    }

    fn config(&self) -> &SimConfig {
        &self.0.config
    }

    fn clock(&self) -> &Clock {
        &self.0.clock
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does one thing to the state.
    fn act<T>(&self, act: impl FnOnce(&mut World, &Env<'_>) -> T) -> T {
        let mut world = self.world();
        let clock = &self.0.clock;
        let env = Env {
            config: &self.0.config,
            random: &self.0.random,
            now: clock.now(),
            instant: clock.instant(),
        };
        act(&mut world, &env)
    }
}

impl fmt::Debug for Simulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Simulator")
    }
}
