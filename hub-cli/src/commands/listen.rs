//! `listen`: a channel's messages, posted to a URL on this machine as the webhook sink would post them.
//!
//! It follows the channel by long polls, so that the cursor is the acknowledgement: a message counts as taken
//! when the local URL answered it, and comes again when this program was stopped before that.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use hub_core::{
    delivery::signing::{self, Method, Signing},
    egress::{Answer, Call, CheckedHeaders, Egress, EgressConfig},
    random::Random,
    secret::Secret,
    time::Clock,
};
use serde_json::{Map, Value, json};
use url::Url;

use crate::{
    args::ListenArgs,
    exit::{Exit, Failure},
    printer::{Printer, Tone},
    screen,
};

pub const FIELDS: [&str; 4] = ["seq", "id", "status", "reply"];

/// Seconds of one poll.
const POLL: u64 = 25;
/// How much longer the hub may take to answer one.
const SLACK: Duration = Duration::from_secs(15);
/// How long the local URL may take, as for a webhook.
const ANSWER: Duration = Duration::from_secs(30);
/// Pause before a hub that does not answer is asked again.
const AGAIN: Duration = Duration::from_secs(1);
/// Largest answer that is read.
const MAX_ANSWER: usize = 64 << 20;
/// The fields of a webhook's body.
const PAYLOAD: [&str; 10] = [
    "type",
    "content",
    "sender",
    "sessionID",
    "contextToken",
    "msg_type",
    "timestamp",
    "bot_id",
    "channel_id",
    "quoted",
];

struct Listen {
    args: ListenArgs,
    egress: Egress,
    clock: Clock,
    secret: Secret,
    extra: HeaderMap,
}

pub async fn run(args: ListenArgs, printer: &Printer) -> Result<(), Failure> {
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
    // The operator named both addresses: the rule against private ones is not for them.
    let egress = Egress::new(EgressConfig::default())?.trusted()?;
    let listen = Listen { egress, clock: Clock::system(), secret, extra, args };
    listen.follow(printer).await
}

impl Listen {
    async fn follow(&self, printer: &Printer) -> Result<(), Failure> {
        // A wrong key, or nobody at all, ends it here.
        let status =
            self.hub("GET", "/api/v1/channels/status", &Value::Null, Duration::from_secs(10)).await?;
        if self.args.print_secret {
            printer.note(&format!("signing secret: {}", self.secret.expose()));
        }
        let name = screen::clean(status["channel_name"].as_str().unwrap_or_default());
        Printer::ready(&format!("ready channel={name} forward={}", self.args.forward_to));
        let mut cursor = String::new();
        loop {
            let path = format!("/api/v1/channels/messages?timeout={POLL}{cursor}");
            let page = match self.hub("GET", &path, &Value::Null, Duration::from_secs(POLL) + SLACK).await {
                Ok(page) => page,
                Err(failure) if failure.exit == Exit::Unreachable || failure.code == "RATE_LIMITED" => {
                    printer.note(&format!("lost the hub: {}; trying again", failure.message));
                    self.clock.sleep(AGAIN).await;
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            for message in page["items"].as_array().into_iter().flatten() {
                self.forward(message, printer).await?;
            }
            if let Some(next) = page["next_cursor"].as_str() {
                cursor = format!("&cursor={next}");
            }
        }
    }

    /// Posts one message and sends the reply that comes back.
    async fn forward(&self, message: &Value, printer: &Printer) -> Result<(), Failure> {
        let mut payload: Map<String, Value> = PAYLOAD
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), message.get(*name)?.clone())))
            .collect();
        if message["msg_type"] != 1 {
            payload.insert("items".to_owned(), message["items"].clone());
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
        let answer = self.call("POST", &self.args.forward_to, headers, body, ANSWER).await;
        let seq = &message["seq"];
        let text = screen::fit(&screen::clean(message["content"].as_str().unwrap_or_default()), 40);
        let (status, first, reply) = match &answer {
            Ok(answer) => {
                let body = String::from_utf8_lossy(&answer.body);
                let json: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                let reply = json["reply"].as_str().filter(|_| answer.status.is_success()).map(str::to_owned);
                let first = screen::clean(body.lines().next().unwrap_or_default());
                (answer.status.as_u16(), first, reply)
            }
            Err(failure) => (0, failure.causes.first().cloned().unwrap_or_default(), None),
        };
        let tone = if (200..300).contains(&status) { Tone::Good } else { Tone::Bad };
        let told = if status == 0 { "no answer".to_owned() } else { status.to_string() };
        let line = format!("{seq}  {}  {text}  {}", printer.paint(&told, tone), screen::fit(&first, 60));
        printer.one(json!({ "seq": seq, "id": message["id"], "status": status, "reply": reply }), &line)?;
        if let Some(reply) = reply {
            let send = json!({ "to_user_id": message["sender"]["user_id"], "content": reply });
            let path = "/api/v1/channels/send";
            if let Err(failure) = self.hub("POST", path, &send, Duration::from_secs(10)).await {
                printer.note(&format!("the reply was not sent: {}", failure.message));
            }
        }
        Ok(())
    }

    /// A call to the hub with the channel's key: the data of its answer.
    async fn hub(&self, method: &str, path: &str, body: &Value, limit: Duration) -> Result<Value, Failure> {
        let url = format!("{}{path}", self.args.server.as_str().trim_end_matches('/'));
        let url = url.parse().map_err(|_| Failure::usage("--server: not a URL"))?;
        let mut headers = HeaderMap::new();
        let key =
            HeaderValue::try_from(self.args.key.as_str()).map_err(|_| Failure::usage("--key: not a key"))?;
        headers.insert(HeaderName::from_static("x-api-key"), key);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let answer = self
            .call(method, &url, headers, bytes, limit)
            .await
            .map_err(|failure| failure.with_hint("is the hub running? another address goes into --server"))?;
        let mut document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if answer.status.is_success() && document["success"] == true {
            return Ok(document["data"].take());
        }
        let code = document["error"]["code"].as_str().unwrap_or_default();
        let Some(code) = hub_core::ErrorCode::ALL.into_iter().find(|known| known.as_str() == code) else {
            return Err(Failure::unreachable(format!("{url} is no hub: it answered {}", answer.status)));
        };
        let message = document["error"]["message"].as_str().unwrap_or("the hub refused");
        let exit =
            if answer.status == StatusCode::UNAUTHORIZED { Exit::Denied } else { crate::exit::exit_of(code) };
        Err(Failure::new(exit, code.as_str(), message))
    }

    async fn call(
        &self,
        method: &str,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
        deadline: Duration,
    ) -> Result<Answer, Failure> {
        let call = Call {
            method: method.parse().map_err(|_| Failure::usage("not a method"))?,
            url: self.egress.check_url(url.as_str())?,
            headers,
            body,
            deadline,
            max_answer: MAX_ANSWER,
        };
        self.egress.send(call).await.map_err(|error| {
            let mut failure = Failure::unreachable(format!("nobody answers at {url}"));
            failure.causes.push(error.to_string());
            failure
        })
    }
}
