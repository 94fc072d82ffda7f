//! The simulator as a server of the protocol: its [`Backend`], and the faults around it.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, Response, request::Parts};
use serde_json::{Value, json};

use super::{
    Simulator,
    control::{CONTROL, MAX_CONTROL_BODY},
    distort,
    faults::{Action, Fault, Stage},
    files,
    host::base_url,
    outbound::Shadow,
    qr,
    violation::{ViolationKind, app_headers_are_valid},
};
use crate::{
    local_http::{Cut, LocalService},
    network::server::{
        self, Answer, Backend, Call, Endpoint, MAX_API_BODY, Reply, SendRequest, UploadRequest,
    },
};

/// Path of file uploads.
const UPLOAD: &str = "/c2c/upload";
/// Largest upload in bytes.
const MAX_UPLOAD: usize = 200 << 20;

impl Simulator {
    /// Answers a request of the protocol, faults included.
    async fn answer(&self, call: Call) -> Result<Reply, Cut> {
        let mut shadow = None;
        if let Some(fault) = self.take_fault(Stage::Early, &call) {
            self.pause(&fault).await;
            match fault.action {
                Action::Pass => {}
                Action::Shadow { message_id } => shadow = Some(Shadow { message_id }),
                Action::RateLimit { .. } => return Ok(Reply::refuse(-2, "rate limited")),
                Action::Expire { after_ms } => self.expire_later(&call, Duration::from_millis(after_ms)),
                action => return distort::distort(&action, &call, Reply::done()),
            }
        }
        let mut reply = self.dispatch(&call, shadow).await;
        if call.endpoint == Endpoint::GetUpdates
            && let Ok(json) = std::str::from_utf8(&reply.body)
            && json.contains("full_url")
        {
            reply.body = files::complete_urls(json, &call.base).into();
        }
        // Answers are read again only when there is a reason to.
        if !self.act(|world, _| world.faults.any_late()) {
            return Ok(reply);
        }
        let messages = distort::messages_of(&reply);
        let Some(fault) = self.take_fault(Stage::Late { messages: messages.len() }, &call) else {
            return Ok(reply);
        };
        if let Action::Repeat { after_ms, new_id } = fault.action {
            self.repeat(&call, messages, Duration::from_millis(after_ms), new_id);
        }
        self.pause(&fault).await;
        distort::distort(&fault.action, &call, reply)
    }

    async fn dispatch(&self, call: &Call, shadow: Option<Shadow>) -> Reply {
        if matches!(call.endpoint, Endpoint::GetBotQrcode | Endpoint::GetQrcodeStatus)
            && !app_headers_are_valid(call)
        {
            let kind = ViolationKind::BadAppHeaders;
            let detail = format!("{:?}", call.endpoint);
            self.act(|world, env| world.violations.record(env, None, kind, &detail));
        }
        server::respond(&Simulated { simulator: self, shadow }, call).await
    }

    fn take_fault(&self, stage: Stage, call: &Call) -> Option<Fault> {
        self.act(|world, env| world.take_fault(env, stage, call))
    }

    async fn pause(&self, fault: &Fault) {
        if fault.delay_ms > 0 {
            self.clock().sleep(Duration::from_millis(fault.delay_ms)).await;
        }
    }

    fn expire_later(&self, call: &Call, after: Duration) {
        self.act(|world, env| {
            let wx_id = world.account_of(call).map(str::to_owned);
            if let Some(account) = wx_id.and_then(|wx_id| world.accounts.get_mut(&wx_id)) {
                account.expires_at = Some(env.now + after);
            }
        });
    }

    fn repeat(&self, call: &Call, messages: Vec<Value>, after: Duration, new_id: bool) {
        self.act(|world, env| {
            let Some(wx_id) = world.account_of(call).map(str::to_owned) else { return };
            for mut message in messages {
                if new_id {
                    message["message_id"] = json!(world.next_id(env.random));
                }
                if let Some(account) = world.accounts.get_mut(&wx_id) {
                    account.repeat(env, after, &message);
                }
            }
        });
    }
}

/// The simulated world as the backend of one call.
struct Simulated<'a> {
    simulator: &'a Simulator,
    shadow: Option<Shadow>,
}

#[async_trait]
impl Backend for Simulated<'_> {
    /// The id of the account.
    type Caller = String;

    async fn authenticate(&self, call: &Call) -> Result<String, Reply> {
        self.simulator.act(|world, env| world.authenticate(env, call))
    }

    async fn get_bot_qrcode(&self, call: &Call, tokens: Vec<&str>) -> Answer {
        Ok(self.simulator.act(|world, env| world.get_bot_qrcode(env, call, &tokens)))
    }

    async fn get_qrcode_status(&self, call: &Call, qrcode: &str, verify_code: Option<&str>) -> Answer {
        Ok(self.simulator.get_qrcode_status(call, qrcode, verify_code).await)
    }

    async fn notify(&self, wx_id: String, started: bool) -> Answer {
        Ok(self.simulator.act(|world, _| world.notify(&wx_id, started)))
    }

    async fn get_updates(&self, wx_id: String, cursor: &str) -> Answer {
        self.simulator.get_updates(wx_id, cursor).await
    }

    async fn send_message(&self, wx_id: String, send: SendRequest<'_>) -> Answer {
        self.simulator.act(|world, env| world.send_message(env, &wx_id, &send, self.shadow))
    }

    async fn get_config(&self, wx_id: String, user_id: &str) -> Answer {
        self.simulator.act(|world, env| world.get_config(env, &wx_id, user_id))
    }

    async fn send_typing(&self, wx_id: String, user_id: &str, ticket: &str, on: bool) -> Answer {
        self.simulator.act(|world, env| world.send_typing(env, wx_id, (user_id, ticket, on)))
    }

    async fn get_upload_url(&self, wx_id: String, call: &Call, upload: UploadRequest) -> Answer {
        self.simulator.act(|world, env| world.get_upload_url(env, &wx_id, call, &upload))
    }

    async fn cdn_upload(&self, call: &Call, param: &str, filekey: &str) -> Answer {
        self.simulator.act(|world, env| world.cdn_upload(env, call, param, filekey))
    }

    async fn cdn_download(&self, param: &str) -> Answer {
        Ok(self.simulator.act(|world, env| world.cdn_download(env, param)))
    }
}

#[async_trait]
impl LocalService for Simulator {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        if request.uri().path().starts_with(CONTROL) {
            return Ok(self.control(&request).await.into());
        }
        if let (&Method::GET, Some(value)) = (request.method(), request.uri().path().strip_prefix(qr::PAGE)) {
            return Ok(self.qr_page(value).into());
        }
        let base = base_url(&request, self.config().public_url.as_deref());
        let cap = if request.uri().path() == UPLOAD { MAX_UPLOAD } else { MAX_API_BODY };
        match Call::parse(request, base, cap) {
            Ok(call) => Ok(self.answer(call).await?.into()),
            Err(refusal) => Ok(refusal.into()),
        }
    }

    fn max_body(&self, head: &Parts) -> usize {
        match head.uri.path() {
            UPLOAD => MAX_UPLOAD,
            path if path.starts_with(CONTROL) => MAX_CONTROL_BODY,
            _ => MAX_API_BODY,
        }
    }
}
