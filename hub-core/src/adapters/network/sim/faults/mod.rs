//! Faults on demand (`docs/ilink.md#control-api`): their actions, the requests that they hit, and how often.
//!
//! # The JSON of a fault
//!
//! `POST /_sim/faults` takes one fault, or `{"faults": [...]}`:
//!
//! ```json
//! {"endpoint": "sendmessage", "wx_id": "0123456789ab@im.bot", "user": "o9cq80…@im.wechat",
//!  "skip": 2, "count": 1, "delay_ms": 0, "action": {"type": "cut", "effect": true}}
//! ```
//!
//! | field | meaning |
//! |---|---|
//! | `endpoint` | one of [`Endpoint`], spelled as its path ends; `cdn_upload`, `cdn_download`. Absent: the only endpoint the action fits, else any |
//! | `wx_id`, `user` | only requests of this bot, about this person (`to_user_id`, `ilink_user_id`) |
//! | `skip` | so many matching requests pass first (0) |
//! | `count` | how many requests it hits (1); `null`: until it is deleted |
//! | `delay_ms` | wait so long first: before the request is looked at, or, with `effect`, before the answer |
//! | `only_with_messages` | of `getupdates` only answers with messages are hit |
//! | `action` | [`Action`], by its `type` |
//!
//! An action without effect acts when the request arrives, and nothing happens to the state. One with effect
//! acts when the answer is ready: a poll that was held already is hit too. Faults are tried in the order in
//! which they were added; a request meets at most one of either sort.

use std::{collections::BTreeMap, time::Duration};

use http::{HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    error::{Problems, Result},
    network::server::Endpoint,
};

mod armed;

pub use armed::FaultStatus;
pub(super) use armed::{Faults, Stage, Subject};

/// Longest delay, penalty or time to expiry that is taken.
const MAX_MS: u64 = 24 * 3600 * 1000;

/// A fault: its action, the requests that it hits, and how often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Only this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
    /// Only this bot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wx_id: Option<String>,
    /// Only calls about this person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Matching requests that pass first.
    #[serde(default)]
    pub skip: u32,
    /// Requests it hits; `None` until it is deleted.
    #[serde(default = "once")]
    pub count: Option<u32>,
    /// Milliseconds to wait first.
    #[serde(default)]
    pub delay_ms: u64,
    /// Only answers of `getupdates` that carry messages.
    #[serde(default)]
    pub only_with_messages: bool,
    /// Action on the request.
    pub action: Action,
}

#[expect(clippy::unnecessary_wraps, reason = "the shape serde wants for an optional field")]
fn once() -> Option<u32> {
    Some(1)
}

/// Action on a request.
///
/// `effect` says whether the request changes the state although its answer is spoiled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Nothing: for a mere delay.
    Pass,
    /// An HTTP status with any body and headers: 524 after a delay, 429 with `retry-after`, a CDN error.
    Status {
        /// 200 to 599.
        status: u16,
        /// Body.
        #[serde(default)]
        body: String,
        /// Headers, in lower case.
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// The request counts.
        #[serde(default)]
        effect: bool,
    },
    /// A page of HTML, as gateways send it.
    Html {
        /// 200 to 599.
        status: u16,
        /// The request counts.
        #[serde(default)]
        effect: bool,
    },
    /// The connection ends without an answer.
    Cut {
        /// The request counts.
        #[serde(default)]
        effect: bool,
    },
    /// HTTP 200 with an empty body.
    Empty {
        /// The request counts.
        #[serde(default)]
        effect: bool,
    },
    /// HTTP 200 with a business error.
    Error {
        /// `ret`; absent to leave it out.
        #[serde(default)]
        ret: Option<i64>,
        /// `errcode`; absent to leave it out.
        #[serde(default)]
        errcode: Option<i64>,
        /// `errmsg`; absent to leave it out.
        #[serde(default)]
        errmsg: Option<String>,
        /// The request counts.
        #[serde(default)]
        effect: bool,
    },
    /// The first half of the right answer.
    Truncate,
    /// The right answer with other fields: no `message_id`, cursor missing or empty, any
    /// `longpolling_timeout_ms`, one form of the upload URL, no `x-encrypted-param`.
    Patch {
        /// Fields of the answer to replace.
        #[serde(default)]
        set: Map<String, Value>,
        /// Fields of the answer to leave out.
        #[serde(default)]
        remove: Vec<String>,
        /// Headers of the answer to leave out.
        #[serde(default)]
        remove_headers: Vec<String>,
    },
    /// `getupdates` answers with the cursor of the request.
    FreezeCursor,
    /// The messages of an answer come again after a while.
    Repeat {
        /// Milliseconds.
        after_ms: u64,
        /// Under a new `message_id` in place of the same.
        #[serde(default)]
        new_id: bool,
    },
    /// The messages of an answer with more than one come in reverse.
    Reorder,
    /// The ids of an answer as JSON strings or as numbers, whatever is usual.
    Ids {
        /// Form of the ids.
        form: IdForm,
    },
    /// Every message gets an item of an unknown type and unknown fields.
    Unknown,
    /// The token expires so many milliseconds after a poll began.
    Expire {
        /// Milliseconds.
        after_ms: u64,
    },
    /// Sends are refused as too fast until a time has passed; every try meanwhile doubles it. `count` means
    /// nothing here: the fault ends with the first send after the time.
    RateLimit {
        /// Milliseconds.
        penalty_ms: u64,
    },
    /// Sends are accepted and never shown.
    Shadow {
        /// Answers carry a `message_id` all the same.
        #[serde(default)]
        message_id: bool,
    },
}

