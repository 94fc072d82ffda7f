//! Views of tables on a transaction and on a connection that only reads.

use sqlx::{PgConnection, Postgres, Sqlite, SqliteConnection, pool::PoolConnection};

use super::{
    accounts::Accounts, ai::Ai, app_calls::AppCalls, app_codes::AppCodes, app_events::AppEvents,
    app_sockets::AppSockets, apps::Apps, audit::Audit, binds::Binds, bots::Bots,
    channel_plugins::ChannelPlugins, channels::Channels, conn::Conn, contacts::Contacts,
    deliveries::Deliveries, demo::Demo, due::Due, external_accounts::ExternalAccounts,
    idempotency::Idempotency, ilink::Ilink, installations::Installations, leases::Leases, log::Log,
    media::Media, messages::Messages, outbox::Outbox, passkeys::Passkeys, plugins::Plugins,
    qr_logins::QrLogins, replays::Replays, revocations::Revocations, sealed::SealedValues, sending::Sending,
    sign_in_flows::SignInFlows, stats::Stats, traces::Traces, user_keys::UserKeys, users::Users,
};

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

macro_rules! views {
    ($($(#[$doc:meta])* $name:ident: $view:ident,)*) => {
        impl Tx {
            $($(#[$doc])*
            pub fn $name(&mut self) -> $view<'_> {
                $view(self.conn())
            })*
        }

        impl Read {
            $($(#[$doc])*
            pub fn $name(&mut self) -> $view<'_> {
                $view(self.conn())
            })*
        }
    };
}

views! {
    /// Users, sessions, one-time things.
    accounts: Accounts,
    /// The audit log.
    audit: Audit,
    /// The AI sink's endpoint, conversations and costs.
    ai: Ai,
    /// Apps.
    apps: Apps,
    /// Calls of apps to the Bot API.
    app_calls: AppCalls,
    /// Codes of authorizations.
    app_codes: AppCodes,
    /// Events for apps.
    app_events: AppEvents,
    /// Sockets of apps.
    app_sockets: AppSockets,
    /// Apps on bots.
    installations: Installations,
    /// Logins in progress.
    binds: Binds,
    /// Bots.
    bots: Bots,
    /// Channels.
    channels: Channels,
    /// People a bot talks to.
    contacts: Contacts,
    /// Work for sinks.
    deliveries: Deliveries,
    /// The demo's bot and its owner.
    demo: Demo,
    /// Due times of all tables.
    due: Due,
    /// Accounts at external providers.
    external_accounts: ExternalAccounts,
    /// First answers of repeated calls.
    idempotency: Idempotency,
    /// Clients of iLink sinks, and their logins.
    ilink: Ilink,
    /// Leases of bots by nodes.
    leases: Leases,
    /// Files of messages.
    media: Media,
    /// Logs of channels, for their clients.
    log: Log,
    /// Messages in both directions.
    messages: Messages,
    /// Items on their way to the network.
    outbox: Outbox,
    /// Plugins in channels.
    channel_plugins: ChannelPlugins,
    /// Plugins and their versions.
    plugins: Plugins,
    /// Recent revocations.
    revocations: Revocations,
    /// Counts and statistics.
    stats: Stats,
    /// Accounts of all users.
    users: Users,
    /// API keys of users.
    user_keys: UserKeys,
    /// Passkeys.
    passkeys: Passkeys,
    /// Logins by QR code.
    qr_logins: QrLogins,
    /// Replays of many traces.
    replays: Replays,
    /// Sealed values of all tables.
    sealed: SealedValues,
    /// The outbox's worker.
    sending: Sending,
    /// Ceremonies of signing in.
    sign_in_flows: SignInFlows,
    /// Traces of messages.
    traces: Traces,
}
