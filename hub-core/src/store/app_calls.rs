//! Statements about what apps asked of the Bot API.

use hub_macros::FromRow;

use super::{
    conn::{Conn, on},
    pieces::{self, delete_old},
};
use crate::{
    error::{Error, Result},
    id::{AppCallId, InstallationId},
    model::app::{AppCall, NewAppCall},
    page::PageRequest,
    time::Timestamp,
};

/// Statements about calls, on a lent connection.
#[derive(Debug)]
pub struct AppCalls<'c>(pub(super) Conn<'c>);

#[derive(FromRow)]
struct Row {
    id: String,
    trace_id: Option<String>,
    method: String,
    path: String,
    request_body: String,
    status: i64,
    response_body: String,
    duration_ms: i64,
    created_at: i64,
}

impl TryFrom<Row> for AppCall {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: row.id.parse().map_err(Error::internal)?,
            trace_id: row.trace_id.map(|id| id.parse()).transpose().map_err(Error::internal)?,
            method: row.method,
            path: row.path,
            request_body: row.request_body,
            status: u16::try_from(row.status).unwrap_or(0),
            response_body: row.response_body,
            duration_ms: u64::try_from(row.duration_ms).unwrap_or(0),
            created_at: Timestamp::from_millis(row.created_at),
        })
    }
}

/// The statement of [`AppCalls::page`].
pub(super) const PAGE: &str =
    "SELECT id, trace_id, method, path, request_body, status, response_body, duration_ms, created_at
     FROM app_calls WHERE installation_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";

/// The statement of [`AppCalls::delete_before`].
pub(super) const DELETE_BEFORE: &str = delete_old!("app_calls", "id", "created_at");

impl AppCalls<'_> {
    /// Notes a call, unless the installation is gone meanwhile.
    pub async fn insert(&mut self, id: AppCallId, call: &NewAppCall, now: Timestamp) -> Result<()> {
        on!(self.0, |conn| {
            sqlx::query(
            "INSERT INTO app_calls (id, installation_id, trace_id, method, path, request_body, status, response_body,
                duration_ms, created_at)
             SELECT $1, i.id, $3, $4, $5, $6, $7, $8, $9, $10 FROM app_installations i WHERE i.id = $2"
        )
        .bind(id.to_string())
        .bind(call.installation_id.to_string())
        .bind(call.trace_id.map(|id| id.to_string()))
        .bind(&call.method)
        .bind(&call.path)
        .bind(&call.request_body)
        .bind(i64::from(call.status))
        .bind(&call.response_body)
        .bind(i64::try_from(call.duration_ms).unwrap_or(i64::MAX))
        .bind(now.as_millis())
        .execute(conn)
        .await
        .map(|_| ())
        })
    }

    /// The calls of an installation, newest first, one more than the page has room for.
    pub async fn page(&mut self, installation: InstallationId, page: &PageRequest) -> Result<Vec<AppCall>> {
        let rows: Vec<Row> = on!(self.0, |conn| {
            sqlx::query_as(PAGE)
                .bind(installation.to_string())
                .bind(page.before(AppCallId::MAX))
                .bind(i64::from(page.limit()) + 1)
                .fetch_all(conn)
                .await
        })?;
        rows.into_iter().map(AppCall::try_from).collect()
    }

    /// Deletes up to `limit` calls that were made before `before`; says how many went.
    pub async fn delete_before(&mut self, before: Timestamp, limit: u32) -> Result<u64> {
        pieces::delete_before(&mut self.0, DELETE_BEFORE, before, limit).await
    }
}
