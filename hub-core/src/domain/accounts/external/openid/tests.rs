use data_encoding::BASE64;
use openidconnect::{
    AuthUrl, EmptyAdditionalProviderMetadata, JsonWebKeyId, JsonWebKeySet, JsonWebKeySetUrl,
    PrivateSigningKey, ResponseTypes,
    core::{CoreEdDsaPrivateSigningKey, CoreResponseType, CoreSubjectIdentifierType},
};
use serde_json::json;

use super::*;

const ISSUER: &str = "https://issuer.example";
const NOW: i64 = 1_790_000_000;

/// A key of Ed25519 from its seed, as RFC 8410 §7 writes it.
fn key(seed: u8) -> CoreEdDsaPrivateSigningKey {
    let prefix = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let der = [&prefix[..], &[seed; 32]].concat();
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", BASE64.encode(&der));
    CoreEdDsaPrivateSigningKey::from_ed25519_pem(&pem, Some(JsonWebKeyId::new("k".to_owned()))).unwrap()
}

fn metadata() -> CoreProviderMetadata {
    CoreProviderMetadata::new(
        IssuerUrl::new(ISSUER.to_owned()).unwrap(),
        AuthUrl::new(format!("{ISSUER}/authorize")).unwrap(),
        JsonWebKeySetUrl::new(format!("{ISSUER}/jwks")).unwrap(),
        vec![ResponseTypes::new(vec![CoreResponseType::Code])],
        vec![CoreSubjectIdentifierType::Public],
        vec![CoreJwsSigningAlgorithm::EdDsa],
        EmptyAdditionalProviderMetadata {},
    )
    .set_jwks(JsonWebKeySet::new(vec![key(1).as_verification_key()]))
}

fn claims() -> Value {
    json!({ "iss": ISSUER, "sub": "ada", "aud": "hub", "exp": NOW + 60, "iat": NOW, "nonce": "once" })
}

fn part(value: &Value) -> String {
    BASE64URL_NOPAD.encode(value.to_string().as_bytes())
}

/// A token with these claims, signed with the key of a seed.
fn signed(seed: u8, claims: &Value) -> String {
    let signed = format!("{}.{}", part(&json!({ "alg": "EdDSA", "kid": "k", "typ": "JWT" })), part(claims));
    let signature = key(seed).sign(&CoreJwsSigningAlgorithm::EdDsa, signed.as_bytes()).unwrap();
    format!("{signed}.{}", BASE64URL_NOPAD.encode(&signature))
}

fn read(token: &str) -> Result<Value, String> {
    let metadata = metadata();
    let now = DateTime::from_timestamp(NOW, 0).unwrap();
    let expected = Expected { client_id: "hub", metadata: &metadata, nonce: "once", now };
    verified_claims(token, &AccessToken::new("access".to_owned()), &expected)
}

#[test]
fn a_token_is_read_whatever_its_other_claims_are() {
    for (name, value) in [
        ("iat", json!("2026-11-29T00:00:00Z")),
        ("updated_at", json!("yesterday")),
        ("email_verified", json!("true")),
        ("address", json!("Main Street")),
        ("at_hash", json!(17)),
        ("amr", json!("pwd")),
        ("auth_time", json!(null)),
        ("aud", json!(["hub"])),
        ("name", json!({ "en": "Ada" })),
    ] {
        let mut claims = claims();
        claims[name] = value;
        assert_eq!(read(&signed(1, &claims)).as_ref(), Ok(&claims), "{name}");
    }
    let mut several = claims();
    (several["aud"], several["azp"]) = (json!(["other", "hub"]), json!("hub"));
    assert!(read(&signed(1, &several)).is_ok());
}

#[test]
fn claims_that_identify_the_user_have_to_be_right() {
    for (name, value) in [
        ("iss", json!("https://issuer.example.evil")),
        ("iss", json!(null)),
        ("aud", json!("another")),
        ("aud", json!(["another", "hub"])),
        ("aud", json!([])),
        ("exp", json!(NOW - 1)),
        ("exp", json!("later")),
        ("nonce", json!("twice")),
        ("nonce", json!(null)),
        ("sub", json!(null)),
        ("at_hash", json!("AAAAAAAAAAAAAAAAAAAAAA")),
    ] {
        let mut claims = claims();
        claims[name] = value.clone();
        assert!(read(&signed(1, &claims)).is_err(), "{name} {value}");
    }
    for name in ["iss", "aud", "exp", "nonce", "sub"] {
        let mut claims = claims();
        claims.as_object_mut().unwrap().remove(name);
        assert!(read(&signed(1, &claims)).is_err(), "without {name}");
    }
}

#[test]
fn the_signature_is_that_of_the_issuer_over_the_token_as_it_came() {
    let token = signed(1, &claims());
    assert!(read(&token).is_ok());
    assert!(read(&signed(2, &claims())).is_err(), "the key of another");
    let [header, payload, signature] = *token.split('.').collect::<Vec<_>>() else { unreachable!() };
    let mut changed = claims();
    changed["sub"] = json!("bob");
    let mut added = claims();
    // Not among the claims that the library checks.
    added["preferred_username"] = json!("root");
    let mac = part(&json!({ "alg": "HS256", "kid": "k" }));
    let none = part(&json!({ "alg": "none" }));
    for forged in [
        format!("{header}.{}.{signature}", part(&changed)),
        format!("{header}.{}.{signature}", part(&added)),
        format!("{none}.{payload}.{signature}"),
        format!("{none}.{payload}."),
        format!("{mac}.{payload}.{signature}"),
        format!("{}.{payload}.{signature}", part(&json!({ "alg": "EdDSA", "kid": "another" }))),
        format!("{header}.{payload}."),
        format!("{header}.{payload}"),
        format!("{header}.{payload}.{}", BASE64URL_NOPAD.encode(&[0; 64])),
        format!("{header}.{payload}.{signature}.{signature}"),
        String::new(),
        "..".to_owned(),
    ] {
        assert!(read(&forged).is_err(), "{forged}");
    }
}
