//! The audit log.

use hub_core::{Hub, audit::AuditEntry, store::audit::AuditFilter};
use poem::web::Data;
use poem_openapi::{OpenApi, param::Query};

use crate::{
    api::Tag,
    credentials::Administrator,
    envelope::{ApiResult, ok},
    wire::{Cursor, Limit, Page, Text, page_request},
};

/// The audit log.
#[derive(Debug, Clone, Copy)]
pub struct AuditApi;

#[OpenApi(tag = "Tag::Admin")]
impl AuditApi {
    /// Reads the audit log
    ///
    /// Acts of administrators; acts on credentials: successful and failed sign-ins, keys, passwords, roles, logins of
    /// bots; and acts that change where messages go: channels with their sinks, filters and plugins, apps, replays to
    /// another URL. Of a URL an entry contains the origin. Entries are never changed; they are retained for one year
    /// unless the setting `audit_retention` changes that. A page reads at most 1000 entries: with `action`, or with
    /// both `actor` and `target`, it may have fewer items than its limit, or none, and a `next_cursor`. The list ends
    /// where that is `null`.
    #[oai(path = "/api/admin/audit", method = "get", operation_id = "listAudit")]
    #[expect(clippy::too_many_arguments, reason = "one per query parameter")]
    async fn list(
        &self,
        hub: Data<&Hub>,
        admin: Administrator,
        /// Only acts of this user, by id, or `operator`.
        actor: Query<Option<Text<1, 64>>>,
        /// Only acts of this type, for example `user.login`.
        action: Query<Option<Text<1, 64>>>,
        /// Only acts on this object, by id.
        target: Query<Option<Text<1, 64>>>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<AuditEntry>> {
        let filter = AuditFilter {
            actor: actor.0.map(|text| text.0),
            action: action.0.map(|text| text.0),
            target: target.0.map(|text| text.0),
        };
        let page = page_request(&filter.list_name(), limit.0, cursor.0.as_ref())?;
        ok(hub.admin().audit(&admin.0, &filter, &page).await?.into())
    }
}
