//! Allow-list of hosts. `baseurl` and `redirect_host` come from the network; a wrong or forged one must not send a
//! bot's token, or a request of this server, to a stranger (`docs/ilink.md#hosts`).

use url::{Host, Url};

/// Domains of the network's operator; hosts below them are called over `https` only.
const DOMAINS: [&str; 2] = ["weixin.qq.com", "wechat.com"];

/// The allow-list: the network's own domains, and the origins that the operator configured.
#[derive(Debug, Clone)]
pub(super) struct Hosts {
    login: Url,
    configured: Vec<url::Origin>,
}

impl Hosts {
    pub(super) fn new(login: &Url, cdn: &Url) -> Self {
        Self { login: login.clone(), configured: vec![login.origin(), cdn.origin()] }
    }

    /// Returns the URL for logins and for accounts without a base URL.
    pub(super) fn login(&self) -> &Url {
        &self.login
    }

    /// The URL, if it may be called.
    pub(super) fn check(&self, text: &str) -> Option<Url> {
        let url = Url::parse(text.trim()).ok()?;
        let plain = url.username().is_empty() && url.password().is_none();
        (plain && (self.configured.contains(&url.origin()) || is_networks_own(&url))).then_some(url)
    }

    /// The URL of a file, if it may be called; one on the network's own hosts is called over `https` whatever it
    /// says.
    pub(super) fn check_media(&self, text: &str) -> Option<Url> {
        let secure = || text.trim().strip_prefix("http://").map(|rest| format!("https://{rest}"));
        self.check(text).or_else(|| self.check(&secure()?))
    }

    /// The base URL behind a `redirect_host`, which is a bare host name, perhaps with a port. The login URL's scheme
    /// is tried first, so that a redirect among plain-HTTP simulators works; for a login over `https` that makes no
    /// difference.
    pub(super) fn redirect(&self, host: &str) -> Option<Url> {
        let bare = !host.is_empty() && !host.contains(['/', '\\', '?', '#', '@']);
        let schemes = [self.login.scheme(), "https"];
        bare.then(|| schemes.iter().find_map(|scheme| self.check(&format!("{scheme}://{host}/"))))?
    }
}

fn is_networks_own(url: &Url) -> bool {
    let Some(Host::Domain(host)) = url.host() else { return false };
    let below = |domain: &&str| host.strip_suffix(*domain).is_some_and(|p| p.is_empty() || p.ends_with('.'));
    url.scheme() == "https" && DOMAINS.iter().any(below)
}

/// `base` with `path` behind its own path, which may be a prefix of a reverse proxy.
pub(super) fn join(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url.set_query(None);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(login: &str) -> Hosts {
        let cdn = "https://novac2c.cdn.weixin.qq.com/c2c".parse().unwrap();
        Hosts::new(&login.parse().unwrap(), &cdn)
    }

    #[test]
    fn only_the_networks_hosts_and_the_configured_origin_are_called() {
        let real = hosts("https://ilinkai.weixin.qq.com");
        for (url, allowed) in [
            ("https://ilinkai.weixin.qq.com", true),
            ("https://weixin.qq.com/", true),
            ("https://ilinkai.wechat.com/prefix", true),
            ("http://ilinkai.weixin.qq.com", false),
            ("https://evilweixin.qq.com", false),
            ("https://weixin.qq.com.evil.example", false),
            ("https://a:b@ilinkai.weixin.qq.com", false),
            ("https://127.0.0.1", false),
            ("http://127.0.0.1:8080", false),
            ("ftp://weixin.qq.com", false),
            ("not a url", false),
        ] {
            assert_eq!(real.check(url).is_some(), allowed, "{url}");
        }
        let cdn = "novac2c.cdn.weixin.qq.com/c2c/download?p=1";
        for url in [format!("http://{cdn}"), format!("https://{cdn}")] {
            assert_eq!(real.check_media(&url).unwrap().as_str(), format!("https://{cdn}"));
        }
        for url in
            ["", "http://evil.example/", "http://127.0.0.1/", "file:///etc/passwd", "http://a@weixin.qq.com/"]
        {
            assert!(real.check_media(url).is_none(), "{url}");
        }
        let simulated = hosts("http://127.0.0.1:8080");
        assert!(simulated.check("http://127.0.0.1:8080/x").is_some());
        assert!(simulated.check("http://127.0.0.1:8081").is_none());
        assert!(simulated.check("https://127.0.0.1:8080").is_none());
    }

    #[test]
    fn redirects_are_bare_hosts_under_the_same_rule() {
        let real = hosts("https://ilinkai.weixin.qq.com");
        assert_eq!(real.redirect("sg.wechat.com").unwrap().as_str(), "https://sg.wechat.com/");
        for host in
            ["", "evil.example", "sg.wechat.com@evil.example", "evil.example/.wechat.com", "127.0.0.1"]
        {
            assert!(real.redirect(host).is_none(), "{host}");
        }
        let simulated = hosts("http://127.0.0.1:8080");
        assert_eq!(simulated.redirect("127.0.0.1:8080").unwrap().as_str(), "http://127.0.0.1:8080/");
        assert!(simulated.redirect("127.0.0.1:9").is_none());
        assert_eq!(simulated.redirect("sg.wechat.com").unwrap().as_str(), "https://sg.wechat.com/");
    }

    #[test]
    fn joining_keeps_a_path_prefix() {
        for (base, joined) in [
            ("https://host", "https://host/ilink/bot/getupdates"),
            ("https://host/prefix", "https://host/prefix/ilink/bot/getupdates"),
            ("https://host/prefix/?q#f", "https://host/prefix/ilink/bot/getupdates"),
        ] {
            assert_eq!(join(&base.parse().unwrap(), "ilink/bot/getupdates").as_str(), joined);
        }
    }
}
