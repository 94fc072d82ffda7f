//! An app on a bot, for tests of what apps may ask: Ada's app on Ada's bot, whose person is Ann. Nothing is sent: the
//! hub only stores accepted messages.

use hub_core::id::BotId;
use serde_json::{Value, json};

use super::{App, Caller};

pub(crate) const BOT: BotId = BotId::from_u128(1);

/// A hub with the simulated network.
pub(crate) struct Fixture {
    pub(crate) app: App,
}

/// What there is: Ada, who owns everything, and her app's id and token.
pub(crate) struct Scene<'a> {
    pub(crate) fixture: &'a Fixture,
    pub(crate) ada: Caller<'a>,
    pub(crate) app_id: String,
    pub(crate) token: String,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self { app: App::with_simulator().await.0 }
    }

    pub(crate) async fn sql(&self, sql: String) {
        let store = &self.app.hub.context().store;
        store.write(move |tx| Box::pin(async move { tx.channels().execute(sql).await })).await.unwrap();
    }

    /// A bot to whom Ann has written, and an app on it with these scopes.
    pub(crate) async fn scene(&self, scopes: &[&str]) -> Scene<'_> {
        let ada = self.app.user("ada").await;
        self.sql(format!(
            "INSERT INTO bots (id, owner_id, name, network, status, status_since, wx_id, owner_user_id,
                credentials, credentials_rev, cursor, config_rev, lease_fence, created_at)
            SELECT '{BOT}', id, 'Shop', 'sim', 'online', 0, 'wx1', 'ann', '', 0, '', 0, 0, 0 FROM users"
        ))
        .await;
        let now = self.app.clock.now().as_millis();
        self.sql(format!(
            "INSERT INTO contacts (bot_id, user_id, user_name, remark, avatar_url, message_count, last_message_at,
                context_token, window_opened_at, window_sends)
             VALUES ('{BOT}', 'ann', 'Ann', 'vip', '', 3, {now}, 'sealed', {now}, 0)"
        ))
        .await;
        let made = ada.post("/api/apps", &json!({ "name": "Weather", "scopes": scopes })).await;
        let app_id = text(made.data(), "id").to_owned();
        let installed =
            ada.post(&format!("/api/bots/{BOT}/apps/install"), &json!({ "app_id": app_id })).await;
        let token = text(installed.data(), "app_token").to_owned();
        Scene { fixture: self, ada, app_id, token }
    }
}

impl Scene<'_> {
    pub(crate) fn client(&self) -> Caller<'_> {
        self.fixture.app.stranger().with("Authorization", &format!("Bearer {}", self.token))
    }
}

/// A text of an answer that has to be there.
#[track_caller]
pub(crate) fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} in {value}"))
}
