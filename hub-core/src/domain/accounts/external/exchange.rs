//! Exchanges an authorization code for a profile.

use oauth2::{
    AuthType, AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointNotSet, EndpointSet,
    PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope, TokenResponse, TokenUrl,
    basic::{BasicClient, BasicErrorResponseType, BasicRequestTokenError},
};
use serde_json::Value;
use url::Url;

use super::{OAuthEndpoints, Provider, ProviderKind, answers, http, openid};
use crate::{
    accounts::Accounts,
    error::{Error, ErrorCode, Result},
    secret::Secret,
};

/// Longest text that is copied from a provider, in characters.
const MAX_TEXT: usize = 256;

/// An identity at a provider.
#[derive(Debug)]
pub(super) struct Profile {
    /// Id at the provider.
    pub(super) subject: String,
    /// Username at the provider.
    pub(super) username: String,
    /// Display name at the provider.
    pub(super) name: String,
    /// Picture at the provider.
    pub(super) avatar_url: String,
}

type OAuthClient = BasicClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

impl Accounts<'_> {
    /// Builds the URL of the provider's page for one sign-in.
    pub(super) async fn authorize_url(
        &self,
        provider: &Provider,
        state: &Secret,
        challenge: PkceCodeChallenge,
        nonce: &str,
    ) -> Result<Url> {
        let callback = self.callback_url(provider);
        let (state, scopes) = (state.expose().to_owned(), provider.scopes.iter().cloned().map(Scope::new));
        match &provider.kind {
            ProviderKind::OAuth(endpoints) => {
                let client = oauth_client(provider, endpoints, callback);
                let request = client.authorize_url(|| CsrfToken::new(state)).add_scopes(scopes);
                Ok(request.set_pkce_challenge(challenge).url().0)
            }
            ProviderKind::OpenId { issuer } => {
                openid::authorize_url(self.ctx, provider, issuer, callback, state, challenge, nonce)
                    .await
                    .map_err(|reason| {
                        tracing::warn!(provider = %provider.name, %reason, "an issuer was not found");
                        Error::new(ErrorCode::UpstreamError, "the provider cannot be reached")
                    })
            }
        }
    }

    /// Exchanges the code and fetches the profile. The token is dropped afterwards. The error is for the log.
    pub(super) async fn profile(
        &self,
        provider: &Provider,
        code: Secret,
        verifier: PkceCodeVerifier,
        nonce: &str,
        iss: Option<&str>,
    ) -> Result<Profile, String> {
        let callback = self.callback_url(provider);
        match &provider.kind {
            ProviderKind::OAuth(endpoints) => {
                let http = http::client(&self.ctx.egress, answers::token);
                let client = oauth_client(provider, endpoints, callback);
                let token = client
                    .exchange_code(AuthorizationCode::new(code.expose().to_owned()))
                    .set_pkce_verifier(verifier)
                    .request_async(&http)
                    .await
                    .map_err(|error| refusal(&error))?;
                let (url, token) = (endpoints.profile_url.as_str(), token.access_token().secret());
                let answer =
                    http::profile(&self.ctx.egress, url, token).await.map_err(|error| describe(&error))?;
                if answer.status() != 200 {
                    return Err(format!("the profile was answered with {}", answer.status()));
                }
                read_profile(answer.body())
            }
            ProviderKind::OpenId { issuer } => {
                if iss.is_some_and(|iss| iss != issuer) {
                    return Err("the answer is another issuer's".to_owned());
                }
                openid::profile(self.ctx, provider, issuer, callback, code, verifier, nonce).await
            }
        }
    }
}

fn oauth_client(provider: &Provider, endpoints: &OAuthEndpoints, callback: Url) -> OAuthClient {
    let client = BasicClient::new(ClientId::new(provider.client_id.clone()))
        // Providers of this kind read the secret from the body.
        .set_auth_type(AuthType::RequestBody)
        .set_auth_uri(AuthUrl::from_url(endpoints.authorize_url.clone()))
        .set_token_uri(TokenUrl::from_url(endpoints.token_url.clone()))
        .set_redirect_uri(RedirectUrl::from_url(callback));
    match &provider.client_secret {
        Some(secret) => client.set_client_secret(ClientSecret::new(secret.expose().to_owned())),
        None => client,
    }
}

/// Joins an error and its causes in one line. The libraries' errors name no secrets; responses of providers are left
/// out.
pub(super) fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(current) = cause {
        text = format!("{text}: {current}");
        cause = current.source();
    }
    text.chars().filter(|c| !c.is_control()).take(MAX_TEXT).collect()
}

/// Describes why there is no token. Of a provider's error only the codes of RFC 6749 §5.2 are used: the rest may
/// repeat the request, which includes secrets.
pub(super) fn refusal<E: std::error::Error + 'static>(error: &BasicRequestTokenError<E>) -> String {
    match error {
        RequestTokenError::ServerResponse(refused) => match refused.error() {
            BasicErrorResponseType::Extension(_) => "the provider refused the code".to_owned(),
            known => format!("the provider refused the code: {}", known.as_ref()),
        },
        other => describe(other),
    }
}

/// Reads a profile, strict for the identity, lenient for display data.
fn read_profile(body: &[u8]) -> Result<Profile, String> {
    let json: Value =
        serde_json::from_slice(body).map_err(|error| format!("the profile is no JSON: {error}"))?;
    let subject = answers::identifier(&json["id"]).ok_or("the profile has no id")?;
    Ok(Profile {
        subject,
        username: display(&json, &["login", "username", "preferred_username"]),
        name: display(&json, &["name", "login", "username"]),
        avatar_url: clean_url(json["avatar_url"].as_str().unwrap_or_default()),
    })
}

/// Returns the first of these members that is text; empty if none is.
pub(super) fn display(json: &Value, names: &[&str]) -> String {
    clean(names.iter().find_map(|name| answers::text(json, name)).unwrap_or_default())
}

pub(super) fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_TEXT).collect()
}

/// Keeps https URLs only, because browsers load the pictures.
pub(super) fn clean_url(text: &str) -> String {
    let fits = text.len() <= 2048 && Url::parse(text).is_ok_and(|url| url.scheme() == "https");
    if fits { clean(text) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_without_a_valid_id_is_rejected() {
        let read = |text: &str| read_profile(text.as_bytes());
        let octocat = read(r#"{"id":583231,"login":"octocat","name":"","avatar_url":"https://a.example/1"}"#);
        let octocat = octocat.unwrap();
        assert_eq!((octocat.subject.as_str(), octocat.username.as_str()), ("583231", "octocat"));
        assert_eq!((octocat.name.as_str(), octocat.avatar_url.as_str()), ("octocat", "https://a.example/1"));
        assert_eq!(read(r#"{"id":"a-b","avatar_url":"javascript:1"}"#).unwrap().avatar_url, "");
        for bad in [
            "",
            "[]",
            "null",
            "{}",
            r#"{"id":null}"#,
            r#"{"id":-1}"#,
            r#"{"id":1.5}"#,
            r#"{"id":true}"#,
            r#"{"id":""}"#,
            r#"{"id":{"id":1}}"#,
            r#"{"id":"a\u0000b"}"#,
            r#"{"sub":"1"}"#,
            "<html>",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
