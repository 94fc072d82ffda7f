//! Everything a simulator knows, behind one lock.

use std::collections::HashMap;

use data_encoding::HEXLOWER;
use tokio::sync::watch;

use super::{
    account::BoundBot,
    cdn::Cdn,
    config::SimConfig,
    faults::{Fault, Faults, Stage, Subject},
    outbound::Outbox,
    qr::QrCodes,
    typing::TypingLog,
    violation::{ViolationKind, Violations, app_headers_are_valid, uin_is_valid},
};
use crate::{
    error::{Error, Result},
    network::server::{Call, Reply},
    random::Random,
    time::{Instant, Timestamp},
};

/// Environment of an act, in addition to the state.
#[derive(Clone, Copy)]
pub(super) struct Env<'a> {
    pub config: &'a SimConfig,
    pub random: &'a Random,
    pub now: Timestamp,
    pub instant: Instant,
}

impl Env<'_> {
    /// Converts a time of the wall clock to the monotonic clock; wrong if the clock is set meanwhile.
    pub fn instant_of(&self, at: Timestamp) -> Instant {
        self.instant + at.since(self.now)
    }
}

/// The state. Locked for the length of one act, never across a wait.
pub(super) struct World {
    pub accounts: HashMap<String, BoundBot>,
    /// Valid tokens, and the account of each.
    tokens: HashMap<String, String>,
    /// The account each owner is bound to.
    owners: HashMap<String, String>,
    pub qr_codes: QrCodes,
    pub outbox: Outbox,
    pub typing: TypingLog,
    pub violations: Violations,
    pub faults: Faults,
    pub cdn: Cdn,
    /// Signs context tokens, typing tickets and cursors.
    pub secret: [u8; 32],
    last_id: u64,
}

impl World {
    pub(super) fn new(random: &Random) -> Self {
        Self {
            accounts: HashMap::new(),
            tokens: HashMap::new(),
            owners: HashMap::new(),
            qr_codes: QrCodes::default(),
            outbox: Outbox::default(),
            typing: TypingLog::default(),
            violations: Violations::default(),
            faults: Faults::default(),
            cdn: Cdn::default(),
            secret: random.bytes(),
            // Far above 2^53 and far below 2^64, like ids of the real service.
            last_id: (1 << 62) + random.below(1 << 61),
        }
    }

    /// The next message id: random, rising, above 2^53.
    pub(super) fn next_id(&mut self, random: &Random) -> u64 {
        self.last_id += 1 + random.below(1 << 20);
        self.last_id
    }

    /// The account of a call's token.
    ///
    /// # Errors
    /// The answer -14: no literal `AuthorizationType`, no valid token or, with strict headers, other headers missing.
    pub(super) fn authenticate(&mut self, env: &Env<'_>, call: &Call) -> Result<String, Reply> {
        let wx_id = self.account_of(call).map(str::to_owned);
        let account = wx_id.as_ref().and_then(|wx_id| self.accounts.get_mut(wx_id));
        let (Some(wx_id), Some(account)) = (&wx_id, account.filter(|account| !account.is_expired(env.now)))
        else {
            return Err(Reply::expired());
        };
        let uin = call.header("x-wechat-uin").unwrap_or_default();
        let uin_valid = uin_is_valid(call);
        let repeated = uin_valid && account.last_uin == uin;
        uin.clone_into(&mut account.last_uin);
        let headers_valid = app_headers_are_valid(call);
        let base_info = call.json.get("base_info").is_some_and(serde_json::Value::is_object);
        for (broken, kind) in [
            (!uin_valid, ViolationKind::BadUin),
            (repeated, ViolationKind::RepeatedUin),
            (!headers_valid, ViolationKind::BadAppHeaders),
            (!base_info, ViolationKind::NoBaseInfo),
        ] {
            if broken {
                self.violations.record(env, Some(wx_id), kind, &format!("{:?}", call.endpoint));
            }
        }
        if env.config.strict_headers && !(uin_valid && headers_valid) {
            return Err(Reply::expired());
        }
        Ok(wx_id.clone())
    }

    /// The account a call names by its token, expired or not.
    pub(super) fn account_of(&self, call: &Call) -> Option<&str> {
        self.account_of_token(call.token()?)
    }

    /// The account of a token.
    pub(super) fn account_of_token(&self, token: &str) -> Option<&str> {
        self.tokens.get(token).map(String::as_str)
    }

    /// The account a person is bound to.
    pub(super) fn account_of_owner(&self, user_id: &str) -> Option<&BoundBot> {
        self.accounts.get(self.owners.get(user_id)?)
    }

    /// The fault that hits a call, by the account and the person the call is about.
    pub(super) fn take_fault(&mut self, env: &Env<'_>, stage: Stage, call: &Call) -> Option<Fault> {
        let account = call.token().and_then(|token| self.tokens.get(token)).map(String::as_str);
        let media = call.query("encrypted_query_param").and_then(|param| self.cdn.account_of(param));
        let subject = Subject {
            endpoint: call.endpoint,
            wx_id: account.or(media.map(|(wx_id, _)| wx_id)),
            user: user_of(call).or(media.map(|(_, user)| user)),
        };
        self.faults.take(stage, &subject, env.now)
    }

    /// An account by its id, for the control API.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub(super) fn account(&mut self, wx_id: &str) -> Result<&mut BoundBot> {
        self.accounts.get_mut(wx_id).ok_or_else(|| Error::not_found("account"))
    }

    /// Binds a person to a new bot. An earlier binding of theirs ends.
    ///
    /// # Errors
    /// `CONFLICT` when the simulator is full.
    pub(super) fn bind(&mut self, env: &Env<'_>, owner: String) -> Result<&BoundBot> {
        let replaces = self.owners.contains_key(&owner);
        if !replaces && self.accounts.len() >= env.config.caps.accounts {
            return Err(Error::conflict("the simulator holds as many accounts as it may"));
        }
        if let Some(old) = self.owners.remove(&owner).and_then(|wx_id| self.accounts.remove(&wx_id)) {
            // Dropping the account drops its bell: held polls wake and find their token gone.
            self.tokens.remove(&old.token);
        }
        let account = BoundBot::new(env, owner.clone());
        let wx_id = account.wx_id.clone();
        self.tokens.insert(account.token.clone(), wx_id.clone());
        self.owners.insert(owner, wx_id.clone());
        Ok(self.accounts.entry(wx_id).or_insert(account))
    }
}

/// The person a call is about.
fn user_of(call: &Call) -> Option<&str> {
    let in_message = call.json.get("msg").and_then(|msg| msg.get("to_user_id"));
    ["ilink_user_id", "to_user_id"]
        .iter()
        .find_map(|name| call.json.get(*name))
        .or(in_message)
        .and_then(serde_json::Value::as_str)
}

/// Wakes the tasks that wait for a change. A listener taken under the lock misses no later change.
pub(super) struct Bell(watch::Sender<()>);

impl Bell {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    pub(super) fn ring(&self) {
        self.0.send_replace(());
    }

    pub(super) fn listen(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }
}

impl Default for Bell {
    fn default() -> Self {
        Self::new()
    }
}

/// Random bytes as hex digits.
pub(super) fn random_hex<const N: usize>(random: &Random) -> String {
    HEXLOWER.encode(&random.bytes::<N>())
}
