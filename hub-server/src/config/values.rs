//! Parsers of single values. Their errors are half a sentence that follows the value.

use std::{
    fmt::Display,
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    str::FromStr,
    time::Duration,
};

use hub_core::{
    Error,
    accounts::NewUser,
    config::Registration,
    data_dir,
    egress::{AllowRule, Direct},
    sandbox::CallFilter,
    secret::Secret,
};
use ipnet::IpNet;
use tracing_subscriber::EnvFilter;
use url::Url;

use super::{LogFormat, Networks};
use crate::client::ProxyHeader;

/// Returns the reason of an error, without the name of the field.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(super) fn reason(error: Error) -> String {
    error.details().first().map_or_else(|| error.to_string(), |detail| detail.reason.to_string())
}

pub(super) fn read_key(key: &Secret) -> Result<[u8; 32], String> {
    data_dir::parse_key(key).map_err(reason)
}

/// Parses `127.0.0.1:9800`, `[::1]:9800`, or `localhost:9800` for both.
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

/// Parses an integer of a range.
pub(super) fn number_in<T: FromStr + PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> {
    let rule = format!("must be a whole number from {} to {}", range.start(), range.end());
    move |text| text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| rule.clone())
}

/// Parses a duration: an integer and its unit, as in `90s`, `10m`, `24h` and `7d`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let unit = match text.chars().next_back()? {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let count: u32 = text[..text.len() - 1].parse().ok()?;
    Some(Duration::from_secs(u64::from(count) * unit))
}

/// Parses a duration between two others.
pub(super) fn time_in(least: &str, most: &str) -> impl Fn(&str) -> Result<Duration, String> {
    let bound = |text| parse_duration(text).expect("the bounds are lengths of time");
    let range = bound(least)..=bound(most);
    let rule = format!("must be a time from {least} to {most}, like 90s, 10m, 24h or 7d");
    move |text| parse_duration(text).filter(|time| range.contains(time)).ok_or_else(|| rule.clone())
}

pub(super) fn read_connections(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "must be a number of connections from 1 on".to_owned())
}

pub(super) fn read_bots(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "must be a number of bots from 1 on".to_owned())
}

pub(super) fn read_egress_rule(part: &str) -> Result<Vec<AllowRule>, String> {
    // The reason repeats the text, which the report contains already.
    let unquoted = |reason: String| reason.trim_start_matches(&format!("{part:?} ")).to_owned();
    part.parse().map(|rule| vec![rule]).map_err(|error| unquoted(reason(error)))
}

pub(super) fn read_direct(part: &str) -> Result<Vec<Direct>, String> {
    part.parse().map(|direct| vec![direct]).map_err(reason)
}

/// Parses a single address, or a range.
pub(super) fn read_range(part: &str) -> Result<Vec<IpNet>, String> {
    let range = part.parse::<IpNet>().or_else(|_| part.parse::<IpAddr>().map(IpNet::from));
    range.map(|range| vec![range]).map_err(|_| "is neither an address nor a range like 10.0.0.0/8".to_owned())
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

pub(super) fn read_filter(text: &str) -> Result<CallFilter, String> {
    match text {
        "required" => Ok(CallFilter::Required),
        "optional" => Ok(CallFilter::Optional),
        _ => Err("must be required or optional".to_owned()),
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

pub(super) fn read_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is not a URL: {error}"))?;
    match (url.scheme(), url.has_host()) {
        ("http" | "https", true) => Ok(url),
        _ => Err("must start with http:// or https://".to_owned()),
    }
}

/// Parses an origin, with a path if a reverse proxy serves the hub below it. The result ends with `/`.
pub(super) fn read_public_url(text: &str) -> Result<Url, String> {
    let mut url = read_url(text)?;
    // Characters that need no escaping in a URL or in a page.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let path = format!("{}/", url.path().trim_end_matches('/'));
    let is_bare = url.query().is_none() && url.fragment().is_none() && !path.contains("//");
    if !is_bare || !path.bytes().all(is_plain) || !url.username().is_empty() || url.password().is_some() {
        let origin = url.origin().ascii_serialization();
        return Err(format!(
            "must have a scheme, a host, and only a port and a plain path besides: {origin}"
        ));
    }
    url.set_path(&path);
    Ok(url)
}

pub(super) fn read_log(text: &str) -> Result<String, String> {
    let parsed = EnvFilter::try_new(text).map(|_| text.to_owned());
    parsed.map_err(|error| format!("is not a log filter like info or warn,hub_core=debug: {error}"))
}

pub(super) fn read_log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("must be text or json".to_owned()),
    }
}

/// Returns the settings that the creation of the first administrator would reject, with the reasons.
pub(super) fn check_admin(username: &str, password: &Secret) -> Vec<(&'static str, String)> {
    let (username, password) = (username.to_owned(), password.clone());
    let new = NewUser { username, password, display_name: None, email: None };
    let Err(error) = new.validate() else { return Vec::new() };
    let setting = |field: &str| if field == "username" { "admin_username" } else { "admin_password" };
    error.details().iter().map(|detail| (setting(&detail.field), detail.reason.to_string())).collect()
}
