//! External providers to sign in with.

use hub_core::{
    accounts::{OAuthEndpoints, Provider, ProviderKind},
    secret::Secret,
};
use url::Url;

use super::{Reader, mask_url, values::reason};

/// Client id, client secret, and the URLs for authorization, token and profile.
type Names = [&'static str; 5];

const GITHUB: Names = [
    "github_client_id",
    "github_client_secret",
    "github_authorize_url",
    "github_token_url",
    "github_profile_url",
];

const LINUXDO: Names = [
    "linuxdo_client_id",
    "linuxdo_client_secret",
    "linuxdo_authorize_url",
    "linuxdo_token_url",
    "linuxdo_profile_url",
];

/// Every provider that has a client id. All settings are read, so that all problems are reported.
pub(super) fn read_providers(reader: &mut Reader) -> Vec<Provider> {
    let github = read_preset(reader, GITHUB, Provider::github);
    let linuxdo = read_preset(reader, LINUXDO, Provider::linuxdo);
    let mut providers: Vec<Provider> = [github, linuxdo].into_iter().flatten().collect();
    if let Some(openid) = read_openid(reader) {
        if providers.iter().any(|preset| preset.name == openid.name) {
            reader.problem("oidc_name", format!("{:?} is the name of another provider", openid.name));
        }
        providers.push(openid);
    }
    providers
}

/// The texts of two settings that require each other, if both are given.
fn read_pair(reader: &mut Reader, names: [&'static str; 2], texts: [String; 2]) -> Option<[String; 2]> {
    match [0, 1].map(|index| !texts[index].is_empty()) {
        [true, true] => return Some(texts),
        [true, false] => reader.problem(names[0], format!("requires {}", names[1])),
        [false, true] => reader.problem(names[1], format!("requires {}", names[0])),
        [false, false] => {}
    }
    None
}

fn read_preset(
    reader: &mut Reader,
    [id, secret, authorize, token, profile]: Names,
    make: impl FnOnce(String, Secret) -> Provider,
) -> Option<Provider> {
    let texts = [id, secret].map(|name| reader.text(name));
    let own = [authorize, token, profile].map(|name| reader.url(name));
    let [id, secret] = read_pair(reader, [id, secret], texts)?;
    let mut provider = make(id, Secret::new(secret));
    if let ProviderKind::OAuth(endpoints) = &mut provider.kind {
        let OAuthEndpoints { authorize_url, token_url, profile_url } = &mut **endpoints;
        for (url, own) in [authorize_url, token_url, profile_url].into_iter().zip(own) {
            *url = own.unwrap_or_else(|| url.clone());
        }
    }
    Some(provider)
}

fn read_openid(reader: &mut Reader) -> Option<Provider> {
    let issuer = reader.text("oidc_issuer");
    let is_url = Url::parse(&issuer).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    if !issuer.is_empty() && !is_url {
        reader.problem("oidc_issuer", format!("{:?} must start with http:// or https://", mask_url(&issuer)));
    }
    let id = reader.text("oidc_client_id");
    let secret = reader.secret("oidc_client_secret");
    let name = reader
        .value("oidc_name", |name| Provider::check_name(name).map(|()| name.to_owned()).map_err(reason));
    let display_name = reader.text("oidc_display_name");
    let scopes = reader.text("oidc_scopes");
    let [issuer, id] = read_pair(reader, ["oidc_issuer", "oidc_client_id"], [issuer, id])?;
    let mut provider = Provider::openid(name, issuer, id, secret);
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
    fn a_provider_exists_if_it_has_a_client_id() {
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
    fn an_incomplete_provider_is_a_problem() {
        for (settings, reported) in [
            (&[("GITHUB_CLIENT_ID", "id")][..], "HUB_GITHUB_CLIENT_ID: requires github_client_secret"),
            (&[("LINUXDO_CLIENT_SECRET", "shh")], "HUB_LINUXDO_CLIENT_SECRET: requires linuxdo_client_id"),
            (&[("OIDC_ISSUER", "https://id.example")], "HUB_OIDC_ISSUER: requires oidc_client_id"),
            (&[("OIDC_CLIENT_ID", "hub")], "HUB_OIDC_CLIENT_ID: requires oidc_issuer"),
        ] {
            assert_eq!(problems(settings), [reported]);
        }
        let open = [("OIDC_CLIENT_ID", "hub"), ("OIDC_ISSUER", "id.example"), ("OIDC_NAME", "The Company")];
        let reported = problems(&open);
        assert_eq!(reported.len(), 2, "{reported:?}");
        assert!(
            reported.iter().any(|one| one.contains("HUB_OIDC_ISSUER") && one.contains("http://")),
            "{reported:?}"
        );
        assert!(
            reported.iter().any(|one| one.contains("HUB_OIDC_NAME") && one.contains("a-z, 0-9")),
            "{reported:?}"
        );
        for name in ["github", "providers", "authorize"] {
            let reported = problems(&[
                ("GITHUB_CLIENT_ID", "id"),
                ("GITHUB_CLIENT_SECRET", "shh"),
                ("OIDC_CLIENT_ID", "hub"),
                ("OIDC_ISSUER", "https://id.example"),
                ("OIDC_NAME", name),
            ]);
            assert!(reported.len() == 1 && reported[0].contains("HUB_OIDC_NAME"), "{name}: {reported:?}");
        }
        let reported = problems(&[
            ("LINUXDO_CLIENT_ID", "id"),
            ("LINUXDO_CLIENT_SECRET", "shh"),
            ("LINUXDO_PROFILE_URL", "ftp://x"),
        ]);
        assert!(reported.len() == 1 && reported[0].contains("HUB_LINUXDO_PROFILE_URL"), "{reported:?}");
    }
}
