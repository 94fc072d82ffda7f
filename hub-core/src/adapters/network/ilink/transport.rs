//! One HTTP exchange with the network: paths, headers and base information (`docs/ilink.md#endpoints`). Neither URLs
//! nor bodies are logged: both carry secrets.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use data_encoding::BASE64;
use futures_util::TryFutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::{Value, json};
use url::Url;

use super::{IlinkConfig, hosts, reply::Reply};
use crate::{
    egress::{Answer, Call, Egress, EgressError, EgressFault},
    random::Random,
    secret::Secret,
};

/// The largest answer of a poll: a full batch with every field at its longest stays far below.
const MAX_BATCH: usize = 16 * 1024 * 1024;
/// The largest answer of every other call.
const MAX_ANSWER: usize = 256 * 1024;

/// One path of the network's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    BeginLogin,
    LoginStatus,
    NotifyStart,
    NotifyStop,
    GetUpdates,
    SendMessage,
    GetConfig,
    SendTyping,
    GetUploadUrl,
}

impl Endpoint {
    /// The last part of the path, as logged.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::BeginLogin => "get_bot_qrcode",
            Self::LoginStatus => "get_qrcode_status",
            Self::NotifyStart => "msg/notifystart",
            Self::NotifyStop => "msg/notifystop",
            Self::GetUpdates => "getupdates",
            Self::SendMessage => "sendmessage",
            Self::GetConfig => "getconfig",
            Self::SendTyping => "sendtyping",
            Self::GetUploadUrl => "getuploadurl",
        }
    }

    pub(super) fn url(self, base: &Url) -> Url {
        hosts::join(base, &format!("ilink/bot/{}", self.name()))
    }

    const fn max_answer(self) -> usize {
        if matches!(self, Self::GetUpdates) { MAX_BATCH } else { MAX_ANSWER }
    }
}

/// Makes the calls of one account, or of logins. Clones of the egress client share its connections, so
/// [`Transport::reset`] concerns this transport alone.
pub(super) struct Transport {
    config: Arc<IlinkConfig>,
    egress: Mutex<Egress>,
    random: Random,
}

impl Transport {
    pub(super) fn new(config: Arc<IlinkConfig>, egress: Egress, random: Random) -> Self {
        Self { config, egress: Mutex::new(egress), random }
    }

    /// Another transport on the same connections.
    pub(super) fn share(&self) -> Self {
        Self::new(self.config.clone(), self.egress(), self.random.clone())
    }

    pub(super) fn config(&self) -> &IlinkConfig {
        &self.config
    }

    pub(super) fn random(&self) -> &Random {
        &self.random
    }

    /// The `base_info` of every authenticated call.
    pub(super) fn base_info(&self) -> Value {
        json!({ "channel_version": self.config.client_version, "bot_agent": self.config.bot_agent })
    }

    pub(super) fn reset(&self) {
        let fresh = self.egress().fresh();
        *self.egress.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
    }

    /// Prepares a call. What it is made of is dropped before its answer is waited for, half a minute in case of a poll.
    pub(super) fn post(
        &self,
        endpoint: Endpoint,
        url: &Url,
        token: Option<&Secret>,
        body: &Value,
        deadline: Duration,
    ) -> Result<impl Future<Output = Result<Reply, EgressError>> + use<>, EgressError> {
        let mut headers = self.app_headers();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert("authorizationtype", HeaderValue::from_static("ilink_bot_token"));
        insert(&mut headers, "x-wechat-uin", &wechat_uin(u32::from_le_bytes(self.random.bytes())));
        if let Some(token) = token {
            headers.insert(header::AUTHORIZATION, bearer(token)?);
        }
        self.prepare(endpoint, Method::POST, url, headers, body.to_string().into(), deadline)
    }

    /// As [`post`](Self::post), without a login.
    pub(super) fn get(
        &self,
        endpoint: Endpoint,
        url: &Url,
        deadline: Duration,
    ) -> Result<impl Future<Output = Result<Reply, EgressError>> + use<>, EgressError> {
        self.prepare(endpoint, Method::GET, url, self.app_headers(), Bytes::new(), deadline)
    }

    /// A call to the CDN: none of the API's headers, no login.
    pub(super) async fn cdn(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: Bytes,
        deadline: Duration,
        max_answer: usize,
    ) -> Result<Answer, EgressError> {
        let egress = self.egress();
        let url = egress.check_url(url.as_str()).map_err(|error| unsendable(error.message()))?;
        egress.send(Call { method, url, headers, body, deadline, max_answer }).await
    }

    fn prepare(
        &self,
        endpoint: Endpoint,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
        deadline: Duration,
    ) -> Result<impl Future<Output = Result<Reply, EgressError>> + use<>, EgressError> {
        let egress = self.egress();
        let url = egress.check_url(url.as_str()).map_err(|error| unsendable(error.message()))?;
        let call = Call { method, url, headers, body, deadline, max_answer: endpoint.max_answer() };
        Ok(egress.send(call).map_ok(move |answer| Reply::new(endpoint, &answer)))
    }

    fn egress(&self) -> Egress {
        self.egress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The headers of every call, also of those without a login.
    fn app_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        insert(&mut headers, "ilink-app-id", &self.config.app_id);
        insert(
            &mut headers,
            "ilink-app-clientversion",
            &version_number(&self.config.client_version).to_string(),
        );
        if let Some(tag) = &self.config.route_tag {
            insert(&mut headers, "skroutetag", tag);
        }
        headers
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport")
    }
}

/// Inserts a configured value; one that HTTP cannot carry is left out.
fn insert(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

fn bearer(token: &Secret) -> Result<HeaderValue, EgressError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
        .map_err(|_| unsendable("the account's token cannot be put into a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn unsendable(message: &str) -> EgressError {
    EgressError { fault: EgressFault::BlockedAddress, written: false, message: message.to_owned() }
}

/// The value of `X-WECHAT-UIN`: base64 of the decimal digits.
fn wechat_uin(number: u32) -> String {
    BASE64.encode(number.to_string().as_bytes())
}

/// The value of `iLink-App-ClientVersion`: the three parts of a version, eight bits each.
fn version_number(version: &str) -> u32 {
    let mut parts = version.split(['.', '-', '+']).map(|part| part.parse::<u32>().unwrap_or(0) & 0xff);
    let mut next = || parts.next().unwrap_or(0);
    next() << 16 | next() << 8 | next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_values_match_the_published_vectors() {
        for (number, text) in [(305_419_896, "MzA1NDE5ODk2"), (0, "MA=="), (u32::MAX, "NDI5NDk2NzI5NQ==")] {
            assert_eq!(wechat_uin(number), text);
        }
        for (version, number) in
            [("2.4.9", 132_105), ("1.0.11", 65_547), ("0.3.0", 768), ("1.2.3-rc.1", 66_051), ("x", 0)]
        {
            assert_eq!(version_number(version), number, "{version}");
        }
    }
}
