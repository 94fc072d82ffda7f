//! Causes for which something was not delivered, taken or sent, as values.
//!
//! A cause is stored and shown in the API as its English sentence. [`Cause::read`] returns the values of such a sentence,
//! also of one that an earlier version stored in the same words.

use std::fmt;

use serde::Serialize;

use crate::{time::Timestamp, words::words};

/// Causes in causes in causes are read; deeper ones stay texts.
const MAX_DEPTH: usize = 4;

/// Defines the causes: variants with their values and sentences. `{name}` is the place of a value. Of two sentences that
/// match a text the first counts.
macro_rules! causes {
    ($($name:ident $({ $($field:ident: $type:ty),+ })? = $sentence:literal;)*) => {
        /// The cause for which something was not delivered, taken or sent.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(tag = "code", rename_all = "snake_case")]
        pub enum Cause {
            $(
                #[doc = $sentence]
                $name $({ $(#[doc = concat!("The `", stringify!($field), "` of the sentence.")] $field: $type),+ })?,
            )*
            /// A text of a network, a receiver, a plugin or an earlier version.
            Other {
                /// The text.
                text: String,
            },
        }

        impl fmt::Display for Cause {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name $({ $($field),+ })? => write!(f, $sentence),)*
                    Self::Other { text } => f.write_str(text),
                }
            }
        }

        impl Cause {
            fn find(text: &str, depth: usize) -> Option<Self> {
                $(
                    let found = values($sentence, text).and_then(|values| {
                        let mut values = values.into_iter();
                        $($(let $field = <$type as Value>::read(values.next()?, depth)?;)+)?
                        values.next().is_none().then_some(Self::$name $({ $($field),+ })?)
                    });
                    if found.is_some() {
                        return found;
                    }
                )*
                None
            }

            #[cfg(test)]
            const SENTENCES: &'static [&'static str] = &[$($sentence),*];
        }
    };
}

