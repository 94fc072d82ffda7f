//! Token buckets in memory, per node. They are filled by the monotonic clock of the machine, so that a step of the
//! wall clock changes nothing; in tests by the clock of the hub, which is moved by hand.

use std::{
    net::IpAddr,
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock as _, DefaultClock, Reference as _},
    middleware::NoOpMiddleware,
    state::keyed::DashMapStateStore,
};
use hub_core::{
    Error, ErrorCode, Result,
    access::Actor,
    accounts::KnownDevice,
    secret::TokenHash,
    time::{Clock, Timestamp},
};

mod known_credentials;

use known_credentials::KnownCredentials;

/// Requests per minute of each class; a bucket holds a minute's worth.
#[derive(Debug, Clone, Copy)]
pub struct RateLimitSettings {
    /// Sign-in attempts from one address.
    pub auth_per_ip: NonZeroU32,
    /// Sign-in attempts on one account name, and as many from each browser that its user has signed in with before.
    pub auth_per_account: NonZeroU32,
    /// Sends and typing indicators per channel key.
    pub sends: NonZeroU32,
    /// Everything else: per credential that has proved to be valid, otherwise per address.
    pub default: NonZeroU32,
    /// Debug runs of plugins, per user.
    pub debug: NonZeroU32,
    /// Unknown credentials from one address.
    pub bad_credentials: NonZeroU32,
    /// Buckets per class; callers beyond that share one.
    pub max_keys: usize,
}

const fn per_minute(count: u32) -> NonZeroU32 {
    match NonZeroU32::new(count) {
        Some(count) => count,
        None => NonZeroU32::MIN,
    }
}

impl Default for RateLimitSettings {
    fn default() -> Self {
        Self {
            auth_per_ip: per_minute(10),
            auth_per_account: per_minute(5),
            sends: per_minute(120),
            default: per_minute(600),
            debug: per_minute(30),
            bad_credentials: per_minute(20),
            max_keys: 100_000,
        }
    }
}

impl RateLimitSettings {
    /// No limit in practice: for callers of the same process, whose rate is their own concern.
    pub const UNLIMITED: Self = {
        let any = NonZeroU32::MAX;
        Self {
            auth_per_ip: any,
            auth_per_account: any,
            sends: any,
            default: any,
            debug: any,
            bad_credentials: any,
            max_keys: 1,
        }
    };
}

/// The key of a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Ip(IpAddr),
    /// Hash of a credential or of an account name.
    Hash(TokenHash),
    /// All callers beyond the maximum number of buckets.
    Rest,
}

/// The limits of this process.
#[derive(Debug)]
pub struct RateLimits {
    auth_per_ip: Buckets,
    auth_per_account: Buckets,
    auth_per_device: Buckets,
    sends: Buckets,
    /// Of valid credentials, apart from those of addresses, so that strangers cannot use them up.
    per_credential: Buckets,
    per_address: Buckets,
    debug: Buckets,
    bad_credentials: Buckets,
    known: KnownCredentials,
}

impl RateLimits {
    /// Full buckets. `clock` counts when it is moved by hand.
    pub fn new(settings: &RateLimitSettings, clock: &Clock) -> Self {
        let buckets = |quota| Buckets::new(quota, settings.max_keys, RefillClock::of(clock));
        Self {
            auth_per_ip: buckets(settings.auth_per_ip),
            auth_per_account: buckets(settings.auth_per_account),
            auth_per_device: buckets(settings.auth_per_account),
            sends: buckets(settings.sends),
            per_credential: buckets(settings.default),
            per_address: buckets(settings.default),
            debug: buckets(settings.debug),
            bad_credentials: buckets(settings.bad_credentials),
            known: KnownCredentials::new(settings.max_keys),
        }
    }

    /// Takes a token for a sign-in attempt from an address.
    ///
    /// # Errors
    /// `RATE_LIMITED` with the time until the next token.
    pub fn check_auth(&self, network: IpAddr) -> Result<()> {
        self.auth_per_ip.check(Key::Ip(network))
    }

