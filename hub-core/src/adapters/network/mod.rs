//! Chat networks: the traits that every network implements, their types, and the implementations. Nothing here
//! knows of users, channels or SQL.
//!
//! [`Network`] logs accounts in and opens [`Connection`]s; a connection receives batches and sends one item at a
//! time. The callers decide when to call and how to handle failures: the poller and the outbox in `delivery`, and
//! the bind flow in `bots`.
//!
//! # A network of your own
//!
//! Six methods are required, three of each trait; the others have defaults. This network has one person, Eve, who
//! writes `hello` once and prints what she receives:
//!
//! ```no_run
//! use std::{sync::Arc, time::Duration};
//!
//! use hub_core::{
//!     Hub,
//!     network::{
//!         Batch, Connection, Credentials, InboundMessage, LoginProgress, LoginPrompt, LoginState, LoginStep,
//!         Network, NetworkError, Outgoing, SendOutcome,
//!     },
//!     presets::{Preset, SelfHosted},
//!     secret::Secret,
//!     time::Clock,
//! };
//!
//! #[derive(Debug)]
//! struct Paper;
//!
//! #[async_trait::async_trait]
//! impl Network for Paper {
//!     fn name(&self) -> &'static str {
//!         "paper"
//!     }
//!
//!     // A login: a text that is shown as a QR code, and steps until the person has confirmed it.
//!     async fn begin_login(&self, _: &[Secret]) -> Result<LoginPrompt, NetworkError> {
//!         let state = LoginState("".into());
//!         Ok(LoginPrompt { qr_text: "sign here".into(), state, lives: Duration::from_secs(60) })
//!     }
//!
//!     async fn login_step(
//!         &self,
//!         state: &LoginState,
//!         _: Option<&str>,
//!         _: Duration,
//!     ) -> Result<LoginProgress, NetworkError> {
//!         let step = LoginStep::Confirmed(Credentials::new("token", "bot", "eve"));
//!         Ok(LoginProgress { step, state: state.clone() })
//!     }
//!
//!     fn connect(&self, _: &Credentials) -> Arc<dyn Connection> {
//!         Arc::new(Paper)
//!     }
//! }
//!
//! #[async_trait::async_trait]
//! impl Connection for Paper {
//!     // The cursor is committed with the messages; after a crash the same cursor is passed again.
//!     async fn receive(&self, cursor: &str) -> Result<Batch, NetworkError> {
//!         if cursor == "1" {
//!             Clock::system().sleep(Duration::from_secs(30)).await;
//!             return Ok(Batch { answered: true, ..Batch::default() });
//!         }
//!         let mut hello = InboundMessage::text("1", "eve", "bot", "hello", Clock::system().now());
//!         // What the hub passes back to `send`; without it the hub cannot write to Eve.
//!         hello.context_token = Some("stamp".into());
//!         Ok(Batch { messages: vec![hello], cursor: Some("1".into()), answered: true })
//!     }
//!
//!     async fn send(&self, outgoing: &Outgoing) -> SendOutcome {
//!         println!("Eve reads: {}", outgoing.text);
//!         SendOutcome::Sent { network_id: outgoing.client_id.clone() }
//!     }
//! }
//!
//! # async fn open() -> hub_core::Result<()> {
//! // Next to the network of the preset; without a preset: `Hub::builder().network(Paper)`.
//! let hub: Hub = SelfHosted::in_folder("/var/lib/my-bots").builder()?.network(Paper).open().await?;
//! hub.start().await?;
//! # Ok(())
//! # }
//! ```
//!
//! `testing::conformance::check_network` (feature `testing`) tests an implementation against what the hub relies on.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{secret::Secret, time::Timestamp, words::words};

pub mod ilink;
pub(crate) mod items;
pub mod media;
pub mod quote;
#[cfg_attr(
    not(feature = "sim"),
    expect(dead_code, unused_imports, reason = "the simulator reads more of a request than the gateway")
)]
pub(crate) mod server;
#[cfg(feature = "sim")]
pub mod sim;
pub mod typing;

pub use media::{FetchedMedia, InboundMedia, MediaError, MediaFile, UploadedMedia};
pub use quote::{Quote, Selection};

