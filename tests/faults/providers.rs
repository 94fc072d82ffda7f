//! External providers that misbehave when the hub requests a token or a profile: no one is signed in, the hub keeps
//! working, and the user is back on the sign-in page.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::join_all;
use hub_core::{
    Hub,
    accounts::{Browser, ClientInfo, ExternalReturn, OAuthEndpoints, Provider, ProviderKind, ReturnError},
    config::HubConfig,
    egress::EgressConfig,
    local_http::{Cut, LocalService},
    secret::Secret,
    store::StoreConfig,
    time::Clock,
};
use serde_json::json;
use url::Url;

use crate::support::fault_receiver::{Behaviour, FaultReceiver, behaviours};

/// The deadline over one question is ten seconds; a busy machine may add some.
const TEST_TIMEOUT: Duration = Duration::from_secs(40);

/// Endpoint of the provider that misbehaves.
#[derive(Debug, Clone, Copy)]
enum At {
    Token,
    Profile,
}

/// The other endpoint, which responds correctly.
struct Sound;

#[async_trait]
impl LocalService for Sound {
    async fn call(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, Cut> {
        let body = match request.uri().path() {
            "/token" => json!({ "access_token": "at", "token_type": "bearer" }),
            _ => json!({ "id": 1, "login": "ada" }),
        };
        let response = http::Response::builder().header("content-type", "application/json");
        Ok(response.body(body.to_string().into()).unwrap())
    }
}

/// A provider of which one address is a misbehaving port, and the other is sound.
fn provider(name: String, at: At, port: Url) -> Provider {
    let sound = |path: &str| -> Url { format!("http://sound.test/{path}").parse().unwrap() };
    let (token_url, profile_url) = match at {
        At::Token => (port, sound("profile")),
        At::Profile => (sound("token"), port),
    };
    Provider {
        display_name: name.clone(),
        name,
        client_id: "hub".to_owned(),
        client_secret: Some("a secret of the provider's".into()),
        scopes: Vec::new(),
        kind: ProviderKind::OAuth(Box::new(OAuthEndpoints {
            authorize_url: sound("authorize"),
            token_url,
            profile_url,
        })),
    }
}

async fn come_back(hub: &Hub, provider: &str, browser: &Browser) -> Result<(), String> {
    let accounts = hub.accounts();
    let away =
        accounts.begin_external(provider, None, None, browser).await.map_err(|error| error.to_string())?;
    let state = away.url.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    let returned = ExternalReturn { state, code: Some(Secret::new("a code")), ..ExternalReturn::default() };
    let (cookie, client) = (Some(browser.cookie.expose()), ClientInfo::default());
    let finish = accounts.finish_external(provider, returned, cookie, None, &client);
    match Clock::system().timeout(TEST_TIMEOUT, finish).await {
        None => Err("it goes on and on".to_owned()),
        Some(Ok(_)) => Err("someone is signed in".to_owned()),
        Some(Err(ReturnError::Provider("provider_failed"))) => Ok(()),
        Some(Err(other)) => Err(format!("{other:?}")),
    }
}

#[tokio::test]
async fn no_misbehaviour_of_a_provider_creates_a_session() {
    let all = behaviours();
    assert!(all.len() >= 40, "{}", all.len());
    let mut ports = Vec::new();
    let mut config = HubConfig::default();
    for at in [At::Token, At::Profile] {
        for (n, behaviour) in all.iter().enumerate() {
            let port = FaultReceiver::open(behaviour).await;
            let name = format!("{}-{n}", if matches!(at, At::Token) { "token" } else { "profile" });
            config.providers.push(provider(name.clone(), at, port.url().parse().unwrap()));
            ports.push((name, behaviour, port));
        }
    }
    let egress = EgressConfig {
        allow: vec!["127.0.0.0/8".parse().unwrap()],
        in_process: [("sound.test".to_owned(), Arc::new(Sound) as Arc<dyn LocalService>)].into(),
        ..EgressConfig::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let builder = Hub::builder().store(StoreConfig::Sqlite(folder.path().join("hub.db"))).secret_key([7; 32]);
    let hub = builder.config(config).egress(egress).open().await.unwrap();
    let tries = ports.iter().map(async |(name, behaviour, _): &(String, &Behaviour, FaultReceiver)| {
        let browser = hub.accounts().browser(None);
        let came = come_back(&hub, name, &browser).await;
        came.err().map(|error| format!("{name} ({}): {error}", behaviour.name))
    });
    let wrong: Vec<String> = join_all(tries).await.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), ports.len(), wrong.join("\n"));
    assert!(!hub.context().store.read().await.unwrap().accounts().has_admin().await.unwrap());
    hub.shutdown().await;
}