causes! {
    Disabled = "disabled";
    NotAddressed = "handle";
    NotMatched { parts: FilterParts } = "{parts}";
    ExpressionFails { error: String } = "expression error: {error}";
    FilterFails { error: Box<Cause> } = "the filter does not work: {error}";
    Filtered { cause: Box<Cause> } = "filtered: {cause}";
    Unreadable = "the message could not be read; its original form is kept";
    Quarantined = "quarantined: the message could not be read";

    Queued = "queued";
    InLog = "in the channel's log";
    QueuedForApp { app: String } = "queued for the app {app}";
    QueuedForMore { sink: String } = "queued for the {sink} and other sinks";
    QueuedForSink { sink: String } = "queued for the {sink}";
    SkippedByPlugin = "skipped by a plugin";
    NotKnown = "no reason is known";
    Failed { attempts: u32, cause: Box<Cause> } = "failed after {attempts} attempt(s): {cause}";
    Retrying { attempt: u32, cause: Box<Cause>, next_at: Timestamp } =
        "attempt {attempt} failed: {cause}; next at {next_at}";
    Abandoned { attempts: i64, cause: Box<Cause> } = "abandoned after {attempts} attempt(s): {cause}";
    NotStored = "the outcome of an attempt could not be stored";
    ReplyNotSent { summary: Box<Cause>, message: Box<Cause> } = "{summary}; a reply could not be sent: {message}";
    PluginFailedAfterwards { summary: Box<Cause>, plugin: String, kind: String } =
        "{summary}; plugin {plugin} failed after the request: {kind}";
    PluginFailed { plugin: String, kind: String } = "plugin {plugin}: {kind}";
    SinkOff { sink: String } = "the channel's {sink} is off";
    InternalError = "internal error";
    Cancelled = "cancelled";
    Superseded = "superseded by a replay";
    Replay = "replay";

    Refused { cause: Box<Cause> } = "{cause}: the receiver accepts no more messages";
    Redirected { status: u16, location: String } =
        "status {status}: redirects are not followed; Location: {location}";
    Status { status: u16 } = "status {status}";
    BlockedAddress { message: Box<Cause> } = "blocked_address: {message}";
    Dns { message: Box<Cause> } = "dns: {message}";
    Tls { message: Box<Cause> } = "tls: {message}";
    Timeout { message: Box<Cause> } = "timeout: {message}";
    Connect { message: Box<Cause> } = "connect: {message}";
    TooLarge { message: Box<Cause> } = "too_large: {message}";
    Broken { message: Box<Cause> } = "broken: {message}";
    GoneReceiver = "the receiver answered 410 Gone";
    FailingForDays = "every delivery failed for days";
    BodyCut { kib: usize } = "the body is cut: it is larger than {kib} KiB";
    BodyEndedEarly { error: String } = "the body ended early: {error}";

    NoEndpoint = "this hub has no AI endpoint; waits until the administrator sets one";
    CommandIgnored = "commands and mentions are not answered";
    MaybeLoop = "20 replies to this conversation within a minute: it may be a loop";
    Answered { model: String, tokens: u64 } = "answered by {model}, {tokens} tokens";
    AnsweredUncounted { model: String } = "answered by {model}";

    AppDelivered = "delivered to the app";
    WaitsForSocket = "the app has no webhook, so that the event waits for a socket of the app";
    NoSocket = "the app has no webhook, and no socket of the app came for the event";
    AppOff = "the app was taken off the bot, or switched off";
    EventWithoutPerson = "the event is about no person";
    AppGone = "the app is not on the bot any more";
    RepliesLater = "`reply_async` is set, so that the app replies through the bot API";

    NoAutoReply = "auto_reply of the webhook is off";
    // As version 0.1.0 stored it.
    NoAutoReplyIn { rest: String } = "auto_reply of the webhook is off; {rest}";
    PluginReplied = "a plugin replied in place of the response";
    ReplyTooLong { bytes: usize, most: usize } = "the reply has {bytes} bytes, and at most {most} are sent";
    ReplyWithFailure { status: u16 } = "the status is {status}, and only the `reply` of a 2xx response is sent";
    ReplyEmpty = "`reply` is empty";
    MemberNotText { name: String, found: String } = "`{name}` is {found}, not a text";
    MemberUnreadable { name: String, error: String } = "`{name}` cannot be read: {error}";
    ReplyNested = "`reply` is not at the top level of the response";
    ReplyMisspelled { name: String } = "the response has {name}; the name is `reply`";
    NotJsonCut { error: String, kib: usize } =
        "the response is not JSON: {error}; the body is cut: it is larger than {kib} KiB";
    NotJsonBroken { error: String, reason: String } =
        "the response is not JSON: {error}; the body ended early: {reason}";
    NotJsonPreceded { error: String } = "the response is not JSON: {error}; there is text before the JSON";
    NotJson { error: String } = "the response is not JSON: {error}";
    NotObject { found: String } = "the response is {found} in JSON, not an object";
    NotText { media_type: String } =
        "the response ({media_type}) is not text in its charset, which is UTF-8 unless Content-Type names another";
    NotTextUntyped =
        "the response is not text in its charset, which is UTF-8 unless Content-Type names another";
    OnlyTest = "this is a test; the sender of a message gets the reply";

    NeverWrote = "this person has not written to the bot yet; they have to write first";
    NotSinceBound { at: Timestamp } =
        "this person has not written since the bot was bound again on {at}; they have to write first";
    WroteTooLongAgo { at: Timestamp } =
        "this person's last message, of {at}, is too old; they have to write again";
    SendsUsedUp = "every send since this person's last message is used up; they have to write again";
    ClosedByNetwork { message: Box<Cause> } =
        "the network refuses sends until this person writes again: {message}";
    Paced { until: Timestamp, sends: u32 } =
        "waits until {until}: this person was sent {sends} messages within 5 minutes, which is the limit";
    PersonWrote = "this person wrote: it is sent now";
    NoMessageId = "the network accepted it without an id";
    Sending = "sending";
    Sent = "sent";
    Unconfirmed = "unconfirmed";
    Uncertain = "unknown";
    SendFailed = "failed";
    Expired = "expired";

    NewLogin = "the network requires a new login";
    OtherNetwork { network: String } = "this hub does not serve the network {network}";
    LoginExpired { message: Box<Cause> } = "the network requires a new login: {message}";
    SessionTimeout { number: i64 } = "session timeout (code {number})";
    Throttled { message: Box<Cause> } = "the network throttles: {message}";
    RefusedByNetwork { message: Box<Cause>, number: i64 } = "the network refused: {message} (code {number})";
    Unreachable { message: Box<Cause> } = "no usable response from the network: {message}";
    EmptyPolls = "the network answers polls at once and with nothing; the login may have lapsed";
    NoMessageIds = "the network accepts messages without ids; people may not see them";
    NoPollResponse = "the network does not respond to polls";
    VerifyingLogin = "the network reports an expired login; verifying";
    BindAgain { cause: Box<Cause> } = "{cause}; bind the bot again";
    OwnerDisabled = "its owner is disabled";
}

impl Cause {
    /// The network refuses sends to a person, with this message.
    pub(crate) fn closed_by_network(message: &str) -> Self {
        Self::ClosedByNetwork { message: Box::new(Self::read(message)) }
    }

    /// Reads a sentence; [`Cause::Other`] if it is none of a cause.
    pub fn read(text: &str) -> Self {
        Self::at(text, MAX_DEPTH)
    }

    fn at(text: &str, depth: usize) -> Self {
        let found = if depth > 0 { Self::find(text, depth - 1) } else { None };
        found.unwrap_or_else(|| Self::Other { text: text.to_owned() })
    }
}

