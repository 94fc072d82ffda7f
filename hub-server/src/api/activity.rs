//! What happened to the user's account (added; reliability Q2).

use hub_core::{
    Hub,
    accounts::{Accounts, Activity},
};
use poem::web::Data;
use poem_openapi::{
    Object, OpenApi,
    param::Query,
    types::{Any, Example},
};
use serde_json::{Value, json};

use super::Tag;
use crate::{
    credentials::User,
    envelope::{ApiResult, ok},
    wire::{AuditId, Cursor, Limit, Page, Time, enumeration, page_request},
};

/// What happened to the account.
#[derive(Debug, Clone, Copy)]
pub struct ActivityApi;

enumeration! {
    /// Who did something to an account.
    ActivityBy = hub_core::accounts::ActivityBy {
        /// Its user, or somebody who signed in as them.
        User,
        /// An administrator.
        Administrator,
        /// Somebody who did not get in.
        Stranger,
    }
}

/// Something that happened to the account.
#[derive(Debug, Object)]
#[oai(example)]
pub struct ActivityView {
    /// The id.
    pub id: AuditId,
    /// When.
    pub at: Time,
    /// What, for example `user.login`.
    pub action: String,
    /// Who did it.
    pub by: ActivityBy,
    /// Id of the session or API key it was done with; empty without one.
    pub credential: String,
    /// Id of what it was done to: after `user.login` the session, after `api_key.created` the key.
    pub target: String,
    /// The name of that at that time.
    pub target_name: String,
    /// What else is known: `method` says how somebody signed in, `qr` that another device was let in.
    pub detail: Any<Value>,
    /// Address it was done from; empty when unknown.
    pub ip: String,
    /// Whether it was done with the session or key that asks, or is how that session began.
    pub current: bool,
}

#[OpenApi(tag = "Tag::User")]
impl ActivityApi {
    /// Lists what happened to the user's account
    ///
    /// Signing in and failing to, keys, passkeys, linked accounts, passwords, devices let in by QR code, and what
    /// administrators changed. Kept for a year.
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

impl From<Activity> for ActivityView {
    fn from(Activity { entry, by, current }: Activity) -> Self {
        Self {
            id: entry.id.into(),
            at: entry.at.into(),
            action: entry.action,
            by: by.into(),
            credential: entry.credential,
            target: entry.target,
            target_name: entry.target_name,
            detail: Any(entry.detail),
            ip: entry.ip,
            current,
        }
    }
}

impl Example for ActivityView {
    fn example() -> Self {
        let id = 0x019a_a52c_a2c0_0000_0000_0000_0000_0005;
        Self {
            id: hub_core::id::AuditId::from_u128(id).into(),
            at: Time(hub_core::time::Timestamp::from_millis(1_795_253_400_000)),
            action: "user.login".to_owned(),
            by: ActivityBy::User,
            credential: String::new(),
            target: hub_core::id::SessionId::from_u128(id).to_string(),
            target_name: String::new(),
            detail: Any(json!({ "method": "qr" })),
            ip: "203.0.113.7".to_owned(),
            current: false,
        }
    }
}
