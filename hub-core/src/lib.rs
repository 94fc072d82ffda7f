#![doc = include_str!("../README.md")]
//!
//! # How the house is built
//!
//! Data moves one way, and so do imports, but for the plain types of the nouns, in which the store answers.
//! Everything left of the first commit may repeat; nothing right of it may be lost.
//!
//! ```text
//! message   network ─▶ inbox ─▶ filter ─▶ plugins ─▶ sink ─▶ plugins ─▶ trace
//!                                           └─────── reply ──────┴─▶ outbox ─▶ network
//! imports   frontends ─▶ hub ─▶ delivery ─▶ accounts admin apps bots channels plugins traces ─▶ store ─▶ id time …
//! leaves    network, egress, sandbox, ai: used from above, know nothing of users, channels or SQL
//! ```
//!
//! | room | what is in it |
//! |---|---|
//! | [`hub`], [`presets`] | [`Hub`] and its builder: open, start, shut down; hubs that are put together already |
//! | [`accounts`], [`bots`], [`channels`], [`media`], [`plugins`], [`apps`], [`traces`], [`admin`] | the nouns: what may be asked and changed, by whom |
//! | [`delivery`] | what happens to a message in flight, stage by stage |
//! | [`network`] | the trait of chat networks, the iLink connector, the simulator |
//! | [`egress`] | the one guarded HTTP client |
//! | [`sandbox`] | where plugins run: JavaScript of others, in processes that can be killed |
//! | [`ai`] | one call to an OpenAI-compatible model |
//! | [`replay`] | recorded deliveries sent again, through the hub or straight to a URL |
//! | [`admin`] | what administrators do |
//! | [`store`] | the only place with SQL: two databases, each statement once, one committer |
//! | [`access`] | [`Actor`](access::Actor): who asks, and whose things a query may see |
//! | [`context`], [`config`], [`tasks`] | what every room is handed: the store, the injected world, the settings; background work |
//! | [`events`], [`counters`], [`spans`] | what is told, counted and timed while all this works, for whoever listens |
//! | [`audit`], [`revocation`] | what was done to credentials and by administrators; what ended, told to every node within a second |
//! | [`sockets`] | places for WebSockets, of channels and of apps |
//! | [`idempotency`], [`invariants`] | calls that may be repeated; rules that hold whatever happens |
//! | [`local_http`], [`data_dir`], [`private_files`] | services without a port; the folder of a hub that runs on its own, and its files |
//! | [`id`], [`file_type`], [`time`], [`random`], [`secret`], [`page`], [`error`], [`text`] | the vocabulary |
//! | `demo`, `testing`, `failpoints` | behind features: a hub to look at, a hub for tests, and the points at which it fails there |
//!
//! A noun never calls `delivery`: sending means writing an outbox row, and the worker picks it up. That is
//! also what makes an accepted send durable.
//!
//! **Where new code goes.** Stop at the first yes. Does it contain SQL? `store`. Does it open a socket to an
//! address somebody else chose? `egress`. Is it true without HTTP and without a terminal? Here, in the folder
//! of the noun it changes; a rule about who may do it stands in the same function. Does it happen to a message
//! in flight? `delivery`, as a stage that takes the previous type and returns the next. Is it about shape on
//! the wire, or words on a screen? A frontend.
//!
//! # What holds everywhere
//!
//! - **The store is the queue.** A delivery is a row written in the transaction of its message. Memory holds the
//!   hot part, bounded; rows serve recovery, replays, other nodes and the backlog through one scan.
//! - **Group commit.** One committer writes everything that waits in one transaction, in multi-row statements,
//!   and answers each caller after the commit. SQLite runs in WAL mode with `synchronous=FULL`.
//! - **A lease per bot** covers its polling, deliveries and outbox, since a conversation never spans bots: order
//!   needs no lock between nodes, and every write checks the lease's fence inside its commit.
//! - **Order and fairness**: one delivery in flight per conversation and channel, channels take turns, retries
//!   share half of the slots.
//! - **Sign last**: authentication goes over the final bytes, after everything that may change a request.
//! - **Time, randomness, networks and outbound HTTP are injected**; nothing reads a clock of its own.
//! - **Everything is bounded**: see the table.
//!
//! | what | cap | at the cap |
//! |---|---|---|
//! | commands waiting for the committer | 1,024 | callers wait |
//! | deliveries in memory per kind of sink, in all and per channel | [`max_jobs`](config::HubConfig::max_jobs), 2,000 | the rest stays in the store |
//! | webhook requests in flight | [`max_in_flight`](config::HubConfig::max_in_flight), per channel its `max_concurrency` | the rest waits in its lane |
//! | messages being answered by models | [`max_ai_in_flight`](config::HubConfig::max_ai_in_flight), 4 per channel | the rest waits in its lane |
//! | tools that a model is offered | 64, and 64 KiB of their definitions | further ones are left out |
//! | a call of an app's tool | 64 KiB of arguments, 20 s, 16 KiB of the answer | the model is told; an answer is cut |
//! | images that a model is shown with a message | 4, 5 MiB together | further ones are named in words |
//! | an answer's body | 1 MiB, of a model [256 KiB](ai::MAX_ANSWER) | the attempt fails as `too_large` |
//! | bytes of files in memory while they are fetched, encrypted or uploaded | [`max_in_memory`](media::MediaLimits::max_in_memory), 256 MiB | the next file waits |
//! | one file, in and out | [`max_inbound`](media::MediaLimits::max_inbound), [`max_outbound`](media::MediaLimits::max_outbound) | it fails alone; `PAYLOAD_TOO_LARGE` |
//! | files of one user | [`max_per_owner`](media::MediaLimits::max_per_owner) | `CONFLICT`; files that come fail alone |
//! | open outbox items per person | [`max_outbox_per_peer`](config::HubConfig::max_outbox_per_peer) | `RATE_LIMITED` |
//! | API keys of a user | 50 | `CONFLICT` |
//! | hints, events and revocations for slow listeners | 1,024 each | the oldest are lost; polling finds the rest |
//! | passwords waiting to be hashed | 64 | `RATE_LIMITED` |
//! | ceremonies of signing in under way, in all and per browser | 10,000 and 5 | `RATE_LIMITED`; the browser's oldest ends |
//! | logins by QR code under way | 10,000 | `RATE_LIMITED` |
//! | plugins of a user, and of a channel | 100, 16 | `CONFLICT` |
//! | versions of a plugin that are over and run nowhere | 20 | the oldest are forgotten |
//! | WebSockets on a node, and of a user | [`max_sockets`](config::HubConfig::max_sockets), [`max_sockets_per_user`](config::HubConfig::max_sockets_per_user) | `RATE_LIMITED` |
//! | what waits for an app's socket | see [`apps::sockets`] | the socket is closed; the store has it |
//! | apps of a user, and on a bot | [`MAX_APPS`](apps::MAX_APPS), [`MAX_INSTALLATIONS`](apps::MAX_INSTALLATIONS) | `CONFLICT` |
//! | plugin runs waiting for a worker | [`SandboxConfig::queue`](sandbox::SandboxConfig::queue), a quarter of it per tenant | the run is tried again later |
//! | what one plugin run takes and makes | see [`sandbox`] | an error of the plugin |
//! | recordings of a [`replay`] that are read and not over | 1,024 | the next one is not read |
//! | runs of a plugin in a row that do not end by themselves | [5](plugins::breaker::MAX_OVERRUNS) | it is stopped in that channel |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(missing_docs)]

