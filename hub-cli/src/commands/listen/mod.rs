//! `listen`: the messages of a bot or a channel, posted to a URL on this machine as the webhook sink would post them.
//!
//! It follows the channel over its WebSocket. A message is acknowledged after the response of the local URL, and
//! redelivered if this program stopped before; a lost connection resumes after the last acknowledgement, so that
//! nothing is missed.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use hub_core::{
    body_text,
    delivery::{
        ResponseReply,
        signing::{self, Method, Signing, SigningSecret},
    },
    egress::{Call, CheckedHeaders, Egress, EgressConfig, Receipt},
    id::{BotId, ChannelId},
    random::Random,
    secret::Secret,
    time::{Clock, Stopwatch},
};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Message, client::IntoClientRequest, protocol::frame::coding::CloseCode},
};
use url::Url;

use crate::{
    args::ListenArgs,
    client::address,
    context::Context,
    exit::{Exit, Failure},
    poll::every,
    printer::Printer,
    screen, signals,
};

mod keys;
mod record;
mod temporary;
mod view;

use keys::Keys;
use record::{Exchange, Recorder};
use temporary::Temporary;
use view::{Delivery, View};

/// Timeout of connecting and of the first frame.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout of a silent connection: the hub pings every 30 s.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// Timeout of the local URL, as for a webhook.
const FORWARD_TIMEOUT: Duration = Duration::from_secs(30);
const RECONNECT_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum size of a response.
const MAX_ANSWER: usize = 64 << 20;
/// Close code for a key that is no longer valid.
const CLOSE_REVOKED: u16 = 4401;
/// The fields of a frame besides the body of a webhook.
const FRAME_ONLY: [&str; 2] = ["seq", "context_token"];

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

struct Listen<'p> {
    args: ListenArgs,
    server: Url,
    key: String,
    view: View<'p>,
    recorder: Option<Recorder>,
    egress: Egress,
    clock: Clock,
    secret: SigningSecret,
    extra: HeaderMap,
}

struct Channel {
    name: String,
    id: ChannelId,
    bot: BotId,
}

pub async fn run(args: ListenArgs, cx: &Context) -> Result<(), Failure> {
    // Handled from here on, so that the temporary channel is deleted after a signal.
    let stopped = signals::stopped();
    let (server, key, temporary) = if let Some(bot) = &args.bot {
        let temporary = Temporary::create(&args.hub, bot, cx).await?;
        (temporary.server.clone(), temporary.key.clone(), Some(temporary))
    } else {
        let server = address(args.hub.server.as_ref(), args.hub.profile.profile.as_deref())?;
        (server, args.key.clone().unwrap_or_default(), None)
    };
    let ended = forward_all(args, server, key, stopped, &cx.printer).await;
    match temporary {
        Some(temporary) => ended.and(temporary.delete().await),
        None => ended,
    }
}

/// Forwards until a signal or a key ends it.
async fn forward_all(
    args: ListenArgs,
    server: Url,
    key: String,
    stopped: impl Future<Output = ()>,
    printer: &Printer,
) -> Result<(), Failure> {
    let pairs: Vec<(&str, &str)> = args
        .header
        .iter()
        .map(|line| line.split_once(':').map(|(name, value)| (name.trim(), value.trim())))
        .collect::<Option<_>>()
        .ok_or_else(|| Failure::usage("--header: write it as NAME: VALUE"))?;
    let extra = CheckedHeaders::parse(pairs)?.into_map();
    let secret = args.secret.clone().map_or_else(
        || Secret::new(format!("{:032x}", u128::from_be_bytes(Random::system().bytes()))),
        Secret::new,
    );
    // The user named both addresses, so private ones are allowed.
    let egress = Egress::new(EgressConfig::default())?.trusted();
    let secrets = [secret.clone(), Secret::new(key.as_str())];
    let recorder = args.record.as_deref().map(|path| Recorder::open(path, &secrets)).transpose()?;
    let view = View::new(args.ui, printer);
    let mut keys = if view.is_panel() && printer.may_ask() { Keys::listen() } else { None };
    let is_panel = view.is_panel();
    let clock = Clock::system();
    let mut listen =
        Listen { args, server, key, view, recorder, egress, clock, secret: secret.into(), extra };
    let ended = tokio::select! {
        ended = listen.follow() => ended.map(|never| match never {}),
        () = quit(keys.as_mut()) => Ok(()),
        () = stopped => Err(Failure::interrupted()),
    };
    if !is_panel {
        return ended;
    }
    // Restores the terminal before further output.
    drop(keys);
    let summary = listen.view.end();
    match ended {
        Err(mut failure) if failure.exit == Exit::Interrupted => {
            failure.message = format!("interrupted: {summary}");
            Err(failure)
        }
        ended => {
            printer.note(&summary);
            ended
        }
    }
}

/// Waits for the key that ends it.
async fn quit(keys: Option<&mut Keys>) {
    let Some(keys) = keys else { return std::future::pending().await };
    while !matches!(keys.next().await, b'q' | b'Q') {}
}

