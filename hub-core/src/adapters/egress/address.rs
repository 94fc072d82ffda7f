//! Rules for addresses and ports that may be dialled.
//!
//! An allow-list of globally reachable unicast: every known list of bad ranges is incomplete.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    str::FromStr,
};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::{AllowRule, EgressConfig, target::Refusal};
use crate::error::{Advice, Error, Result, Setting};

/// The IANA IPv4 special-purpose registry, and multicast. Entries that are formally reachable (AS112 and the
/// like) serve the network itself; no webhook lives there.
const SPECIAL_V4: [Ipv4Net; 18] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 31, 196, 0], 24),
    v4([192, 52, 193, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([192, 175, 48, 0], 24),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 4),
    v4([240, 0, 0, 0], 4),
];

/// Metadata and host services of cloud providers that use addresses which are formally reachable. Those of the other
/// providers are inside the ranges above: 169.254.169.254, 169.254.170.2, 100.100.100.200, 192.0.0.192, fd00:ec2::254.
const CLOUD_V4: [Ipv4Addr; 1] = [Ipv4Addr::new(168, 63, 129, 16)];

/// The only IPv6 block that is given out as global unicast.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 3);

/// Special blocks inside [`GLOBAL_V6`]: protocol assignments with Teredo, documentation, 6to4.
const SPECIAL_V6: [Ipv6Net; 4] =
    [v6(0x2001, 0, 23), v6(0x2001, 0xdb8, 32), v6(0x2002, 0, 16), v6(0x3fff, 0, 20)];

/// Ports from 1024 up that belong to other services than web servers: the list browsers refuse, and databases, caches
/// and container daemons that take commands without a login.
const BAD_PORTS: [u16; 26] = [
    1719, 1720, 1723, 2049, 2375, 2379, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432, 5900, 6000, 6379,
    6566, 6665, 6666, 6667, 6668, 6669, 6697, 11211, 27017,
];

const fn v4(octets: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::from_octets(octets), prefix)
}

const fn v6(first: u16, second: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0), prefix)
}

/// Whether an address is globally reachable unicast. IPv4 mapped to IPv6 is checked as IPv4.
pub(super) fn is_global(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => !CLOUD_V4.contains(&v4) && !SPECIAL_V4.iter().any(|net| net.contains(&v4)),
        IpAddr::V6(v6) => GLOBAL_V6.contains(&v6) && !SPECIAL_V6.iter().any(|net| net.contains(&v6)),
    }
}

/// Whether web servers commonly use a port.
fn is_web_port(port: u16) -> bool {
    port == 80 || port == 443 || (port >= 1024 && !BAD_PORTS.contains(&port))
}

impl EgressConfig {
    /// Whether `address`, found for `host`, may be dialled at `port`.
    pub(super) fn admits_address(&self, host: &str, address: IpAddr, port: u16) -> bool {
        let address = address.to_canonical();
        if self.is_own(address, port) {
            return false;
        }
        is_global(address)
            || self.allow.iter().any(|rule| match rule {
                AllowRule::Range(net) => net.contains(&address),
                AllowRule::HostPort(..) => rule.names(host, Some(address), port),
            })
    }

    /// Whether this process listens there.
    fn is_own(&self, address: IpAddr, port: u16) -> bool {
        self.own_listeners.iter().any(|own| own.port() == port && reaches(address, *own))
    }

    /// Describes why `host` may not be called at `port`, and the setting that allows it; `found` are the addresses of
    /// the host. The text contains only what the URL contains, so that it does not disclose how a name resolves
    /// inside a private network.
    pub(super) fn refusal(&self, host: &str, port: u16, mut found: impl Iterator<Item = IpAddr>) -> Refusal {
        if found.any(|address| self.is_own(address.to_canonical(), port)) {
            return Refusal { reason: "must not be an address of this hub".to_owned(), advice: None };
        }
        let (rule, setting) = (AllowRule::HostPort(host.to_owned(), port).to_string(), Setting::EgressAllow);
        let reason = format!(
            "must be a public address and a web port; to allow it, add {rule} to the setting {setting}"
        );
        let advice = Some(Advice::Set(setting, self.allow.is_empty().then_some(rule)));
        Refusal { reason, advice }
    }

