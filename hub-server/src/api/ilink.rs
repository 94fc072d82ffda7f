//! Endpoints for the iLink sink of a channel, its clients, and their logins.

use hub_core::{
    Hub,
    channels::{Channel, sinks::IlinkSettings},
    gateway::{IlinkClient, IlinkLogin},
    id::{BotId, ChannelId, IlinkClientId},
    openapi::{Api, Set},
};
use poem::web::Data;
use poem_openapi::{OpenApi, param::Path};

use super::Tag;
use crate::{
    credentials::User,
    envelope::{ApiResult, Empty, ok},
    wire::{Body, Text},
};

/// The programs that are logged in to a channel, and how others are.
#[derive(Debug, Api)]
#[api(example = {
    "base_url": "https://hub.example/",
    "cdn_base_url": "https://hub.example/c2c",
    "clients": [
        {
            "acked_seq": 40,
            "address": "203.0.113.7",
            "created_at": "2025-11-21T09:30:00.000Z",
            "given_seq": 42,
            "id": "ilc_01KAG00000E008000000000008",
            "last_used_at": "2025-11-21T10:30:00.000Z",
            "user_agent": "agent-host/1.0"
        }
    ]
})]
pub struct IlinkClientsView {
    /// Base URL for programs: the public URL of the hub.
    pub base_url: String,
    /// Base URL of the CDN, for programs that need it.
    pub cdn_base_url: String,
    /// Oldest first.
    pub clients: Vec<IlinkClient>,
}

/// A login of a program.
#[derive(Debug, Api)]
#[api(input, example = {
    "login_id": "9f86d081884c7d659a2feaa0c55ad015"
})]
pub struct NamedIlinkLogin {
    /// Id of the login, from the link in the QR code.
    pub login_id: Text<1, 256>,
}

/// A confirmation of a login.
#[derive(Debug, Api)]
#[api(input, example = {
    "channel_id": "ch_01KAG00000E008000000000003",
    "login_id": "9f86d081884c7d659a2feaa0c55ad015"
})]
pub struct ConfirmIlinkLogin {
    /// Id of the login, from the link in the QR code.
    pub login_id: Text<1, 256>,
    /// The channel whose messages the program receives.
    pub channel_id: ChannelId,
}

/// The iLink sink of a channel.
#[derive(Debug, Clone, Copy)]
pub struct IlinkApi;

#[OpenApi(tag = "Tag::Channels")]
impl IlinkApi {
    /// Configures the iLink sink
    ///
    /// Replaces the whole sink. Programs that speak the protocol of the chat network use the public URL of the hub as
    /// their base URL, and log in to the channel: `POST /api/ilink/logins/confirm` confirms the QR code that they show.
    /// While the sink is off, its clients are refused.
    #[oai(path = "/api/bots/:id/channels/:channelId/ilink", method = "put", operation_id = "setIlinkSink")]
    async fn set(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        body: Body<Set<IlinkSettings>>,
    ) -> ApiResult<Channel> {
        ok(hub.channels().set_ilink(&user.0, id.0, channel_id.0, body.0.0).await?)
    }

    /// Lists the iLink clients of a channel
    ///
    /// The programs that are logged in, with the time of their last request, and the URLs with which another one logs in.
    #[oai(
        path = "/api/bots/:id/channels/:channelId/ilink/clients",
        method = "get",
        operation_id = "listIlinkClients"
    )]
    async fn clients(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
    ) -> ApiResult<IlinkClientsView> {
        let clients = hub.gateway().clients(&user.0, id.0, channel_id.0).await?;
        let (base_url, cdn_base_url) = hub.gateway().base_urls();
        ok(IlinkClientsView { base_url: base_url.into(), cdn_base_url: cdn_base_url.into(), clients })
    }

    /// Logs an iLink client out
    ///
    /// Its token is revoked within a second, also in the middle of a poll.
    #[oai(
        path = "/api/bots/:id/channels/:channelId/ilink/clients/:clientId",
        method = "delete",
        operation_id = "deleteIlinkClient"
    )]
    async fn revoke(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        #[oai(name = "clientId")] client_id: Path<IlinkClientId>,
    ) -> ApiResult<Empty> {
        hub.gateway().revoke(&user.0, id.0, channel_id.0, client_id.0).await?;
        ok(Empty {})
    }

    /// Opens a login of an iLink client
    ///
    /// Returns the program that requests it, and notifies the program that its code was opened. `NOT_FOUND` for a login
    /// that is unknown, expired or confirmed.
    #[oai(path = "/api/ilink/logins/open", method = "post", operation_id = "openIlinkLogin")]
    async fn open(&self, hub: Data<&Hub>, user: User, body: Body<NamedIlinkLogin>) -> ApiResult<IlinkLogin> {
        ok(hub.gateway().open_login(&user.0, &body.0.login_id).await?)
    }

    /// Confirms a login of an iLink client
    ///
    /// The program becomes a client of the channel: it receives what the channel receives from then on, and sends
    /// through its bot. `CONFLICT` if the channel or its iLink sink is off, or has as many clients as it admits.
    #[oai(path = "/api/ilink/logins/confirm", method = "post", operation_id = "confirmIlinkLogin")]
    async fn confirm(
        &self,
        hub: Data<&Hub>,
        user: User,
        body: Body<ConfirmIlinkLogin>,
    ) -> ApiResult<IlinkClient> {
        let ConfirmIlinkLogin { login_id, channel_id } = body.0;
        ok(hub.gateway().confirm_login(&user.0, &login_id, channel_id).await?)
    }

    /// Rejects a login of an iLink client
    ///
    /// The program is notified that its code has expired.
    #[oai(path = "/api/ilink/logins/reject", method = "post", operation_id = "rejectIlinkLogin")]
    async fn refuse(&self, hub: Data<&Hub>, user: User, body: Body<NamedIlinkLogin>) -> ApiResult<Empty> {
        hub.gateway().reject_login(&user.0, &body.0.login_id).await?;
        ok(Empty {})
    }
}
