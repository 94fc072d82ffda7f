//! Readers of single values; a refusal is half a sentence that follows the value.

use std::net::SocketAddr;

use hub_core::{config::Registration, data_dir, secret::Secret};

use super::Networks;
use crate::client::ProxyHeader;

pub(super) fn read_key(key: &Secret) -> Result<[u8; 32], String> {
    data_dir::parse_key(key).map_err(|error| {
        error.details().first().map_or_else(|| error.to_string(), |detail| detail.reason.to_string())
    })
}

/// `127.0.0.1:9800`, `[::1]:9800`, or `localhost:9800` for both.
pub(super) fn read_listen(text: &str) -> Result<Vec<SocketAddr>, String> {
    if let Some(port) = text.strip_prefix("localhost:").and_then(|port| port.parse::<u16>().ok()) {
        return Ok(vec![
            SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, port)),
            SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, port)),
        ]);
    }
    let address = text.parse().map(|address| vec![address]);
    address.map_err(|_| "must be an address with a port, like 127.0.0.1:9800 or [::]:9800".to_owned())
}

pub(super) fn read_connections(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "must be a number of connections from 1 on".to_owned())
}

pub(super) fn read_networks(text: &str) -> Result<Networks, String> {
    match text {
        "sim" => Ok(Networks { sim: true, ilink: false }),
        "ilink" => Ok(Networks { sim: false, ilink: true }),
        "both" => Ok(Networks { sim: true, ilink: true }),
        _ => Err("must be sim, ilink or both".to_owned()),
    }
}

pub(super) fn read_proxy_header(text: &str) -> Result<ProxyHeader, String> {
    match text.to_ascii_lowercase().as_str() {
        "x-forwarded-for" => Ok(ProxyHeader::XForwardedFor),
        "forwarded" => Ok(ProxyHeader::Forwarded),
        _ => Err("must be x-forwarded-for or forwarded".to_owned()),
    }
}

pub(super) fn read_registration(text: &str) -> Result<Registration, String> {
    match text {
        "open" => Ok(Registration::Open),
        "invite" => Ok(Registration::Invite),
        "closed" => Ok(Registration::Closed),
        _ => Err("must be open, invite or closed".to_owned()),
    }
}
