//! The API of a hub whose files are open, called without a socket. The caller is the operator, who may see and change
//! what belongs to every user, unless another one is named.

use http::header;
use hub_core::{Hub, access::Actor};
use hub_server::{AppSettings, InProcess, rate_limit::RateLimitSettings, settings::Values};
use serde_json::Value;
use url::Url;

use super::Request;
use crate::exit::Failure;

/// A hub on this machine.
#[derive(Debug, Clone)]
pub struct InProcessClient {
    api: InProcess,
    base: Url,
    pub hub: Hub,
    actor: Actor,
}

impl InProcessClient {
    pub fn new(hub: Hub) -> Self {
        let base = hub.context().config.public_url.clone();
        let values = Values { rate_limits: RateLimitSettings::UNLIMITED, ..Values::new(base.clone()) };
        let api = InProcess::new(hub.clone(), AppSettings::from(values));
        Self { api, base, hub, actor: Actor::Operator }
    }

    /// The same hub with another caller.
    pub fn acting_as(&self, actor: Actor) -> Self {
        Self { actor, ..self.clone() }
    }

    pub async fn exchange(&self, request: Request<'_>) -> Result<Value, Failure> {
        let Request { method, path, .. } = request;
        let mut url = request.url(&self.base);
        // The paths of the API itself, whatever the path of the public URL.
        url.set_path(path);
        let made = http::Request::builder()
            .method(method)
            .uri(url.as_str())
            .header(header::CONTENT_TYPE, request.content_type())
            .body(request.bytes())
            .map_err(|error| Failure::usage(error.to_string()))?;
        let response = self.api.call(self.actor, made).await?;
        serde_json::from_slice(response.body())
            .map_err(|error| hub_core::Error::internal(format!("{method} {path}: {error}")).into())
    }
}
