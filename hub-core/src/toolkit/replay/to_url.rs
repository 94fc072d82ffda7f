//! Straight to a URL, past the hub.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Method as HttpMethod, header::AUTHORIZATION};

use super::{
    Carried, Carrier, NotSent, Outcome, RecordedRequest, Recording,
    plugins::{Answered, Left, Script},
};
use crate::{
    egress::{Answer, Call, CheckedUrl, Egress, headers::check_name},
    redact::{MASK, Redactor},
    sandbox::Sandbox,
    secret::Secret,
    signing::{self, Method, Signing, WEBHOOK_ID, WEBHOOK_SIGNATURE, X_SIGNATURE},
    time::Clock,
};

/// Timeout of a receiver, as for a webhook.
const DEADLINE: Duration = Duration::from_secs(30);
/// Largest response that is read, in bytes.
const MAX_ANSWER: usize = 1 << 20;

/// The request to send.
#[derive(Debug, Clone)]
pub enum Mode {
    /// The recorded request, byte for byte as far as it was recorded: secrets are `***` in its body, and headers that
    /// held one are left out.
    AsRecorded,
    /// The recorded request, signed now with the method of the channel. `webhook-id` is kept, so that a receiver that
    /// deduplicates recognises the message.
    Resign(Secret),
    /// The request that these plugins, in order, make of the message. It is signed if there is a secret and the
    /// plugins keep the origin of the target.
    ThroughPlugins {
        /// Runs them. `ctx.fetch` reaches nothing.
        sandbox: Sandbox,
        /// At least one.
        scripts: Vec<Script>,
        /// The channel's.
        secret: Option<Secret>,
    },
}

/// Sends recordings from this process, to one URL or each to its own.
#[derive(Debug)]
pub struct ToUrl {
    egress: Egress,
    target: Option<CheckedUrl>,
    mode: Mode,
    clock: Clock,
}

/// A request that is ready.
struct Prepared {
    call: Call,
    left: Option<Left>,
}

impl ToUrl {
    /// Sends to `target`, or without one to the recorded URLs.
    pub fn new(egress: Egress, target: Option<CheckedUrl>, mode: Mode, clock: Clock) -> Self {
        Self { egress, target, mode, clock }
    }

    async fn prepare(&self, recording: &Recording) -> Result<Prepared, NotSent> {
        match &self.mode {
            Mode::AsRecorded => self.recorded(recording, None),
            Mode::Resign(secret) => self.recorded(recording, Some(secret)),
            Mode::ThroughPlugins { sandbox, scripts, secret } => {
                let url = match &self.target {
                    Some(target) => target.clone(),
                    None => self.own_target(&recorded_request(recording)?)?,
                };
                let left = Left::of(sandbox, scripts, recording, url.as_url()).await?;
                self.prepared_by_plugins(recording, &url, left, secret.as_ref())
            }
        }
    }

    fn recorded(&self, recording: &Recording, secret: Option<&Secret>) -> Result<Prepared, NotSent> {
        let request = recorded_request(recording)?;
        if request.is_cut() {
            return Err(impossible("only the first 64 KiB of its body were recorded"));
        }
        let url = match &self.target {
            Some(target) => target.clone(),
            None => self.own_target(&request)?,
        };
        let body = Bytes::from(request.body.clone());
        let mut headers = request.headers.clone();
        if let Some(secret) = secret {
            headers.extend(self.signed(recording, Some(&request), secret, &body)?);
        }
        Ok(Prepared { call: call(request.method, url, headers, body), left: None })
    }

    fn prepared_by_plugins(
        &self,
        recording: &Recording,
        target: &CheckedUrl,
        left: Left,
        secret: Option<&Secret>,
    ) -> Result<Prepared, NotSent> {
        let refused = |error: crate::Error| impossible(error.message());
        let url = self.egress.check_url(&left.request.url).map_err(refused)?;
        let body = Bytes::from(left.request.body.text().to_owned());
        let mut headers = left.headers()?;
        // As in a delivery: a request that a plugin sent to another origin carries no credentials there.
        if let Some(secret) = secret
            && url.as_url().origin() == target.as_url().origin()
        {
            headers.extend(self.signed(recording, recording.request().as_ref(), secret, &body)?);
        }
        let method = left.request.method.parse().map_err(|_| impossible("a plugin chose no HTTP method"))?;
        Ok(Prepared { call: call(method, url, headers, body), left: Some(left) })
    }

    fn own_target(&self, request: &RecordedRequest) -> Result<CheckedUrl, NotSent> {
        if request.url.contains(MASK) {
            return Err(impossible("its URL holds a secret, which is not recorded: name another URL"));
        }
        self.egress.check_url(&request.url).map_err(|error| impossible(error.message()))
    }

