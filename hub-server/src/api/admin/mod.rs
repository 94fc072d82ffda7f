//! Administration, one file per part. Every change is recorded in the audit log.

pub mod ai_config;
pub mod apps;
mod audit;
mod bots;
mod invites;
pub mod plugins;
mod reset;
mod sessions;
pub(in crate::api) mod stats;
#[cfg(test)]
mod tests;
mod users;

pub use audit::AuditApi;
pub use bots::AdminBotsApi;
pub use invites::{CreateInvite, InvitesApi};
pub use reset::ResetLinksApi;
pub use sessions::{EndedSessions, SessionsApi};
pub use stats::{StatsApi, StatsView};
pub use users::UsersApi;

/// All parts except the review of plugins.
pub type AdminApi = (UsersApi, SessionsApi, ResetLinksApi, AdminBotsApi, StatsApi, AuditApi, InvitesApi);

/// One of each.
pub fn all() -> AdminApi {
    (UsersApi, SessionsApi, ResetLinksApi, AdminBotsApi, StatsApi, AuditApi, InvitesApi)
}
