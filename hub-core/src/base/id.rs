//! Typed ids: a prefix that names the kind and a ULID that sorts by time.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    marker::PhantomData,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ulid::Ulid;

use crate::{
    error::Error,
    random::Random,
    time::{Clock, Timestamp},
};

/// What an [`Id`] identifies: its prefix, and the word for it in messages.
pub trait Kind: 'static {
    /// Prefix with the underscore, for example `bot_`.
    const PREFIX: &'static str;
    /// The word for the thing, for example `bot`.
    const NOUN: &'static str;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $alias:ident = $kind:ident($prefix:literal, $noun:literal);)*) => {
        /// The kinds of things that have an id.
        pub mod kind {
            $(
                #[doc = concat!("Marker for a ", $noun, "; ids start with `", $prefix, "`.")]
                #[derive(Debug)]
                pub enum $kind {}
                impl super::Kind for $kind {
                    const PREFIX: &'static str = $prefix;
                    const NOUN: &'static str = $noun;
                }
            )*
        }
        $(
            #[doc = concat!("Id of a ", $noun, ": `", $prefix, "` and a ULID.")]
            pub type $alias = Id<kind::$kind>;
        )*
    };
}

kinds! {
    UserId = User("usr_", "user");
    SessionId = Session("ses_", "session");
    KeyId = Key("key_", "API key");
    RevocationId = Revocation("rev_", "revocation");
    AuditId = Audit("aud_", "audit entry");
    PasskeyId = Passkey("pky_", "passkey");
    BindId = Bind("bnd_", "bind");
    BotId = Bot("bot_", "bot");
    ChannelId = Channel("ch_", "channel");
    MessageId = Message("msg_", "message");
    DeliveryId = Delivery("dlv_", "delivery");
    TraceId = Trace("tr_", "trace");
    ReplayId = Replay("rpl_", "replay");
    OutboxId = Outbox("out_", "outbox part");
    MediaId = Media("med_", "file");
    NodeId = Node("node_", "node");
    PluginId = Plugin("plg_", "plugin");
    PluginVersionId = PluginVersion("plv_", "plugin version");
    AppId = App("app_", "app");
    AppEventId = AppEvent("evt_", "event");
    AppCallId = AppCall("cal_", "API call");
    InstallationId = Installation("ins_", "app on this bot");
    IlinkClientId = IlinkClient("ilc_", "iLink client");
    SocketId = Socket("sock_", "socket");
}

/// An id of a thing of kind `K`. Sixteen bytes, `Copy`; ids of different kinds do not mix.
pub struct Id<K>(Ulid, PhantomData<fn() -> K>);

impl<K: Kind> Id<K> {
    /// The id with these 128 bits: 48 of Unix milliseconds, 80 random.
    pub const fn from_u128(bits: u128) -> Self {
        Self(Ulid(bits), PhantomData)
    }

    /// The greatest id.
    pub const MAX: Self = Self::from_u128(u128::MAX);

    /// The smallest id of a moment: a bound between the ids of earlier and later things.
    pub fn first_at(at: Timestamp) -> Self {
        let millis = u128::try_from(at.as_millis()).unwrap_or(0).min((1 << 48) - 1);
        Self::from_u128(millis << 80)
    }

    /// The 128 bits.
    pub const fn as_u128(self) -> u128 {
        self.0.0
    }

    /// The printed form, without an allocation.
    pub fn text(self) -> IdText {
        let mut text = IdText { bytes: [0; IdText::MAX_LEN], len: K::PREFIX.len() + ulid::ULID_LEN };
        let mut digits = [0; ulid::ULID_LEN];
        self.0.array_to_str(&mut digits);
        text.bytes[..K::PREFIX.len()].copy_from_slice(K::PREFIX.as_bytes());
        text.bytes[K::PREFIX.len()..text.len].copy_from_slice(&digits);
        text
    }

    /// When it was made, by the clock of the node that made it.
    pub fn made_at(self) -> Timestamp {
        // 48 bits are left.
        Timestamp::from_millis(i64::try_from(self.as_u128() >> 80).unwrap_or(i64::MAX))
    }
}

/// The printed form of an id, see [`Id::text`].
#[derive(Debug, Clone, Copy)]
pub struct IdText {
    bytes: [u8; Self::MAX_LEN],
    len: usize,
}

impl IdText {
    /// Of the longest prefix.
    const MAX_LEN: usize = 5 + ulid::ULID_LEN;

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).expect("prefixes and digits are ASCII")
    }
}

impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Id<K> {}
impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<K> Eq for Id<K> {}
impl<K> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<K> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}
impl<K> Hash for Id<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<K: Kind> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().as_str())
    }
}

impl<K: Kind> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<K: Kind> FromStr for Id<K> {
    type Err = Error;

    /// Reads the printed form, and only that: 26 upper-case digits behind the right prefix.
    ///
    /// # Errors
    /// `NOT_FOUND`: an id that cannot exist names nothing.
    fn from_str(text: &str) -> Result<Self, Error> {
        let not_found = || Error::not_found(K::NOUN);
        let digits = text.strip_prefix(K::PREFIX).ok_or_else(not_found)?;
        let id = Self(Ulid::from_string(digits).map_err(|_| not_found())?, PhantomData);
        // The decoder is lenient (lower case, an overflowing first digit); identity is the exact text.
        if id.text().as_str() == text { Ok(id) } else { Err(not_found()) }
    }
}