    fn signed(
        &self,
        recording: &Recording,
        request: Option<&RecordedRequest>,
        secret: &Secret,
        body: &[u8],
    ) -> Result<HeaderMap, NotSent> {
        let known = request.and_then(|request| request.headers.get(WEBHOOK_ID)?.to_str().ok());
        let id = known.map_or_else(|| recording.trace.trace_id.to_string(), str::to_owned);
        let signing = Signing {
            method: &request.map_or(Method::Hmac, method_of),
            secret: Some(&secret.into()),
            previous: None,
            id: &id,
            at: self.clock.now(),
            attempt: 1,
            body,
        };
        signing::headers(&signing)
            .map_err(|error| impossible(format!("the secret {}", error.details()[0].reason)))
    }

    async fn carried(&self, prepared: Prepared, recording: &Recording) -> Carried {
        let Prepared { call, left } = prepared;
        let answer = match self.egress.send(call).await {
            Ok(answer) => answer,
            Err(error) => return Carried::failed(format!("{}: {}", error.fault.as_str(), error.message)),
        };
        let status = answer.status.as_u16();
        let mut carried = Carried {
            outcome: if answer.status.is_success() { Outcome::Ok } else { Outcome::Fail },
            status: Some(status),
            body: Redactor::default().body(&answer.body),
            reason: format!("status {status}"),
            new_trace_id: None,
            replies: Vec::new(),
        };
        if let (Some(left), Mode::ThroughPlugins { sandbox, scripts, .. }) = (left, &self.mode) {
            let Answered { replies, failures } =
                left.answered(sandbox, scripts, recording, &answer_of(&answer)).await;
            carried.replies = replies;
            for failure in failures {
                carried.reason = format!("{}; {failure}", carried.reason);
            }
        }
        carried
    }
}

#[async_trait]
impl Carrier for ToUrl {
    async fn target(&self, recording: &Recording) -> Result<String, NotSent> {
        let Call { method, url, body, .. } = self.prepare(recording).await?.call;
        Ok(format!("{method} {}, {} bytes", Redactor::default().url(url.as_url()), body.len()))
    }

    async fn carry(&self, recording: &Recording) -> Carried {
        match self.prepare(recording).await {
            Ok(prepared) => self.carried(prepared, recording).await,
            Err(why) => why.into(),
        }
    }
}

fn call(method: HttpMethod, url: CheckedUrl, headers: HeaderMap, body: Bytes) -> Call {
    Call { method, url, headers, body, deadline: DEADLINE, max_answer: MAX_ANSWER }
}

fn answer_of(answer: &Answer) -> crate::plugins::debug::DebugResponse {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers =
        answer.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes())));
    crate::plugins::debug::DebugResponse {
        status: answer.status.as_u16(),
        headers: headers.collect(),
        body: text(&answer.body),
    }
}

fn recorded_request(recording: &Recording) -> Result<RecordedRequest, NotSent> {
    recording.request().ok_or_else(|| NotSent::Nothing("nothing was sent to a webhook".to_owned()))
}

fn impossible(reason: impl Into<String>) -> NotSent {
    NotSent::Impossible(reason.into())
}

/// Determines the authentication method of the channel from the masked headers.
fn method_of(request: &RecordedRequest) -> Method {
    if request.masks(X_SIGNATURE.as_str()) {
        return Method::Hmac;
    }
    if request.masks(AUTHORIZATION.as_str()) {
        return Method::Bearer;
    }
    let others: Vec<_> =
        request.masked.iter().filter(|name| name.as_str() != WEBHOOK_SIGNATURE.as_str()).collect();
    match others.as_slice() {
        [] if request.masks(WEBHOOK_SIGNATURE.as_str()) => Method::None,
        [name] => check_name(name).map_or(Method::Hmac, |name| Method::Header { name }),
        _ => Method::Hmac,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::recording::tests::{FIRST, recording};

    #[test]
    fn the_masked_headers_say_how_the_channel_signed() {
        let mut request = recording(FIRST, "x").request().unwrap();
        let mut method = |masked: &[&str]| {
            request.masked = masked.iter().map(|name| (*name).to_owned()).collect();
            method_of(&request)
        };
        assert_eq!(method(&["x-signature", "authorization", "webhook-signature"]), Method::Hmac);
        assert_eq!(method(&["webhook-signature", "authorization"]), Method::Bearer);
        assert_eq!(method(&["webhook-signature"]), Method::None);
        assert_eq!(method(&[]), Method::Hmac);
        let own = Method::Header { name: "x-custom-auth".parse().unwrap() };
        assert_eq!(method(&["webhook-signature", "x-custom-auth"]), own);
        assert_eq!(method(&["x-a-key", "x-b-key"]), Method::Hmac, "which of them cannot be known");
    }
}
