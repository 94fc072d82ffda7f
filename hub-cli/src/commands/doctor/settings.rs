//! Settings that do not fit each other, or the world.

use hub_server::config::is_this_machine;
use url::Host;

use super::{Outcome, Patient};

pub fn look(patient: &Patient<'_>) -> Vec<Outcome> {
    let mut outcomes =
        vec![exposed(patient), https(patient), passkeys(patient), proxies(patient), registration(patient)];
    outcomes.extend(callbacks(patient));
    outcomes.push(
        warned(patient, "env.unknown")
            .unwrap_or_else(|| Outcome::ok("env.unknown", "every HUB_… variable is a setting")),
    );
    outcomes.extend(["store.shared", "store.backup-sealed"].into_iter().filter_map(|id| warned(patient, id)));
    outcomes
}

/// The warnings of the settings that belong to a check.
fn warned(patient: &Patient<'_>, id: &str) -> Option<Outcome> {
    let warnings = patient.config.warnings.iter().filter(|warning| warning.check == id);
    let texts: Vec<&str> = warnings.map(|warning| warning.text.as_str()).collect();
    (!texts.is_empty()).then(|| Outcome::warning(id, texts.join("; ")).advise("hub-cli config check"))
}

fn registration(patient: &Patient<'_>) -> Outcome {
    let id = "registration.open";
    let advice = "registration = \"invite\", then hub-cli users invite for each person";
    match warned(patient, id) {
        Some(warning) => warning.advise(advice),
        None if patient.config.development => Outcome::ok(id, "only this machine reaches the hub"),
        None => Outcome::ok(id, "new accounts need an invitation or an administrator"),
    }
}

fn is_wide(patient: &Patient<'_>) -> bool {
    patient.config.listen.iter().any(|address| !address.ip().is_loopback())
}

fn is_https(patient: &Patient<'_>) -> bool {
    patient.config.public_url.as_ref().is_some_and(|url| url.scheme() == "https")
}

fn exposed(patient: &Patient<'_>) -> Outcome {
    let id = "bind.exposed";
    if !is_wide(patient) {
        return Outcome::ok(id, "only this machine reaches it");
    }
    if is_https(patient) {
        return Outcome::ok(id, "other machines reach it, and people come over https");
    }
    Outcome::warning(id, "other machines reach it, and nothing says that people come over https")
        .advise("public_url = \"https://hub.example\", with a proxy that ends TLS before it")
}

fn https(patient: &Patient<'_>) -> Outcome {
    let id = "public-url.https";
    match &patient.config.public_url {
        None if patient.config.development => Outcome::ok(id, "none is set: development on this machine"),
        None => Outcome::failed(id, "public_url is not set, and links cannot be right without it")
            .advise("public_url = \"https://hub.example\""),
        Some(url) if url.scheme() == "https" => Outcome::ok(id, "cookies are Secure"),
        Some(url) if is_this_machine(url) => Outcome::ok(id, "http to this machine"),
        Some(_) => {
            Outcome::failed(id, "public_url is plain http: passwords and sessions cross the network readable")
                .advise("public_url = \"https://…\", with a proxy that ends TLS before it")
        }
    }
}

/// Browsers bind passkeys to a name and want a secure context (WebAuthn §5.1.2).
fn passkeys(patient: &Patient<'_>) -> Outcome {
    let id = "webauthn.rp-id";
    let Some(url) = &patient.config.public_url else {
        return Outcome::ok(id, "passkeys belong to localhost");
    };
    match url.host() {
        Some(Host::Domain(name)) if is_https(patient) || is_this_machine(url) => {
            Outcome::ok(id, format!("passkeys belong to {name}, and are lost when that changes"))
        }
        Some(Host::Domain(name)) => {
            Outcome::failed(id, format!("browsers make no passkeys for http://{name}"))
                .advise("public_url = \"https://…\"")
        }
        _ => Outcome::failed(id, "public_url is an address, and browsers make no passkeys for addresses")
            .advise("give the machine a name; on this machine: public_url = \"http://localhost:9800\""),
    }
}

fn proxies(patient: &Patient<'_>) -> Outcome {
    let id = "proxy.forwarded-headers";
    if let Some(warning) = warned(patient, id) {
        return warning;
    }
    if !patient.config.trusted_proxies.is_empty() {
        let count = patient.config.trusted_proxies.len();
        return Outcome::ok(id, format!("{count} proxies are believed"));
    }
    if is_https(patient) {
        // The hub ends no TLS itself: somebody stands before it.
        return Outcome::warning(
            id,
            "a proxy ends TLS and is not believed: everybody shares the limits of one address",
        )
        .advise("trusted_proxies = [\"127.0.0.1\"], or wherever the hub sees it come from");
    }
    Outcome::ok(id, "no proxy is believed")
}

fn callbacks(patient: &Patient<'_>) -> Vec<Outcome> {
    let base = patient.config.public_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned());
    let providers = patient.config.hub.providers.iter();
    providers
        .map(|provider| {
            let id = format!("oauth.callback.{}", provider.name);
            match &base {
                Some(base) => {
                    Outcome::ok(id, format!("{} has to know this callback:", provider.display_name))
                        .advise(format!("{base}/api/auth/callback/{}", provider.name))
                }
                None => Outcome::warning(id, "without public_url the callback changes with the address")
                    .advise("public_url = \"https://hub.example\""),
            }
        })
        .collect()
}
