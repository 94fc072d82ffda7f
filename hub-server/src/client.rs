//! The client of a connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;
use poem::{
    FromRequest, Request, RequestBody,
    http::{HeaderMap, header},
};

/// Address and user agent of the client; the edge adds it to every request, handlers take it as an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Client address; behind trusted proxies, the one that they report.
    pub ip: IpAddr,
    /// `User-Agent`, cut to 256 characters, without control characters.
    pub user_agent: Option<String>,
}

/// The header in which trusted proxies report the client address. The other one is ignored: it may come from the
/// client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProxyHeader {
    /// `X-Forwarded-For`.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

impl ProxyHeader {
    /// The hops, as the proxies appended them; `None` is an unreadable one.
    fn hops(self, headers: &HeaderMap) -> Vec<Option<IpAddr>> {
        let name = match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
        };
        let hops = headers.get_all(name).iter().flat_map(|value| -> Vec<Option<IpAddr>> {
            // Bytes that are not text make the hop that they are in unreadable.
            let value = &*String::from_utf8_lossy(value.as_bytes());
            match self {
                Self::XForwardedFor => value.split(',').map(address).collect(),
                Self::Forwarded => rfc7239::parse(value).map(|hop| forwarded_for(hop.ok()?)).collect(),
            }
        });
        hops.map(|hop| hop.map(|ip| ip.to_canonical())).collect()
    }
}

