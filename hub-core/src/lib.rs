#![doc = include_str!("../README.md")]
//!
//! # Structure
//!
//! Data moves one way, and so do imports: a floor imports only floors below it, which a test of the workspace
//! (`documents::layers`) checks. Everything before the first commit may be repeated;
//! nothing after it may be lost. [Architecture](docs/architecture.md) describes the path of a message, the decisions,
//! and where a change goes.
//!
//! ```text
//! message   network ─▶ inbox ─▶ filter ─▶ plugins ─▶ sink ─▶ plugins ─▶ trace
//!                                           └─────── reply ──────┴─▶ outbox ─▶ network
//! imports   frontends ─▶ toolkit ─▶ hub ─▶ engine ─▶ domain ─▶ node ─▶ store ─▶ model ─▶ rules ─▶ adapters ─▶ base
//! ```
//!
//! Each floor is a folder, and its modules are public at the root of the crate.
//!
//! | floor | content |
//! |---|---|
//! | `toolkit` | [`presets`], preconfigured hubs; [`replay`] of recorded deliveries; with the feature `sim` the demo, with `testing` a hub for tests |
//! | [`hub`] | [`Hub`] and its builder: open, start, shut down |
//! | `engine` | what works by itself: [`delivery`], stage by stage, the iLink [`gateway`], [`backup`] and [`upkeep`] |
//! | `domain` | the nouns, [`accounts`], [`bots`], [`channels`], [`media`], [`plugins`], [`apps`], [`traces`] and [`admin`]: queries and changes, with their authorization |
//! | `node` | state of this process: the [`context`] that every operation gets, connections, signed links to files, the [`audit`] log, [`revocation`], repeatable calls ([`idempotency`]), the [feed of events](event_feed) |
//! | [`store`] | the only place with SQL: two databases, each statement once, one committer |
//! | `model` | records, which the store returns and the nouns show; [`access`]: who acts, and whose data a query may see; [`config`], [`events`], [`counters`] and signals ([`wake`]) |
//! | `rules` | pure functions: [`filter`], [`signing`], [`redact`], [`qr`], passwords |
//! | `adapters` | the outside world, used without knowledge of users, channels or SQL: chat networks ([`network`]), the only outbound HTTP client ([`egress`]), plugins in processes that can be killed ([`sandbox`]), models ([`ai`]), services without a port ([`local_http`]) |
//! | `base` | the vocabulary: [`id`], [`time`], [`random`], [`secret`], [`error`], [`page`], [`text`], [`tasks`], [`spans`], [`invariants`], files |
//!
//! A noun never calls `delivery`: sending means writing an outbox row, which the worker finds. That also makes an
//! accepted send durable.
//!
//! # Invariants and limits
//!
//! - **The store is the queue.** A delivery is a row written in the transaction of its message. Memory holds a bounded
//!   part; recovery, replays, other nodes and the backlog read the rows by one scan.
//! - **Group commit.** One committer writes everything that waits in one transaction, in multi-row statements,
//!   and responds to each caller after the commit. SQLite runs in WAL mode with `synchronous=FULL`.
//! - **A lease per bot** covers its polling, deliveries and outbox, since a conversation never spans bots: order
//!   needs no lock between nodes, and every write checks the lease's fence inside its commit.
//! - **Order and fairness**: one delivery in flight per conversation and channel, channels take turns, retries
//!   share half of the slots.
//! - **Sign last**: authentication goes over the final bytes, after everything that may change a request.
//! - **Time, randomness, networks and outbound HTTP are injected**; no code reads another clock.
//! - **Everything is bounded**: see the table.
//!
//! | what | limit | at the limit |
//! |---|---|---|
//! | commands waiting for the committer | 1,024 | callers wait |
//! | deliveries in memory per kind of sink, in total and per channel | [`max_jobs`](config::HubConfig::max_jobs), 2,000 | the rest stays in the store |
//! | webhook requests in flight | [`max_in_flight`](config::HubConfig::max_in_flight), per channel its `max_concurrency` | the rest waits in its lane |
//! | webhook requests answered whose outcome is not stored | [`max_in_flight`](config::HubConfig::max_in_flight) | no further one begins |
//! | messages in progress at models | [`max_ai_in_flight`](config::HubConfig::max_ai_in_flight), 4 per channel | the rest waits in its lane |
//! | tools offered to a model | 64, and 64 KiB of their definitions | further ones are left out |
//! | a call of an app's tool | 64 KiB of arguments, 20 s, 16 KiB of the response | the model gets an error; a response is cut |
//! | images of a message for a model | 4, 5 MiB together | further ones are described in text |
//! | body of a response | 1 MiB, of a model [32 MiB](ai::MAX_RESPONSE), of which [256 KiB](ai::MAX_ANSWER) of text and arguments and [4 MiB](ai::MAX_THINKING) of thoughts | the attempt fails as `too_large` |
//! | bytes of files in memory while they are fetched, encrypted or uploaded | [`max_in_memory`](media::MediaLimits::max_in_memory), 256 MiB | the next file waits |
//! | one file, in and out | [`max_inbound`](media::MediaLimits::max_inbound), [`max_outbound`](media::MediaLimits::max_outbound) | it fails alone; `PAYLOAD_TOO_LARGE` |
//! | files of one user | [`max_per_owner`](media::MediaLimits::max_per_owner) | `CONFLICT`; inbound files fail alone |
//! | open outbox items per person | [`max_outbox_per_peer`](config::HubConfig::max_outbox_per_peer) | `RATE_LIMITED` |
//! | bots of a user | [`max_bots_per_user`](config::HubConfig::max_bots_per_user) | a further login is refused |
//! | API keys of a user | 50 | `CONFLICT` |
//! | hints, events and revocations for slow listeners | 1,024 each | the oldest are lost; polling finds the rest |
//! | events kept for clients that continue | 4,096 | the client is notified, and reads its lists again |
//! | event streams of a user, and on a node | [8](event_feed::MAX_STREAMS_PER_USER), [1,000](event_feed::MAX_STREAMS) | `RATE_LIMITED` |
//! | passwords waiting to be hashed | 64 | `RATE_LIMITED` |
//! | sign-in ceremonies in progress, in total and per browser | 10,000 and 5 | the one that expires first, or the browser's oldest, is cancelled |
//! | QR logins that no user has opened | 10,000 | the oldest is cancelled |
//! | plugins of a user, and of a channel | 100, 16 | `CONFLICT` |
//! | obsolete versions of a plugin that are not installed | 20 | the oldest are deleted |
//! | WebSockets on a node, and of a user | [`max_sockets`](config::HubConfig::max_sockets), [`max_sockets_per_user`](config::HubConfig::max_sockets_per_user) | `RATE_LIMITED` |
//! | events that wait for an app's socket | see [`apps::sockets`] | the socket is closed; the store has it |
//! | apps of a user, and on a bot | [`MAX_APPS`](apps::MAX_APPS), [`MAX_INSTALLATIONS`](apps::MAX_INSTALLATIONS) | `CONFLICT` |
//! | plugin runs waiting for a worker | [`SandboxConfig::queue`](sandbox::SandboxConfig::queue), a quarter of it per tenant | the run is retried later |
//! | inputs and outputs of a plugin run | see [`sandbox`] | an error of the plugin |
//! | recordings of a [`replay`] in progress | 1,024 | the next one is not read |
//! | rows that a page of a filtered list of messages or traces reads | [1,000](page::MAX_SCANNED), with filters on steps [200](traces::MAX_STEPS_SCANNED) | the page ends, with a cursor |
//! | traces of one [bulk replay](traces::Traces::replay_all), and replays kept per user | [1,000](traces::MAX_REPLAYED), 100 | `INVALID_PARAMS`; the oldest are forgotten |
//! | consecutive runs of a plugin that have to be killed | [5](plugins::breaker::MAX_OVERRUNS) | it is stopped in that channel |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(missing_docs)]

