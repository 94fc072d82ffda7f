//! WebSockets of apps: events for an app without a server of its own, and a way to send.
//!
//! `Origin` is not checked: the client presents a token or a secret, which no browser adds by itself.

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
    /// Every frame is a JSON object with a `type`. The hub sends `init {installation_id, bot_id, app_name,
    /// app_slug}`, then `event`: the same object that a webhook receives, `{v, type, trace_id, installation_id, bot,
    /// event}`. The app may send `ping`, with the response `pong`, and `send {req_id?, to, content, msg_type?}`, with
    /// the response `ack {req_id, ok}` or `error {req_id, error, code}`. `send` equals `POST /bot/v1/messages/send`
    /// and has the same further fields; `to` is required. Frames have at most 64 KiB.
    ///
    /// Events are sent oldest first, at least once. Events that occur while no socket is open wait up to 31 hours,
    /// unless a webhook of the app accepts them. An event that was written to the socket counts as delivered. With
    /// `ack=true` it counts as delivered when the app sends `ack {id}` with the id of the event; at most 64 are
    /// unacknowledged at a time, and those are sent again on the next connection. If an installation has several
    /// sockets, the newest one receives the events; the others are on standby and may send.
    ///
    /// Close codes: 1001 the hub restarts; 1002, 1007, 1008, 1009 invalid frames; 4401 the token was revoked or the
    /// app uninstalled; 4403 the app was switched off; 4408 the app does not read, or is silent for 60 seconds.
    #[oai(path = "/bot/v1/ws", method = "get", operation_id = "connectInstallation")]
    async fn connect(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        limits: Data<&Arc<RateLimits>>,
        app: AppSocketClient,
        request: &Request,
        /// Whether the app acknowledges events.
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
    /// With the id of the app and its webhook secret. Like the socket of an installation, except that `init` is
    /// `{app_id, app_name, app_slug, scope: "app"}`, that it receives the events of all installations without an open
    /// socket of their own, and that `send` requires `installation_id`.
    #[oai(path = "/bot/v1/app/ws", method = "get", operation_id = "connectApp")]
    #[expect(clippy::too_many_arguments, reason = "each is extracted by its type")]
    async fn connect_app(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        limits: Data<&Arc<RateLimits>>,
        app: AppOwner,
        request: &Request,
        /// The app; read by the credential.
        #[oai(name = "app_id")]
        _app_id: Query<Option<Text<1, 64>>>,
        /// Whether the app acknowledges events.
        ack: Query<Option<bool>>,
    ) -> Result<Switched, ApiError> {
        let upgrade = Upgrade::of(request)?;
        let AppOwner(holder) = app;
        let listener = hub.apps().listen_for_all(&holder, ack.0.unwrap_or(false)).await?;
        let session = Session::new(hub.0, settings.0, limits.0, Speaker::App(holder), listener);
        Ok(upgrade.switch(&settings.sockets, move |socket| session.serve(socket)))
    }
}