    /// Takes a token for a sign-in attempt on an account name; called before the account is looked up. A browser in
    /// which the user has signed in before has a bucket of its own, so that someone who guesses elsewhere cannot lock
    /// the user out.
    ///
    /// # Errors
    /// `RATE_LIMITED` with the time until the next token.
    pub fn check_account(&self, username: &str, device: Option<&KnownDevice>) -> Result<()> {
        match device {
            Some(device) => self.auth_per_device.check(Key::Hash(device.mark.clone())),
            None => self.auth_per_account.check(Key::Hash(TokenHash::of(&username.to_lowercase()))),
        }
    }

    /// Takes a token for a send or a typing indicator of a program, in addition to the request's own.
    ///
    /// # Errors
    /// `RATE_LIMITED` with the time until the next token.
    pub fn check_send(&self, actor: &Actor) -> Result<()> {
        self.sends.check(Key::Hash(TokenHash::of(&actor.principal())))
    }

    /// Takes a token for any other request: of the credential among those it presents that has proved to be valid, of
    /// its address before.
    ///
    /// # Errors
    /// `RATE_LIMITED` with the time until the next token.
    pub fn check_default(
        &self,
        credentials: impl IntoIterator<Item = TokenHash>,
        network: IpAddr,
    ) -> Result<()> {
        match credentials.into_iter().find(|credential| self.known.contains(credential)) {
            Some(credential) => self.per_credential.check(Key::Hash(credential)),
            None => self.per_address.check(Key::Ip(network)),
        }
    }

    /// Notes that a credential is valid: from then on it has a bucket of its own.
    pub fn note_valid(&self, credential: &str) {
        self.known.note(TokenHash::of(credential));
    }

    /// Notes that a credential is not, or no longer, valid.
    pub fn note_invalid(&self, credential: &TokenHash) {
        self.known.forget(credential);
    }
}

impl RateLimits {
    /// Takes a token for a debug run of a user, named by [`Actor::principal`](hub_core::access::Actor::principal).
    ///
    /// # Errors
    /// `RATE_LIMITED` with the time until the next token.
    pub fn check_debug(&self, principal: &str) -> Result<()> {
        self.debug.check(Key::Hash(TokenHash::of(principal)))
    }

    /// Takes a token for an unknown credential from an address. Without a token left, the caller gets this error
    /// instead; a valid credential from the same address keeps working.
    ///
    /// # Errors
    /// `RATE_LIMITED` with the time until the next token.
    pub fn check_bad_credential(&self, network: IpAddr) -> Result<()> {
        self.bad_credentials.check(Key::Ip(network))
    }
}

/// The time by which buckets are filled, since they were created.
#[derive(Debug, Clone)]
struct RefillClock {
    machine: DefaultClock,
    started: <DefaultClock as governor::clock::Clock>::Instant,
    hub: Clock,
}

impl RefillClock {
    fn of(hub: &Clock) -> Self {
        let machine = DefaultClock::default();
        Self { started: machine.now(), machine, hub: hub.clone() }
    }
}

impl governor::clock::Clock for RefillClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        match self.hub.as_manual() {
            Some(manual) => manual.now().since(Timestamp::from_millis(0)),
            None => self.machine.now().duration_since(self.started).into(),
        }
    }
}

struct Buckets {
    limiter: RateLimiter<Key, DashMapStateStore<Key>, RefillClock, NoOpMiddleware<Duration>>,
    max_keys: usize,
    calls: AtomicU32,
}

impl std::fmt::Debug for Buckets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buckets").field("keys", &self.limiter.len()).finish_non_exhaustive()
    }
}

impl Buckets {
    fn new(quota: NonZeroU32, max_keys: usize, clock: RefillClock) -> Self {
        let limiter = RateLimiter::dashmap_with_clock(Quota::per_minute(quota), clock);
        Self { limiter, max_keys, calls: AtomicU32::new(0) }
    }

    fn check(&self, key: Key) -> Result<()> {
        // Full buckets are dropped from time to time only: checking all of them on every call would help an attacker
        // who sends many keys.
        if self.calls.fetch_add(1, Ordering::Relaxed) % 4096 == 4095 {
            self.limiter.retain_recent();
        }
        let key = if self.limiter.len() < self.max_keys { key } else { Key::Rest };
        self.limiter.check_key(&key).map_err(|early| {
            Error::new(ErrorCode::RateLimited, "too many requests")
                .with_retry_after(early.wait_time_from(self.limiter.clock().now()))
        })
    }
}