/// Form of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdForm {
    /// As a JSON string.
    String,
    /// As a JSON number.
    Number,
}

impl Action {
    /// Whether it acts on the ready answer rather than on the request.
    const fn is_late(&self) -> bool {
        match self {
            Self::Status { effect, .. }
            | Self::Html { effect, .. }
            | Self::Cut { effect }
            | Self::Empty { effect }
            | Self::Error { effect, .. } => *effect,
            Self::Pass | Self::Expire { .. } | Self::RateLimit { .. } | Self::Shadow { .. } => false,
            Self::Truncate
            | Self::Patch { .. }
            | Self::FreezeCursor
            | Self::Repeat { .. }
            | Self::Reorder
            | Self::Ids { .. }
            | Self::Unknown => true,
        }
    }

    /// Returns the only endpoint that the action applies to.
    const fn endpoint(&self) -> Option<Endpoint> {
        match self {
            Self::FreezeCursor
            | Self::Repeat { .. }
            | Self::Reorder
            | Self::Unknown
            | Self::Expire { .. } => Some(Endpoint::GetUpdates),
            Self::RateLimit { .. } | Self::Shadow { .. } => Some(Endpoint::SendMessage),
            _ => None,
        }
    }

    /// The number of messages below which an answer of `getupdates` shows no difference.
    const fn least_messages(&self) -> usize {
        match self {
            Self::Repeat { .. } | Self::Unknown | Self::Ids { .. } => 1,
            Self::Reorder => 2,
            _ => 0,
        }
    }
}

impl Fault {
    /// A fault that hits any one request its action fits.
    pub fn new(action: Action) -> Self {
        Self {
            endpoint: action.endpoint(),
            wx_id: None,
            user: None,
            skip: 0,
            count: once(),
            delay_ms: 0,
            only_with_messages: false,
            action,
        }
    }

    /// A fault that hits the next request of an endpoint.
    pub fn on(endpoint: Endpoint, action: Action) -> Self {
        Self { endpoint: Some(endpoint), ..Self::new(action) }
    }

    /// The same fault for so many requests.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self { count: Some(count), ..self }
    }

    /// The same fault until it is deleted.
    #[must_use]
    pub fn always(self) -> Self {
        Self { count: None, ..self }
    }

    /// The same fault after a delay.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX), ..self }
    }

    /// The same fault after so many matching requests passed.
    #[must_use]
    pub fn skipping(self, skip: u32) -> Self {
        Self { skip, ..self }
    }

    /// The same fault for one bot only.
    #[must_use]
    pub fn for_bot(self, wx_id: impl Into<String>) -> Self {
        Self { wx_id: Some(wx_id.into()), ..self }
    }

    /// The same fault for calls about one person only.
    #[must_use]
    pub fn for_user(self, user: impl Into<String>) -> Self {
        Self { user: Some(user.into()), ..self }
    }

    /// Checks a fault, and names its endpoint where the action leaves no choice.
    fn checked(mut self) -> Result<Self> {
        let mut problems = Problems::default();
        if let Some(only) = self.action.endpoint() {
            let fits = *self.endpoint.get_or_insert(only) == only;
            problems.check(fits, "endpoint", "does not fit the action");
        }
        problems.check(self.count != Some(0), "count", "must be at least 1, or null");
        problems.check(self.delay_ms <= MAX_MS, "delay_ms", "must be at most a day");
        match &self.action {
            Action::Status { status, headers, .. } => {
                problems.check((200..=599).contains(status), "action.status", "must be 200 to 599");
                let valid = headers.iter().all(|(name, value)| {
                    name.parse::<HeaderName>().is_ok() && HeaderValue::from_str(value).is_ok()
                });
                problems.check(valid, "action.headers", "must be HTTP headers");
            }
            Action::Html { status, .. } => {
                problems.check((200..=599).contains(status), "action.status", "must be 200 to 599");
            }
            Action::Repeat { after_ms, .. } | Action::Expire { after_ms } => {
                problems.check(*after_ms <= MAX_MS, "action.after_ms", "must be at most a day");
            }
            Action::RateLimit { penalty_ms } => {
                let fits = (1..=MAX_MS).contains(penalty_ms);
                problems.check(fits, "action.penalty_ms", "must be 1 ms to a day");
            }
            _ => {}
        }
        problems.finish().map(|()| self)
    }
}

/// The status code of a checked fault.
pub(super) fn status_code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests;
