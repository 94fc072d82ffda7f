//! `hub-server health`: checks whether the configured hub can serve, for the health check of a container without a
//! shell.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use bytes::Bytes;
use hub_core::egress::{AllowRule, Answer, Call, Egress, EgressConfig};
use poem::http::{HeaderMap, Method};

/// Less than the five seconds of the Dockerfile's check, so that the reason is reported.
const CHECK_TIMEOUT: Duration = Duration::from_secs(4);
const MAX_ANSWER: usize = 16 * 1024;

/// Requests `/readyz` of the first of these addresses.
///
/// # Errors
/// A message: why no hub can be reached, or why it cannot serve.
pub async fn ask(listen: &[SocketAddr]) -> Result<(), String> {
    let address = dialled(*listen.first().ok_or("no listen address is configured")?);
    if address.port() == 0 {
        return Err(
            "the hub chooses its port at each start; set one with HUB_LISTEN to check its health".to_owned()
        );
    }
    let answer = get(address).await.map_err(|reason| {
        format!(
            "no hub responds at {address}: {reason}\nhint: HUB_LISTEN must be the same here as for the hub"
        )
    })?;
    if answer.status.is_success() {
        return Ok(());
    }
    let reason = reason(&answer.body).unwrap_or_else(|| format!("status {}", answer.status.as_u16()));
    Err(format!("the hub at {address} cannot serve: {reason}"))
}

/// The address at which a listener of this machine is reached.
fn dialled(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

async fn get(address: SocketAddr) -> Result<Answer, String> {
    let allow = vec![AllowRule::HostPort(address.ip().to_string(), address.port())];
    let client = Egress::new(EgressConfig { allow, ..EgressConfig::default() });
    let client = client.map_err(|error| error.to_string())?;
    let url = client.check_url(&format!("http://{address}/readyz")).map_err(|error| error.to_string())?;
    let (headers, body) = (HeaderMap::new(), Bytes::new());
    let call =
        Call { method: Method::GET, url, headers, body, deadline: CHECK_TIMEOUT, max_answer: MAX_ANSWER };
    client.send(call).await.map_err(|error| error.message)
}

/// The message of a refusal.
fn reason(body: &[u8]) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    answer["error"]["message"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_all_addresses_is_asked_on_loopback() {
        let dialled = |listen: &str| super::dialled(listen.parse().unwrap()).to_string();
        assert_eq!(dialled("0.0.0.0:9800"), "127.0.0.1:9800");
        assert_eq!(dialled("[::]:9800"), "[::1]:9800");
        assert_eq!(dialled("192.168.1.5:80"), "192.168.1.5:80");
    }

    #[tokio::test]
    async fn an_unreachable_hub_is_reported() {
        assert!(ask(&[]).await.unwrap_err().contains("no listen address"));
        assert!(ask(&["127.0.0.1:0".parse().unwrap()]).await.unwrap_err().contains("HUB_LISTEN"));
    }

    #[test]
    fn a_refusal_says_why_where_it_can() {
        let refusal =
            br#"{"success":false,"error":{"code":"UNAVAILABLE","message":"the hub is shutting down"}}"#;
        assert_eq!(reason(refusal).as_deref(), Some("the hub is shutting down"));
        assert_eq!(reason(b"<html>"), None);
        assert_eq!(reason(b"{}"), None);
    }
}
