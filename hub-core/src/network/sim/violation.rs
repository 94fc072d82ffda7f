//! Breaches of the protocol by a client that the real service lets pass: noted, so that a test can insist on
//! none.

use std::collections::VecDeque;

use data_encoding::BASE64;
use serde::Serialize;

use super::{wire::Call, world::Env};
use crate::time::Timestamp;

/// What a client did wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ViolationKind {
    /// `X-WECHAT-UIN` is not base64 of a decimal uint32 (ilink §3.2).
    BadUin,
    /// `X-WECHAT-UIN` is the one of the account's previous request (ilink §3.2).
    RepeatedUin,
    /// `iLink-App-Id` or `iLink-App-ClientVersion` is missing or malformed (ilink §3.2).
    BadAppHeaders,
    /// An authenticated call without `base_info` (ilink §3.3).
    NoBaseInfo,
    /// A cursor this simulator never handed out to this account (ilink §17.2).
    ChangedCursor,
    /// Two polls of one account at a time (ilink §7.5).
    SecondPoller,
    /// A message without `client_id` (ilink §10.1).
    NoClientId,
    /// A media key that is base64 of the raw bytes (ilink §12.2).
    RawMediaKey,
}

/// One breach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// When.
    pub at: Timestamp,
    /// The account, where the call had a valid token.
    pub wx_id: Option<String>,
    /// What.
    pub kind: ViolationKind,
    /// Where, without secrets.
    pub detail: String,
}

/// The breaches so far, the newest [`SimCaps::records`](super::SimCaps::records) of them.
#[derive(Default)]
pub(super) struct Violations(VecDeque<Violation>);

impl Violations {
    pub(super) fn record(&mut self, env: &Env<'_>, wx_id: Option<&str>, kind: ViolationKind, detail: &str) {
        if self.0.len() >= env.config.caps.records {
            self.0.pop_front();
        }
        let wx_id = wx_id.map(str::to_owned);
        self.0.push_back(Violation { at: env.now, wx_id, kind, detail: detail.to_owned() });
    }

    pub(super) fn list(&self, wx_id: Option<&str>) -> Vec<Violation> {
        let wanted = |v: &&Violation| wx_id.is_none() || v.wx_id.as_deref() == wx_id;
        self.0.iter().filter(wanted).cloned().collect()
    }
}

/// Whether `X-WECHAT-UIN` is base64 of the decimal digits of a uint32, in the one form a number has.
pub(super) fn uin_is_valid(call: &Call) -> bool {
    let digits = call.header("x-wechat-uin").and_then(|uin| BASE64.decode(uin.as_bytes()).ok());
    digits.and_then(|digits| String::from_utf8(digits).ok()).is_some_and(|digits| {
        digits.parse::<u32>().is_ok_and(|number| number.to_string() == digits)
    })
}

/// Whether both `iLink-App-*` headers are there.
pub(super) fn app_headers_are_valid(call: &Call) -> bool {
    let id = call.header("ilink-app-id").is_some_and(|id| !id.is_empty());
    let version = call.header("ilink-app-clientversion");
    id && version.is_some_and(|version| version.parse::<u32>().is_ok())
}