#[cfg(test)]
mod tests {
    use hub_core::time::ManualClock;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn limits(settings: &RateLimitSettings) -> (RateLimits, ManualClock) {
        let clock = ManualClock::new(Timestamp::from_millis(1_790_000_000_000));
        (RateLimits::new(settings, &clock.clone().into()), clock)
    }

    #[test]
    fn a_class_refuses_past_its_quota_and_says_when_to_come_back() {
        let (limits, clock) = limits(&RateLimitSettings::default());
        for _ in 0..10 {
            limits.check_auth(HERE).unwrap();
        }
        let error = limits.check_auth(HERE).unwrap_err();
        assert_eq!(error.code(), ErrorCode::RateLimited);
        assert_eq!(error.retry_after(), Some(Duration::from_secs(6)));
        clock.advance(Duration::from_millis(5_999));
        limits.check_auth(HERE).unwrap_err();
        clock.advance(Duration::from_millis(1));
        limits.check_auth(HERE).unwrap();
        limits.check_auth(HERE).unwrap_err();
        limits.check_auth("10.0.0.1".parse().unwrap()).unwrap();
        limits.check_default(None, HERE).unwrap();
        for _ in 0..5 {
            limits.check_account("Ada", None).unwrap();
        }
        assert!(limits.check_account("ADA", None).is_err(), "names count without regard to case");
        limits.check_account("bob", None).unwrap();
        // Who guesses at the name does not shut out a browser that is known, which has a limit too.
        let phone = KnownDevice { mark: TokenHash::of("phone") };
        let tries = (0..1000).take_while(|_| limits.check_account("ada", Some(&phone)).is_ok()).count();
        assert_eq!(tries, 5);
        let laptop = KnownDevice { mark: TokenHash::of("laptop") };
        limits.check_account("ada", Some(&laptop)).unwrap();
    }

    #[test]
    fn a_credential_has_a_bucket_of_its_own_once_it_is_known_to_be_one() {
        let settings =
            RateLimitSettings { default: per_minute(2), max_keys: 3, ..RateLimitSettings::default() };
        let (limits, _) = limits(&settings);
        let check = |key: &str| limits.check_default([TokenHash::of(key)], HERE);
        let passed = |key: &str| (0..9).take_while(|_| check(key).is_ok()).count();
        let made_up = (0..9).take_while(|n| check(&format!("made up {n}")).is_ok()).count();
        assert_eq!(made_up, 2, "their address pays");
        limits.note_valid("a");
        limits.note_valid("b");
        assert_eq!((passed("a"), passed("b"), passed("c")), (2, 2, 0));
        limits.note_invalid(&TokenHash::of("a"));
        assert_eq!(passed("a"), 0, "its address pays again");
    }

    #[test]
    fn buckets_are_bounded_and_those_of_addresses_take_no_place_of_credentials() {
        let settings =
            RateLimitSettings { default: per_minute(2), max_keys: 3, ..RateLimitSettings::default() };
        let (limits, _) = limits(&settings);
        let passed = (0..100_u32).filter(|n| {
            let address = IpAddr::V4(std::net::Ipv4Addr::from_bits(*n));
            limits.check_default(None, address).is_ok()
        });
        assert_eq!(passed.count(), 3 + 2, "all that are too many share one bucket");
        assert!(limits.per_address.limiter.len() <= 4);
        limits.note_valid("a");
        limits.check_default([TokenHash::of("a")], HERE).unwrap();
    }

    #[test]
    fn sends_debug_runs_and_bad_credentials_have_quotas_of_their_own() {
        let (limits, _) = limits(&RateLimitSettings::default());
        let passed = |check: &dyn Fn() -> Result<()>| (0..1000).take_while(|_| check().is_ok()).count();
        assert_eq!(passed(&|| limits.check_send(&Actor::Operator)), 120);
        assert_eq!(passed(&|| limits.check_debug("usr_1")), 30);
        assert_eq!(passed(&|| limits.check_bad_credential(HERE)), 20);
        limits.check_default(None, HERE).unwrap();
    }
}
