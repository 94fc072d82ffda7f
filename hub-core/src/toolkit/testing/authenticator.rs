//! A passkey in software, which can also respond like a hostile one.

use data_encoding::BASE64URL_NOPAD;
use p256::ecdsa::{Signature, SigningKey, signature::Signer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// An authenticator with one key pair. It signs whatever it is given; honest unless a test changes its fields.
#[derive(Debug, Clone)]
pub struct Authenticator {
    /// Origin of the page that requests the key, as the browser sees it.
    pub origin: String,
    /// The site the key belongs to.
    pub rp_id: String,
    /// Id of the credential.
    pub credential_id: Vec<u8>,
    /// The user that it reports: the handle that the hub gave when the key was created.
    pub user_handle: Option<Vec<u8>>,
    /// Uses so far; 0 for a key that does not count.
    pub counter: u32,
    /// Whether it reports that the user is verified.
    pub user_verified: bool,
    /// Whether it reports that the key may be synchronised, and is.
    pub synchronised: bool,
    key: SigningKey,
}

impl Authenticator {
    /// A key for the pages at `origin`. The same seed makes the same key.
    pub fn new(origin: &str, seed: u64) -> Self {
        let secret = Sha256::digest(seed.to_be_bytes());
        let host: url::Url = origin.parse().unwrap();
        Self {
            origin: origin.to_owned(),
            rp_id: host.host_str().unwrap().to_owned(),
            credential_id: Sha256::digest(secret).to_vec(),
            user_handle: None,
            counter: 0,
            user_verified: true,
            synchronised: false,
            key: SigningKey::from_slice(&secret).unwrap(),
        }
    }

    /// Answers creation options, as `navigator.credentials.create` and `toJSON` do.
    pub fn create(&mut self, options: &Value) -> Value {
        let handle = options["user"]["id"].as_str().unwrap();
        self.user_handle = Some(BASE64URL_NOPAD.decode(handle.as_bytes()).unwrap());
        let public = self.key.verifying_key().to_sec1_bytes();
        let (x, y) = (&public[1..33], &public[33..65]);
        let mut data = self.authenticator_data(0x40);
        data.extend([0; 16]);
        data.extend(u16::try_from(self.credential_id.len()).unwrap().to_be_bytes());
        data.extend(&self.credential_id);
        // The public key as COSE: ES256 on P-256.
        data.extend([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20]);
        data.extend(x);
        data.extend([0x22, 0x58, 0x20]);
        data.extend(y);
        let mut attestation = b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59".to_vec();
        attestation.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        attestation.extend(data);
        self.answer(&json!({
            "clientDataJSON": self.client_data("webauthn.create", options),
            "attestationObject": BASE64URL_NOPAD.encode(&attestation),
            "transports": ["internal", "something-new"],
        }))
    }

    /// Answers request options, as `navigator.credentials.get` and `toJSON` do, and counts if it counts.
    pub fn get(&mut self, options: &Value) -> Value {
        if self.counter > 0 {
            self.counter += 1;
        }
        let data = self.authenticator_data(0);
        let client_data = self.client_data("webauthn.get", options);
        let mut signed = data.clone();
        signed.extend(Sha256::digest(BASE64URL_NOPAD.decode(client_data.as_bytes()).unwrap()));
        let signature: Signature = self.key.sign(&signed);
        let mut response = json!({
            "clientDataJSON": client_data,
            "authenticatorData": BASE64URL_NOPAD.encode(&data),
            "signature": BASE64URL_NOPAD.encode(signature.to_der().as_bytes()),
        });
        if let Some(handle) = &self.user_handle {
            response["userHandle"] = BASE64URL_NOPAD.encode(handle).into();
        }
        self.answer(&response)
    }

    fn answer(&self, response: &Value) -> Value {
        let id = BASE64URL_NOPAD.encode(&self.credential_id);
        json!({ "id": id, "rawId": id, "type": "public-key", "response": response, "clientExtensionResults": {} })
    }

    fn authenticator_data(&self, flags: u8) -> Vec<u8> {
        let mut data = Sha256::digest(&self.rp_id).to_vec();
        let user_verified = if self.user_verified { 0x04 } else { 0 };
        let synchronised = if self.synchronised { 0x08 | 0x10 } else { 0 };
        data.push(flags | 0x01 | user_verified | synchronised);
        data.extend(self.counter.to_be_bytes());
        data
    }

    fn client_data(&self, kind: &str, options: &Value) -> String {
        let text = json!({
            "type": kind, "challenge": options["challenge"], "origin": self.origin, "crossOrigin": false,
        });
        BASE64URL_NOPAD.encode(text.to_string().as_bytes())
    }
}
