//! WebSockets of apps (`dialects.md` §1.10): what an app is told, without a server of its own, and a way to send.
//!
//! No `Origin` is looked at: whoever opens one shows a token or a secret, which no browser adds by itself.

use std::sync::Arc;

use hub_core::Hub;
use poem::{Request, web::Data};
use poem_openapi::{OpenApi, param::Query};

mod frames;
mod session;

use super::Tag;
use crate::{
    AppSettings,
    credentials::{AppOwner, AppSocketClient},
    envelope::ApiError,
    rate_limit::RateLimits,
    serve::websocket::{Switched, Upgrade},
    wire::Text,
};

use session::{Session, Speaker};

/// WebSockets of apps.
#[derive(Debug, Clone, Copy)]
pub struct AppSocketsApi;

#[OpenApi(tag = "Tag::BotApi")]
impl AppSocketsApi {
    /// Opens a WebSocket for an app on a bot
    ///
    /// Every frame is a JSON object with a `type`. The hub sends `init {installation_id, bot_id, app_name, app_slug}`,
    /// then `event`: the very object that a webhook gets, `{v, type, trace_id, installation_id, bot, event}`. It takes
    /// `ping`, which it answers with `pong`, and `send {req_id?, to, content, msg_type?}`, which it answers with
    /// `ack {req_id, ok}` or `error {req_id, error, code}`. `send` is the call `POST /bot/v1/messages/send` and takes
    /// its further fields; `to` is required. Frames hold at most 64 KiB.
    ///
    /// Events come oldest first and at least once. What happens while no socket is open waits up to 31 hours, unless
    /// a webhook of the app takes it meanwhile. An event that was written to the socket counts as told. With
    /// `ack=true` it counts as told when the app sends `ack {id}` with the event's id; at most 64 are under way, and
    /// what was not acknowledged comes again on the next connection. Of several sockets of one installation the
    /// newest gets the events; the others stand by, and may send.
    ///
    /// Close codes: 1001 the hub restarts; 1002, 1007, 1008, 1009 the app's frames; 4401 the token ended, or the app
    /// was taken off the bot; 4403 the app was switched off; 4408 the app does not read or is silent for 60 seconds.
    #[oai(path = "/bot/v1/ws", method = "get", operation_id = "connectInstallation")]
    async fn connect(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        limits: Data<&Arc<RateLimits>>,
        app: AppSocketClient,
        request: &Request,
        /// Whether the app acknowledges events itself.
        ack: Query<Option<bool>>,
    ) -> Result<Switched, ApiError> {
        let upgrade = Upgrade::of(request)?;
        let AppSocketClient { actor, token } = app;
        let listener = hub.apps().listen(&actor, ack.0.unwrap_or(false)).await?;
        let speaker = Speaker::Installation { installation_id: actor.app()?.installation_id, token };
        let session = Session::new(hub.0, settings.0, limits.0, speaker, listener);
        Ok(upgrade.switch(&settings.sockets, move |socket| session.serve(socket)))
    }

    /// Opens a WebSocket for an app on all of its bots
    ///
    /// With the app's id and its webhook secret. As the socket of one installation, but: `init` is
    /// `{app_id, app_name, app_slug, scope: "app"}`; it gets the events of all installations that have no socket of
    /// their own open; and `send` also names the `installation_id` that sends.
    #[oai(path = "/bot/v1/app/ws", method = "get", operation_id = "connectApp")]
    #[expect(clippy::too_many_arguments, reason = "each is extracted by its type")]
    async fn connect_app(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        limits: Data<&Arc<RateLimits>>,
        app: AppOwner,
        request: &Request,
        /// The app; the credential reads it.
        #[oai(name = "app_id")]
        _app_id: Query<Option<Text<1, 64>>>,
        /// Whether the app acknowledges events itself.
        ack: Query<Option<bool>>,
    ) -> Result<Switched, ApiError> {
        let upgrade = Upgrade::of(request)?;
        let AppOwner(holder) = app;
        let listener = hub.apps().listen_for_all(&holder, ack.0.unwrap_or(false)).await?;
        let session = Session::new(hub.0, settings.0, limits.0, Speaker::App(holder), listener);
        Ok(upgrade.switch(&settings.sockets, move |socket| session.serve(socket)))
    }
}
