//! Endpoints for the iLink sink of a channel, its clients, and their logins.

use hub_core::channels::Channel;
use hub_core::{
    Hub,
    channels::sinks::IlinkSettings,
    gateway::{IlinkClient, IlinkLogin},
    id::{BotId, ChannelId, IlinkClientId},
};
use poem::web::Data;
use poem_openapi::{Object, OpenApi, param::Path, types::Example};

use super::Tag;
use crate::{
    credentials::User,
    envelope::{ApiResult, Empty, ok},
    wire::{Body, Number, Text},
};

/// A new configuration of the iLink sink.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct SetIlink {
    /// Whether clients may log in and receive messages; `true` if absent.
    pub enabled: Option<bool>,
    /// Clients that may be logged in at the same time, 1 to 20; 5 if absent. Clients that are logged in stay so.
    pub max_clients: Option<Number<1, 20>>,
    /// Days after its last request when a client is logged out, 1 to 365; 30 if absent.
    pub idle_days: Option<Number<1, 365>>,
}

impl Example for SetIlink {
    fn example() -> Self {
        Self { enabled: Some(true), max_clients: Some(Number(5)), idle_days: Some(Number(30)) }
    }
}

impl From<SetIlink> for IlinkSettings {
    fn from(body: SetIlink) -> Self {
        let default = Self::default();
        Self {
            enabled: body.enabled.unwrap_or(true),
            max_clients: body.max_clients.map_or(default.max_clients, u32::from),
            idle_days: body.idle_days.map_or(default.idle_days, u32::from),
        }
    }
}

/// The programs that are logged in to a channel, and how others are.
#[derive(Debug, Object)]
#[oai(example)]
pub struct IlinkClientsView {
    /// Base URL for programs: the public URL of the hub.
    pub base_url: String,
    /// Base URL of the CDN, for programs that need it.
    pub cdn_base_url: String,
    /// Oldest first.
    pub clients: Vec<IlinkClient>,
}

impl Example for IlinkClientsView {
    fn example() -> Self {
        let at = hub_core::time::Timestamp::from_millis;
        Self {
            base_url: "https://hub.example/".to_owned(),
            cdn_base_url: "https://hub.example/c2c".to_owned(),
            clients: vec![IlinkClient {
                id: hub_core::id::Id::from_u128(0x019a_a000_0000_7000_8000_0000_0000_0008),
                ip: "203.0.113.7".to_owned(),
                user_agent: "agent-host/1.0".to_owned(),
                acked_seq: 40,
                given_seq: 42,
                created_at: at(1_763_717_400_000),
                last_used_at: at(1_763_721_000_000),
            }],
        }
    }
}

/// A login of a program.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct NamedIlinkLogin {
    /// Id of the login, from the link in the QR code.
    pub login_id: Text<1, 256>,
}

impl Example for NamedIlinkLogin {
    fn example() -> Self {
        Self { login_id: Text("9f86d081884c7d659a2feaa0c55ad015".to_owned()) }
    }
}

/// A confirmation of a login.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct ConfirmIlinkLogin {
    /// Id of the login, from the link in the QR code.
    pub login_id: Text<1, 256>,
    /// The channel whose messages the program receives.
    pub channel_id: ChannelId,
}

impl Example for ConfirmIlinkLogin {
    fn example() -> Self {
        Self {
            login_id: NamedIlinkLogin::example().login_id,
            channel_id: hub_core::id::Id::from_u128(0x019a_a000_0000_7000_8000_0000_0000_0003),
        }
    }
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
        body: Body<SetIlink>,
    ) -> ApiResult<Channel> {
        ok(hub.channels().set_ilink(&user.0, id.0, channel_id.0, body.0.into()).await?)
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
