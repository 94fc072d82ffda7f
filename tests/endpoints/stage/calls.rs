//! Right calls of every operation, and what is in place of a part of one.

use serde_json::{Value, json};

use super::{Answer, ORIGIN, Request, Stage};
use crate::endpoints::operation::Operation;

impl Stage {
    /// The ids of an operation's parameters; what `id` is shows in the path.
    pub fn ids(&self, operation: &Operation) -> Vec<(&str, &str)> {
        let kinds = [
            ("/api/auth/sessions/", "session"),
            ("/api/auth/passkey/", "passkey"),
            ("/api/plugins/", "plugin"),
            ("/api/admin/plugins/", "plugin"),
            ("/api/apps/", "app"),
            ("/api/admin/apps/", "app"),
            ("/api/webhooks/", "channelId"),
            ("/api/user/api-keys/", "key"),
            ("/api/replays/", "replay"),
            ("/api/binds/", "bind"),
            ("/api/admin/users/", "user"),
        ];
        let id =
            kinds.iter().find(|(start, _)| operation.path.starts_with(start)).map_or("bot", |(_, id)| *id);
        let mut ids: Vec<(&str, &str)> = self.ids.iter().map(|(name, id)| (*name, id.as_str())).collect();
        ids.push(("id", self.known(id)));
        ids
    }

    pub fn known(&self, name: &str) -> &str {
        self.ids.iter().find(|(known, _)| *known == name).map(|(_, id)| id.as_str()).unwrap()
    }

    /// Query with which an app requests authorization by a bot's owner.
    fn asked(&self) -> String {
        format!("state=s&bot_id={}&code_challenge={}", self.known("bot"), "A".repeat(43))
    }

    /// Body of a decision on this request, by a user who has not seen its page.
    pub fn unseen_decision(&self) -> Value {
        json!({ "client_id": self.known("app"), "redirect_uri": "http://localhost:3000/cb", "consent": "x",
            "code_challenge": "A".repeat(43), "code_challenge_method": "S256", "bot_id": self.known("bot"),
            "decision": "allow" })
    }

    /// The path of a right call, with its query where it needs one.
    pub fn path(&self, operation: &Operation) -> String {
        self.path_with(operation, "")
    }

    /// As [`path`](Self::path), with more of a query.
    pub fn path_with(&self, operation: &Operation, more: &str) -> String {
        self.path_of(operation, &self.ids(operation), more)
    }

    /// As [`path_with`](Self::path_with), of these ids.
    pub fn path_of(&self, operation: &Operation, ids: &[(&str, &str)], more: &str) -> String {
        let needed = match operation.id.as_str() {
            // The clock does not move for calls that wait.
            "pollChannelMessages" => "timeout=0".to_owned(),
            "getUploadUrl" => "filename=a.png&content_type=image/png&size=5".to_owned(),
            "authorizeApp" => format!(
                "client_id={}&redirect_uri=http://localhost:3000/cb&code_challenge_method=S256&{}",
                self.known("app"),
                self.asked()
            ),
            "authorizeAppOlder" => self.asked(),
            "connectApp" => format!("app_id={}", self.known("app")),
            "setUpApp" => format!("bot_id={}", self.known("bot")),
            "getChannelLogin" => format!("bind_id={}&wait_ms=0", self.channel_bind),
            _ => String::new(),
        };
        let query = [needed.as_str(), more].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
        let path = operation.with(ids);
        if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
    }

    pub async fn ask(
        &self,
        operation: &Operation,
        path: &str,
        build: impl for<'r> FnOnce(Request<'r>) -> Request<'r>,
    ) -> Answer {
        let request = self.client.request(operation.method.clone(), path).header("Origin", ORIGIN);
        Answer::of(build(request).send().await.0).await
    }

    /// A channel's and an app's calls are made with its key, all others with the cookie of the caller.
    fn credential(&self, operation: &Operation, cookie: &str) -> (&'static str, String) {
        if operation.is_for_channels() {
            ("X-API-Key", self.key.clone())
        } else if operation.is_for_apps() {
            ("Authorization", format!("Bearer {}", self.credentials.app_token))
        } else if operation.is_for_whole_apps() {
            ("Authorization", format!("Bearer {}", self.credentials.app_secret))
        } else {
            ("Cookie", format!("session={cookie}"))
        }
    }

    /// A right call, but for the credential.
    pub async fn ask_as(&self, operation: &Operation, path: &str, cookie: &str) -> Answer {
        self.ask_saying(operation, path, cookie, &(operation.entry().body)(self)).await
    }

    /// A call with this body; null sends no body.
    pub async fn ask_saying(&self, operation: &Operation, path: &str, cookie: &str, body: &Value) -> Answer {
        let (name, value) = self.credential(operation, cookie);
        self.ask(operation, path, |request| {
            let request = request.header(name, value);
            if body.is_null() { request } else { request.body_json(body) }
        })
        .await
    }

    /// A call by ada with an idempotency key; a null body sends none.
    pub async fn ask_once(&self, operation: &Operation, path: &str, body: &Value) -> Answer {
        let (name, value) = self.credential(operation, &self.ada);
        self.ask(operation, path, |request| {
            let request = request.header(name, value).header("Idempotency-Key", &operation.id);
            if body.is_null() { request } else { request.body_json(body) }
        })
        .await
    }

    /// A call by ada with any bytes for a body.
    pub async fn ask_with(
        &self,
        operation: &Operation,
        content_type: &str,
        body: impl Into<Vec<u8>>,
    ) -> Answer {
        let (name, value) = self.credential(operation, &self.ada);
        let (content_type, body) = (content_type.to_owned(), body.into());
        self.ask(operation, &self.path(operation), |request| {
            request.header(name, value).header("Content-Type", content_type).body(body)
        })
        .await
    }
}