/// A chat network.
#[async_trait]
pub trait Network: fmt::Debug + Send + Sync + 'static {
    /// Short name, unique within a hub, stored with each bot: `ilink`, `sim`.
    fn name(&self) -> &str;

    /// Starts a login and returns what the person has to scan. `known` are tokens this hub still holds for
    /// the same owner, newest first: the network may recognise one of them.
    async fn begin_login(&self, known: &[Secret]) -> Result<LoginPrompt, NetworkError>;

    /// Waits for the next change of a login, at most about `wait`.
    async fn login_step(
        &self,
        state: &LoginState,
        verify_code: Option<&str>,
        wait: Duration,
    ) -> Result<LoginProgress, NetworkError>;

    /// Makes a connection for an account. Does no I/O.
    fn connect(&self, credentials: &Credentials) -> Arc<dyn Connection>;

    /// Returns the limits on messages from a bot to a person.
    fn window_rules(&self) -> WindowRules {
        WindowRules::default()
    }

    /// Cuts a text into the parts that the network shows whole; each part costs one send.
    fn split_text(&self, text: &str, format: TextFormat) -> Vec<String> {
        let _ = format;
        vec![text.to_owned()]
    }

    /// As [`split_text`](Self::split_text), for a caller that cuts its texts itself: the parts are as long as the network
    /// permits.
    fn split_long_text(&self, text: &str, format: TextFormat) -> Vec<String> {
        self.split_text(text, format)
    }
}

/// The calls on behalf of one logged-in account. Methods may run at the same time.
#[async_trait]
pub trait Connection: fmt::Debug + Send + Sync + 'static {
    /// Announces that polling begins.
    async fn start(&self) -> Result<(), NetworkError> {
        Ok(())
    }

    /// Waits for messages after a cursor (`""` at first). Returns when there are some, or when the network's hold
    /// time ends.
    async fn receive(&self, cursor: &str) -> Result<Batch, NetworkError>;

    /// Sends one item and returns its outcome, as far as it is known.
    async fn send(&self, outgoing: &Outgoing) -> SendOutcome;

    /// Fetches a file that came with a message, of at most `limit` bytes, and opens it. `earlier` are references of
    /// files with the same MD5 that were opened before, newest first: one of them may open this file too.
    async fn fetch_media(
        &self,
        reference: &Secret,
        earlier: &[Secret],
        limit: usize,
    ) -> Result<FetchedMedia, MediaError> {
        let _ = (reference, earlier, limit);
        Err(MediaError::Unavailable("this network has no files".to_owned()))
    }

    /// Uploads a file to the network, to be sent to one person. No one sees it until it is sent, so the call may be
    /// repeated.
    async fn upload_media(&self, to_user_id: &str, file: &MediaFile) -> Result<UploadedMedia, MediaError> {
        let _ = (to_user_id, file);
        Err(MediaError::Unavailable("this network does not accept files".to_owned()))
    }

    /// Shows or hides "is typing". Never required for anything else to work.
    async fn typing(
        &self,
        to_user_id: &str,
        context_token: Option<&Secret>,
        on: bool,
    ) -> Result<(), NetworkError> {
        let _ = (to_user_id, context_token, on);
        Ok(())
    }

    /// Announces that polling ended; bounded to a few seconds.
    async fn stop(&self) {}

    /// Forgets pooled network connections, so that the next call makes a new one.
    fn reset(&self) {}
}

/// Failure of a call to a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The account's login is no longer valid.
    #[error("the network requires a new login: {0}")]
    LoginExpired(String),
    /// Too many calls; the network named a pause, or none.
    #[error("the network throttles: {message}")]
    Throttled {
        /// Error message of the network.
        message: String,
        /// Pause that the network requested.
        retry_after: Option<Duration>,
    },
    /// The network understood and refused.
    #[error("the network refused: {message} (code {code})")]
    Refused {
        /// The network's own code.
        code: i64,
        /// Error message of the network.
        message: String,
    },
    /// No usable answer: connection failed, gateway error, broken body.
    #[error("no usable response from the network: {0}")]
    Unreachable(String),
}

/// The QR code that the person has to scan, and the state that the hub keeps meanwhile.
#[derive(Debug, Clone)]
pub struct LoginPrompt {
    /// Text to be shown as a QR code.
    pub qr_text: Secret,
    /// Handed back to [`Network::login_step`].
    pub state: LoginState,
    /// Lifetime of the code, as far as known.
    pub lives: Duration,
}

