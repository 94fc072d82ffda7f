//! What the server prints when it is ready: on stderr, so that stdout stays empty for pipes.

use std::{fmt::Write as _, net::SocketAddr};

use hub_core::{secret::Secret, store::StoreConfig, time::Clock};
use serde_json::json;
use url::Url;

use crate::config::Config;

/// The address for users: the configured one, otherwise `localhost`, never `0.0.0.0` (passkeys do not work on
/// addresses), otherwise the first specific address.
pub fn public_url(config: &Config, bound: &[SocketAddr]) -> Url {
    if let Some(url) = &config.public_url {
        return url.clone();
    }
    let port = bound.first().map_or(80, SocketAddr::port);
    let specific = bound.iter().find(|address| !address.ip().is_loopback() && !address.ip().is_unspecified());
    let text =
        specific.map_or_else(|| format!("http://localhost:{port}"), |address| format!("http://{address}"));
    Url::parse(&text).expect("an address and a port make a URL")
}

/// On loopback, the origins that name the same pages as the public URL.
pub fn loopback_origins(bound: &[SocketAddr]) -> Vec<String> {
    let loopback = bound.iter().filter(|address| address.ip().is_loopback());
    let mut origins: Vec<String> = loopback
        .flat_map(|address| [format!("http://{address}"), format!("http://localhost:{}", address.port())])
        .collect();
    origins.sort_unstable();
    origins.dedup();
    origins
}

/// The text.
pub fn banner(config: &Config, url: &Url, sim_control: Option<SocketAddr>, setup: Option<&Secret>) -> String {
    let base = url.as_str().trim_end_matches('/');
    let mode = if config.development { "development mode (loopback only)" } else { "production mode" };
    let data = match &config.store {
        StoreConfig::Sqlite(path) => path.display().to_string(),
        StoreConfig::Postgres(_) => format!("PostgreSQL, key and files in {}", config.data_dir.display()),
    };
    let file = match &config.file {
        Some(path) => path.display().to_string(),
        None => "built-in defaults    (no file; `hub-server config init` writes one)".to_owned(),
    };
    let sim = match (&config.sim_url, sim_control) {
        (Some(url), _) => format!("simulated at {url}"),
        (None, Some(address)) => format!("simulated            (control address {address})"),
        (None, None) => "simulated".to_owned(),
    };
    let network = match (config.networks.sim, config.networks.ilink) {
        (true, true) => format!("ilink and {sim}"),
        (true, false) => format!("{sim}; `--network ilink` for the real one"),
        _ => "ilink".to_owned(),
    };
    let mut text = format!("hub-server {}  {mode}\n", env!("CARGO_PKG_VERSION"));
    for (mark, name, value) in [
        ("├─", "API docs", format!("{base}/docs      openapi: /openapi.json")),
        ("├─", "Data", data),
        ("├─", "Config", file),
        ("└─", "Network", network),
    ] {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{mark} {name:<10} {value}");
    }
    if setup.is_some() {
        let _ = write!(
            text,
            "\n  There is no administrator yet. The link creates the account (single use, 30 min); or send the token\n  \
             as setup_token in POST {base}/api/auth/register\n",
        );
    }
    let link = setup.map_or_else(|| format!("{base}/"), |token| setup_link(url, token));
    let demo = if config.demo && config.development { "The demo is running. " } else { "" };
    let _ = writeln!(text, "\n  {demo}Open {link}");
    text
}

/// The sign-in page with the token filled in. The token follows the `#`, which browsers do not send.
fn setup_link(url: &Url, token: &Secret) -> String {
    format!("{}/login#setup={}", url.as_str().trim_end_matches('/'), token.expose())
}

/// The same as a line of a JSON log. It bypasses the log filter: it may contain the setup token.
pub fn banner_line(
    config: &Config,
    url: &Url,
    sim_control: Option<SocketAddr>,
    setup: Option<&Secret>,
) -> String {
    let network = match (config.networks.sim, config.networks.ilink) {
        (true, true) => "both",
        (true, false) => "sim",
        _ => "ilink",
    };
    json!({
        "timestamp": Clock::system().now(),
        "level": "INFO",
        "message": "hub-server started",
        "target": "hub_server",
        "version": env!("CARGO_PKG_VERSION"),
        "mode": if config.development { "development" } else { "production" },
        "url": url.as_str(),
        "data": config.data_dir,
        "config": config.file,
        "network": network,
        "simulator": sim_control,
        "setup_token": setup.map(Secret::expose),
        "setup_link": setup.map(|token| setup_link(url, token)),
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    fn url(listen: &str, public: &str) -> String {
        let env = [("HUB_LISTEN", listen), ("HUB_PUBLIC_URL", public)];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let config = Config::load(&Sources { env, ..Sources::default() }).unwrap();
        let url = public_url(&config, &config.listen);
        let text = banner(&config, &url, None, Some(&Secret::new("hubt_token")));
        assert!(text.ends_with(&format!("Open {url}login#setup=hubt_token\n")), "{text}");
        let text = banner(&config, &url, None, None);
        assert!(text.ends_with(&format!("Open {url}\n")), "{text}");
        let line = banner_line(&config, &url, None, Some(&Secret::new("hubt_token")));
        let fields: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (&fields["url"], &fields["setup_link"]),
            (&json!(url), &json!(format!("{url}login#setup=hubt_token")))
        );
        url.to_string()
    }

    #[test]
    fn people_get_an_address_that_works_for_them() {
        assert_eq!(url("127.0.0.1:9800,[::1]:9800", ""), "http://localhost:9800/");
        assert_eq!(url("0.0.0.0:80", ""), "http://localhost/");
        assert_eq!(url("127.0.0.1:1,192.168.1.5:9800", ""), "http://192.168.1.5:9800/");
        assert_eq!(url("0.0.0.0:9800", "https://hub.example"), "https://hub.example/");
    }

    #[test]
    fn every_name_of_loopback_is_an_own_origin() {
        let bound = ["127.0.0.1:9800".parse().unwrap(), "[::1]:9800".parse().unwrap()];
        let origins = ["http://127.0.0.1:9800", "http://[::1]:9800", "http://localhost:9800"];
        assert_eq!(loopback_origins(&bound), origins);
        assert!(loopback_origins(&["0.0.0.0:9800".parse().unwrap()]).is_empty());
    }
}
