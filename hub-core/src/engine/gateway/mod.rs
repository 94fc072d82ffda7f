//! The iLink gateway: programs that speak the protocol of the chat network (`docs/ilink.md#gateway`) log in to a channel
//! of the hub, rather than to the network, and work unmodified.
//!
//! A program is a client of a channel, with a durable position in the channel's log. Its token is a credential of
//! the channel: stored as a hash, listed, revocable. What it sends goes through the outbox like every other send.
//! The calls of the protocol are parsed by [`network::server`](crate::network::server), which the simulator uses, too.
//!
//! | what | cap | at the cap |
//! |---|---|---|
//! | clients of a channel | `max_clients` of the sink, at most 20 | `CONFLICT` for the user who confirms another one |
//! | polls of a client | 2 per node; messages go to the newer one | the oldest ends without messages |
//! | polls of a node | [`max_polls`](crate::config::HubConfig::max_polls), with the other long polls | HTTP 429 |
//! | logins that users have opened | 1,000, each for 2 minutes | `RATE_LIMITED` for the user who opens another one |
//! | messages of one response | 50, 256 KiB of text | the rest is in the next one |
//! | files | [`max_outbound`](crate::config::MediaLimits::max_outbound) in, [`max_inbound`](crate::config::MediaLimits::max_inbound) out | HTTP 413, HTTP 404 |

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::{
    access::Actor,
    context::Context,
    error::{Error, ErrorCode, Result},
    model::session::ClientInfo,
    network::server::{
        self, Answer, Backend, Call, Endpoint, MAX_API_BODY, Reply, SendRequest, UploadRequest, token_of,
    },
};

mod clients;
mod code;
mod files;
mod login;
mod render;
mod send;
mod updates;

pub use crate::store::ilink::{IlinkClient, IlinkLoginStatus};
pub use clients::Program;
pub use login::IlinkLogin;

/// The iLink gateway.
#[derive(Debug, Clone, Copy)]
pub struct Gateway<'h> {
    ctx: &'h Context,
}

/// A request of the protocol, with the server's data about it.
#[derive(Debug)]
pub struct GatewayCall {
    /// The request. Its path begins with `/ilink/` or `/c2c/`.
    pub request: Request<Bytes>,
    /// The program, as [`Gateway::authenticate`] returned it.
    pub program: Option<Program>,
    /// Client that sent the request.
    pub client: ClientInfo,
    /// Ends long polls early.
    pub stop: CancellationToken,
}

impl<'h> Gateway<'h> {
    pub(crate) fn new(ctx: &'h Context) -> Self {
        Self { ctx }
    }

    /// The base URL for programs, and the base URL of the CDN for those that need it.
    pub fn base_urls(&self) -> (Url, Url) {
        (self.ctx.config.public_url.clone(), self.ctx.config.address("/c2c"))
    }

    /// Whether a method and a path are a call; all others are 404.
    pub fn serves(&self, method: &http::Method, path: &str) -> bool {
        Endpoint::find(method, path).is_some()
    }

    /// Whether a call needs the token of a program that is logged in.
    pub fn requires_login(&self, method: &http::Method, path: &str) -> bool {
        Endpoint::find(method, path).is_some_and(Endpoint::requires_login)
    }

    /// The largest body that a request may have, in bytes. An upload that was not permitted may have none.
    pub fn max_body(&self, method: &http::Method, uri: &http::Uri) -> usize {
        match Endpoint::find(method, uri.path()) {
            Some(Endpoint::CdnUpload) => {
                self.permitted_upload(uri).and_then(|size| usize::try_from(size).ok()).unwrap_or(0)
            }
            Some(_) => MAX_API_BODY,
            None => 0,
        }
    }

    /// The program whose token is in the headers of a request; `None` without a valid token.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the store cannot be read.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<Option<Program>> {
        match token_of(headers) {
            Some(token) => self.program_with(token).await,
            None => Ok(None),
        }
    }

    /// Responds to a call of the protocol. Errors are in the response, as the network writes them.
    pub async fn respond(&self, call: GatewayCall) -> Response<Bytes> {
        let GatewayCall { request, program, client, stop } = call;
        let base = self.ctx.config.public_url.as_str().trim_end_matches('/').to_owned();
        let max_body = self.max_body(request.method(), request.uri());
        let reply = match Call::parse(request, base, max_body) {
            Ok(call) => server::respond(&Channel { gateway: *self, program, client, stop }, &call).await,
            Err(refusal) => refusal,
        };
        reply.into()
    }
}

/// A channel as the backend of one call.
struct Channel<'h> {
    gateway: Gateway<'h>,
    program: Option<Program>,
    client: ClientInfo,
    stop: CancellationToken,
}

#[async_trait]
impl Backend for Channel<'_> {
    type Caller = Program;

    async fn authenticate(&self, _: &Call) -> Result<Program, Reply> {
        let program = self.program.clone().ok_or_else(Reply::expired)?;
        if program.is_bot_expired { Err(Reply::expired()) } else { Ok(program) }
    }

    /// The tokens that a client still holds do not matter: a login always creates a new one.
    async fn get_bot_qrcode(&self, _: &Call, _: Vec<&str>) -> Answer {
        Ok(self.gateway.begin_login(&self.client))
    }

    async fn get_qrcode_status(&self, call: &Call, qrcode: &str, _: Option<&str>) -> Answer {
        self.gateway.login_status(&call.base, qrcode, &self.stop).await
    }

    /// A program receives messages when it polls, announced or not.
    async fn notify(&self, _: Program, _: bool) -> Answer {
        Ok(Reply::done())
    }

    async fn get_updates(&self, program: Program, cursor: &str) -> Answer {
        self.gateway.updates(&program, cursor, &self.stop).await
    }

    async fn send_message(&self, program: Program, send: SendRequest<'_>) -> Answer {
        self.gateway.send(&program, &send).await
    }

    async fn get_config(&self, program: Program, user_id: &str) -> Answer {
        self.gateway.typing_ticket(&program, user_id).await
    }

    async fn send_typing(&self, program: Program, user_id: &str, ticket: &str, on: bool) -> Answer {
        self.gateway.typing(&program, user_id, ticket, on).await
    }

    async fn get_upload_url(&self, program: Program, call: &Call, upload: UploadRequest) -> Answer {
        self.gateway.permit_upload(&program, &call.base, &upload).await
    }

    async fn cdn_upload(&self, call: &Call, param: &str, filekey: &str) -> Answer {
        self.gateway.take_upload(param, filekey, &call.body).await
    }

    async fn cdn_download(&self, param: &str) -> Answer {
        self.gateway.download(param).await
    }
}

/// An error of the hub as the network would write it.
fn refusal(error: &Error) -> Reply {
    match error.code() {
        ErrorCode::InvalidToken | ErrorCode::Unauthorized | ErrorCode::Forbidden => Reply::expired(),
        ErrorCode::WindowClosed => Reply::refuse(-2, "prepare failed"),
        ErrorCode::RateLimited => Reply::refuse(-2, "rate limited"),
        ErrorCode::InvalidParams | ErrorCode::NotFound => Reply::refuse(-3, "invalid arguments"),
        ErrorCode::Internal | ErrorCode::Unavailable => {
            tracing::warn!(%error, "a call of the iLink gateway failed");
            Reply::text(StatusCode::SERVICE_UNAVAILABLE, "unavailable")
        }
        _ => Reply::refuse(-1, error.message()),
    }
}

impl Program {
    /// The program as the actor of what it does.
    pub fn actor(&self) -> Actor {
        Actor::Channel(self.client)
    }
}