    /// Whether `port` may be dialled at `host`.
    pub(super) fn admits_port(&self, host: &str, address: Option<IpAddr>, port: u16) -> bool {
        is_web_port(port) || self.allow.iter().any(|rule| rule.names(host, address, port))
    }
}

/// Whether a connection to `address` reaches a listener bound to `own`; the ports are equal already.
fn reaches(address: IpAddr, own: SocketAddr) -> bool {
    let bound = own.ip().to_canonical();
    if bound.is_unspecified() {
        // Bound to all addresses. Only addresses of this machine can be bound, so a test bind identifies them.
        return address.is_loopback() || address.is_unspecified() || UdpSocket::bind((address, 0)).is_ok();
    }
    // Dialling the unspecified address means dialling this machine.
    bound == address || (address.is_unspecified() && bound.is_loopback())
}

impl AllowRule {
    /// Whether this is a host-and-port rule for this target.
    fn names(&self, host: &str, address: Option<IpAddr>, port: u16) -> bool {
        let Self::HostPort(named, at) = self else { return false };
        *at == port
            && match named.parse::<IpAddr>() {
                Ok(ip) => address.is_some_and(|address| address.to_canonical() == ip.to_canonical()),
                Err(_) => same_name(named, host),
            }
    }
}

/// Whether two host names are the same: case and one trailing dot do not count.
pub(super) fn same_name(a: &str, b: &str) -> bool {
    let bare = |name| str::strip_suffix(name, ".").unwrap_or(name);
    bare(a).eq_ignore_ascii_case(bare(b))
}

impl FromStr for AllowRule {
    type Err = Error;

    /// Reads `10.0.0.0/8`, `fd00::/8`, `127.0.0.1:9802`, `[::1]:80` or `host.example:8080`.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on the field `egress_allow`.
    fn from_str(text: &str) -> Result<Self> {
        let invalid = |reason: &str| Error::invalid("egress_allow", format!("{text:?} {reason}"));
        if text.contains('/') {
            let net =
                text.parse::<IpNet>().map_err(|_| invalid("is not an address range like 10.0.0.0/8"))?;
            return Ok(Self::Range(net.trunc()));
        }
        let (host, port) = text
            .rsplit_once(':')
            .ok_or_else(|| invalid("is neither a range like 10.0.0.0/8 nor a host with a port"))?;
        let port = port.parse().ok().filter(|port| *port != 0);
        let port = port.ok_or_else(|| invalid("does not end in a port from 1 to 65535"))?;
        if host.contains(':') && !host.starts_with('[') {
            return Err(invalid("needs brackets around the IPv6 address, like [::1]:80"));
        }
        let bare = host.strip_suffix('.').unwrap_or(host);
        if bare.ends_with('.') {
            return Err(invalid("has no valid host"));
        }
        let host = match url::Host::parse(bare).map_err(|_| invalid("has no valid host"))? {
            url::Host::Domain(name) => name,
            url::Host::Ipv4(ip) => ip.to_string(),
            url::Host::Ipv6(ip) => ip.to_string(),
        };
        Ok(Self::HostPort(host, port))
    }
}

