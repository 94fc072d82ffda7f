//! Lenient parsing of provider responses: only the used members matter, in any form. The result is passed to the
//! libraries in the form of the standards.

use oauth2::HttpResponse;
use serde_json::{Map, Value, json};
use url::form_urlencoded;

/// Reads a JSON object, or a form, of which every value is text.
fn object(body: &[u8]) -> Option<Map<String, Value>> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii();
    if body.first() == Some(&b'{') {
        return serde_json::from_slice(body).ok();
    }
    let pairs = form_urlencoded::parse(body).into_owned().map(|(name, value)| (name, value.into()));
    Some(pairs.collect())
}

/// A member that is text and not empty.
pub(super) fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// An identifier: text, or a whole number.
pub(super) fn identifier(value: &Value) -> Option<String> {
    match value {
        Value::Number(id) if id.is_u64() => Some(id.to_string()),
        Value::String(id) if is_subject(id) => Some(id.clone()),
        _ => None,
    }
}

/// An id as issuers give them: at most 255 visible ASCII characters (OpenID Connect Core §2).
pub(super) fn is_subject(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}

/// The response of a token endpoint with the tokens or the error alone. Some providers report errors with status 200.
pub(super) fn token(response: HttpResponse) -> HttpResponse {
    let Some(answer) = object(response.body()).map(Value::Object) else { return response };
    if let Some(error) = text(&answer, "error") {
        return replaced(response, Some(http::StatusCode::BAD_REQUEST), &json!({ "error": error }));
    }
    let Some(token) = text(&answer, "access_token") else { return response };
    let mut tidy = json!({ "access_token": token, "token_type": "bearer" });
    if let Some(token) = text(&answer, "id_token") {
        tidy["id_token"] = token.into();
    }
    let status = response.status().is_success().then_some(http::StatusCode::OK);
    replaced(response, status, &tidy)
}

/// The metadata of an issuer with the members that are used; other responses of its discovery are not changed.
pub(super) fn metadata(response: HttpResponse) -> HttpResponse {
    let Some(found) = object(response.body()).map(Value::Object) else { return response };
    if text(&found, "issuer").is_none() {
        return response;
    }
    // Required by the standard, without use here.
    let mut tidy = json!({
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    });
    for name in ["issuer", "authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri"] {
        if let Some(value) = text(&found, name) {
            tidy[name] = value.into();
        }
    }
    if let Some(methods) = found["token_endpoint_auth_methods_supported"].as_array() {
        tidy["token_endpoint_auth_methods_supported"] =
            methods.iter().filter(|name| name.is_string()).cloned().collect();
    }
    replaced(response, None, &tidy)
}

/// Returns the claims of an ID token that are checked, without the others, whose types depend on the issuer. The
/// signature covers the whole text and is checked separately.
pub(super) fn checked_claims(claims: &Value) -> Value {
    // Required by the library, which does not check it.
    let mut tidy = json!({ "iat": 0 });
    for name in ["iss", "sub", "aud", "exp", "nonce"] {
        if let Some(value) = claims.get(name) {
            tidy[name] = value.clone();
        }
    }
    for name in ["azp", "at_hash"] {
        if let Some(value) = text(claims, name) {
            tidy[name] = value.into();
        }
    }
    tidy
}

fn replaced(response: HttpResponse, status: Option<http::StatusCode>, body: &Value) -> HttpResponse {
    let (mut head, _) = response.into_parts();
    head.status = status.unwrap_or(head.status);
    head.headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    HttpResponse::from_parts(head, body.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tidy: fn(HttpResponse) -> HttpResponse, status: u16, body: &str) -> (u16, Value) {
        let response = http::Response::builder().status(status).body(body.as_bytes().to_vec()).unwrap();
        let response = tidy(response);
        (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap_or_default())
    }

    #[test]
    fn a_token_is_read_from_every_form_of_answer() {
        let wanted = json!({ "access_token": "at", "token_type": "bearer" });
        for body in [
            r#"{"access_token":"at","token_type":"Bearer","expires_in":"3600"}"#,
            r#"{"access_token":"at","token_type":"BEARER","expires_in":3600.5,"scope":["read","write"]}"#,
            r#"{"access_token":"at","expires_in":null,"scope":null,"refresh_token":17,"token_type":null}"#,
            r#"{"access_token":"at","token_type":["bearer"],"id_token":null,"user":{"id":1}}"#,
            "access_token=at&scope=read%2Cwrite&token_type=bearer",
            "access_token=at&expires_in=28800&refresh_token=",
            "\u{feff}{\"access_token\":\"at\",\"error\":null}\n",
        ] {
            assert_eq!(read(token, 200, body), (200, wanted.clone()), "{body}");
        }
        let with_id = r#"{"id_token":"a.b.c","access_token":"at","expires_in":"soon"}"#;
        assert_eq!(read(token, 201, with_id).1["id_token"], "a.b.c");
        assert_eq!(read(token, 201, with_id).0, 200);
        assert_eq!(read(token, 500, with_id).0, 500, "a failure stays one");
        for body in [
            r#"{"error":"bad_verification_code","error_description":7}"#,
            "error=bad_verification_code&error_uri=x",
            r#"{"error":"bad_verification_code","access_token":"at"}"#,
        ] {
            assert_eq!(read(token, 200, body), (400, json!({ "error": "bad_verification_code" })), "{body}");
        }
        for body in ["", "<html>", "[]", "{}", r#"{"access_token":""}"#, r#"{"access_token":1}"#] {
            assert!(
                read(token, 200, body).1["access_token"].as_str().unwrap_or_default().is_empty(),
                "{body}"
            );
        }
    }

    #[test]
    fn metadata_needs_only_the_addresses() {
        let odd = json!({
            "issuer": "https://issuer.example", "authorization_endpoint": "https://issuer.example/a",
            "token_endpoint": "https://issuer.example/t", "jwks_uri": "https://issuer.example/k",
            "scopes_supported": "openid", "claims_parameter_supported": "true",
            "id_token_signing_alg_values_supported": ["RS256", "ES256K", 5],
            "token_endpoint_auth_methods_supported": ["client_secret_post", null, "tls_client_auth"],
            "mtls_endpoint_aliases": [1],
        });
        let tidy = read(metadata, 200, &odd.to_string()).1;
        assert_eq!(
            tidy["token_endpoint_auth_methods_supported"],
            json!(["client_secret_post", "tls_client_auth"])
        );
        serde_json::from_value::<openidconnect::core::CoreProviderMetadata>(tidy).unwrap();
        let keys = json!({ "keys": [] });
        assert_eq!(read(metadata, 200, &keys.to_string()).1, keys);
    }
}
