//! Endpoints of the process: liveness and readiness.

use hub_core::{Error, ErrorCode, Hub, openapi::Api, sandbox::Confinement};
use poem::web::Data;
use poem_openapi::{Enum, OpenApi};

use super::Tag;
use crate::{
    AppSettings,
    envelope::{ApiResult, ok},
};

/// Health of the process.
#[derive(Debug, Clone, Copy)]
pub struct MetaApi;

/// The state of the process.
#[derive(Debug, Api)]
pub struct Health {
    /// Always `ok`; any other state is an error response.
    pub status: HealthStatus,
}

/// Capabilities of the process.
#[derive(Debug, Api)]
pub struct Readiness {
    /// Always `ok`; any other state is an error response.
    pub status: HealthStatus,
    /// Fault of the process in which plugins run; absent if it works. Everything else works.
    pub plugins: Option<PluginsHealth>,
}

/// Fault of the process in which plugins run.
#[derive(Debug, Clone, Copy, Enum)]
#[oai(rename_all = "snake_case")]
pub enum PluginsHealth {
    /// Plugins do not run: their system calls cannot be filtered, and the setting `sandbox_filter` requires it.
    Refused,
    /// Plugins run although their system calls cannot be filtered.
    Unfiltered,
}

/// State of the process.
#[derive(Debug, Clone, Copy, Enum)]
#[oai(rename_all = "snake_case")]
pub enum HealthStatus {
    /// The process works.
    Ok,
}

#[expect(clippy::unused_async, reason = "poem-openapi takes async methods only")]
#[OpenApi(tag = "Tag::Health")]
impl MetaApi {
    /// Reports that the process is up
    ///
    /// For a supervisor that restarts a process that does not respond. Does not check the database.
    #[oai(path = "/healthz", method = "get", operation_id = "getHealth")]
    async fn health(&self) -> ApiResult<Health> {
        ok(Health { status: HealthStatus::Ok })
    }

    /// Reports whether requests can be served
    ///
    /// For a load balancer: `UNAVAILABLE` while the process drains, the database does not answer, or a lease
    /// on a bot was not renewed in time. Plugins that do not run, or run without a filter of system calls, are a detail
    /// of the response.
    #[oai(path = "/readyz", method = "get", operation_id = "getReadiness")]
    async fn readiness(&self, hub: Data<&Hub>, settings: Data<&AppSettings>) -> ApiResult<Readiness> {
        let unavailable = |why: &'static str| Error::new(ErrorCode::Unavailable, why);
        if settings.draining.is_cancelled() {
            return Err(unavailable("the hub is shutting down").into());
        }
        let store = &hub.context().store;
        if store.failed().is_cancelled() {
            return Err(unavailable("the storage failed").into());
        }
        store.ping().await.map_err(|error| unavailable("the store does not answer").with_source(error))?;
        if !hub.leases_are_current() {
            return Err(
                unavailable("the leases on bots were not renewed in time; nothing is delivered").into()
            );
        }
        let plugins = match hub.context().sandbox.confinement() {
            Confinement::Refused => Some(PluginsHealth::Refused),
            Confinement::Unfiltered => Some(PluginsHealth::Unfiltered),
            Confinement::Filtered | Confinement::Unknown => None,
        };
        ok(Readiness { status: HealthStatus::Ok, plugins })
    }
}
