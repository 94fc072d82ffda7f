//! Connections: the two drivers behind one set of table views.

use sqlx::{PgConnection, Postgres, Sqlite, SqliteConnection, pool::PoolConnection};

use super::{
    accounts::Accounts, ai::Ai, app_calls::AppCalls, app_codes::AppCodes, app_events::AppEvents,
    app_sockets::AppSockets, apps::Apps, audit::Audit, binds::Binds, bots::Bots,
    channel_plugins::ChannelPlugins, channels::Channels, contacts::Contacts, deliveries::Deliveries,
    demo::Demo, due::Due, external_accounts::ExternalAccounts, idempotency::Idempotency,
    installations::Installations, leases::Leases, log::Log, media::Media, messages::Messages, outbox::Outbox,
    passkeys::Passkeys, plugins::Plugins, qr_logins::QrLogins, revocations::Revocations,
    sealed::SealedValues, sending::Sending, sign_in_flows::SignInFlows, stats::Stats, traces::Traces,
    user_keys::UserKeys, users::Users,
};

/// A borrowed connection of either database; what every table view holds.
#[derive(Debug)]
pub enum Conn<'c> {
    /// SQLite.
    Sqlite(&'c mut SqliteConnection),
    /// PostgreSQL.
    Postgres(&'c mut PgConnection),
}

impl Conn<'_> {
    /// The same connection, for one more view.
    pub(super) fn lend(&mut self) -> Conn<'_> {
        match self {
            Self::Sqlite(conn) => Conn::Sqlite(conn),
            Self::Postgres(conn) => Conn::Postgres(conn),
        }
    }
}

/// Runs one expression on whichever connection it is: `on!(self.0, |conn| query.fetch_one(conn).await)`.
/// The expression is pasted twice, with `conn` as the native connection; its error becomes ours.
macro_rules! on {
    ($db:expr, |$conn:ident| $run:expr) => {
        match &mut $db {
            $crate::store::conn::Conn::Sqlite($conn) => {
                let $conn = &mut **$conn;
                $run
            }
            $crate::store::conn::Conn::Postgres($conn) => {
                let $conn = &mut **$conn;
                $run
            }
        }
        .map_err($crate::store::fault::classify)
    };
}

/// As `on!`, with one statement per database: where the dialects part, both stand side by side.
macro_rules! on_each {
    ($db:expr, $sqlite:expr, $postgres:expr, |$conn:ident, $sql:ident| $run:expr) => {
        match &mut $db {
            $crate::store::conn::Conn::Sqlite($conn) => {
                let ($conn, $sql) = (&mut **$conn, $sqlite);
                $run
            }
            $crate::store::conn::Conn::Postgres($conn) => {
                let ($conn, $sql) = (&mut **$conn, $postgres);
                $run
            }
        }
        .map_err($crate::store::fault::classify)
    };
}

pub(crate) use {on, on_each};