impl Listen<'_> {
    async fn follow(&mut self) -> Result<Infallible, Failure> {
        // A wrong key or an unreachable hub ends it here.
        let mut channel = self.channel().await?;
        if self.args.print_secret {
            self.view.note(&format!("signing secret: {}", self.secret.secret().expose()));
        }
        loop {
            let lost = match self.connect().await {
                Ok(mut socket) => {
                    let (name, to) = (&channel.name, &self.args.forward_to);
                    self.view.ready(&format!("ready channel={name} forward={to}"));
                    self.listen(&mut socket, &channel).await?
                }
                Err(why) => why,
            };
            self.view.lost(&format!("connection lost: {lost}; retrying"));
            self.clock.sleep(RECONNECT_INTERVAL).await;
            channel = every(RECONNECT_INTERVAL, async || match self.channel().await {
                Err(failure) if failure.exit == Exit::Unreachable || failure.code == "RATE_LIMITED" => {
                    Ok(None)
                }
                found => found.map(Some),
            })
            .await?;
        }
    }

    async fn channel(&self) -> Result<Channel, Failure> {
        let path = "/api/v1/channels/status";
        let status = self.hub("GET", path, &Value::Null, HeaderMap::new()).await?;
        let word = |name: &str| status[name].as_str().unwrap_or_default();
        let ids = word("channel_id").parse().ok().zip(word("bot_id").parse().ok());
        let (id, bot) = ids.ok_or_else(|| Failure::unreachable("the hub did not report the channel"))?;
        Ok(Channel { name: screen::clean(word("channel_name")), id, bot })
    }

    /// A connection after the hub's greeting, or the reason for its failure.
    async fn connect(&self) -> Result<Socket, String> {
        let mut url = self.server.clone();
        let scheme = if url.scheme() == "https" { "wss" } else { "ws" };
        url.set_scheme(scheme).map_err(|()| "the server's URL cannot be used".to_owned())?;
        let url = format!("{}/api/v1/channels/connect?ack=true", url.as_str().trim_end_matches('/'));
        let mut request = url.into_client_request().map_err(|error| error.to_string())?;
        let key = HeaderValue::try_from(self.key.as_str()).map_err(|error| error.to_string())?;
        request.headers_mut().insert(HeaderName::from_static("x-api-key"), key);
        let greeted = async {
            let (mut socket, _) =
                Box::pin(connect_async(request)).await.map_err(|error| error.to_string())?;
            loop {
                match frame(socket.next().await)? {
                    Some(frame) if frame["type"] == "init" => return Ok(socket),
                    _ => {}
                }
            }
        };
        self.clock.timeout(CONNECT_TIMEOUT, greeted).await.unwrap_or_else(|| Err("no response".to_owned()))
    }

    /// Forwards messages until the connection ends; returns the reason.
    async fn listen(&mut self, socket: &mut Socket, channel: &Channel) -> Result<String, Failure> {
        loop {
            let Some(message) = self.clock.timeout(IDLE_TIMEOUT, socket.next()).await else {
                return Ok("the hub is silent".to_owned());
            };
            if let Some(Ok(Message::Close(Some(close)))) = &message
                && close.code == CloseCode::from(CLOSE_REVOKED)
            {
                return Err(Failure::new(Exit::Denied, "UNAUTHORIZED", "the key is no longer valid"));
            }
            let frame = match frame(message) {
                Ok(Some(frame)) => frame,
                Ok(None) => continue,
                Err(why) => return Ok(why),
            };
            let data = &frame["data"];
            match frame["type"].as_str() {
                Some("message") => {
                    self.forward(data, channel).await?;
                    let ack = json!({ "type": "ack", "data": { "seq": data["seq"] } });
                    if let Err(error) = socket.send(Message::text(ack.to_string())).await {
                        return Ok(error.to_string());
                    }
                }
                Some("status") => {
                    let status = data["status"].as_str().unwrap_or_default();
                    self.view.note(&format!("the bot is {}", screen::clean(status)));
                }
                Some("lagged") if data["gone"] == true => {
                    self.view.note(&format!(
                        "messages {} to {} were missed: the hub no longer has them",
                        data["from"], data["to"]
                    ));
                }
                Some("error") => {
                    let message = data["message"].as_str().unwrap_or_default();
                    self.view.note(&format!("message of the hub: {}", screen::clean(message)));
                }
                _ => {}
            }
        }
    }

    /// Posts one message and sends the reply in the response.
    async fn forward(&mut self, message: &Value, channel: &Channel) -> Result<(), Failure> {
        let mut payload = message.as_object().cloned().unwrap_or_default();
        payload.retain(|name, _| !FRAME_ONLY.contains(&name.as_str()));
        if message["msg_type"] == 1 {
            payload.remove("items");
        }
        let body = Bytes::from(Value::Object(payload).to_string());
        let mut headers = self.extra.clone();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let signing = Signing {
            method: &Method::Hmac,
            secret: Some(&self.secret),
            previous: None,
            id: message["id"].as_str().unwrap_or_default(),
            at: self.clock.now(),
            attempt: 1,
            body: &body,
        };
        headers.extend(signing::headers(&signing)?);
        let (started, watch) = (self.clock.now(), Stopwatch::start());
        let answer =
            self.call("POST", &self.args.forward_to, headers.clone(), body.clone(), FORWARD_TIMEOUT).await;
        let took = watch.elapsed();
        let reason = |failure: &Failure| failure.causes.first().cloned().unwrap_or_default();
        if let Some(recorder) = &mut self.recorder {
            let reason = answer.as_ref().err().map(reason).unwrap_or_default();
            recorder.append(&Exchange {
                channel: (channel.id, channel.bot),
                message_id: message["id"].as_str().unwrap_or_default(),
                url: &self.args.forward_to,
                headers: &headers,
                body: &body,
                started,
                ended: self.clock.now(),
                answer: answer.as_ref().map_err(|_| reason.as_str()),
            })?;
        }
        let (status, first, found) = match &answer {
            Ok(answer) => {
                let body = body_text::decode(&answer.headers, &answer.body);
                let first = body.lines().next().unwrap_or_default().to_owned();
                (answer.status.as_u16(), first, ResponseReply::of(answer))
            }
            Err(failure) => (0, reason(failure), ResponseReply::None),
        };
        let (reply, unsent) = match found {
            ResponseReply::None => (None, None),
            ResponseReply::Text(text) => (Some(text), None),
            ResponseReply::Unusable(why) | ResponseReply::Unreadable(why) => (None, Some(why)),
        };
        self.view.delivered(Delivery {
            seq: message["seq"].clone(),
            id: message["id"].clone(),
            text: screen::clean(message["content"].as_str().unwrap_or_default()),
            status,
            took,
            answer: screen::clean(&first),
            reply: reply.clone(),
            unsent,
        })?;
        if let Some(reply) = reply {
            let send = json!({ "to_user_id": message["sender"]["user_id"], "content": reply });
            let path = "/api/v1/channels/send";
            // A redelivered message is replied to only once.
            let key = format!("listen-{}", message["id"].as_str().unwrap_or_default());
            let headers = HeaderMap::from_iter(
                HeaderValue::try_from(key).map(|key| (HeaderName::from_static("idempotency-key"), key)),
            );
            match self.hub("POST", path, &send, headers).await {
                Err(failure) if failure.code == "CONFLICT" => {
                    self.view.note("the reply was not sent: another listener of this channel has replied");
                }
                Err(failure) => self.view.note(&format!("the reply was not sent: {}", failure.message)),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// A call to the hub with the channel's key: the data of its response.
    async fn hub(
        &self,
        method: &str,
        path: &str,
        body: &Value,
        mut headers: HeaderMap,
    ) -> Result<Value, Failure> {
        let url = format!("{}{path}", self.server.as_str().trim_end_matches('/'));
        let url = url.parse().map_err(|_| Failure::usage("--server: not a URL"))?;
        let key = HeaderValue::try_from(self.key.as_str()).map_err(|_| Failure::usage("--key: not a key"))?;
        headers.insert(HeaderName::from_static("x-api-key"), key);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let answer = self
            .call(method, &url, headers, bytes, CONNECT_TIMEOUT)
            .await
            .map_err(|failure| failure.with_hint("is the hub running? another address goes into --server"))?;
        let mut document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if answer.status.is_success() && document["success"] == true {
            return Ok(document["data"].take());
        }
        Err(Failure::of_response(&document).unwrap_or_else(|| {
            let mut failure =
                Failure::unreachable(format!("{url} is not a hub: it responded {}", answer.status));
            failure.causes.extend(answer.end.problem());
            failure
        }))
    }

    async fn call(
        &self,
        method: &str,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
        deadline: Duration,
    ) -> Result<Receipt, Failure> {
        let call = Call {
            method: method.parse().map_err(|_| Failure::usage("not a method"))?,
            url: self.egress.check_url(url.as_str())?,
            headers,
            body,
            deadline,
            max_answer: MAX_ANSWER,
        };
        self.egress.receive(call).await.map_err(|error| {
            let mut failure = Failure::unreachable(format!("no response from {url}"));
            failure.causes.push(error.to_string());
            failure
        })
    }
}

/// The meaning of a message: a frame of the hub, nothing to do, or the end.
fn frame(
    message: Option<Result<Message, tokio_tungstenite::tungstenite::Error>>,
) -> Result<Option<Value>, String> {
    match message {
        Some(Ok(Message::Text(text))) => Ok(serde_json::from_str(&text).ok()),
        Some(Ok(Message::Close(Some(close)))) => Err(screen::clean(&close.reason)),
        Some(Ok(Message::Close(None))) | None => Err("it closed the connection".to_owned()),
        Some(Ok(_)) => Ok(None),
        Some(Err(error)) => Err(error.to_string()),
    }
}