words! {
    /// A part of a filter that kept a message out.
    pub enum FilterPart {
        /// None of its senders wrote it.
        Sender = "sender",
        /// It contains none of the keywords.
        Keyword = "keyword",
        /// It has another type.
        Type = "type",
        /// The expression is false for it.
        Expression = "expression",
    }
}

/// Parts of a filter, in its order; printed with commas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilterParts(pub Vec<FilterPart>);

impl fmt::Display for FilterParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|part| part.as_str()).collect();
        f.write_str(&names.join(", "))
    }
}

impl Value for FilterParts {
    fn read(text: &str, _: usize) -> Option<Self> {
        text.split(", ").map(FilterPart::parse).collect::<Option<_>>().map(Self)
    }
}

/// A value in a sentence.
trait Value: Sized {
    fn read(text: &str, depth: usize) -> Option<Self>;
}

impl Value for Box<Cause> {
    fn read(text: &str, depth: usize) -> Option<Self> {
        Some(Box::new(Cause::at(text, depth)))
    }
}

impl Value for String {
    fn read(text: &str, _: usize) -> Option<Self> {
        Some(text.to_owned())
    }
}

macro_rules! parsed {
    ($($type:ty)*) => {
        $(impl Value for $type {
            fn read(text: &str, _: usize) -> Option<Self> {
                text.parse().ok()
            }
        })*
    };
}

parsed! { Timestamp u16 u32 u64 usize i64 }

/// The texts at the places of a sentence, if it matches the whole text.
fn values<'t>(sentence: &str, text: &'t str) -> Option<Vec<&'t str>> {
    let (first, mut places) = sentence.split_once('{').unwrap_or((sentence, ""));
    let mut rest = text.strip_prefix(first)?;
    let mut found = Vec::new();
    while let Some((_, after)) = places.split_once('}') {
        let (literal, more) = after.split_once('{').unwrap_or((after, ""));
        let is_last = more.is_empty();
        let end = if is_last { rest.strip_suffix(literal)?.len() } else { rest.find(literal)? };
        found.push(&rest[..end]);
        rest = &rest[end + literal.len()..];
        places = more;
    }
    rest.is_empty().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::NetworkError;

    #[test]
    fn every_sentence_is_read_as_its_cause() {
        for sentence in Cause::SENTENCES {
            let mut text = String::new();
            let mut rest = *sentence;
            while let Some((before, after)) = rest.split_once('{') {
                let (name, after) = after.split_once('}').unwrap();
                let value = match name {
                    "at" | "until" | "next_at" => "2026-01-02T03:04:05.678Z",
                    "attempt" | "attempts" | "status" | "kib" | "bytes" | "most" | "tokens" | "sends"
                    | "code" | "number" => "410",
                    "parts" => "sender, keyword",
                    _ => "something",
                };
                text = text + before + value;
                rest = after;
            }
            text += rest;
            let cause = Cause::read(&text);
            assert_eq!(cause.to_string(), text);
            assert!(!matches!(cause, Cause::Other { .. }), "{text}");
            let again = serde_json::to_value(&cause).unwrap();
            assert!(again["code"].as_str().is_some_and(|code| code != "other"), "{again}");
        }
    }

    #[test]
    fn causes_have_values_and_causes_in_them() {
        let closed = "the network refuses sends until this person writes again: prepare failed";
        let message = || Box::new(Cause::Other { text: "prepare failed".to_owned() });
        assert_eq!(Cause::read(closed), Cause::ClosedByNetwork { message: message() });
        let failed =
            Cause::read("failed after 3 attempt(s): status 410: the receiver accepts no more messages");
        let status = Box::new(Cause::Status { status: 410 });
        let refused = Box::new(Cause::Refused { cause: status });
        assert_eq!(failed, Cause::Failed { attempts: 3, cause: refused });
        let json = serde_json::to_value(&failed).unwrap();
        assert_eq!(json["cause"]["cause"]["status"], 410);
        assert_eq!(json["cause"]["code"], "refused");
        for other in ["", "status", "status x", "failed after many attempt(s): no", "something else"] {
            assert_eq!(Cause::read(other), Cause::Other { text: other.to_owned() });
        }
    }

    #[test]
    fn a_cause_is_not_read_deeper_than_it_can_be() {
        let text = format!("dead{}", "; bind the bot again".repeat(10_000));
        assert_eq!(Cause::read(&text).to_string(), text);
    }

    #[test]
    fn failures_of_the_network_are_causes() {
        let said = || "said".to_owned();
        for error in [
            NetworkError::LoginExpired(said()),
            NetworkError::Throttled { message: said(), retry_after: None },
            NetworkError::Refused { code: -9, message: said() },
            NetworkError::Unreachable(said()),
        ] {
            assert!(!matches!(Cause::read(&error.to_string()), Cause::Other { .. }), "{error}");
        }
    }
}
