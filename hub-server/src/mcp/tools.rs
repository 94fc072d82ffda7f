//! The tools: calls of the Bot API, with its scopes, limits and errors.

use std::{fmt::Write, sync::Arc};

use hub_core::{ErrorCode, Hub, bots::Bots, page::PageRequest};
use poem::http::request::Parts;
use poem_openapi::{Object, types::ToJSON};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::Value;

use super::definitions::{GET_BOT_INFO, INSTRUCTIONS, LIST_CONTACTS, SEND_MESSAGE, TOOLS};
use crate::{
    api::bot_api::{self, BotContactsView, BotInfoView, BotSend, SendCall},
    credentials::AppClient,
    envelope::ApiError,
    headers::RequestId,
    rate_limit::RateLimits,
    serve::ClientGone,
    wire::{FileForm, Text, read},
};

/// The caller; part of every request.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub app: AppClient,
    pub request_id: RequestId,
    /// The SDK runs tools in tasks that outlive the request.
    pub client_gone: ClientGone,
}

#[derive(Debug, Clone)]
pub(super) struct BotTools {
    pub hub: Hub,
    pub limits: Arc<RateLimits>,
}

/// The requested page of contacts.
#[derive(Debug, Object)]
struct ListContacts {
    limit: Option<u32>,
    cursor: Option<Text<0, 4096>>,
}

impl BotTools {
    /// Result of a tool, as JSON; `None` for an unknown tool.
    async fn run(&self, caller: &Caller, name: &str, arguments: &Value) -> Option<Result<Value, ApiError>> {
        Some(match name {
            SEND_MESSAGE => self.send(caller, arguments).await,
            LIST_CONTACTS => self.contacts(&caller.app, arguments).await,
            GET_BOT_INFO => self.bot(&caller.app).await,
            _ => return None,
        })
    }

    async fn send(&self, caller: &Caller, arguments: &Value) -> Result<Value, ApiError> {
        let body: BotSend = read(arguments)?;
        let call = SendCall { idempotency_key: None, trace: None, body: FileForm::without_file(body) };
        let sent = bot_api::send(&self.hub, &self.limits, &caller.app, &caller.client_gone, call).await?;
        Ok(sent.0.to_json().unwrap_or_default())
    }

    async fn contacts(&self, app: &AppClient, arguments: &Value) -> Result<Value, ApiError> {
        let ListContacts { limit, cursor } = read(arguments)?;
        let cursor = cursor.as_deref().filter(|cursor| !cursor.is_empty());
        let page = PageRequest::parse(&Bots::contact_list(app.0.app()?.bot_id), limit, cursor)?;
        let contacts = BotContactsView::from(self.hub.apps().contacts(&app.0, &page).await?);
        Ok(contacts.to_json().unwrap_or_default())
    }

    async fn bot(&self, app: &AppClient) -> Result<Value, ApiError> {
        let bot = BotInfoView::from(self.hub.apps().bot(&app.0).await?);
        Ok(bot.to_json().unwrap_or_default())
    }
}

impl ServerHandler for BotTools {
    fn get_info(&self) -> ServerConfig {
        let us = Implementation::new("message-hub", env!("CARGO_PKG_VERSION")).with_title("Message Hub");
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(us).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        TOOLS.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Caller>());
        let Some(caller) = caller else {
            return Err(ErrorData::internal_error("no caller", None));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        match self.run(caller, &request.name, &arguments).await {
            Some(Ok(answer)) => Ok(CallToolResult::structured(answer).into()),
            Some(Err(error)) => Ok(refused(&error, &caller.request_id).into()),
            None => {
                let name: String = request.name.chars().take(64).collect();
                Err(ErrorData::invalid_params(format!("there is no tool called {name}"), None))
            }
        }
    }
}

/// Code and message of an error, followed by the invalid fields. A model reads them.
fn refused(error: &ApiError, request_id: &RequestId) -> CallToolResult {
    let error = error.inner();
    if error.code() == ErrorCode::Internal {
        let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
        tracing::error!(request_id = %request_id.0, cause, "internal error in a tool");
    }
    let mut text = format!("{}: {}", error.code().as_str(), error.message());
    for detail in error.details() {
        let _ = write!(text, "\n{}: {}", detail.field, detail.reason);
    }
    if let Some(after) = error.retry_after() {
        let _ = write!(text, "\ntry again in {} s", after.as_millis().div_ceil(1000).max(1));
    }
    CallToolResult::error(vec![ContentBlock::text(text)])
}
