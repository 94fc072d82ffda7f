//! Issuers of OpenID Connect: discovery, and the check of ID tokens. What identifies the user is strict (the signature,
//! `iss`, `sub`, `aud`, `exp`, `nonce`); everything else is ignored unless it has the expected form.

use chrono::{DateTime, Utc};
use data_encoding::BASE64URL_NOPAD;
use oauth2::{
    AccessToken, AuthType, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointNotSet, EndpointSet,
    ExtraTokenFields, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope, StandardRevocableToken,
    StandardTokenResponse, TokenResponse,
    basic::{
        BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenIntrospectionResponse, BasicTokenType,
    },
};
use openidconnect::{
    AccessTokenHash, IssuerUrl, JsonWebKey, Nonce,
    core::{
        CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod, CoreIdToken, CoreIdTokenVerifier,
        CoreJwsSigningAlgorithm, CoreProviderMetadata,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use super::{
    Provider, answers,
    exchange::{Profile, clean_url, describe, display, refusal},
    http,
};
use crate::{context::Context, secret::Secret};

/// Accepted signature algorithms: those with keys that only the issuer has.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 7] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// Member that OpenID Connect adds to the response of a token endpoint.
#[derive(Debug, Serialize, Deserialize)]
struct IdTokenText {
    id_token: Option<String>,
}

impl ExtraTokenFields for IdTokenText {}

/// Client that exchanges codes. The OpenID Connect library would reject an ID token with an odd claim, so the token
/// is read below.
type TokenClient = oauth2::Client<
    BasicErrorResponse,
    StandardTokenResponse<IdTokenText, BasicTokenType>,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
>;

/// Fetches the issuer's metadata; that it is under its own name is checked.
async fn discover(ctx: &Context, issuer: &str) -> Result<CoreProviderMetadata, String> {
    let issuer = IssuerUrl::new(issuer.to_owned()).map_err(|error| describe(&error))?;
    let http = http::client(&ctx.egress, answers::metadata);
    let found = CoreProviderMetadata::discover_async(issuer, &http).await;
    found.map_err(|error| describe(&error))
}

/// Sends the secret in HTTP Basic unless the issuer supports only the body (OpenID Connect Discovery,
/// section 3).
fn auth_type(metadata: &CoreProviderMetadata) -> AuthType {
    let supported = metadata.token_endpoint_auth_methods_supported();
    match supported {
        Some(methods) if !methods.contains(&CoreClientAuthMethod::ClientSecretBasic) => AuthType::RequestBody,
        _ => AuthType::BasicAuth,
    }
}

fn token_client(
    provider: &Provider,
    metadata: &CoreProviderMetadata,
    callback: Url,
) -> Result<TokenClient, String> {
    let token_url = metadata.token_endpoint().ok_or("the issuer has no token endpoint")?.clone();
    let client = oauth2::Client::new(ClientId::new(provider.client_id.clone()))
        .set_auth_type(auth_type(metadata))
        .set_token_uri(token_url)
        .set_redirect_uri(RedirectUrl::from_url(callback));
    Ok(match &provider.client_secret {
        Some(secret) => client.set_client_secret(ClientSecret::new(secret.expose().to_owned())),
        None => client,
    })
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
    let client =
        CoreClient::from_provider_metadata(metadata, ClientId::new(provider.client_id.clone()), None)
            .set_redirect_uri(RedirectUrl::from_url(callback));
    let nonce = nonce.to_owned();
    let request = client.authorize_url(
        CoreAuthenticationFlow::AuthorizationCode,
        || CsrfToken::new(state),
        || Nonce::new(nonce),
    );
    // The library adds `openid` by itself.
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
    let metadata = discover(ctx, issuer).await?;
    let token = token_client(provider, &metadata, callback)?
        .exchange_code(AuthorizationCode::new(code.expose().to_owned()))
        .set_pkce_verifier(verifier)
        .request_async(&http::client(&ctx.egress, answers::token))
        .await
        .map_err(|error| refusal(&error))?;
    let id_token = token.extra_fields().id_token.as_deref().ok_or("the issuer gave no ID token")?;
    let now = DateTime::<Utc>::from_timestamp_millis(ctx.store.now().as_millis()).unwrap_or_default();
    let expected = Expected { client_id: &provider.client_id, metadata: &metadata, nonce, now };
    let claims = verified_claims(id_token, token.access_token(), &expected)?;
    let subject = answers::text(&claims, "sub").filter(|subject| answers::is_subject(subject));
    let mut profile = Profile {
        subject: subject.ok_or("the subject is not one")?.to_owned(),
        username: display(&claims, &["preferred_username"]),
        name: display(&claims, &["name"]),
        avatar_url: clean_url(answers::text(&claims, "picture").unwrap_or_default()),
    };
    if profile.username.is_empty()
        && let Some(url) = metadata.userinfo_endpoint()
        // This request is optional and may fail.
        && let Ok(answer) = http::profile(&ctx.egress, url.as_str(), token.access_token().secret()).await
        && let Ok(info) = serde_json::from_slice::<Value>(answer.body())
        && answers::identifier(&info["sub"]).as_ref() == Some(&profile.subject)
    {
        profile.username = display(&info, &["preferred_username"]);
        if profile.name.is_empty() {
            profile.name = display(&info, &["name"]);
        }
    }
    Ok(profile)
}

/// Expected values of an ID token.
struct Expected<'e> {
    client_id: &'e str,
    metadata: &'e CoreProviderMetadata,
    nonce: &'e str,
    now: DateTime<Utc>,
}

/// Returns the claims of an ID token after all checks that identify the user. The signature is checked over the token
/// as received; the library then checks a copy of the claims without the others.
fn verified_claims(text: &str, access_token: &AccessToken, expected: &Expected<'_>) -> Result<Value, String> {
    let bad = || "the ID token cannot be read".to_owned();
    let decoded =
        |part: &str| BASE64URL_NOPAD.decode(part.trim_end_matches('=').as_bytes()).map_err(|_| bad());
    let (signed, signature) = text.rsplit_once('.').ok_or_else(bad)?;
    let (header, payload) = signed.split_once('.').ok_or_else(bad)?;
    let claims: Value = serde_json::from_slice(&decoded(payload)?).map_err(|_| bad())?;
    let checked = BASE64URL_NOPAD.encode(answers::checked_claims(&claims).to_string().as_bytes());
    let token: CoreIdToken =
        format!("{header}.{checked}.{signature}").parse().map_err(|error| describe(&error))?;

    let now = expected.now;
    let is_for_us = answers::text(&claims, "azp") == Some(expected.client_id);
    let verifier = CoreIdTokenVerifier::new_public_client(
        ClientId::new(expected.client_id.to_owned()),
        expected.metadata.issuer().clone(),
        expected.metadata.jwks().clone(),
    )
    .set_time_fn(move || now)
    // Other audiences are allowed if the token was issued to this client.
    .set_other_audience_verifier_fn(move |_| is_for_us);
    let algorithm = token.signing_alg().map_err(|error| describe(&error))?;
    if !ALGORITHMS.contains(algorithm) {
        return Err("the signature is of a kind that does not count".to_owned());
    }
    let key = token.signing_key(&verifier).map_err(|error| describe(&error))?;
    key.verify_signature(algorithm, signed.as_bytes(), &decoded(signature)?)
        .map_err(|error| describe(&error))?;
    let without_signature = verifier.clone().insecure_disable_signature_check();
    let found = token.claims(&without_signature, &Nonce::new(expected.nonce.to_owned()));
    let found = found.map_err(|error| describe(&error))?;
    if let Some(hash) = found.access_token_hash() {
        let right = AccessTokenHash::from_token(access_token, algorithm, key);
        if right.map_err(|error| describe(&error))? != *hash {
            return Err("the access token is not the one of the ID token".to_owned());
        }
    }
    Ok(claims)
}

#[cfg(test)]
mod tests;
