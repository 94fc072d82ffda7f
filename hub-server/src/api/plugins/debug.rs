//! Testing a plugin over HTTP.

use std::{collections::BTreeMap, sync::Arc};

use hub_core::{
    Hub,
    id::ChannelId,
    openapi::Api,
    plugins::{
        debug::{DebugResponse, DebugRun, Debugged, SAMPLE_URL, sample_message},
        manifest::MAX_SOURCE,
    },
};
use poem::web::Data;
use poem_openapi::{OpenApi, param::Path, types::Any};
use serde_json::{Value, json};

use super::Tag;
use crate::{
    credentials::User,
    envelope::{ApiResult, ok},
    rate_limit::RateLimits,
    wire::{Body, Checked, Text},
};

/// Testing plugins.
#[derive(Debug, Clone, Copy)]
pub struct PluginDebugApi;

/// A request hook to test.
#[derive(Debug, Api)]
#[api(input, example = {
    "message": {
        "content": "order 42",
        "sender": {
            "user_id": "user_1",
            "user_name": "Ada"
        }
    },
    "script": "function onRequest(ctx) { ctx.reply('seen: ' + ctx.msg.content); }"
})]
pub struct DebugRequestHook {
    /// The source, at most 256 KiB. Without a metadata block the defaults apply.
    pub script: Checked<0, MAX_SOURCE>,
    /// The message.
    pub message: MockMessage,
}

/// A response hook to test.
#[derive(Debug, Api)]
#[api(input, example = {
    "response": {
        "body": "",
        "status": 500
    },
    "script": "function onResponse(ctx) { if (ctx.res.status !== 200) ctx.reply('try again'); }"
})]
pub struct DebugResponseHook {
    /// The source, at most 256 KiB. Without a metadata block the defaults apply.
    pub script: Checked<0, MAX_SOURCE>,
    /// The response of the webhook.
    pub response: MockResponse,
    /// The message of the delivery; a sample if absent.
    pub message: Option<MockMessage>,
    /// `ctx.state` as the request hook left it.
    pub state: Option<Any<Value>>,
}

/// A message for a test. The other fields of the payload are generated.
#[derive(Debug, Api)]
#[api(input)]
pub struct MockMessage {
    /// Text of the message.
    pub content: Text<0, 65_536>,
    /// Sender.
    pub sender: MockSender,
    /// Kind: 1 text, 3 image, 34 voice, 43 video, 49 file; 1 if absent.
    pub msg_type: Option<i64>,
}

/// Sender of a message.
#[derive(Debug, Api)]
#[api(input)]
pub struct MockSender {
    /// Id on the network.
    pub user_id: Text<0, 256>,
    /// Display name.
    pub user_name: Text<0, 256>,
}

/// A response for a test.
#[derive(Debug, Api)]
#[api(input)]
pub struct MockResponse {
    /// Status, 100 to 599.
    #[api(range = 100..=599)]
    pub status: u16,
    /// Body.
    pub body: Text<0, 524_288>,
    /// Headers by name.
    pub headers: Option<BTreeMap<String, Text<0, 8192>>>,
}

#[OpenApi(tag = "Tag::Plugins")]
impl PluginDebugApi {
    /// Tests a request hook
    ///
    /// With the webhook of the channel, in the sandbox of real runs and within its limits. Nothing is sent or stored,
    /// and `fetch` is rejected. At most 30 per minute and user. Errors of the plugin are in `error`.
    #[oai(path = "/api/webhooks/:id/debug/request", method = "post", operation_id = "debugRequestHook")]
    async fn request(
        &self,
        hub: Data<&Hub>,
        limits: Data<&Arc<RateLimits>>,
        user: User,
        id: Path<ChannelId>,
        body: Body<DebugRequestHook>,
    ) -> ApiResult<Debugged> {
        limits.check_debug(&user.0.principal())?;
        let message = body.0.message.payload(&hub);
        let run = run(body.0.script.into(), message, None, None);
        ok(hub.plugins().debug(&user.0, id.0, run).await?)
    }

    /// Tests a response hook
    ///
    /// Like the test of a request hook, with this response of the webhook.
    #[oai(path = "/api/webhooks/:id/debug/response", method = "post", operation_id = "debugResponseHook")]
    async fn response(
        &self,
        hub: Data<&Hub>,
        limits: Data<&Arc<RateLimits>>,
        user: User,
        id: Path<ChannelId>,
        body: Body<DebugResponseHook>,
    ) -> ApiResult<Debugged> {
        limits.check_debug(&user.0.principal())?;
        let DebugResponseHook { script, response, message, state } = body.0;
        let message = message.unwrap_or_else(MockMessage::example_text).payload(&hub);
        let run = run(script.into(), message, Some(response.into()), state.map(|state| state.0));
        ok(hub.plugins().debug(&user.0, id.0, run).await?)
    }
}

fn run(script: String, message: Value, response: Option<DebugResponse>, state: Option<Value>) -> DebugRun {
    let state = state.and_then(|state| serde_json::value::to_raw_value(&state).ok());
    DebugRun { script, message, request: None, url: SAMPLE_URL.to_owned(), response, state }
}

impl MockMessage {
    fn example_text() -> Self {
        Self {
            content: Text("order 42".to_owned()),
            sender: MockSender { user_id: Text("user_1".to_owned()), user_name: Text("Ada".to_owned()) },
            msg_type: None,
        }
    }

    fn payload(&self, hub: &Hub) -> Value {
        let now = hub.context().store.now().as_seconds();
        let mut payload = sample_message(&self.content, &self.sender.user_id, &self.sender.user_name, now);
        if let Some(number) = self.msg_type {
            payload["msg_type"] = json!(number);
        }
        payload
    }
}

impl From<MockResponse> for DebugResponse {
    fn from(response: MockResponse) -> Self {
        let MockResponse { status, body, headers } = response;
        let headers = headers.unwrap_or_default().into_iter().map(|(name, value)| (name, value.into()));
        Self { status, headers: headers.collect(), body: body.into() }
    }
}
