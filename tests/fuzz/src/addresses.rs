//! URLs and addresses that someone else chose.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::LazyLock,
};

use hub_core::egress::{AllowRule, Egress, EgressConfig};

static EGRESS: LazyLock<Egress> =
    LazyLock::new(|| Egress::new(EgressConfig::default()).expect("a client without settings"));

/// Any text as a URL: what is accepted is a plain web address, means the same to every parser on the way, and
/// leads nowhere private in any spelling.
pub fn url(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(rule) = text.parse::<AllowRule>() {
        assert_eq!(rule.to_string().parse::<AllowRule>().ok().as_ref(), Some(&rule), "{text:?}");
    }
    let Ok(checked) = EGRESS.check_url(&text) else { return };
    let url = checked.as_url();
    assert!(matches!(url.scheme(), "http" | "https"));
    assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
    assert!(!url.as_str().contains(|c: char| c.is_whitespace() || c.is_control()));
    let again = EGRESS.check_url(url.as_str());
    assert_eq!(again.ok().as_ref(), Some(&checked), "the stored form is not the checked one");
    let host = url.host_str().unwrap_or_default();
    assert!(!host.is_empty());
    // The HTTP client reads the text again, with another parser.
    let uri: http::Uri = url.as_str().parse().expect("accepted URLs are sent");
    assert_eq!(uri.host(), Some(host), "two parsers, two hosts");
    assert_eq!(uri.port_u16(), url.port());
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) => assert!(!is_private(address), "{text:?} leads to {address}"),
        // Neither may the system's resolver take it for an address.
        Err(_) => assert_eq!(inet_aton(host.strip_suffix('.').unwrap_or(host)), None, "{text:?}"),
    }
}

/// Four or sixteen bytes of an address, and a port: the classifier and an independent rule agree.
pub fn address(data: &[u8]) {
    let (address, port) = match data {
        [a, b, c, d, port @ ..] if data.len() < 16 => (IpAddr::from([*a, *b, *c, *d]), port),
        _ => match data.split_first_chunk::<16>() {
            Some((bytes, port)) => (IpAddr::from(*bytes), port),
            None => return,
        },
    };
    let port = port.first_chunk().map_or(443, |bytes| u16::from_be_bytes(*bytes));
    let host = match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    };
    let admitted = EGRESS.check_url(&format!("http://{host}:{port}/")).is_ok();
    assert!(!admitted || !is_private(address), "{address} is private");
    assert!(!admitted || port == 80 || port == 443 || port >= 1024, "port {port}");
    let web = port == 80 || port == 443 || port == 8080 || port == 8443;
    assert!(admitted || !web || is_special(address), "{address} is public");
}

/// Private, local, or leading there, as far as the standard library and the translation formats tell; written
/// as a list of what is bad, where the hub has a list of what is good.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_private_v4(v4),
        IpAddr::V6(v6) => is_private_v6(v6),
    }
}

fn is_private_v4(v4: Ipv4Addr) -> bool {
    let [a, b, ..] = v4.octets();
    v4.is_private()
        || v4.is_loopback()
        || v4.is_link_local()
        || v4.is_multicast()
        || v4.is_broadcast()
        || v4.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && b & 0xc0 == 64)
        || (a == 198 && b & 0xfe == 18)
        || v4.octets().starts_with(&[192, 0, 0])
}

fn is_private_v6(v6: Ipv6Addr) -> bool {
    let segments = v6.segments();
    let embedded = |at: usize| {
        let [a, b] = segments[at].to_be_bytes();
        let [c, d] = segments[at + 1].to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    };
    let carries_private = match segments {
        // Compatible, mapped, translated; 64:ff9b::/96 and 64:ff9b:1::/48; 6to4.
        [0, 0, 0, 0, 0 | 0xffff, 0 | 0xffff, ..] | [0x64, 0xff9b, ..] => is_private_v4(embedded(6)),
        [0x2002, ..] => is_private_v4(embedded(1)),
        // Teredo hides the client's address behind an exclusive or.
        [0x2001, 0, ..] => is_private_v4(Ipv4Addr::from_bits(!embedded(6).to_bits())),
        _ => false,
    };
    let unicast = matches!(segments[0], 0x2000..=0x3fff)
        || matches!(segments, [0, 0, 0, 0, 0, 0xffff, ..] if !is_private_v4(embedded(6)));
    carries_private
        || !unicast
        || v6.is_loopback()
        || v6.is_unspecified()
        || v6.is_multicast()
        || v6.is_unique_local()
        || v6.is_unicast_link_local()
        || matches!(segments, [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] | [0x2001, 2, 0, ..])
}

/// Everything the registries name, whether private or not: outside of it an address is public.
fn is_special(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            is_private_v4(v4)
                || matches!(
                    v4.octets(),
                    [192, 88, 99, _] | [192, 31, 196, _] | [192, 52, 193, _] | [192, 175, 48, _]
                )
        }
        IpAddr::V6(v6) => {
            is_private_v6(v6) || matches!(v6.segments(), [0x2001, 0..=0x1ff, ..] | [0x2002, ..])
        }
    }
}

/// Parses a numeric host as C libraries do: one to four parts, each decimal, octal or hexadecimal; the last part
/// fills the remaining bits.
fn inet_aton(host: &str) -> Option<Ipv4Addr> {
    let parts: Option<Vec<u64>> = host.split('.').map(number).collect();
    let parts = parts.filter(|parts| (1..=4).contains(&parts.len()))?;
    let (last, leading) = parts.split_last()?;
    let room = 8 * (4 - leading.len());
    if leading.iter().any(|part| *part > 255) || *last >= 1 << room {
        return None;
    }
    let high = leading.iter().fold(0, |bits, part| bits << 8 | part);
    u32::try_from(high << room | last).ok().map(Ipv4Addr::from_bits)
}

fn number(part: &str) -> Option<u64> {
    let (digits, radix) = match part.strip_prefix("0x").or_else(|| part.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if part.len() > 1 && part.starts_with('0') => (part, 8),
        None => (part, 10),
    };
    if digits.starts_with('+') { None } else { u64::from_str_radix(digits, radix).ok() }
}
