//! The control API `/_sim/…`: actions of people on their phones, and the messages that bots sent, in JSON.
//!
//! Answers are bare objects. Errors are `{"error":{"code","message"}}` under the code's usual HTTP status, and
//! change nothing. Requests of web pages are refused. The calls are listed in `docs/ilink.md#control-api`.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{MAX_LISTED, Simulator, faults::Fault, qr::QrAction};
use crate::{
    error::{Error, ErrorCode, Result},
    local_http::{refuse_other_pages, require_json},
    network::server::{Reply, parse_query},
};

/// Largest body of a control call: bulk injection serves load tests.
pub(super) const MAX_CONTROL_BODY: usize = 16 << 20;
/// Path prefix of the control API.
pub(super) const CONTROL: &str = "/_sim/";

/// Longest wait for a send.
const MAX_WAIT_MS: u64 = 60_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scan {
    qr_text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Confirm {
    qr_text: String,
    user_id: Option<String>,
}

#[derive(Deserialize)]
struct MoveQr {
    qr_text: String,
    #[serde(flatten)]
    action: QrAction,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    advance_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expire {
    wx_id: String,
}

impl Simulator {
    /// Whether a request makes the simulator forget everything.
    pub fn is_reset(request: &Request<Bytes>) -> bool {
        request.method() == Method::POST && request.uri().path().strip_prefix(CONTROL) == Some("reset")
    }

    /// Answers a control call.
    pub(super) async fn control(&self, request: &Request<Bytes>) -> Reply {
        if let Err(error) = self.check_caller(request) {
            return refuse(&error);
        }
        let name = request.uri().path().strip_prefix(CONTROL).unwrap_or_default();
        let query = Query(parse_query(request.uri().query()));
        let answer = match (request.method(), name) {
            (&Method::GET, "outbound") => self.list_outbound(&query).await,
            (&Method::GET, "typing") => Ok(json!({"items": self.typing(query.text("wx_id"))})),
            (&Method::GET, "violations") => Ok(json!({"items": self.violations(query.text("wx_id"))})),
            (&Method::GET, "accounts") => Ok(json!({"items": self.accounts()})),
            (&Method::GET, "contacts") => Ok(json!({"items": self.contacts(query.text("wx_id"))})),
            (&Method::GET, "faults") => Ok(json!({"items": self.faults()})),
            (&Method::DELETE, "faults") => query.number("id").map(|id| {
                self.clear_faults(id);
                json!({})
            }),
            (&Method::POST, "reset") => {
                self.reset();
                Ok(json!({}))
            }
            (&Method::POST, name) => self.change(name, request.body()),
            _ => Err(Error::not_found("control call")),
        };
        answer.map_or_else(|error| refuse(&error), |answer| Reply::json(&answer))
    }

    /// Refuses web pages: visiting one is no consent to use the simulator.
    fn check_caller(&self, request: &Request<Bytes>) -> Result<()> {
        refuse_other_pages(request.headers(), self.config().public_url.as_deref())?;
        require_json(request.headers(), request.body())
    }

    fn change(&self, name: &str, body: &[u8]) -> Result<Value> {
        match name {
            "scan" => {
                self.scan(&read::<Scan>(body)?.qr_text)?;
            }
            "confirm" => {
                let Confirm { qr_text, user_id } = read(body)?;
                return Ok(json!(self.confirm(&qr_text, user_id.as_deref())?));
            }
            "qr" => {
                let MoveQr { qr_text, action } = read(body)?;
                self.qr(&qr_text, action)?;
            }
            "messages" => {
                let messages = one_or_many(read(body)?, "messages")?;
                return Ok(json!({"message_ids": self.inject_all(messages)?}));
            }
            "faults" => {
                let faults = one_or_many(read(body)?, "faults")?.into_iter().map(to_fault);
                return Ok(json!({"ids": self.add_faults(faults.collect::<Result<_>>()?)?}));
            }
            "clock" => self.advance(Duration::from_millis(read::<Advance>(body)?.advance_ms))?,
            "expire" => self.expire(&read::<Expire>(body)?.wx_id)?,
            _ => return Err(Error::not_found("control call")),
        }
        Ok(json!({}))
    }

    async fn list_outbound(&self, query: &Query) -> Result<Value> {
        let after = query.number("after")?.unwrap_or(0);
        let limit = query.number("limit")?.map_or(100, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let wait = Duration::from_millis(query.number("wait_ms")?.unwrap_or(0).min(MAX_WAIT_MS));
        let items = self.wait_listed(query.text("wx_id"), after, limit.clamp(1, MAX_LISTED), wait).await;
        let next = items.last().map_or(after, |item| item.n);
        Ok(json!({"items": items, "next": next}))
    }
}

struct Query(Vec<(String, String)>);

impl Query {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &'static str) -> Result<Option<u64>> {
        let parse = |text: &str| text.parse().map_err(|_| Error::invalid(name, "must be a number"));
        self.text(name).map(parse).transpose()
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    if body.len() > MAX_CONTROL_BODY {
        return Err(Error::new(ErrorCode::PayloadTooLarge, "the body exceeds 16 MiB"));
    }
    serde_json::from_slice(body).map_err(|error| Error::invalid("body", error.to_string()))
}

/// The list under `name`, or the object itself as the only one.
fn one_or_many(body: Value, name: &'static str) -> Result<Vec<Value>> {
    match body {
        Value::Object(mut object) => match object.remove(name) {
            None => Ok(vec![Value::Object(object)]),
            Some(Value::Array(many)) if object.is_empty() => Ok(many),
            Some(_) => Err(Error::invalid(name, "must be a list, and the only field")),
        },
        _ => Err(Error::invalid("body", "must be an object")),
    }
}

fn to_fault(value: Value) -> Result<Fault> {
    serde_json::from_value(value).map_err(|error| Error::invalid("faults", error.to_string()))
}

fn refuse(error: &Error) -> Reply {
    let body = json!({"error": {"code": error.code().as_str(), "message": error.message()}});
    let status = match error.code() {
        ErrorCode::Forbidden => StatusCode::FORBIDDEN,
        ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::Conflict => StatusCode::CONFLICT,
        ErrorCode::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        _ => StatusCode::BAD_REQUEST,
    };
    Reply { status, ..Reply::json(&body) }
}

#[cfg(test)]
mod tests;
