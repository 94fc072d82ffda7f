//! `--host NAME=ADDRESS:PORT`: local servers that stand in for hosts of `@connect`. Nothing else is reachable.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use hub_core::{
    egress::{Call, Egress, EgressConfig},
    local_http::{Cut, LocalService},
    plugins::{Manifest, gate::ConnectGate, request::Reach},
    sandbox::{FetchAnswer, FetchCall, FetchGate, Limits},
};
use url::Url;

use crate::exit::Failure;

/// Maximum size of a response, in bytes.
const MAX_ANSWER: usize = 1 << 20;

/// The hosts with their servers.
#[derive(Clone)]
pub struct Hosts {
    services: HashMap<String, Arc<dyn LocalService>>,
}

impl Hosts {
    pub fn read(written: &[String]) -> Result<Self, Failure> {
        let direct = Egress::new(EgressConfig::default())?.trusted();
        let mut services: HashMap<String, Arc<dyn LocalService>> = HashMap::new();
        for host in written {
            let wrong = || {
                Failure::usage(format!("--host {host}: is not NAME=ADDRESS:PORT"))
                    .with_hint("for example --host api.example.com=127.0.0.1:8123")
            };
            let (name, to) = host.split_once('=').ok_or_else(wrong)?;
            let host_of = |text: &str| Url::parse(&format!("http://{text}/")).ok();
            let name = host_of(name).and_then(|url| url.host_str().map(str::to_owned)).ok_or_else(wrong)?;
            let to = host_of(to).filter(|url| url.path() == "/").ok_or_else(wrong)?;
            services.insert(name, Arc::new(Forward { to, direct: direct.clone() }));
        }
        Ok(Self { services })
    }

    /// Makes the fetches of one run.
    pub fn gate(&self, manifest: &Manifest, webhook: &str) -> Result<impl FetchGate + use<>, Failure> {
        let egress =
            Egress::new(EgressConfig { in_process: self.services.clone(), ..EgressConfig::default() })?;
        let plain_http = webhook.starts_with("http:");
        let connect = ConnectGate::new(egress, &manifest.connects, plain_http);
        Ok(Gate { connect, connects: manifest.connects.clone(), plain_http, hosts: self.clone() })
    }
}

struct Gate {
    connect: ConnectGate,
    connects: Vec<String>,
    plain_http: bool,
    hosts: Hosts,
}

#[async_trait]
impl FetchGate for Gate {
    async fn fetch(&self, call: FetchCall, left: Duration) -> Result<FetchAnswer, String> {
        let reach = Reach { configured: None, connects: &self.connects, plain_http: self.plain_http };
        let url = reach.check(&call.url).map_err(|violation| violation.message)?;
        let host = url.host_str().unwrap_or_default();
        if self.hosts.services.contains_key(host) {
            self.connect.fetch(call, left).await
        } else {
            Err(format!(
                "the debugger has no network access; --host {host}=ADDRESS:PORT names a local server for it"
            ))
        }
    }
}

/// Passes requests on to a local server, without TLS.
struct Forward {
    to: Url,
    direct: Egress,
}

#[async_trait]
impl LocalService for Forward {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let (head, body) = request.into_parts();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let url = self.to.join(path).map_err(|_| Cut)?;
        let call = Call {
            method: head.method,
            url: self.direct.check_url(url.as_str()).map_err(|_| Cut)?,
            headers: head.headers,
            body,
            deadline: Limits::MAX_TIMEOUT,
            max_answer: MAX_ANSWER,
        };
        let answer = self.direct.send(call).await.map_err(|_| Cut)?;
        let mut response = Response::new(answer.body);
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_and_an_address_with_a_port() {
        let read = |host: &str| Hosts::read(&[host.to_owned()]);
        for good in ["api.example.com=127.0.0.1:8123", "n8n:5678=localhost:1", "API.example=[::1]:80"] {
            assert!(read(good).is_ok(), "{good}");
        }
        assert!(
            read("API.example=127.0.0.1:80").is_ok_and(|hosts| hosts.services.contains_key("api.example"))
        );
        for wrong in ["", "api.example.com", "=127.0.0.1:80", "a=", "a=b/c", "a b=c:80", "a=:80"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
