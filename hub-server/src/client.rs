//! Who is at the other end of the connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use poem::{FromRequest, Request, RequestBody, http::header};

/// The caller's address and program; the edge puts it into every request, handlers take it as an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Address of the caller, behind trusted proxies the one they saw.
    pub ip: IpAddr,
    /// `User-Agent`, cut to 256 characters, without control characters.
    pub user_agent: Option<String>,
}

impl Client {
    /// Reads the caller from a request. `X-Forwarded-For` counts only when the peer is a trusted proxy, and
    /// then the right-most hop that is not one (reliability N8).
    pub(crate) fn of(request: &Request, trusted: &[IpNet]) -> Self {
        let peer = request.remote_addr().as_socket_addr().map(std::net::SocketAddr::ip);
        let peer = peer.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)).to_canonical();
        let forwarded = request.headers().get_all("x-forwarded-for").iter();
        let hops: Vec<_> = forwarded
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(|hop| hop.trim().parse::<IpAddr>().map(|ip| ip.to_canonical()))
            .collect();
        let user_agent = request
            .header(header::USER_AGENT)
            .map(|text| text.chars().filter(|c| !c.is_control()).take(256).collect());
        Self { ip: right_most_untrusted(peer, &hops, trusted), user_agent }
    }

    /// What one limit applies to: an IPv4 address, or the /64 one IPv6 subscriber gets.
    pub(crate) fn network(&self) -> IpAddr {
        network(self.ip)
    }
}

/// The IPv4 address itself, or the /64 of an IPv6 address.
pub(crate) fn network(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
    }
}

impl From<Client> for hub_core::accounts::ClientInfo {
    fn from(client: Client) -> Self {
        Self { ip: Some(client.ip), user_agent: client.user_agent.unwrap_or_default() }
    }
}

fn right_most_untrusted<E>(peer: IpAddr, hops: &[Result<IpAddr, E>], trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |ip: &IpAddr| trusted.iter().any(|net| net.contains(ip));
    let mut nearest = peer;
    for hop in hops.iter().rev() {
        if !is_trusted(&nearest) {
            break;
        }
        match hop {
            Ok(ip) => nearest = *ip,
            // A hop nobody can read ends the chain of trust at the proxy that reported it.
            Err(_) => break,
        }
    }
    nearest
}

impl<'a> FromRequest<'a> for Client {
    async fn from_request(request: &'a Request, _: &mut RequestBody) -> poem::Result<Self> {
        Ok(request.data::<Self>().cloned().unwrap_or_else(|| Self::of(request, &[])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(forwarded: &[&str], trusted: &[&str]) -> String {
        let mut request = Request::builder();
        for value in forwarded {
            request = request.header("x-forwarded-for", *value);
        }
        let trusted: Vec<IpNet> = trusted.iter().map(|net| net.parse().unwrap()).collect();
        Client::of(&request.finish(), &trusted).ip.to_string()
    }

    #[test]
    fn forwarded_headers_count_only_from_trusted_proxies() {
        // The peer of a request without a socket is 0.0.0.0.
        assert_eq!(seen(&["9.9.9.9"], &[]), "0.0.0.0");
        assert_eq!(seen(&["9.9.9.9"], &["10.0.0.0/8"]), "0.0.0.0");
        let proxies = ["0.0.0.0/32", "10.0.0.0/8"];
        assert_eq!(seen(&[], &proxies), "0.0.0.0");
        assert_eq!(seen(&["9.9.9.9"], &proxies), "9.9.9.9");
        assert_eq!(seen(&["1.1.1.1, 9.9.9.9"], &proxies), "9.9.9.9", "what a client wrote is not believed");
        assert_eq!(seen(&["1.1.1.1", "9.9.9.9, 10.0.0.7"], &proxies), "9.9.9.9");
        assert_eq!(seen(&["1.1.1.1, garbage, 10.0.0.7"], &proxies), "10.0.0.7");
        assert_eq!(seen(&["10.0.0.8, 10.0.0.7"], &proxies), "10.0.0.8");
    }

    #[test]
    fn one_ipv6_subscriber_is_one_network() {
        let at = |ip: &str| Client { ip: ip.parse().unwrap(), user_agent: None }.network();
        assert_eq!(at("2001:db8:1:2:3:4:5:6"), at("2001:db8:1:2:ffff::1"));
        assert_ne!(at("2001:db8:1:2::1"), at("2001:db8:1:3::1"));
        assert_ne!(at("10.0.0.1"), at("10.0.0.2"));
    }
}
