//! Configuration of external sign-in providers.

use url::Url;

use crate::{
    error::{Error, Result},
    secret::Secret,
};

/// Names that the paths of the API use for something else.
const TAKEN: [&str; 3] = ["authorize", "providers", "token"];

/// An external provider to sign in with.
#[derive(Debug, Clone)]
pub struct Provider {
    /// Name in paths and in the store: `github`. A change of it loses the links.
    pub name: String,
    /// Label on buttons.
    pub display_name: String,
    /// Client id of the hub at the provider.
    pub client_id: String,
    /// Client secret of the hub at the provider.
    pub client_secret: Option<Secret>,
    /// Requested scopes.
    pub scopes: Vec<String>,
    /// Protocol and endpoints.
    pub kind: ProviderKind,
}

/// Protocol of a provider.
#[derive(Debug, Clone)]
pub enum ProviderKind {
    /// OAuth 2 with a profile in JSON.
    OAuth(Box<OAuthEndpoints>),
    /// OpenID Connect; the rest is discovered.
    OpenId {
        /// The issuer, exactly as in its own metadata.
        issuer: String,
    },
}

/// Endpoints of an OAuth 2 provider.
#[derive(Debug, Clone)]
pub struct OAuthEndpoints {
    /// Authorization endpoint, opened in the browser.
    pub authorize_url: Url,
    /// Token endpoint, which exchanges codes for tokens.
    pub token_url: Url,
    /// The profile endpoint: returns an object with `id`, and `login`, `username` or `name`.
    pub profile_url: Url,
}

fn endpoints(authorize_url: &str, token_url: &str, profile_url: &str) -> ProviderKind {
    let url = |text| Url::parse(text).expect("the addresses of presets are URLs");
    ProviderKind::OAuth(Box::new(OAuthEndpoints {
        authorize_url: url(authorize_url),
        token_url: url(token_url),
        profile_url: url(profile_url),
    }))
}

impl Provider {
    /// GitHub.
    pub fn github(client_id: impl Into<String>, client_secret: Secret) -> Self {
        Self {
            name: "github".to_owned(),
            display_name: "GitHub".to_owned(),
            client_id: client_id.into(),
            client_secret: Some(client_secret),
            scopes: vec!["read:user".to_owned()],
            kind: endpoints(
                "https://github.com/login/oauth/authorize",
                "https://github.com/login/oauth/access_token",
                "https://api.github.com/user",
            ),
        }
    }

    /// Linux DO.
    pub fn linuxdo(client_id: impl Into<String>, client_secret: Secret) -> Self {
        Self {
            name: "linuxdo".to_owned(),
            display_name: "LINUX DO".to_owned(),
            client_id: client_id.into(),
            client_secret: Some(client_secret),
            scopes: Vec::new(),
            kind: endpoints(
                "https://connect.linux.do/oauth2/authorize",
                "https://connect.linux.do/oauth2/token",
                "https://connect.linux.do/api/user",
            ),
        }
    }

    /// Any issuer of OpenID Connect.
    pub fn openid(
        name: impl Into<String>,
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        client_secret: Option<Secret>,
    ) -> Self {
        let name = name.into();
        Self {
            display_name: name.clone(),
            name,
            client_id: client_id.into(),
            client_secret,
            scopes: vec!["openid".to_owned(), "profile".to_owned()],
            kind: ProviderKind::OpenId { issuer: issuer.into() },
        }
    }

    /// Checks a name: 1 to 32 of `a-z0-9-`, and none that the API's paths use.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on the field `name`.
    pub fn check_name(name: &str) -> Result<()> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if !(1..=32).contains(&name.len()) || !name.bytes().all(allowed) {
            return Err(Error::invalid("name", "must be 1 to 32 of a-z, 0-9 and hyphens"));
        }
        if TAKEN.contains(&name) {
            return Err(Error::invalid("name", "is a path of the API already"));
        }
        Ok(())
    }
}
