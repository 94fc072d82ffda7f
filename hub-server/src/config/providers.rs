//! External providers to sign in with.

use hub_core::{
    accounts::{OAuthEndpoints, Provider, ProviderKind},
    secret::Secret,
};
use url::Url;

use super::Reader;

/// The names of one preset's settings.
struct Names {
    client_id: &'static str,
    client_secret: &'static str,
    authorize_url: &'static str,
    token_url: &'static str,
    profile_url: &'static str,
}

const GITHUB: Names = Names {
    client_id: "github_client_id",
    client_secret: "github_client_secret",
    authorize_url: "github_authorize_url",
    token_url: "github_token_url",
    profile_url: "github_profile_url",
};

const LINUXDO: Names = Names {
    client_id: "linuxdo_client_id",
    client_secret: "linuxdo_client_secret",
    authorize_url: "linuxdo_authorize_url",
    token_url: "linuxdo_token_url",
    profile_url: "linuxdo_profile_url",
};

/// Every provider that has a client id. All settings are read, so that all problems are noted.
pub(super) fn read_providers(reader: &mut Reader) -> Vec<Provider> {
    let github = read_preset(reader, &GITHUB, Provider::github);
    let linuxdo = read_preset(reader, &LINUXDO, Provider::linuxdo);
    let providers: Vec<Provider> = [github, linuxdo, read_openid(reader)].into_iter().flatten().collect();
    let (oidc_name, origin) = reader.given("oidc_name");
    if providers.iter().filter(|provider| provider.name == oidc_name).count() > 1 {
        reader.problem(&origin, format!("{oidc_name:?} is the name of another provider"));
    }
    providers
}

fn read_preset(
    reader: &mut Reader,
    names: &Names,
    make: impl FnOnce(String, Secret) -> Provider,
) -> Option<Provider> {
    let (id, id_origin) = reader.text(names.client_id, "");
    let (secret, secret_origin) = reader.text(names.client_secret, "");
    let own = [names.authorize_url, names.token_url, names.profile_url].map(|name| reader.url(name));
    match (id.is_empty(), secret.is_empty()) {
        (true, true) => return None,
        (false, true) => {
            reader.problem(&id_origin, format!("requires {}", names.client_secret));
            return None;
        }
        (true, false) => {
            reader.problem(&secret_origin, format!("requires {}", names.client_id));
            return None;
        }
        (false, false) => {}
    }
    let mut provider = make(id, Secret::new(secret));
    if let ProviderKind::OAuth(endpoints) = &mut provider.kind {
        let OAuthEndpoints { authorize_url, token_url, profile_url } = &mut **endpoints;
        let replace = |url: &mut Url, own: Option<Url>| *url = own.unwrap_or_else(|| url.clone());
        let [authorize, token, profile] = own;
        replace(authorize_url, authorize);
        replace(token_url, token);
        replace(profile_url, profile);
    }
    Some(provider)
}

