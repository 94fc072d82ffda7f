//! Settings that conflict with each other or with the environment.

use hub_server::config::is_this_machine;
use url::Host;

use super::{Outcome, Subject};

pub fn check(subject: &Subject<'_>) -> Vec<Outcome> {
    let mut outcomes =
        vec![exposed(subject), https(subject), passkeys(subject), proxies(subject), registration(subject)];
    outcomes.extend(callbacks(subject));
    outcomes.push(
        warned(subject, "env.unknown")
            .unwrap_or_else(|| Outcome::ok("env.unknown", "every HUB_… variable is a setting")),
    );
    outcomes.extend(["store.shared", "store.backup-sealed"].into_iter().filter_map(|id| warned(subject, id)));
    outcomes
}

/// The warnings of the settings that belong to a check.
fn warned(subject: &Subject<'_>, id: &str) -> Option<Outcome> {
    let warnings = subject.config.warnings.iter().filter(|warning| warning.check == id);
    let texts: Vec<&str> = warnings.map(|warning| warning.text.as_str()).collect();
    (!texts.is_empty()).then(|| Outcome::warning(id, texts.join("; ")).advise("hub-cli config check"))
}

fn registration(subject: &Subject<'_>) -> Outcome {
    let id = "registration.open";
    let advice = "registration = \"invite\", then hub-cli users invite for each user";
    match warned(subject, id) {
        Some(warning) => warning.advise(advice),
        None if subject.config.development => Outcome::ok(id, "the hub is reachable only from this machine"),
        None => Outcome::ok(id, "new accounts need an invitation or an administrator"),
    }
}

fn is_wide(subject: &Subject<'_>) -> bool {
    subject.config.listen.iter().any(|address| !address.ip().is_loopback())
}

fn is_https(subject: &Subject<'_>) -> bool {
    subject.config.public_url.as_ref().is_some_and(|url| url.scheme() == "https")
}

fn exposed(subject: &Subject<'_>) -> Outcome {
    let id = "bind.exposed";
    if !is_wide(subject) {
        return Outcome::ok(id, "it is reachable only from this machine");
    }
    if is_https(subject) {
        return Outcome::ok(id, "it is reachable from other machines, over https");
    }
    Outcome::warning(id, "it is reachable from other machines, and no https address is configured")
        .advise("public_url = \"https://hub.example\", with a proxy that terminates TLS")
}

fn https(subject: &Subject<'_>) -> Outcome {
    let id = "public-url.https";
    match &subject.config.public_url {
        None if subject.config.development => Outcome::ok(id, "none is set: development on this machine"),
        None => Outcome::failed(id, "public_url is not set, so links are wrong")
            .advise("public_url = \"https://hub.example\""),
        Some(url) if url.scheme() == "https" => Outcome::ok(id, "cookies are Secure"),
        Some(url) if is_this_machine(url) => Outcome::ok(id, "http on this machine"),
        Some(_) => {
            Outcome::failed(id, "public_url is plain http: passwords and sessions are sent unencrypted")
                .advise("public_url = \"https://…\", with a proxy that terminates TLS")
        }
    }
}

/// Browsers bind passkeys to a name and need a secure context (WebAuthn §5.1.2).
fn passkeys(subject: &Subject<'_>) -> Outcome {
    let id = "webauthn.rp-id";
    let Some(url) = &subject.config.public_url else {
        return Outcome::ok(id, "passkeys are bound to localhost");
    };
    match url.host() {
        Some(Host::Domain(name)) if is_https(subject) || is_this_machine(url) => {
            Outcome::ok(id, format!("passkeys are bound to {name}, and are lost when it changes"))
        }
        Some(Host::Domain(name)) => {
            Outcome::failed(id, format!("browsers do not support passkeys for http://{name}"))
                .advise("public_url = \"https://…\"")
        }
        _ => Outcome::failed(id, "public_url is an IP address, for which browsers do not support passkeys")
            .advise("use a host name; on this machine: public_url = \"http://localhost:9800\""),
    }
}

fn proxies(subject: &Subject<'_>) -> Outcome {
    let id = "proxy.forwarded-headers";
    if let Some(warning) = warned(subject, id) {
        return warning;
    }
    if !subject.config.trusted_proxies.is_empty() {
        let count = subject.config.trusted_proxies.len();
        return Outcome::ok(id, format!("{count} proxies are trusted"));
    }
    if is_https(subject) {
        // The hub does not terminate TLS itself, so there is a proxy.
        return Outcome::warning(
            id,
            "a proxy terminates TLS but is not trusted: all clients share the limits of one address",
        )
        .advise("trusted_proxies = [\"127.0.0.1\"], or the address from which it connects");
    }
    Outcome::ok(id, "no proxy is trusted")
}

fn callbacks(subject: &Subject<'_>) -> Vec<Outcome> {
    let base = subject.config.public_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned());
    let providers = subject.config.hub.providers.iter();
    providers
        .map(|provider| {
            let id = format!("oauth.callback.{}", provider.name);
            match &base {
                Some(base) => {
                    Outcome::ok(id, format!("register this callback at {}:", provider.display_name))
                        .advise(format!("{base}/api/auth/callback/{}", provider.name))
                }
                None => Outcome::warning(id, "without public_url the callback changes with the address")
                    .advise("public_url = \"https://hub.example\""),
            }
        })
        .collect()
}
