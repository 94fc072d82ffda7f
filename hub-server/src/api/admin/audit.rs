//! The audit log.

use hub_core::{Hub, audit::AuditEntry, store::audit::AuditFilter};
use poem::web::Data;
use poem_openapi::{
    Object, OpenApi,
    param::Query,
    types::{Any, Example},
};
use serde_json::{Value, json};

use crate::{
    api::Tag,
    credentials::Administrator,
    envelope::{ApiResult, ok},
    wire::{AuditId, Cursor, Limit, Page, Text, Time, page_request, view},
};

/// The audit log.
#[derive(Debug, Clone, Copy)]
pub struct AuditApi;

view! {
    /// An act of an administrator, on a credential, or one that changes where messages go.
    #[derive(Debug, Object)]
    #[oai(example)]
    pub struct AuditEntryView from entry: AuditEntry {
        /// Id of the entry.
        pub id: AuditId,
        /// When it happened.
        pub at: Time,
        /// Id of the user who acted, `operator` for the command line on the server, empty for an unauthenticated
        /// caller.
        pub actor: String,
        /// Username at that time.
        pub actor_name: String,
        /// Id of the session or API key that was used; empty if there was none.
        pub credential: String,
        /// Type of the act, for example `user.updated`.
        pub action: String,
        /// Id of the affected object.
        pub target: String,
        /// Name of the affected object at that time.
        pub target_name: String,
        /// Further details; never a secret.
        pub detail: Any<Value>,
        /// Client address; empty if unknown.
        pub ip: String,
    }
}

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
    ) -> ApiResult<Page<AuditEntryView>> {
        let filter = AuditFilter {
            actor: actor.0.map(|text| text.0),
            action: action.0.map(|text| text.0),
            target: target.0.map(|text| text.0),
        };
        let page = page_request(&filter.list_name(), limit.0, cursor.0.as_ref())?;
        ok(hub.admin().audit(&admin.0, &filter, &page).await?.into())
    }
}

impl Example for AuditEntryView {
    fn example() -> Self {
        let id = 0x019a_a52c_a2c0_0000_0000_0000_0000_0004;
        Self {
            id: hub_core::id::AuditId::from_u128(id).into(),
            at: Time(hub_core::time::Timestamp::from_millis(1_795_253_400_000)),
            actor: hub_core::id::UserId::from_u128(id).to_string(),
            actor_name: "alice".to_owned(),
            credential: hub_core::id::SessionId::from_u128(id).to_string(),
            action: "user.updated".to_owned(),
            target: hub_core::id::UserId::from_u128(id + 1).to_string(),
            target_name: "bob".to_owned(),
            detail: Any(json!({ "role": "admin" })),
            ip: "203.0.113.7".to_owned(),
        }
    }
}