/// A named point at which tests make the hub fail, in a function that can fail; `(…, passed)` where it cannot.
/// Nothing without the feature `testing`.
macro_rules! failpoint {
    ($point:literal) => {
        #[cfg(feature = "testing")]
        crate::failpoints::reach($point).await?;
    };
    ($point:literal, passed) => {
        #[cfg(feature = "testing")]
        let _ = crate::failpoints::reach($point).await;
    };
    ($point:literal, called by $caller:expr) => {
        #[cfg(feature = "testing")]
        crate::failpoints::reach_blocking($point, $caller)?;
        #[cfg(not(feature = "testing"))]
        let _ = $caller;
    };
}

// The derives name this crate by its name, here and in hub-server.
extern crate self as hub_core;

/// Keeps what the derive `Api` emits only with the feature `openapi`.
#[cfg(feature = "openapi")]
#[doc(hidden)]
#[macro_export]
macro_rules! when_openapi {
    ($($items:tt)*) => { $($items)* };
}

#[cfg(not(feature = "openapi"))]
#[doc(hidden)]
#[macro_export]
macro_rules! when_openapi {
    ($($items:tt)*) => {};
}

mod adapters;
mod base;
mod domain;
mod engine;
pub mod hub;
mod model;
mod node;
mod rules;
pub mod store;
mod toolkit;

pub use adapters::{ai, egress, local_http, network, sandbox};
#[cfg(feature = "testing")]
pub use base::failpoints;
#[doc(hidden)]
pub use base::input;
#[cfg(feature = "openapi")]
#[doc(hidden)]
pub use base::openapi;
pub use base::{
    body_text, data_dir, error, file_name, file_type, id, invariants, page, private_files, random, secret,
    spans, sse, tasks, text, time,
};
pub(crate) use base::{columns, words};
pub use domain::{accounts, admin, apps, bots, channels, media, plugins, traces};
pub use engine::{backup, delivery, gateway, upkeep};
pub use model::{access, config, counters, events, wake};
pub(crate) use node::{app_status, media_store, payload};
pub use node::{audit, context, event_feed, idempotency, revocation};
pub(crate) use rules::password;
pub use rules::{filter, qr, redact, signing};
#[cfg(feature = "sim")]
pub use toolkit::demo;
#[cfg(any(test, feature = "testing"))]
pub use toolkit::testing;
pub use toolkit::{presets, replay};

pub use base::error::{Error, ErrorCode, Result};
pub use hub::{Hub, HubBuilder};