/// A network's state of a login in progress; opaque to other modules, and secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginState(pub Secret);

/// The status of a login, and the state for the next step.
#[derive(Debug, Clone)]
pub struct LoginProgress {
    /// Result of the step.
    pub step: LoginStep,
    /// Replaces the state that was passed in.
    pub state: LoginState,
}

/// One step of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginStep {
    /// The code was not scanned yet.
    Waiting,
    /// Scanned, not yet confirmed.
    Scanned,
    /// The phone shows a number that the network requires.
    NeedCode {
        /// A number was sent and was wrong.
        wrong: bool,
    },
    /// Too many wrong numbers: a new code is needed.
    CodeBlocked,
    /// The code ran out: a new code is needed.
    Expired,
    /// The account is already bound to one of the known tokens; those stay valid.
    AlreadyBound,
    /// Done.
    Confirmed(Credentials),
    /// The login cannot succeed.
    Refused(String),
}

/// Result of a login. Stored sealed, as one JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The token of every later call.
    pub token: Secret,
    /// The account's id on the network; shown as `wx_id`.
    pub account_id: String,
    /// The person the account belongs to.
    pub owner_user_id: String,
    /// Base URL of the account's calls; empty for the network's default.
    pub base_url: String,
}

impl Credentials {
    /// A login whose calls go to the network's default address.
    pub fn new(token: impl Into<Secret>, account_id: &str, owner_user_id: &str) -> Self {
        Self {
            token: token.into(),
            account_id: account_id.to_owned(),
            owner_user_id: owner_user_id.to_owned(),
            base_url: String::new(),
        }
    }
}

/// The answer of one [`Connection::receive`].
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Oldest first.
    pub messages: Vec<InboundMessage>,
    /// Cursor of the next call; `None` keeps the old one.
    pub cursor: Option<String>,
    /// Whether the network really answered, rather than this side giving up waiting.
    pub answered: bool,
}

words! {
    /// Kind of a message or of a part.
    #[derive(Hash)]
    #[api(name = "ItemType")]
    pub enum MessageKind {
        /// Text.
        Text = "text",
        /// An image.
        Image = "image",
        /// A voice message.
        Voice = "voice",
        /// A video.
        Video = "video",
        /// A file.
        File = "file",
        /// A kind that the hub does not know.
        Other = "other",
    }
}

impl MessageKind {
    /// The number in the field `msg_type`.
    pub const fn msg_type(self) -> i64 {
        match self {
            Self::Text => 1,
            Self::Image => 3,
            Self::Voice => 34,
            Self::Video => 43,
            Self::File => 49,
            Self::Other => 0,
        }
    }

    /// The kind with a name of [`MessageKind::as_str`]; any other word is [`MessageKind::Other`].
    pub fn from_word(word: &str) -> Self {
        [Self::Text, Self::Image, Self::Voice, Self::Video, Self::File]
            .into_iter()
            .find(|kind| kind.as_str() == word)
            .unwrap_or(Self::Other)
    }
}

/// Author of a message, and its handling by the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageClass {
    /// A person; dispatched.
    User,
    /// A bot; stored only.
    Bot,
    /// Taken back by its sender; stored only.
    Recalled,
    /// Not finished yet; stored only when nothing later replaces it.
    Unfinished,
    /// Could not be read; stored with its raw form and shown as quarantined.
    Quarantined,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[api(name = "Item")]