impl fmt::Display for AllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range(net) => net.fmt(f),
            Self::HostPort(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::HostPort(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn global(text: &str) -> bool {
        is_global(text.parse().unwrap())
    }

    #[test]
    fn only_global_unicast_is_reachable() {
        for bad in [
            "0.0.0.0",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "100.100.100.200",
            "168.63.129.16",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.9",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "fd12:3456::1",
            "::ffff:168.63.129.16",
            "ff02::1",
            "2001::1",
            "2001:1ff::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "3fff:fff::1",
            "5f00::1",
            "4000::1",
            "::ffff:0:127.0.0.1",
        ] {
            assert!(!global(bad), "{bad}");
        }
        for good in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "168.63.129.17",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:1.1.1.1",
            "2001:200::1",
            "2400::1",
            "2606:4700::1111",
            "3ffe::1",
        ] {
            assert!(global(good), "{good}");
        }
    }

    /// Every /16 is probed at both ends and in the middle against an independently written rule.
    #[test]
    fn sweep_of_all_v4_prefixes() {
        for high in 0..=u16::MAX {
            let [a, b] = high.to_be_bytes();
            for (c, d) in [(0, 0), (0, 1), (1, 0), (128, 77), (255, 255)] {
                let expected = match (a, b, c) {
                    (0 | 10 | 127 | 224..=255, ..)
                    | (169, 254, _)
                    | (172, 16..=31, _)
                    | (192, 168, _)
                    | (192, 0, 0 | 2)
                    | (198, 18 | 19, _) => false,
                    (100, b, _) => !(64..128).contains(&b),
                    _ => true,
                };
                let address = IpAddr::from([a, b, c, d]);
                assert_eq!(is_global(address), expected, "{address}");
                let IpAddr::V4(v4) = address else { unreachable!("built from four octets") };
                assert_eq!(is_global(v4.to_ipv6_mapped().into()), expected, "mapped {address}");
            }
        }
    }

    #[test]
    fn allow_rules_read_what_they_print() {
        for (text, printed) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("fd00::/8", "fd00::/8"),
            ("127.0.0.1:9802", "127.0.0.1:9802"),
            ("[::1]:80", "[::1]:80"),
            ("Hook.Internal.:8080", "hook.internal:8080"),
        ] {
            let rule: AllowRule = text.parse().unwrap();
            assert_eq!(rule.to_string(), printed);
            assert_eq!(rule.to_string().parse::<AllowRule>().unwrap(), rule);
        }
        for bad in [
            "",
            "10.0.0.0",
            "10.0.0.0/33",
            "host",
            "host:",
            "host:0",
            "host:70000",
            "::1:80",
            ":80",
            ".:80",
            "..:80",
            "a b:1",
        ] {
            let error = bad.parse::<AllowRule>().unwrap_err();
            assert_eq!(error.details()[0].field, "egress_allow", "{bad}");
        }
    }

    fn config(allow: &[&str], own: &[&str]) -> EgressConfig {
        EgressConfig {
            allow: allow.iter().map(|rule| rule.parse().unwrap()).collect(),
            own_listeners: own.iter().map(|own| own.parse().unwrap()).collect(),
            ..EgressConfig::default()
        }
    }

    #[test]
    fn allow_rules_open_what_they_name_and_no_more() {
        let rules = config(&["10.0.0.0/8", "127.0.0.1:9802", "hook.internal:8080", "[::1]:81"], &[]);
        for (host, address, port, admitted) in [
            ("x", "10.2.3.4", 8000, true),
            ("x", "::ffff:10.2.3.4", 8000, true),
            ("x", "11.2.3.4", 8000, true),
            ("x", "127.0.0.1", 9802, true),
            ("x", "127.0.0.1", 9803, false),
            ("x", "127.0.0.2", 9802, false),
            ("hook.internal", "192.168.1.1", 8080, true),
            ("HOOK.internal.", "192.168.1.1", 8080, true),
            ("hook.internal", "192.168.1.1", 8081, false),
            ("a.hook.internal", "192.168.1.1", 8080, false),
            ("x", "::1", 81, true),
            ("x", "::1", 82, false),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(rules.admits_address(host, address, port), admitted, "{host} {address} {port}");
        }
        let loopback = Some("127.0.0.1".parse().unwrap());
        assert!(rules.admits_port("x", Some("::1".parse().unwrap()), 81));
        for port in [0, 1, 22, 25, 81, 1023, 6379, 11211] {
            assert!(!rules.admits_port("x", loopback, port), "{port}");
        }
        for port in [80, 443, 1024, 8080, 65535] {
            assert!(rules.admits_port("x", loopback, port), "{port}");
        }
    }

    #[test]
    fn no_rule_opens_the_listeners_of_the_hub() {
        let all = ["0.0.0.0/0", "::/0", "127.0.0.1:9800"];
        let narrow = config(&all, &["127.0.0.1:9800"]);
        let wide = config(&all, &["[::]:9800"]);
        for (address, behind_narrow, behind_wide) in [
            ("127.0.0.1", false, false),
            ("::ffff:127.0.0.1", false, false),
            ("0.0.0.0", false, false),
            ("127.0.0.2", true, false),
            ("::1", true, false),
            ("1.1.1.1", true, true),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(narrow.admits_address("x", address, 9800), behind_narrow, "{address}");
            assert_eq!(wide.admits_address("x", address, 9800), behind_wide, "{address}");
            assert!(wide.admits_address("x", address, 9801), "{address}");
        }
    }
}