fn read_openid(reader: &mut Reader) -> Option<Provider> {
    let (issuer, issuer_origin) = reader.text("oidc_issuer", "");
    let is_url = Url::parse(&issuer).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    if !issuer.is_empty() && !is_url {
        reader.problem(&issuer_origin, format!("{issuer:?} must start with http:// or https://"));
    }
    let (id, id_origin) = reader.text("oidc_client_id", "");
    let secret = reader.text("oidc_client_secret", "").0;
    let name = reader.value("oidc_name", "oidc", |name| {
        Provider::check_name(name).map(|()| name.to_owned()).map_err(|error| {
            error.details().first().map_or_else(|| error.to_string(), |detail| detail.reason.to_string())
        })
    });
    let display_name = reader.text("oidc_display_name", "").0;
    let scopes = reader.text("oidc_scopes", "openid profile").0;
    match (issuer.is_empty(), id.is_empty()) {
        (true, true) => return None,
        (false, true) => {
            reader.problem(&issuer_origin, "requires oidc_client_id");
            return None;
        }
        (true, false) => {
            reader.problem(&id_origin, "requires oidc_issuer");
            return None;
        }
        (false, false) => {}
    }
    let secret = (!secret.is_empty()).then(|| Secret::new(secret));
    let mut provider = Provider::openid(name?, issuer, id, secret);
    if !display_name.is_empty() {
        provider.display_name = display_name;
    }
    provider.scopes = scopes.split_ascii_whitespace().map(str::to_owned).collect();
    Some(provider)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::{Config, Problems, Sources};

    fn load(settings: &[(&str, &str)]) -> Result<Config, Problems> {
        let own = |(name, value): &(&str, &str)| (format!("HUB_{name}"), (*value).to_owned());
        let env: BTreeMap<String, String> = settings.iter().map(own).collect();
        Config::load(&Sources { env, ..Sources::default() })
    }

    fn problems(settings: &[(&str, &str)]) -> Vec<String> {
        load(settings).unwrap_err().problems
    }

    #[test]
    fn a_provider_is_there_when_it_has_an_id() {
        assert!(load(&[]).unwrap().hub.providers.is_empty());
        let config = load(&[
            ("GITHUB_CLIENT_ID", "id"),
            ("GITHUB_CLIENT_SECRET", "a secret of GitHub's"),
            ("LINUXDO_CLIENT_ID", "other"),
            ("LINUXDO_CLIENT_SECRET", "a secret of theirs"),
            ("OIDC_ISSUER", "https://id.example"),
            ("OIDC_CLIENT_ID", "third"),
        ]);
        let config = config.unwrap();
        let names: Vec<_> = config.hub.providers.iter().map(|provider| &*provider.name).collect();
        assert_eq!(names, ["github", "linuxdo", "oidc"]);
        let [github, _, open] = &config.hub.providers[..] else { panic!("three") };
        assert_eq!(github.client_secret.as_ref().unwrap().expose(), "a secret of GitHub's");
        assert!(open.client_secret.is_none(), "a public client");
        assert!(matches!(&open.kind, ProviderKind::OpenId { issuer } if issuer == "https://id.example"));
        assert_eq!(open.scopes, ["openid", "profile"]);
        assert!(
            !format!("{:?}{:?}", config.effective, config.hub).contains("a secret of"),
            "no secret is shown"
        );
    }

    #[test]
    fn addresses_and_names_can_be_others() {
        let config = load(&[
            ("GITHUB_CLIENT_ID", "id"),
            ("GITHUB_CLIENT_SECRET", "shh"),
            ("GITHUB_TOKEN_URL", "https://git.example/token"),
            ("OIDC_ISSUER", "https://id.example/realm/"),
            ("OIDC_CLIENT_ID", "hub"),
            ("OIDC_NAME", "company"),
            ("OIDC_DISPLAY_NAME", "The Company"),
            ("OIDC_SCOPES", " openid  email "),
        ]);
        let providers = config.unwrap().hub.providers;
        let ProviderKind::OAuth(endpoints) = &providers[0].kind else { panic!("a preset") };
        assert_eq!(endpoints.token_url.as_str(), "https://git.example/token");
        assert_eq!(endpoints.authorize_url.host_str(), Some("github.com"));
        let company = &providers[1];
        assert_eq!((&*company.name, &*company.display_name), ("company", "The Company"));
        assert_eq!(company.scopes, ["openid", "email"]);
        assert!(
            matches!(&company.kind, ProviderKind::OpenId { issuer } if issuer == "https://id.example/realm/"),
            "exactly as it writes itself"
        );
    }

    #[test]
    fn what_is_half_there_is_a_problem() {
        for (settings, told) in [
            (&[("GITHUB_CLIENT_ID", "id")][..], "HUB_GITHUB_CLIENT_ID: requires github_client_secret"),
            (&[("LINUXDO_CLIENT_SECRET", "shh")], "HUB_LINUXDO_CLIENT_SECRET: requires linuxdo_client_id"),
            (&[("OIDC_ISSUER", "https://id.example")], "HUB_OIDC_ISSUER: requires oidc_client_id"),
            (&[("OIDC_CLIENT_ID", "hub")], "HUB_OIDC_CLIENT_ID: requires oidc_issuer"),
        ] {
            assert_eq!(problems(settings), [told]);
        }
        let open = [("OIDC_CLIENT_ID", "hub"), ("OIDC_ISSUER", "id.example"), ("OIDC_NAME", "The Company")];
        let told = problems(&open);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told.iter().any(|one| one.contains("HUB_OIDC_ISSUER") && one.contains("http://")),
            "{told:?}"
        );
        assert!(told.iter().any(|one| one.contains("HUB_OIDC_NAME") && one.contains("a-z, 0-9")), "{told:?}");
        for name in ["github", "providers", "authorize"] {
            let told = problems(&[
                ("GITHUB_CLIENT_ID", "id"),
                ("GITHUB_CLIENT_SECRET", "shh"),
                ("OIDC_CLIENT_ID", "hub"),
                ("OIDC_ISSUER", "https://id.example"),
                ("OIDC_NAME", name),
            ]);
            assert!(told.len() == 1 && told[0].contains("HUB_OIDC_NAME"), "{name}: {told:?}");
        }
        let told = problems(&[
            ("LINUXDO_CLIENT_ID", "id"),
            ("LINUXDO_CLIENT_SECRET", "shh"),
            ("LINUXDO_PROFILE_URL", "ftp://x"),
        ]);
        assert!(told.len() == 1 && told[0].contains("HUB_LINUXDO_PROFILE_URL"), "{told:?}");
    }
}