pub struct MessageItem {
    /// Kind of the part.
    #[serde(rename = "type")]
    pub kind: MessageKind,
    /// Text, or the network's transcript of a voice message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// File name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
    /// Size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Duration of voice or video in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

impl MessageItem {
    /// Whether the part is a file.
    pub const fn is_file(&self) -> bool {
        !matches!(self.kind, MessageKind::Text | MessageKind::Other)
    }
}

/// A message as the network gave it, in the hub's words.
#[derive(Debug, Clone)]
pub struct InboundMessage {
    /// Equal for repeats of one message, distinct otherwise; unique per bot. [`key_of`](Self::key_of) the
    /// [`network_id`](Self::network_id) where possible.
    pub dedupe_key: String,
    /// The network's own id, by which quotes name it.
    pub network_id: Option<String>,
    /// Author and handling of the message.
    pub class: MessageClass,
    /// Sender, byte for byte.
    pub from_user_id: String,
    /// Receiver, byte for byte.
    pub to_user_id: String,
    /// Sender's display name; empty when the network has none.
    pub user_name: String,
    /// The network's label of the conversation; empty when it has none.
    pub session_id: String,
    /// Group; empty for a direct chat.
    pub group_id: String,
    /// Kind of the message.
    pub kind: MessageKind,
    /// Text of the message: of all text parts, else the transcript, else the file's name, else empty.
    pub content: String,
    /// The parts.
    pub items: Vec<MessageItem>,
    /// Files that the network stores.
    pub media: Vec<InboundMedia>,
    /// Quote in the message.
    pub quote: Option<Quote>,
    /// The permission to answer.
    pub context_token: Option<Secret>,
    /// Time of sending.
    pub sent_at: Timestamp,
    /// The message as the network wrote it, with everything secret in it, if the other fields do not contain all of
    /// it: it could not be read, or has a part of a kind that the hub does not know. Empty otherwise.
    pub raw: Secret,
}

impl InboundMessage {
    /// The [`dedupe_key`](Self::dedupe_key) of a message that its id on the network identifies. An index of the store
    /// relies on this form.
    pub fn key_of(network_id: &str) -> String {
        format!("id:{network_id}")
    }

    /// A person's text in a direct chat, without anything optional. Networks that need a permission to answer
    /// put it into [`context_token`](Self::context_token).
    pub fn text(
        dedupe_key: &str,
        from_user_id: &str,
        to_user_id: &str,
        text: &str,
        sent_at: Timestamp,
    ) -> Self {
        Self {
            dedupe_key: dedupe_key.to_owned(),
            network_id: None,
            class: MessageClass::User,
            from_user_id: from_user_id.to_owned(),
            to_user_id: to_user_id.to_owned(),
            user_name: String::new(),
            session_id: String::new(),
            group_id: String::new(),
            kind: MessageKind::Text,
            content: text.to_owned(),
            items: vec![MessageItem::text(text)],
            media: Vec::new(),
            quote: None,
            context_token: None,
            sent_at,
            raw: Secret::new(String::new()),
        }
    }
}

/// Markup of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextFormat {
    /// As it is.
    #[default]
    Plain,
    /// Markdown; the network's own subset is kept, the rest is taken out.
    Markdown,
}

/// One item to send.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// Receiver, byte for byte.
    pub to_user_id: String,
    /// The newest permission of that person.
    pub context_token: Secret,
    /// Fixed before the first try and the same for every try.
    pub client_id: String,
    /// The text; ignored when there is a file.
    pub text: String,
    /// A file that is already uploaded.
    pub media: Option<UploadedMedia>,
}

/// Outcome of a send, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendOutcome {
    /// Accepted under an id.
    Sent {
        /// The network's id of the new message.
        network_id: String,
    },
    /// Accepted, and the network gave no id: for restricted accounts this means that no one will see it.
    AcceptedUnconfirmed,
    /// The window of this person is closed, whatever was counted.
    WindowClosed(String),
    /// Too fast: wait and try again.
    Throttled {
        /// Error message of the network.
        message: String,
        /// Pause that the network requested.
        retry_after: Option<Duration>,
    },
    /// The login is no longer valid, or the permission is too old: a poll tells which.
    LoginExpired(String),
    /// The network will never accept this message.
    Rejected(String),
    /// The request was never written: nothing can have happened.
    NotSent(String),
    /// The request was written and no usable answer came: it may have been taken.
    Unknown(String),
}

/// Limits on messages from a bot to a person. All numbers are settings of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowRules {
    /// Time after the person's last message; `None` for no limit.
    pub age: Option<Duration>,
    /// Sends per window; `None` for any number.
    pub sends: Option<u32>,
    /// Sends per person within [`WindowRules::BURST_SPAN`].
    pub burst: Option<u32>,
    /// Smallest gap between two sends to one person.
    pub gap: Duration,
}

impl WindowRules {
    /// The span [`WindowRules::burst`] counts over.
    pub const BURST_SPAN: Duration = Duration::from_secs(300);
}

impl Default for WindowRules {
    /// No limits, for a network without windows.
    fn default() -> Self {
        Self { age: None, sends: None, burst: None, gap: Duration::ZERO }
    }
}
