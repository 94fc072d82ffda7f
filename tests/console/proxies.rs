//! The console behind reverse proxies of other authors, below a path and with a password of the proxy's own.

use super::{Demo, free_port, run};
use crate::support::reverse_proxy::{BASIC, Kind, ReverseProxy};

/// Tells stories to a hub that is reached through a proxy, and returns the link for its first account.
async fn through(kind: Kind, scheme: &str, stories: &[&str]) -> Option<String> {
    let (port, hub) = (free_port(), free_port());
    let url = format!("{scheme}://localhost:{port}/hub");
    let settings =
        [("HUB_PUBLIC_URL", url.as_str()), ("HUB_NETWORK", "sim"), ("HUB_TRUSTED_PROXIES", "127.0.0.1")];
    let mut demo = Demo::start_with(&format!("127.0.0.1:{hub}"), &settings).await;
    demo.url = url.clone();
    let _proxy = ReverseProxy::start(kind, &url, hub).await?;
    let tls = if scheme == "https" { "yes" } else { "" };
    for story in stories {
        let more = [("BASIC", BASIC.to_owned()), ("SELF_SIGNED", tls.to_owned())];
        run(story, &demo, &more).await;
    }
    Some(demo.setup_link.replace(&url, ""))
}

#[tokio::test]
async fn everything_works_behind_nginx() {
    through(Kind::Nginx, "http", &["newcomer.mjs", "links.mjs"]).await;
}

#[tokio::test]
async fn everything_works_behind_caddy_that_ends_tls() {
    let Some(link) = through(Kind::Caddy, "https", &["links.mjs"]).await else { return };
    assert!(link.starts_with("/login#setup="), "{link}");
}
