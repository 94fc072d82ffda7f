//! Responses of a browser at the end of a passkey ceremony.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use data_encoding::BASE64URL_NOPAD;
use hub_core::{
    Error, ErrorCode, Hub,
    access::Actor,
    accounts::{Browser, ClientInfo, NewPasskey, NewUser},
    page::PageRequest,
    random::Random,
    store::StoreConfig,
    time::{ManualClock, Timestamp},
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

const ORIGIN: &str = "http://localhost:9800";

/// A hub with one user, who is signed in and adds passkeys.
struct Fixture {
    runtime: Runtime,
    hub: Hub,
    ada: Actor,
    browser: Browser,
}

static HOUSE: LazyLock<Fixture> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let (hub, ada) = runtime.block_on(open());
    let browser = hub.accounts().browser(None);
    Fixture { runtime, hub, ada, browser }
});

/// Creates an empty folder for the database, and deletes that of the last run.
fn folder() -> PathBuf {
    let folder = match option_env!("CARGO_TARGET_TMPDIR") {
        Some(folder) => Path::new(folder).join("passkey-fuzz"),
        None => std::env::temp_dir().join(format!("hub-passkey-fuzz-{}", std::process::id())),
    };
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

async fn open() -> (Hub, Actor) {
    let builder = Hub::builder()
        .store(StoreConfig::Sqlite(folder().join("hub.db")))
        .secret_key([7; 32])
        .clock(ManualClock::new(Timestamp::from_millis(1_790_000_000_000)))
        .random(Random::seeded(1));
    let hub = builder.open().await.expect("a hub");
    let ada = NewUser {
        username: "ada".to_owned(),
        password: "correct horse battery".into(),
        display_name: None,
        email: None,
    };
    let signed_in = hub.accounts().register(ada, None, &ClientInfo::default()).await.expect("a user");
    let ada = hub.accounts().authenticate_session(signed_in.token.expose()).await.expect("a session");
    (hub, ada)
}

/// The first byte says what follows. `J`, `L`: the JSON of a whole answer, to making a passkey and to signing in.
/// `R`: an attestation object, in an answer that is right otherwise. `A`: authenticator data and, behind the first
/// `0xff 0xff`, a signature, in such an answer. Whatever it is, it is refused as a broken or a wrong answer, or makes
/// a passkey; and no one signs in, since no one has the key.
pub fn passkey(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    let fixture = &*HOUSE;
    match kind {
        b'J' | b'R' => fixture.runtime.block_on(fixture.make(*kind, rest)),
        b'L' | b'A' => fixture.runtime.block_on(fixture.sign_in(*kind, rest)),
        _ => {}
    }
}

impl Fixture {
    async fn make(&self, kind: u8, rest: &[u8]) {
        let accounts = self.hub.accounts();
        let begin = async || {
            accounts.begin_passkey_registration(Some(&self.ada), NewPasskey::default(), &self.browser).await
        };
        let begun = match begin().await {
            Err(full) if full.code() == ErrorCode::Conflict => {
                self.forget_passkeys().await;
                begin().await
            }
            begun => begun,
        };
        let begun = begun.expect("a ceremony");
        let answer = if kind == b'J' {
            serde_json::from_slice(rest).ok()
        } else {
            Some(answer(&json!({
                "clientDataJSON": client_data("webauthn.create", &begun.public_key),
                "attestationObject": BASE64URL_NOPAD.encode(rest),
            })))
        };
        let Some(answer) = answer else { return };
        let (flow, cookie) = (begun.flow_id.expose(), Some(self.browser.cookie.expose()));
        let (ada, client) = (Some(&self.ada), &ClientInfo::default());
        if let Err(error) = accounts.finish_passkey_registration(ada, flow, cookie, answer, client).await {
            check(&error, &[ErrorCode::InvalidParams, ErrorCode::InvalidToken, ErrorCode::Conflict]);
        }
    }

    async fn sign_in(&self, kind: u8, rest: &[u8]) {
        let accounts = self.hub.accounts();
        let begun = accounts.begin_passkey_login(None, &self.browser).await.expect("a ceremony");
        let answer = if kind == b'L' {
            serde_json::from_slice(rest).ok()
        } else {
            let at = rest.windows(2).position(|pair| pair == [0xff, 0xff]).unwrap_or(rest.len());
            let (data, signature) = (&rest[..at], rest.get(at + 2..).unwrap_or_default());
            Some(answer(&json!({
                "clientDataJSON": client_data("webauthn.get", &begun.public_key),
                "authenticatorData": BASE64URL_NOPAD.encode(data),
                "signature": BASE64URL_NOPAD.encode(signature),
            })))
        };
        let Some(answer) = answer else { return };
        let (flow, cookie) = (begun.flow_id.expose(), self.browser.cookie.expose());
        let entered = accounts.finish_passkey_login(flow, Some(cookie), answer, &ClientInfo::default()).await;
        let error = entered.expect_err("no one has the key");
        check(&error, &[ErrorCode::InvalidParams, ErrorCode::InvalidToken]);
    }

    async fn forget_passkeys(&self) {
        let accounts = self.hub.accounts();
        let all = accounts.passkeys(&self.ada, &PageRequest::default()).await.expect("a list");
        for passkey in all.items {
            accounts.delete_passkey(&self.ada, passkey.id).await.expect("it was there");
        }
    }
}

fn check(error: &Error, allowed: &[ErrorCode]) {
    assert!(allowed.contains(&error.code()), "{error:?}");
}

fn answer(response: &Value) -> Value {
    json!({
        "id": "e30", "rawId": "e30", "type": "public-key", "response": response, "clientExtensionResults": {},
    })
}

fn client_data(kind: &str, options: &Value) -> String {
    let text =
        json!({ "type": kind, "challenge": options["challenge"], "origin": ORIGIN, "crossOrigin": false });
    BASE64URL_NOPAD.encode(text.to_string().as_bytes())
}
