//! Activity of the user's account.

use hub_core::{
    Hub,
    accounts::{Accounts, Activity, ActivityBy},
    id::AuditId,
    openapi::Api,
    time::Timestamp,
};
use poem::web::Data;
use poem_openapi::{OpenApi, param::Query, types::Any};
use serde_json::Value;

use super::Tag;
use crate::{
    credentials::User,
    envelope::{ApiResult, ok},
    wire::{Cursor, Limit, Page, page_request, view},
};

/// Activity of the account.
#[derive(Debug, Clone, Copy)]
pub struct ActivityApi;

view! {
    /// An event of the account.
    #[derive(Debug, Api)]
    #[api(example = {
    "action": "user.login",
    "at": "2026-11-21T09:30:00.000Z",
    "by": "user",
    "credential": "",
    "current": false,
    "detail": {
        "method": "qr"
    },
    "id": "aud_01KAJJS8P00000000000000005",
    "ip": "203.0.113.7",
    "target": "ses_01KAJJS8P00000000000000005",
    "target_name": ""
})]
    pub struct ActivityView from activity: Activity {
        /// The id.
        pub id: AuditId = activity.entry.id,
        /// When it happened.
        pub at: Timestamp = activity.entry.at,
        /// Type of the event, for example `user.login`.
        pub action: String = activity.entry.action,
        /// Who acted.
        pub by: ActivityBy,
        /// Id of the session or API key that was used; empty if there was none.
        pub credential: String = activity.entry.credential,
        /// Id of the affected object: after `user.login` the session, after `api_key.created` the key.
        pub target: String = activity.entry.target,
        /// Name of the affected object at that time.
        pub target_name: String = activity.entry.target_name,
        /// Further details: `method` is the sign-in method, `qr` means that another device was signed in.
        pub detail: Any<Value> = Any(activity.entry.detail),
        /// Client address; empty if unknown.
        pub ip: String = activity.entry.ip,
        /// Whether the session or key of this request was used, or the session of this request was created by it.
        pub current: bool,
    }
}

#[OpenApi(tag = "Tag::User")]
impl ActivityApi {
    /// Lists the activity of the user's account
    ///
    /// Successful and failed sign-ins, keys, passkeys, linked accounts, passwords, devices signed in by QR code, changes
    /// by administrators, and what the user changed about where messages go: bots, channels, sinks, plugins, apps.
    /// Retained for one year.
    #[oai(path = "/api/user/activity", method = "get", operation_id = "listActivity")]
    async fn list(
        &self,
        hub: Data<&Hub>,
        user: User,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<ActivityView>> {
        let page = page_request(&Accounts::activity_list(&user.0), limit.0, cursor.0.as_ref())?;
        ok(hub.accounts().activity(&user.0, &page).await?.into())
    }
}
