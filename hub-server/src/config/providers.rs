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
            reader.problem(&id_origin, format!("needs {} beside it", names.client_secret));
            return None;
        }
        (true, false) => {
            reader.problem(&secret_origin, format!("needs {} beside it", names.client_id));
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
            reader.problem(&issuer_origin, "needs oidc_client_id beside it");
            return None;
        }
        (true, false) => {
            reader.problem(&id_origin, "needs oidc_issuer beside it");
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