impl<K: Kind> Serialize for Id<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text().as_str())
    }
}

impl<'de, K: Kind> Deserialize<'de> for Id<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Makes ids. Ids made by one generator strictly rise, also within a millisecond, so that the order of
/// messages in a batch is the order of their ids.
#[derive(Clone, Debug)]
pub struct Ids {
    clock: Clock,
    random: Random,
    last: Arc<Mutex<u128>>,
}

impl Ids {
    /// A generator on a clock and a source of randomness.
    pub fn new(clock: Clock, random: Random) -> Self {
        Self { clock, random, last: Arc::default() }
    }

    /// Makes every further id greater than this one. Rows are ordered by their ids: who goes on with the work of an
    /// earlier process or another node does so also when the clock was set back since. The next ids are a random
    /// distance ahead, because the earlier process may have counted on from this id, too.
    pub fn advance_past<K: Kind>(&self, id: Id<K>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if id.as_u128() >= *last {
            *last = id.as_u128() + u128::from(u64::from_le_bytes(self.random.bytes()));
        }
    }

    /// The next id.
    pub fn next<K: Kind>(&self) -> Id<K> {
        let millis = u128::try_from(self.clock.now().as_millis()).unwrap_or(0) & ((1 << 48) - 1);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = if millis > *last >> 80 {
            // One bit of room on top, so that counting up within a millisecond stays within it.
            let tail = u128::from_le_bytes(self.random.bytes()) & ((1 << 79) - 1);
            millis << 80 | tail
        } else {
            *last + 1
        };
        Id::from_u128(*last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        error::ErrorCode,
        time::{ManualClock, Timestamp},
    };

    #[test]
    fn reads_what_it_prints_and_nothing_else() {
        let id = BotId::from_u128(0x0199_0000_0000_1234_5678_9abc_def0_1234);
        assert_eq!(id.to_string().parse::<BotId>().unwrap(), id);
        assert_eq!(id.text().as_str(), id.to_string());
        assert_eq!(SocketId::MAX.text().as_str(), SocketId::MAX.to_string());
        let digits = id.to_string()[4..].to_owned();
        for wrong in [
            format!("ch_{digits}"),
            digits.clone(),
            format!("bot_{}", digits.to_lowercase()),
            format!("bot_{digits}0"),
            "bot_8ZZZZZZZZZZZZZZZZZZZZZZZZZ".to_owned(),
            "bot_".to_owned(),
            String::new(),
            "bot_01\u{0}".to_owned(),
        ] {
            assert_eq!(wrong.parse::<BotId>().unwrap_err().code(), ErrorCode::NotFound, "{wrong:?}");
        }
    }

    #[test]
    fn the_first_id_of_a_moment_is_a_bound_between_times() {
        let manual = ManualClock::new(Timestamp::from_millis(5_000));
        let ids = Ids::new(manual.clone().into(), Random::seeded(1));
        let before: TraceId = ids.next();
        manual.advance(std::time::Duration::from_millis(1));
        let bound = TraceId::first_at(manual.now());
        assert!(before < bound && bound < ids.next());
        assert!(bound.to_string() < TraceId::MAX.to_string());
        assert_eq!(TraceId::first_at(Timestamp::MIN).as_u128(), 0);
        assert_eq!(TraceId::first_at(Timestamp::MAX).made_at(), Timestamp::MAX);
    }

    #[test]
    fn ids_rise_when_the_clock_stops_or_steps_back() {
        let manual = ManualClock::new(Timestamp::from_millis(5_000));
        let ids = Ids::new(manual.clone().into(), Random::seeded(1));
        let mut last = ids.next::<kind::Message>();
        for step in 0..1000 {
            if step == 500 {
                manual.advance(std::time::Duration::from_millis(1));
            }
            let next = ids.next();
            assert!(next > last);
            last = next;
        }
        let behind = Ids { clock: ManualClock::new(Timestamp::from_millis(1)).into(), ..ids };
        assert!(behind.next::<kind::Message>() > last);
    }

    #[test]
    fn ids_go_on_after_what_another_clock_made() {
        let at = |millis| Clock::from(ManualClock::new(Timestamp::from_millis(millis)));
        let ahead: MessageId = Ids::new(at(2_000_000), Random::seeded(1)).next();
        let ids = Ids::new(at(1_000_000), Random::seeded(2));
        assert!(ids.next::<kind::Message>() < ahead);
        ids.advance_past(ahead);
        let (first, second): (MessageId, MessageId) = (ids.next(), ids.next());
        assert!(ahead < first && first < second);
        ids.advance_past(MessageId::from_u128(1));
        assert!(second < ids.next());
        let other = Ids::new(at(1_000_000), Random::seeded(3));
        other.advance_past(ahead);
        assert!(![first, second].contains(&other.next()), "two processes count on from the same id");
    }
}
