//! Calls of installed apps with their token. Responses are bare objects with `ok`, errors the envelope with `ok`;
//! unknown fields are ignored.

use std::sync::Arc;

use hub_core::{
    Hub,
    bots::{Bots, NewSend},
};
use poem::{Request, web::Data};
use poem_openapi::{
    OpenApi,
    param::{Header, Query},
    payload::Json,
    types::ToJSON,
};

#[cfg(test)]
mod config_tests;
mod requests;
#[cfg(test)]
mod tests;
mod views;

pub use requests::{BotSend, BotTool, MediaKind, SetTools};
pub use views::{
    AppConfigView, BotContactView, BotContactsView, BotInfoView, BotSentView, OlderBotView, ToolsView,
};

use super::Tag;
use crate::{
    app_calls::CallNote,
    credentials::AppClient,
    envelope::ApiError,
    rate_limit::RateLimits,
    serve::ClientGone,
    wire::{Body, Cursor, FileForm, Limit, Text, page_request},
};

/// Calls of installed apps.
#[derive(Debug, Clone, Copy)]
pub struct BotApi;

type Answer<T> = Result<Json<T>, ApiError>;

#[OpenApi(tag = "Tag::BotApi")]
impl BotApi {
    /// Sends a message
    ///
    /// Requires the scope `message:write`. Without a recipient it goes to the owner of the network account. A file
    /// comes as `url`, which the hub downloads unless the client
    /// disconnects meanwhile, as `base64`, or in a form (`multipart/form-data`) as `file`, at most
    /// 50 MiB. `WINDOW_CLOSED` if the chat network would refuse it now. `X-Trace-Id`, or `trace_id`, names the trace
    /// of the event that the message replies to. With an `Idempotency-Key`, the same request within 24 hours returns
    /// the first response.
    #[oai(path = "/bot/v1/messages/send", method = "post", operation_id = "sendAppMessage")]
    #[expect(clippy::too_many_arguments, reason = "each is extracted by its type")]
    async fn send(
        &self,
        hub: Data<&Hub>,
        limits: Data<&Arc<RateLimits>>,
        request: &Request,
        app: AppClient,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
        /// The trace that the message belongs to.
        #[oai(name = "X-Trace-Id")]
        trace: Header<Option<Text<0, 256>>>,
        body: FileForm<BotSend>,
    ) -> Answer<BotSentView> {
        note(request, &body);
        let call =
            SendCall { idempotency_key: idempotency_key.0.as_deref(), trace: trace.0.as_deref(), body };
        send(hub.0, limits.0, &app, &ClientGone::of(request), call).await
    }

    /// Sends a message, under its older path
    ///
    /// Alias of `POST /bot/v1/messages/send`.
    #[oai(path = "/bot/v1/message/send", method = "post", operation_id = "sendAppMessageOlder")]
    #[expect(clippy::too_many_arguments, reason = "each is extracted by its type")]
    async fn send_older(
        &self,
        hub: Data<&Hub>,
        limits: Data<&Arc<RateLimits>>,
        request: &Request,
        app: AppClient,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
        /// The trace that the message belongs to.
        #[oai(name = "X-Trace-Id")]
        trace: Header<Option<Text<0, 256>>>,
        body: FileForm<BotSend>,
    ) -> Answer<BotSentView> {
        note(request, &body);
        let call =
            SendCall { idempotency_key: idempotency_key.0.as_deref(), trace: trace.0.as_deref(), body };
        send(hub.0, limits.0, &app, &ClientGone::of(request), call).await
    }