/// A named point at which tests make the hub fail, in a function that can fail; `(…, passed)` where it cannot.
/// Nothing without the feature `failpoints`.
macro_rules! failpoint {
    ($point:literal) => {
        #[cfg(feature = "failpoints")]
        crate::failpoints::reach($point).await?;
    };
    ($point:literal, passed) => {
        #[cfg(feature = "failpoints")]
        let _ = crate::failpoints::reach($point).await;
    };
}

pub mod access;
pub mod accounts;
pub mod admin;
pub mod ai;
pub mod apps;
pub mod audit;
pub mod backup;
pub mod bots;
pub mod channels;
pub mod config;
pub mod context;
pub mod counters;
pub mod data_dir;
pub mod delivery;
#[cfg(feature = "sim")]
pub mod demo;
pub mod egress;
pub mod error;
pub mod events;
#[cfg(feature = "failpoints")]
pub mod failpoints;
pub mod file_type;
pub mod hub;
pub mod id;
pub mod idempotency;
pub mod invariants;
pub mod local_http;
pub mod media;
pub mod network;
pub mod page;
pub mod plugins;
pub mod presets;
pub mod private_files;
pub mod random;
pub mod replay;
pub mod revocation;
pub mod sandbox;
pub mod secret;
pub mod sockets;
pub mod spans;
pub mod store;
pub mod tasks;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod time;
pub mod traces;
pub mod upkeep;

pub use error::{Error, ErrorCode, Result};
pub use hub::{Hub, HubBuilder};