/// The address of a hop of `X-Forwarded-For`, as the proxies of the world write it: bare, with a port, in brackets, in
/// quotes.
fn address(hop: &str) -> Option<IpAddr> {
    let hop = hop.trim();
    let hop = hop.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(hop).trim();
    let bare = hop.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(hop);
    // Of an address of one link, only the machine that has the link knows the zone.
    let bare = bare.split_once('%').map_or(bare, |(address, _)| address);
    bare.parse().ok().or_else(|| hop.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

fn forwarded_for(hop: rfc7239::Forwarded<'_>) -> Option<IpAddr> {
    match hop.forwarded_for?.name {
        rfc7239::NodeName::Ip(ip) => Some(ip),
        rfc7239::NodeName::Unknown | rfc7239::NodeName::Obfuscated(_) => None,
    }
}

impl Client {
    /// Reads the client from a request. Headers of proxies count only if the peer is a trusted one; the client is
    /// then the right-most hop that is not.
    pub(crate) fn of(request: &Request, trusted: &[IpNet], said_in: ProxyHeader) -> Self {
        let peer = request.remote_addr().as_socket_addr().map(SocketAddr::ip);
        let peer = peer.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)).to_canonical();
        let hops = said_in.hops(request.headers());
        let user_agent = request
            .headers()
            .get(header::USER_AGENT)
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .map(|text| text.chars().filter(|c| !c.is_control()).take(256).collect());
        Self { ip: right_most_untrusted(peer, &hops, trusted), user_agent }
    }

    /// Key of a rate limit: an IPv4 address, or the /64 of an IPv6 subscriber.
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

fn right_most_untrusted(peer: IpAddr, hops: &[Option<IpAddr>], trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |ip: &IpAddr| trusted.iter().any(|net| net.contains(ip));
    let mut nearest = peer;
    for hop in hops.iter().rev() {
        if !is_trusted(&nearest) {
            break;
        }
        match hop {
            Some(ip) => nearest = *ip,
            // An unreadable hop ends the chain of trust at the proxy that reported it.
            None => break,
        }
    }
    nearest
}

impl<'a> FromRequest<'a> for Client {
    async fn from_request(request: &'a Request, _: &mut RequestBody) -> poem::Result<Self> {
        Ok(request.data::<Self>().cloned().unwrap_or_else(|| Self::of(request, &[], ProxyHeader::default())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen_in(header: &str, said_in: ProxyHeader, forwarded: &[&str], trusted: &[&str]) -> String {
        let mut request = Request::builder();
        for value in forwarded {
            request = request.header(header, *value);
        }
        let trusted: Vec<IpNet> = trusted.iter().map(|net| net.parse().unwrap()).collect();
        Client::of(&request.finish(), &trusted, said_in).ip.to_string()
    }

    fn seen(forwarded: &[&str], trusted: &[&str]) -> String {
        seen_in("x-forwarded-for", ProxyHeader::XForwardedFor, forwarded, trusted)
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
    fn a_hop_is_read_however_the_proxy_writes_it() {
        let proxies = ["0.0.0.0/32", "10.0.0.0/8"];
        for (hop, ip) in [
            ("1.2.3.4:51008", "1.2.3.4"),
            (" 1.2.3.4 ", "1.2.3.4"),
            ("\"1.2.3.4:80\"", "1.2.3.4"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("\"[2001:db8::1]\"", "2001:db8::1"),
            ("\"[2001:db8::1]:443\"", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("2001:DB8:0::1", "2001:db8::1"),
            ("fe80::1%eth0", "fe80::1"),
            ("::ffff:1.2.3.4", "1.2.3.4"),
            ("[::ffff:1.2.3.4]:5", "1.2.3.4"),
        ] {
            assert_eq!(seen(&[hop], &proxies), ip);
            assert_eq!(seen(&[&format!("9.9.9.9, {hop},10.0.0.7:99")], &proxies), ip);
            assert_eq!(seen(&["9.9.9.9", hop, "10.0.0.7"], &proxies), ip);
        }
        for unreadable in
            ["unknown", "", "_hidden", "1.2.3.4:x", "1.2.3", "[2001:db8::1", "1.2.3.4:51008:1", "\u{e9}"]
        {
            assert_eq!(
                seen(&[&format!("9.9.9.9, {unreadable}, 10.0.0.7")], &proxies),
                "10.0.0.7",
                "{unreadable}"
            );
        }
    }

    #[test]
    fn the_forwarded_header_counts_if_it_is_configured() {
        let seen = |forwarded: &[&str], trusted: &[&str]| {
            seen_in("forwarded", ProxyHeader::Forwarded, forwarded, trusted)
        };
        assert_eq!(seen(&["for=9.9.9.9"], &[]), "0.0.0.0");
        let proxies = ["0.0.0.0/32", "10.0.0.0/8"];
        assert_eq!(seen(&["for=9.9.9.9;proto=https;by=10.0.0.1"], &proxies), "9.9.9.9");
        assert_eq!(seen(&["for=1.1.1.1", "For=\"9.9.9.9:4711\", for=10.0.0.7"], &proxies), "9.9.9.9");
        assert_eq!(seen(&["for=\"[2001:db8::1]:443\""], &proxies), "2001:db8::1");
        for unreadable in ["for=unknown", "for=_hidden", "garbage", "proto=http", "for="] {
            assert_eq!(seen(&[&format!("for=1.1.1.1, {unreadable}, for=10.0.0.7")], &proxies), "10.0.0.7");
        }
        // What a caller writes into the header that the proxies do not use is nothing.
        let other = |header, said_in| seen_in(header, said_in, &["for=1.1.1.1", "1.1.1.1"], &proxies);
        assert_eq!(other("forwarded", ProxyHeader::XForwardedFor), "0.0.0.0");
        assert_eq!(other("x-forwarded-for", ProxyHeader::Forwarded), "0.0.0.0");
    }

    #[test]
    fn one_ipv6_subscriber_is_one_network() {
        let at = |ip: &str| Client { ip: ip.parse().unwrap(), user_agent: None }.network();
        assert_eq!(at("2001:db8:1:2:3:4:5:6"), at("2001:db8:1:2:ffff::1"));
        assert_ne!(at("2001:db8:1:2::1"), at("2001:db8:1:3::1"));
        assert_ne!(at("10.0.0.1"), at("10.0.0.2"));
    }
}