    /// Lists the bot's contacts
    ///
    /// Requires the scope `contact:read`. Most recently active first.
    #[oai(path = "/bot/v1/contacts", method = "get", operation_id = "listAppContacts")]
    async fn contacts(
        &self,
        hub: Data<&Hub>,
        app: AppClient,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> Answer<BotContactsView> {
        contacts(hub.0, &app, limit.0, cursor.0.as_ref()).await
    }

    /// Lists the bot's contacts, under the older path
    ///
    /// Alias of `GET /bot/v1/contacts`.
    #[oai(path = "/bot/v1/contact", method = "get", operation_id = "listAppContactsOlder")]
    async fn contacts_older(
        &self,
        hub: Data<&Hub>,
        app: AppClient,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> Answer<BotContactsView> {
        contacts(hub.0, &app, limit.0, cursor.0.as_ref()).await
    }

    /// Shows the bot
    ///
    /// Requires the scope `bot:read`. `status` has the values of the hub (`online`), `bot.status` those that
    /// published apps test (`connected`).
    #[oai(path = "/bot/v1/bot", method = "get", operation_id = "getAppBot")]
    async fn bot(&self, hub: Data<&Hub>, app: AppClient) -> Answer<BotInfoView> {
        Ok(Json(hub.apps().bot(&app.0).await?.into()))
    }

    /// Shows the bot, under the older path
    ///
    /// Like `GET /bot/v1/bot`, with the field names of older programs.
    #[oai(path = "/bot/v1/info", method = "get", operation_id = "getAppBotOlder")]
    async fn bot_older(&self, hub: Data<&Hub>, app: AppClient) -> Answer<BotInfoView> {
        Ok(Json(hub.apps().bot(&app.0).await?.into()))
    }

    /// Shows the app's configuration
    ///
    /// Requires the scope `config:read`. The values that the bot's owner set for the app on this bot; `{}` if none is
    /// set. The log of calls contains the names only.
    #[oai(path = "/bot/v1/app/config", method = "get", operation_id = "getAppConfig")]
    async fn config(&self, hub: Data<&Hub>, app: AppClient) -> Answer<AppConfigView> {
        Ok(Json(hub.apps().config(&app.0).await?.into()))
    }

    /// Shows the app's configuration, under the older path
    ///
    /// Alias of `GET /bot/v1/app/config`.
    #[oai(path = "/bot/v1/config", method = "get", operation_id = "getAppConfigOlder")]
    async fn config_older(&self, hub: Data<&Hub>, app: AppClient) -> Answer<AppConfigView> {
        Ok(Json(hub.apps().config(&app.0).await?.into()))
    }

    /// Replaces the app's tools
    ///
    /// In all installations. Requires the scope `tools:write`, on a bot of the author of the app.
    #[oai(path = "/bot/v1/app/tools", method = "put", operation_id = "setAppTools")]
    async fn set_app_tools(
        &self,
        hub: Data<&Hub>,
        app: AppClient,
        body: Body<SetTools>,
    ) -> Answer<ToolsView> {
        Ok(Json(ToolsView::of(hub.apps().set_app_tools(&app.0, body.0.into()).await?)))
    }

    /// Replaces the app's tools on this bot
    ///
    /// In addition to those of all installations. Requires the scope `tools:write`.
    #[oai(path = "/bot/v1/installation/tools", method = "put", operation_id = "setInstallationTools")]
    async fn set_installation_tools(
        &self,
        hub: Data<&Hub>,
        app: AppClient,
        body: Body<SetTools>,
    ) -> Answer<ToolsView> {
        Ok(Json(ToolsView::of(hub.apps().set_installation_tools(&app.0, body.0.into()).await?)))
    }
}

/// Replaces the bytes of a form by its fields in the log of calls.
fn note(request: &Request, body: &FileForm<BotSend>) {
    if let Some(note) = request.data::<CallNote>().filter(|_| body.is_form()) {
        note.said(body.value.to_json().unwrap_or_default(), body.file.as_ref());
    }
}

/// A message of an app, with the headers of its request.
pub(crate) struct SendCall<'r> {
    pub(crate) idempotency_key: Option<&'r str>,
    pub(crate) trace: Option<&'r str>,
    pub(crate) body: FileForm<BotSend>,
}

/// Sends a message of an app; shared by all endpoints that send.
pub(crate) async fn send(
    hub: &Hub,
    limits: &RateLimits,
    app: &AppClient,
    client_gone: &ClientGone,
    call: SendCall<'_>,
) -> Answer<BotSentView> {
    limits.check_send(&app.0)?;
    let SendCall { idempotency_key, trace, body: FileForm { value, file, .. } } = call;
    let new = NewSend { stop: client_gone.token(), ..value.into_send(trace, file)? };
    Ok(Json(hub.bots().send(&app.0, app.0.app()?.bot_id, new, idempotency_key).await?.into()))
}

async fn contacts(
    hub: &Hub,
    app: &AppClient,
    limit: Option<Limit>,
    cursor: Option<&Cursor>,
) -> Answer<BotContactsView> {
    let page = page_request(&Bots::contact_list(app.0.app()?.bot_id), limit, cursor)?;
    Ok(Json(hub.apps().contacts(&app.0, &page).await?.into()))
}
