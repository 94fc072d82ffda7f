//! Statements about calls of apps to the Bot API.

use super::{
    batched_delete::{self, delete_old},
    conn::{Conn, sql},
};
use crate::{
    error::Result,
    id::{AppCallId, InstallationId},
    model::app::{AppCall, NewAppCall},
    page::PageRequest,
    time::Timestamp,
};

/// Statements about calls, on a lent connection.
#[derive(Debug)]
pub struct AppCalls<'c>(pub(super) Conn<'c>);

/// The statement of [`AppCalls::page`].
const PAGE: &str =
    "SELECT id, trace_id, method, path, request_body, status, response_body, duration_ms, created_at
     FROM app_calls WHERE installation_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";

/// The statement of [`AppCalls::delete_before`].
pub(super) const DELETE_BEFORE: &str = delete_old!("app_calls", "id", "created_at");

impl AppCalls<'_> {
    /// Notes a call, unless the installation is gone meanwhile.
    pub async fn insert(&mut self, id: AppCallId, call: &NewAppCall, now: Timestamp) -> Result<()> {
        sql!(self.0, run:
            "INSERT INTO app_calls (id, installation_id, trace_id, method, path, request_body, status, response_body,
               duration_ms, created_at)
            SELECT $1, i.id, $3, $4, $5, $6, $7, $8, $9, $10 FROM app_installations i WHERE i.id = $2";
            id, call.installation_id, call.trace_id, &call.method, &call.path, &call.request_body,
            i64::from(call.status), &call.response_body, i64::try_from(call.duration_ms).unwrap_or(i64::MAX),
            now
        )
    }

    /// The calls of an installation, newest first, one more than the page has room for.
    pub async fn page(&mut self, installation: InstallationId, page: &PageRequest) -> Result<Vec<AppCall>> {
        sql!(self.0, all: PAGE; installation, page.before(AppCallId::MAX), i64::from(page.limit()) + 1)
    }

    /// Deletes up to `limit` calls that were made before `before`; says how many went.
    pub async fn delete_before(&mut self, before: Timestamp, limit: u32) -> Result<u64> {
        batched_delete::delete_before(&mut self.0, DELETE_BEFORE, before, limit).await
    }
}
