//! Causes for which something was not delivered, taken or sent, as values.
//!
//! A cause is stored as its English sentence. [`Cause::read`] returns the values of such a sentence, also of one that an
//! earlier version stored in the same words. The API shows the sentence and the values.
//!
//! In the OpenAPI document all causes are one object: `code`, a closed list, and the values of all causes as optional
//! fields. One schema per cause, joined by `oneOf`, would be a hundred types in a generated client, and most generators
//! cannot read a new code then. A name stands for one type in every cause.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{time::Timestamp, words::words};

mod sentence;
#[cfg(test)]
mod tests;

pub use sentence::Sentence;
use sentence::{Value, values};

/// Causes in causes in causes are read; deeper ones stay texts.
const MAX_DEPTH: usize = 4;

/// Defines the causes: first the values with their types and texts, then the variants with their values and sentences.
/// `{name}` is the place of a value. Of two sentences that match a text the first counts.
macro_rules! causes {
    (
        values { $($value:ident: $type:ty = $text:literal,)* }
        $($name:ident $({ $($field:ident),+ })? = $sentence:literal;)*
    ) => {
        #[expect(non_camel_case_types, reason = "a type has the name of its value")]
        mod value {
            use super::{Cause, FilterParts, Timestamp};

            $(pub(super) type $value = $type;)*
        }

        crate::when_openapi! {
            /// Returns the text of a value in the OpenAPI document.
            fn text_of(name: &str) -> &'static str {
                match name {
                    $(stringify!($value) => $text,)*
                    _ => "The text without a code of its own.",
                }
            }
        }

        /// Cause of an outcome: a code, and the values that the code has, as in the sentence next to it. A text that is none
        /// of these sentences, for example one of a receiver, has the code `other`. Later versions may add codes.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
        #[serde(tag = "code", rename_all = "snake_case")]
        #[api(tag = "code", texts = text_of, example = { "code": "status", "status": 500 })]
        #[expect(missing_docs, reason = "each value has one text for all causes")]
        pub enum Cause {
            $(
                #[doc = $sentence]
                $name $({ $($field: value::$field),+ })?,
            )*
            /// Text of a network, a receiver, a plugin or an earlier version.
            Other { text: String },
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
                        $($(let $field = <value::$field as Value>::read(values.next()?, depth)?;)+)?
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
    values {
        app: String = "Handle of the app.",
        at: Timestamp = "Time of the event in the sentence.",
        attempt: u32 = "Number of the attempt, from 1.",
        attempts: i64 = "Number of attempts made.",
        bytes: usize = "Size in bytes.",
        cause: Box<Cause> = "The cause in this one.",
        error: String = "Message of the parser or of another component, in English.",
        found: String = "What was found in the place of a text or an object, in English.",
        kib: usize = "Limit of the size in KiB.",
        kind: String = "Kind of the failure of the plugin or of the request.",
        location: String = "Header `Location` of the response.",
        max_bytes: usize = "Limit of the size in bytes.",
        media_type: String = "Media type of the response.",
        message: Box<Cause> = "Message of the other side.",
        model: String = "Name of the model.",
        name: String = "Name of the member of the response, or of the tool.",
        network: String = "Chat network.",
        network_code: i64 = "Error code of the chat network.",
        next_at: Timestamp = "When the next attempt is due.",
        overruns: u32 = "Number of runs that were ended.",
        parts: FilterParts = "Parts of the filter that did not match.",
        plugin: String = "Name of the plugin.",
        reason: String = "Reason of a reviewer, or of the end of a body, in English.",
        rest: String = "Rest of a sentence that version 0.1.0 stored.",
        sends: u32 = "Number of messages sent.",
        sink: String = "Name of the sink, in English.",
        state: String = "Review state of the version.",
        status: u16 = "HTTP status of the response.",
        summary: Box<Cause> = "Outcome of the delivery itself.",
        tokens: u64 = "Number of tokens used.",
        until: Timestamp = "When the wait ends.",
    }

    // Before the causes that may be in it.
    BindAgain { cause } = "{cause}; bind the bot again";

    Disabled = "disabled";
    Passed = "passed";
    NotAddressed = "handle";
    NotMatched { parts } = "{parts}";
    ExpressionFails { error } = "expression error: {error}";
    FilterFails { cause } = "the filter does not work: {cause}";
    Filtered { cause } = "filtered: {cause}";
    Unreadable = "the message could not be read; its original form is kept";
    Quarantined = "quarantined: the message could not be read";

    Queued = "queued";
    InLog = "in the channel's log";
    QueuedForChat = "queued for the chat";
    QueuedForApp { app } = "queued for the app {app}";
    QueuedForMore { sink } = "queued for the {sink} and other sinks";
    QueuedForSink { sink } = "queued for the {sink}";
    SkippedByPlugin = "skipped by a plugin";
    NotKnown = "no reason is known";
    Failed { attempts, cause } = "failed after {attempts} attempt(s): {cause}";
    Retrying { attempt, cause, next_at } =
        "attempt {attempt} failed: {cause}; next at {next_at}";
    Abandoned { attempts, cause } = "abandoned after {attempts} attempt(s): {cause}";
    NotStored = "the outcome of an attempt could not be stored";
    ReplyNotSent { summary, message } = "{summary}; a reply could not be sent: {message}";
    PluginFailedAfterwards { summary, plugin, kind } =
        "{summary}; plugin {plugin} failed after the request: {kind}";
    PluginFailed { plugin, kind } = "plugin {plugin}: {kind}";
    PluginStopped { overruns } = "{overruns} runs in a row did not end by themselves";
    PluginNotMatched = "@match does not match the message";
    PluginMatchFails { error } = "@match: {error}";
    PluginHasNoHook = "the plugin has no function onRequest or onResponse";
    PluginSourceGone = "its source is gone";
    VersionRejected { state, reason } = "the version was {state}: {reason}";
    VersionStopped { state } = "the version was {state}";
    SinkOff { sink } = "the channel's {sink} is off";
    InternalError = "internal error";
    Cancelled = "cancelled";
    Superseded = "superseded by a replay";
    Replay = "replay";
    NoSuchTrace = "there is no such trace";
    TraceWithoutChannel = "it belongs to no channel";
    TraceOfSend = "it is the trace of a send";

    Refused { cause } = "{cause}: the receiver accepts no more messages";
    Redirected { status, location } =
        "status {status}: redirects are not followed; Location: {location}";
    Status { status } = "status {status}";
    BlockedAddress { message } = "blocked_address: {message}";
    Dns { message } = "dns: {message}";
    Tls { message } = "tls: {message}";
    Timeout { message } = "timeout: {message}";
    Connect { message } = "connect: {message}";
    TooLarge { message } = "too_large: {message}";
    Broken { message } = "broken: {message}";
    GoneReceiver = "the receiver answered 410 Gone";
    FailingForDays = "every delivery failed for days";
    BodyCut { kib } = "the body is cut: it is larger than {kib} KiB";
    BodyEndedEarly { error } = "the body ended early: {error}";

    NoEndpoint = "this hub has no AI endpoint; waits until the administrator sets one";
    CommandIgnored = "commands and mentions are not answered";
    MaybeLoop = "20 replies to this conversation within a minute: it may be a loop";
    Answered { model, tokens } = "answered by {model}, {tokens} tokens";
    AnsweredUncounted { model } = "answered by {model}";
    ModelBadUrl { message } = "bad_url: {message}";
    ModelRateLimited { message } = "rate_limited: {message}";
    ModelRefused { message } = "refused: {message}";
    ModelFailed { message } = "failed: {message}";
    ModelMalformed { message } = "not_understood: {message}";
    ModelCut { message } = "cut: {message}";
    ModelNotOffered { model } = "the administrator does not offer the model {model}";
    TokensUsedUp = "the channel has used up its tokens of this day";
    ToolTimeout = "the tool did not respond in time";
    NoSuchTool { name } = "there is no tool called {name}";

    AppDelivered = "delivered to the app";
    WaitsForSocket = "the app has no webhook, so that the event waits for a socket of the app";
    NoSocket = "the app has no webhook, and no socket of the app came for the event";
    AppOff = "the app was taken off the bot, or switched off";
    EventWithoutPerson = "the event is about no person";
    AppGone = "the app is not on the bot any more";
    RepliesLater = "`reply_async` is set, so that the app replies through the bot API";

    NoAutoReply = "auto_reply of the webhook is off";
    // As version 0.1.0 stored it.
    NoAutoReplyIn { rest } = "auto_reply of the webhook is off; {rest}";
    PluginReplied = "a plugin replied in place of the response";
    ReplyTooLong { bytes, max_bytes } = "the reply has {bytes} bytes, and at most {max_bytes} are sent";
    ReplyWithFailure { status } = "the status is {status}, and only the `reply` of a 2xx response is sent";
    ReplyEmpty = "`reply` is empty";
    MemberNotText { name, found } = "`{name}` is {found}, not a text";
    MemberUnreadable { name, error } = "`{name}` cannot be read: {error}";
    ReplyNested = "`reply` is not at the top level of the response";
    ReplyMisspelled { name } = "the response has {name}; the name is `reply`";
    NotJsonCut { error, kib } =
        "the response is not JSON: {error}; the body is cut: it is larger than {kib} KiB";
    NotJsonBroken { error, reason } =
        "the response is not JSON: {error}; the body ended early: {reason}";
    NotJsonPreceded { error } = "the response is not JSON: {error}; there is text before the JSON";
    NotJson { error } = "the response is not JSON: {error}";
    NotObject { found } = "the response is {found} in JSON, not an object";
    NotText { media_type } =
        "the response ({media_type}) is not text in its charset, which is UTF-8 unless Content-Type names another";
    NotTextUntyped =
        "the response is not text in its charset, which is UTF-8 unless Content-Type names another";
    OnlyTest = "this is a test; the sender of a message gets the reply";
    TextBlank = "the text is blank";
    NoGroups = "the chat network does not accept messages to groups";
    FileNotBase64 = "the file is not base64";
    DataUriUnreadable = "the data: URI cannot be read";
    DataUriNotBase64 = "the data: URI is not base64";
    NothingToForward = "there is no response to forward before the request";
    ForwardTooLarge = "the response is too large to be forwarded";
    ForwardIncomplete = "the response to forward is not complete";

    NeverWrote = "this person has not written to the bot yet; they have to write first";
    NotSinceBound { at } =
        "this person has not written since the bot was bound again on {at}; they have to write first";
    WroteTooLongAgo { at } =
        "this person's last message, of {at}, is too old; they have to write again";
    SendsUsedUp = "every send since this person's last message is used up; they have to write again";
    ClosedByNetwork { message } =
        "the network refuses sends until this person writes again: {message}";
    Paced { until, sends } =
        "waits until {until}: this person was sent {sends} messages within 5 minutes, which is the limit";
    PersonWrote = "this person wrote: it is sent now";
    NoMessageId = "the network accepted it without an id";
    Sending = "sending";
    Sent = "sent";
    Unconfirmed = "unconfirmed";
    Uncertain = "unknown";
    SendFailed = "failed";
    Expired = "expired";
    ExpiredWaiting = "expired while waiting for the person to write";
    NotRetried = "unknown whether the network accepted it; not retried";

    FileNotSent { cause } = "the file was not sent: {cause}";
    FileTooLarge { max_bytes } = "it is larger than {max_bytes} bytes";
    FileGone = "the file is gone";
    FileMissing = "it is not there";
    FileWithoutReference = "there is no reference";
    FileReferenceUnreadable = "the reference cannot be read";
    FileReferenceSealed = "the reference cannot be opened";
    FileHostForbidden = "the reference names no host that may be called";
    FileKeyMissing = "no key opens it";
    FileStatus { status } = "the CDN answered HTTP {status}";
    FileUnanswered { kind } = "no response from the CDN ({kind})";
    FileUploadFailed { kind } = "the upload to the CDN failed ({kind})";
    FileUploadRefused { message, status } = "the CDN refused the file: {message} (HTTP {status})";
    FileAddressForbidden { message } = "the CDN: {message}";
    FilesNotServed = "this network has no files";
    FilesNotAccepted = "this network does not accept files";

    NewLogin = "the network requires a new login";
    OtherNetwork { network } = "this hub does not serve the network {network}";
    LoginExpired { message } = "the network requires a new login: {message}";
    SessionTimeout { network_code } = "session timeout (code {network_code})";
    Throttled { message } = "the network throttles: {message}";
    RefusedByNetwork { message, network_code } =
        "the network refused: {message} (code {network_code})";
    Unreachable { message } = "no usable response from the network: {message}";
    EmptyPolls = "the network answers polls at once and with nothing; the login may have lapsed";
    NoMessageIds = "the network accepts messages without ids; people may not see them";
    NoPollResponse = "the network does not respond to polls";
    VerifyingLogin = "the network reports an expired login; verifying";
    OwnerDisabled = "its owner is disabled";
    NetworkNotServed { network } = "no node of this hub has the network {network}";
    LogWentBackwards = "a channel's log went backwards; see the server's log";

    WrongNumber = "the number is wrong";
    CodesExpired = "three codes expired without a scan";
    BindExpired = "the login expired";
    BindRedirected = "the network redirected the login to a host that is not allowed";
    BindWithoutCredentials = "the network confirmed the login without credentials";
    BoundElsewhere = "the account is already bound, and this hub has no login for it: \
                      remove the connection in the chat app, then scan again";
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterParts(pub Vec<FilterPart>);

impl fmt::Display for FilterParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|part| part.as_str()).collect();
        f.write_str(&names.join(", "))
    }
}

crate::when_openapi! {
    crate::openapi::shown_as!(FilterParts, Vec<FilterPart>, |parts: &FilterParts| parts.0.clone());
}
