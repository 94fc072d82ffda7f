//! The store's contract: every method of every view, on both databases, by one suite.
//!
//! A case is a function over a [`Db`](crate::support::database::Db); `contract!` stamps it as
//! `sqlite::case` and `postgres::case` and says which methods it proves. `coverage` fails when a method of
//! the store is named by no case.

/// Stamps cases for both databases, and for a file whose commits go to the log first:
/// `contract!("accounts": { a_case => [insert_user, find_user], … });` where
/// `accounts.rs` is the file in `hub-core/src/store/`, and the names in brackets are methods that the case
/// covers.
macro_rules! contract {
    ($file:literal: { $($case:ident => [$($method:ident),* $(,)?]),* $(,)? }) => {
        /// Methods that the cases of this file cover.
        pub const COVERED: super::Covered = ($file, &[$(&[$(stringify!($method)),*]),*]);

        mod sqlite {
            $(
                #[tokio::test]
                async fn $case() {
                    let db = $crate::support::database::Db::sqlite().await;
                    super::$case(&db).await;
                    db.remove().await;
                }
            )*
        }

        mod claimed {
            $(
                #[tokio::test]
                async fn $case() {
                    let db = $crate::support::database::Db::claimed().await;
                    super::$case(&db).await;
                    db.remove().await;
                }
            )*
        }

        mod postgres {
            $(
                #[tokio::test]
                async fn $case() {
                    if let Some(db) = $crate::support::database::Db::postgres().await {
                        super::$case(&db).await;
                        db.remove().await;
                    }
                }
            )*
        }
    };
}

/// Runs statements of one command and waits for its commit: `commit!(db, |tx| tx.bots().rename(id, "x").await)`.
macro_rules! commit {
    ($db:expr, |$tx:ident| $run:expr) => {
        $db.store.write(move |$tx| Box::pin(async move { $run })).await
    };
}

/// A file of the store, and the methods that each of its cases proves.
type Covered = (&'static str, &'static [&'static [&'static str]]);

mod accounts;
mod ai;
mod app_calls;
mod app_codes;
mod app_events;
mod app_sockets;
mod apps;
mod audit;
mod binds;
mod bots;
mod channel_plugins;
mod channels;
mod commit_log;
mod commit_plan;
mod contacts;
mod coverage;
mod deliveries;
mod demo;
mod due;
mod event_deliveries;
mod external_accounts;
mod filled;
mod idempotency;
mod ilink;
mod immediate_send;
mod inbox;
mod installations;
mod leases;
mod list_costs;
mod lists;
mod log;
mod media;
mod messages;
mod open_deliveries;
mod outbox;
mod passkeys;
mod plans;
mod plugins;
mod qr_logins;
mod replays;
mod revocations;
mod scene;
mod schema;
mod sealed;
mod sending;
mod sign_in_flows;
mod stats;
mod traces;
mod upkeep;
mod user_keys;
mod users;
mod writer;
mod writers;