/// What lends a [`Conn`]: a [`Tx`] or a [`Read`].
macro_rules! views {
    ($owner:ident) => {
        impl $owner {
            /// Users, sessions, one-time things.
            pub fn accounts(&mut self) -> Accounts<'_> {
                Accounts(self.conn())
            }
            /// The audit log.
            pub fn audit(&mut self) -> Audit<'_> {
                Audit(self.conn())
            }
            /// The AI sink's endpoint, conversations and costs.
            pub fn ai(&mut self) -> Ai<'_> {
                Ai(self.conn())
            }
            /// Apps.
            pub fn apps(&mut self) -> Apps<'_> {
                Apps(self.conn())
            }
            /// What apps asked of the Bot API.
            pub fn app_calls(&mut self) -> AppCalls<'_> {
                AppCalls(self.conn())
            }
            /// Codes of authorizations.
            pub fn app_codes(&mut self) -> AppCodes<'_> {
                AppCodes(self.conn())
            }
            /// What apps are told.
            pub fn app_events(&mut self) -> AppEvents<'_> {
                AppEvents(self.conn())
            }
            /// Sockets of apps.
            pub fn app_sockets(&mut self) -> AppSockets<'_> {
                AppSockets(self.conn())
            }
            /// Apps on bots.
            pub fn installations(&mut self) -> Installations<'_> {
                Installations(self.conn())
            }
            /// Logins in progress.
            pub fn binds(&mut self) -> Binds<'_> {
                Binds(self.conn())
            }
            /// Bots.
            pub fn bots(&mut self) -> Bots<'_> {
                Bots(self.conn())
            }
            /// Channels.
            pub fn channels(&mut self) -> Channels<'_> {
                Channels(self.conn())
            }
            /// People a bot talks to.
            pub fn contacts(&mut self) -> Contacts<'_> {
                Contacts(self.conn())
            }
            /// Work for sinks.
            pub fn deliveries(&mut self) -> Deliveries<'_> {
                Deliveries(self.conn())
            }
            /// Which bot is the demo, and whose it is.
            pub fn demo(&mut self) -> Demo<'_> {
                Demo(self.conn())
            }
            /// Due times of all tables.
            pub fn due(&mut self) -> Due<'_> {
                Due(self.conn())
            }
            /// Accounts at external providers.
            pub fn external_accounts(&mut self) -> ExternalAccounts<'_> {
                ExternalAccounts(self.conn())
            }
            /// First answers of repeated calls.
            pub fn idempotency(&mut self) -> Idempotency<'_> {
                Idempotency(self.conn())
            }
            /// Which node works for which bot.
            pub fn leases(&mut self) -> Leases<'_> {
                Leases(self.conn())
            }
            /// Files of messages.
            pub fn media(&mut self) -> Media<'_> {
                Media(self.conn())
            }
            /// What channels received, for their clients.
            pub fn log(&mut self) -> Log<'_> {
                Log(self.conn())
            }
            /// Messages in both directions.
            pub fn messages(&mut self) -> Messages<'_> {
                Messages(self.conn())
            }
            /// Items on their way to the network.
            pub fn outbox(&mut self) -> Outbox<'_> {
                Outbox(self.conn())
            }
            /// Plugins in channels.
            pub fn channel_plugins(&mut self) -> ChannelPlugins<'_> {
                ChannelPlugins(self.conn())
            }
            /// Plugins and their versions.
            pub fn plugins(&mut self) -> Plugins<'_> {
                Plugins(self.conn())
            }
            /// What was ended lately.
            pub fn revocations(&mut self) -> Revocations<'_> {
                Revocations(self.conn())
            }
            /// What is counted.
            pub fn stats(&mut self) -> Stats<'_> {
                Stats(self.conn())
            }
            /// Everybody's accounts.
            pub fn users(&mut self) -> Users<'_> {
                Users(self.conn())
            }
            /// API keys of users.
            pub fn user_keys(&mut self) -> UserKeys<'_> {
                UserKeys(self.conn())
            }
            /// Passkeys.
            pub fn passkeys(&mut self) -> Passkeys<'_> {
                Passkeys(self.conn())
            }
            /// Logins by QR code.
            pub fn qr_logins(&mut self) -> QrLogins<'_> {
                QrLogins(self.conn())
            }
            /// Sealed values, wherever they stand.
            pub fn sealed(&mut self) -> SealedValues<'_> {
                SealedValues(self.conn())
            }
            /// The outbox's worker.
            pub fn sending(&mut self) -> Sending<'_> {
                Sending(self.conn())
            }
            /// Ceremonies of signing in.
            pub fn sign_in_flows(&mut self) -> SignInFlows<'_> {
                SignInFlows(self.conn())
            }
            /// What happened to messages.
            pub fn traces(&mut self) -> Traces<'_> {
                Traces(self.conn())
            }
        }
    };
}

/// The transaction of the writer's current batch, lent to one command at a time.
#[derive(Debug)]
pub struct Tx(pub(super) Owned);

/// A connection that only reads.
#[derive(Debug)]
pub struct Read(pub(super) Pooled);

/// The writer's own connection.
#[derive(Debug)]
pub(super) enum Owned {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

#[derive(Debug)]
pub(super) enum Pooled {
    Sqlite(PoolConnection<Sqlite>),
    Postgres(PoolConnection<Postgres>),
}

impl Tx {
    pub(super) fn conn(&mut self) -> Conn<'_> {
        match &mut self.0 {
            Owned::Sqlite(conn) => Conn::Sqlite(conn),
            Owned::Postgres(conn) => Conn::Postgres(conn),
        }
    }
}

impl Read {
    pub(super) fn conn(&mut self) -> Conn<'_> {
        match &mut self.0 {
            Pooled::Sqlite(conn) => Conn::Sqlite(conn),
            Pooled::Postgres(conn) => Conn::Postgres(conn),
        }
    }
}

views!(Tx);
views!(Read);
