//! An entry of `@connect`: a host that a plugin may reach, as `api.example.com`, `n8n:5678` or `127.0.0.1:8080`.

use url::{Host, Url};

/// Longest host name (RFC 1035 §2.3.4).
const MAX_HOST: usize = 253;

/// Reads an entry: the host in ASCII and lower case, with its port where one is named.
///
/// # Errors
/// The reason why the entry is invalid.
pub(super) fn entry(written: &str) -> Result<String, &'static str> {
    if written.is_empty() {
        return Err("must name a host");
    }
    if written.contains('*') {
        return Err("must not have a wildcard: a host name includes its sub-domains");
    }
    if written.contains(['/', '@', '?', '#', '%']) {
        return Err("must be a host with an optional port, without scheme or path");
    }
    let (host, port) = split(written);
    if host.contains(':') && !host.starts_with('[') {
        return Err("an IPv6 address must be in brackets");
    }
    let port = match port {
        Some(port) => Some(number(port).ok_or("the port must be 1 to 65535")?),
        None => None,
    };
    let host = match Host::parse(host) {
        Ok(Host::Domain(host)) if host.len() > MAX_HOST => return Err("is too long"),
        Ok(Host::Domain(host)) if host.split('.').any(str::is_empty) => {
            return Err("must not begin or end with a dot");
        }
        Ok(host) => host.to_string(),
        Err(_) => return Err("is not a host name"),
    };
    Ok(port.map_or_else(|| host.clone(), |port| format!("{host}:{port}")))
}

fn number(port: &str) -> Option<u16> {
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    port.parse().ok().filter(|port| digits && *port > 0)
}

/// Host and port of an entry.
fn split(entry: &str) -> (&str, Option<&str>) {
    match entry.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') && (host.ends_with(']') || !host.contains(':')) => {
            (host, Some(port))
        }
        _ => (entry, None),
    }
}

/// Whether an entry means one host alone: an address, or a name of one label such as `localhost`. Such hosts have no
/// sub-domains, and no certificate that a public authority signs.
pub(super) fn is_exact(entry: &str) -> bool {
    let (host, _) = split(entry);
    !host.contains('.') || !matches!(Host::parse(host), Ok(Host::Domain(_)))
}

/// Result of comparing an entry with a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cover {
    OtherHost,
    /// The host, at another port.
    OtherPort,
    /// The host, which requires https.
    NeedsTls,
    Covers,
}

/// Compares an entry with a URL. An entry without a port covers the default port of the URL's scheme.
pub(super) fn cover(entry: &str, url: &Url, plain_http: bool) -> Cover {
    let (name, port) = split(entry);
    let Some(host) = url.host_str() else { return Cover::OtherHost };
    let host = host.strip_suffix('.').unwrap_or(host);
    let exact = is_exact(entry);
    let is_sub_domain = || !exact && host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
    if host != name && !is_sub_domain() {
        return Cover::OtherHost;
    }
    let is_port = match port {
        Some(port) => url.port_or_known_default() == number(port),
        None => url.port().is_none(),
    };
    match (is_port, url.scheme() == "https" || plain_http || exact) {
        (false, _) => Cover::OtherPort,
        (true, false) => Cover::NeedsTls,
        (true, true) => Cover::Covers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_host_with_an_optional_port() {
        for (written, read) in [
            ("API.example.com", "api.example.com"),
            ("localhost", "localhost"),
            ("n8n:5678", "n8n:5678"),
            ("10.0.0.5", "10.0.0.5"),
            ("0x7f.1:8080", "127.0.0.1:8080"),
            ("[::1]", "[::1]"),
            ("[0:0::1]:80", "[::1]:80"),
            ("пример.example", "xn--e1afmkfd.example"),
        ] {
            assert_eq!(entry(written).as_deref(), Ok(read));
        }
        for wrong in
            ["", "*", "*.example", "https://x.example/", "a@b", "::1", "a:0", "a:65536", "a:b", "a:", ":80"]
        {
            assert!(entry(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_entry_covers_its_host_its_sub_domains_and_its_port() {
        for (entry, url, cover_of) in [
            ("a.example", "https://a.example/x", Cover::Covers),
            ("a.example", "https://b.a.example./", Cover::Covers),
            ("a.example", "http://a.example/", Cover::NeedsTls),
            ("a.example", "https://a.example:8443/", Cover::OtherPort),
            ("a.example", "https://xa.example/", Cover::OtherHost),
            ("a.example:8443", "https://a.example:8443/", Cover::Covers),
            ("a.example:8443", "https://b.a.example:8443/", Cover::Covers),
            ("a.example:8443", "https://a.example/", Cover::OtherPort),
            ("a.example:443", "https://a.example/", Cover::Covers),
            ("n8n:5678", "http://n8n:5678/webhook", Cover::Covers),
            ("n8n:5678", "http://n8n/", Cover::OtherPort),
            ("n8n", "http://n8n/", Cover::Covers),
            ("com", "https://evil.com/", Cover::OtherHost),
            ("localhost", "http://a.localhost/", Cover::OtherHost),
            ("127.0.0.1:8080", "http://127.1:8080/", Cover::Covers),
            ("127.0.0.1", "http://9.127.0.0.1.example/", Cover::OtherHost),
            ("[::1]:80", "http://[::1]/", Cover::Covers),
        ] {
            assert_eq!(cover(entry, &Url::parse(url).unwrap(), false), cover_of, "{entry} {url}");
        }
        assert_eq!(cover("a.example", &Url::parse("http://a.example/").unwrap(), true), Cover::Covers);
    }
}
