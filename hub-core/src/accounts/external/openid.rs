//! Issuers of OpenID Connect: discovery, and the check of ID tokens.

use chrono::{DateTime, Utc};
use oauth2::{
    AuthorizationCode, ClientId, ClientSecret, CsrfToken, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl,
    Scope,
};
use openidconnect::{
    AccessTokenHash, IssuerUrl, Nonce, OAuth2TokenResponse, TokenResponse,
    core::{
        CoreAuthenticationFlow, CoreClient, CoreJwsSigningAlgorithm, CoreProviderMetadata, CoreUserInfoClaims,
    },
};
use url::Url;

use super::{
    Provider,
    exchange::{Profile, clean, clean_url, describe, is_subject, refusal},
    http,
};
use crate::{context::Context, secret::Secret};

/// Signatures that count: those of keys that only the issuer has.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 7] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// What the issuer says about itself; that it says so under its own name is checked.
async fn discover(ctx: &Context, issuer: &str) -> Result<CoreProviderMetadata, String> {
    let issuer = IssuerUrl::new(issuer.to_owned()).map_err(|error| describe(&error))?;
    let found = CoreProviderMetadata::discover_async(issuer, &http::client(&ctx.egress)).await;
    found.map_err(|error| describe(&error))
}

fn secret(provider: &Provider) -> Option<ClientSecret> {
    provider.client_secret.as_ref().map(|secret| ClientSecret::new(secret.expose().to_owned()))
}

/// The issuer's page for one sign-in.
pub(super) async fn authorize_url(
    ctx: &Context,
    provider: &Provider,
    issuer: &str,
    callback: Url,
    state: String,
    challenge: PkceCodeChallenge,
    nonce: &str,
) -> Result<Url, String> {
    let metadata = discover(ctx, issuer).await?;
    let id = ClientId::new(provider.client_id.clone());
    let client = CoreClient::from_provider_metadata(metadata, id, secret(provider))
        .set_redirect_uri(RedirectUrl::from_url(callback));
    let nonce = nonce.to_owned();
    let request = client.authorize_url(
        CoreAuthenticationFlow::AuthorizationCode,
        || CsrfToken::new(state),
        || Nonce::new(nonce),
    );
    // The library asks for `openid` by itself.
    let scopes = provider.scopes.iter().filter(|scope| *scope != "openid").cloned().map(Scope::new);
    Ok(request.add_scopes(scopes).set_pkce_challenge(challenge).url().0)
}

/// Exchanges the code and reads the ID token: its signature, issuer, audience, times, nonce, and that the
/// access token is the one it was given with. The error is for the log.
pub(super) async fn profile(
    ctx: &Context,
    provider: &Provider,
    issuer: &str,
    callback: Url,
    code: Secret,
    verifier: PkceCodeVerifier,
    nonce: &str,
) -> Result<Profile, String> {
    let http = http::client(&ctx.egress);
    let metadata = discover(ctx, issuer).await?;
    let id = ClientId::new(provider.client_id.clone());
    let client = CoreClient::from_provider_metadata(metadata, id, secret(provider))
        .set_redirect_uri(RedirectUrl::from_url(callback));
    let token = client
        .exchange_code(AuthorizationCode::new(code.expose().to_owned()))
        .map_err(|error| describe(&error))?
        .set_pkce_verifier(verifier)
        .request_async(&http)
        .await
        .map_err(|error| refusal(&error))?;
    let id_token = token.id_token().ok_or("the issuer gave no ID token")?;
    let now = ctx.store.now();
    let id_verifier = client
        .id_token_verifier()
        .set_allowed_algs(ALGORITHMS)
        .set_time_fn(move || DateTime::<Utc>::from_timestamp_millis(now.as_millis()).unwrap_or_default());
    let claims =
        id_token.claims(&id_verifier, &Nonce::new(nonce.to_owned())).map_err(|error| describe(&error))?;
    if let Some(expected) = claims.access_token_hash() {
        let algorithm = id_token.signing_alg().map_err(|error| describe(&error))?;
        let key = id_token.signing_key(&id_verifier).map_err(|error| describe(&error))?;
        let hash = AccessTokenHash::from_token(token.access_token(), algorithm, key);
        if hash.map_err(|error| describe(&error))? != *expected {
            return Err("the access token is not the one of the ID token".to_owned());
        }
    }
    let subject = claims.subject().as_str();
    if !is_subject(subject) {
        return Err("the subject is not one".to_owned());
    }
    let mut profile = Profile {
        subject: subject.to_owned(),
        username: clean(claims.preferred_username().map_or("", |name| name.as_str())),
        name: clean(claims.name().and_then(|name| name.get(None)).map_or("", |name| name.as_str())),
        avatar_url: clean_url(claims.picture().and_then(|url| url.get(None)).map_or("", |url| url.as_str())),
    };
    if profile.username.is_empty()
        && let Ok(request) = client.user_info(token.access_token().clone(), Some(claims.subject().clone()))
    {
        // What is only nice to know may fail.
        let info: Result<CoreUserInfoClaims, _> = request.request_async(&http).await;
        if let Ok(info) = info {
            profile.username = clean(info.preferred_username().map_or("", |name| name.as_str()));
            if profile.name.is_empty() {
                let name = info.name().and_then(|name| name.get(None));
                profile.name = clean(name.map_or("", |name| name.as_str()));
            }
        }
    }
    Ok(profile)
}
