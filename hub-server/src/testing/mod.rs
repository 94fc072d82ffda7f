//! Actors for tests: the whole application in process, asked by people with or without credentials.

pub(crate) mod app_on_bot;

use std::sync::Arc;

use hub_core::{
    Hub, HubBuilder,
    access::Actor,
    accounts::{ClientInfo, NewUser},
    config::HubConfig,
    demo::{DemoReceiver, Playground},
    egress::{Egress, EgressConfig},
    local_http::LocalService,
    network::{
        ilink::{IlinkConfig, IlinkNetwork},
        sim::{SIM_HOST, SimConfig, Simulator},
    },
    random::Random,
    sandbox::{SandboxConfig, WorkerProgram},
    store::StoreConfig,
    time::{ManualClock, Timestamp},
};
use poem::{
    endpoint::BoxEndpoint,
    http::{Method, StatusCode},
    test::{TestClient, TestRequestBuilder, TestResponse},
};
use serde_json::{Value, json};

use crate::{AppSettings, app, credentials::PLAIN_COOKIE, settings::Values};

/// Password of every [`App::user`].
pub(crate) const PASSWORD: &str = "tr0mbone solo";

/// An application on a database of its own.
pub(crate) struct App {
    client: TestClient<BoxEndpoint<'static, poem::Response>>,
    pub(crate) hub: Hub,
    pub(crate) clock: ManualClock,
    pub(crate) settings: AppSettings,
    _folder: tempfile::TempDir,
}

/// A request that is being built.
pub(crate) type Ask<'r> = TestRequestBuilder<'r, BoxEndpoint<'static, poem::Response>>;

/// A client. Headers are sent with every request.
#[derive(Clone)]
pub(crate) struct Caller<'a> {
    app: &'a App,
    pub(crate) headers: Vec<(String, String)>,
}

pub(crate) struct Reply {
    pub(crate) response: poem::Response,
    pub(crate) bytes: Vec<u8>,
    pub(crate) json: Value,
}

impl App {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// With other settings than the default ones of a hub at `http://localhost:9800`.
    pub(crate) async fn with(change: impl FnOnce(&mut Values)) -> Self {
        Self::open(change, |builder, _| builder).await
    }

    /// With other settings of the domain.
    pub(crate) async fn configured(change: impl FnOnce(&mut HubConfig)) -> Self {
        let mut config = HubConfig::default();
        change(&mut config);
        Self::open(|_| {}, |builder, _| builder.config(config)).await
    }

    /// Where people reach it, for the domain too.
    pub(crate) async fn at(public_url: &str) -> Self {
        let url: url::Url = public_url.parse().unwrap();
        let mut config = HubConfig::default();
        config.public_url = url.clone();
        Self::open(|values| values.public_url = url, |builder, _| builder.config(config)).await
    }

    /// With another hub, and no limits of rates: many people come from one address.
    pub(crate) async fn with_hub(extend: impl FnOnce(HubBuilder) -> HubBuilder) -> Self {
        Self::open(unlimited, |builder, _| extend(builder)).await
    }

    /// With the simulated chat network.
    pub(crate) async fn with_simulator() -> (Self, Simulator) {
        let mut simulator = None;
        let app = Self::open(
            |_| {},
            |builder, clock| {
                let (network, built) = simulated(clock);
                simulator = Some(built);
                builder.network(network)
            },
        )
        .await;
        (app, simulator.unwrap())
    }

    /// The same, and the application runs the simulator itself, with a receiver and without limits of rates.
    pub(crate) async fn with_playground() -> (Self, Simulator) {
        let clock = ManualClock::new(Timestamp::from_millis(1_790_000_000_000));
        let (_, simulator) = simulated(&clock);
        let receiver = DemoReceiver::new(clock.clone().into());
        let playground = Playground { simulator: simulator.clone(), receiver };
        let network = network_of(&simulator, &clock);
        let change = |values: &mut Values| {
            values.playground = Some(playground);
            unlimited(values);
        };
        (Self::open(change, |builder, _| builder.network(network)).await, simulator)
    }

    async fn open(
        change: impl FnOnce(&mut Values),
        extend: impl FnOnce(HubBuilder, &ManualClock) -> HubBuilder,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::new(Timestamp::from_millis(1_790_000_000_000));
        let builder = Hub::builder()
            .store(StoreConfig::Sqlite(folder.path().join("hub.db")))
            .secret_key([7; 32])
            .clock(clock.clone())
            .random(Random::seeded(1))
            .sandbox(SandboxConfig::of(WorkerProgram::InProcessTrustedOnly));
        let hub = extend(builder, &clock).open().await.unwrap();
        let mut values = Values::new("http://localhost:9800".parse().unwrap());
        change(&mut values);
        let settings = AppSettings::from(values);
        let endpoint = poem::EndpointExt::boxed(app(hub.clone(), settings.clone()));
        Self { client: TestClient::new(endpoint), hub, clock, settings, _folder: folder }
    }

    /// The text of a page.
    pub(crate) async fn text(&self, path: &str) -> String {
        self.client.get(path).send().await.0.into_body().into_string().await.unwrap()
    }

    /// Every row of the database.
    pub(crate) async fn contents(&self) -> Vec<String> {
        let store = &self.hub.context().store;
        store.write(|tx| Box::pin(async move { tx.channels().contents().await })).await.unwrap()
    }

    /// A signed-in user in a browser on our own pages; the first one is admin.
    pub(crate) async fn user(&self, username: &str) -> Caller<'_> {
        let new = NewUser {
            username: username.to_owned(),
            password: PASSWORD.into(),
            display_name: None,
            email: None,
        };
        let signed_in = self.hub.accounts().register(new, None, &ClientInfo::default()).await.unwrap();
        let cookie = format!("{PLAIN_COOKIE}={}", signed_in.token.expose());
        self.stranger().with("Cookie", &cookie).with("Origin", "http://localhost:9800")
    }

    /// An administrator made at the command line, signed in in a browser.
    pub(crate) async fn operator_admin(&self, username: &str) -> Caller<'_> {
        let new = NewUser {
            username: username.to_owned(),
            password: PASSWORD.into(),
            display_name: None,
            email: None,
        };
        self.hub.accounts().create_admin(&Actor::Operator, new).await.unwrap();
        let signed_in = self.hub.accounts().login(username, PASSWORD.into(), &ClientInfo::default()).await;
        let cookie = format!("{PLAIN_COOKIE}={}", signed_in.unwrap().token.expose());
        self.stranger().with("Cookie", &cookie).with("Origin", "http://localhost:9800")
    }

    /// A client without any credential.
    pub(crate) fn stranger(&self) -> Caller<'_> {
        Caller { app: self, headers: Vec::new() }
    }
}

/// Many people come from one address.
fn unlimited(values: &mut Values) {
    let many = std::num::NonZeroU32::MAX;
    values.rate_limits.auth_per_ip = many;
    values.rate_limits.bad_credentials = many;
    values.rate_limits.default = many;
}

fn simulated(clock: &ManualClock) -> (IlinkNetwork, Simulator) {
    let simulator = Simulator::new(SimConfig::default(), clock.clone().into(), Random::seeded(2));
    (network_of(&simulator, clock), simulator)
}

fn network_of(simulator: &Simulator, clock: &ManualClock) -> IlinkNetwork {
    let service: Arc<dyn LocalService> = Arc::new(simulator.clone());
    let in_process = [(SIM_HOST.to_owned(), service)].into();
    let egress = Egress::new(EgressConfig { in_process, ..EgressConfig::default() }).unwrap();
    let url = |path: &str| format!("http://{SIM_HOST}{path}").parse().unwrap();
    let config =
        IlinkConfig { login_base_url: url("/"), cdn_base_url: url("/c2c"), ..IlinkConfig::default() };
    IlinkNetwork::new("sim", config, &egress, clock.clone().into(), Random::seeded(3)).unwrap()
}

/// Binds an account by scanning and confirming; gives the record of the bot.
pub(crate) async fn bind(caller: &Caller<'_>, simulator: &Simulator, person: Option<&str>) -> Value {
    let step = bind_step(caller, simulator, person).await;
    assert_eq!(step["status"], "confirmed", "{step}");
    step["bot"].clone()
}

/// The last step of a bind.
pub(crate) async fn bind_step(caller: &Caller<'_>, simulator: &Simulator, person: Option<&str>) -> Value {
    let started = caller.post("/api/bots/bind/start", &json!({"name": "Shop"})).await;
    let started = started.data();
    assert!(started["qr_svg"].as_str().unwrap().contains("<svg"));
    let qr_text = started["qr_text"].as_str().unwrap();
    let ask = json!({"bind_id": started["bind_id"], "wait_ms": 0});
    simulator.scan(qr_text).unwrap();
    let step = caller.post("/api/bots/bind/confirm", &ask).await;
    assert_eq!(step.data(), &json!({"network": "sim", "status": "scanned"}));
    simulator.confirm(qr_text, person).unwrap();
    caller.post("/api/bots/bind/confirm", &ask).await.data().clone()
}

impl Caller<'_> {
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, |request| request).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::POST, path, |request| request.body_json(body)).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        build: impl for<'r> FnOnce(Ask<'r>) -> Ask<'r>,
    ) -> Reply {
        let mut request = self.app.client.request(method, path);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        Reply::of(build(request).send().await).await
    }
}

impl Reply {
    pub(crate) async fn of(response: TestResponse) -> Self {
        let mut response = response.0;
        let bytes = response.take_body().into_bytes().await.unwrap().to_vec();
        Self { response, json: serde_json::from_slice(&bytes).unwrap_or(Value::Null), bytes }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name).map(|value| value.to_str().unwrap())
    }

    /// The data of a success; panics on anything else.
    #[track_caller]
    pub(crate) fn data(&self) -> &Value {
        assert_eq!(self.response.status(), StatusCode::OK, "{}", self.json);
        assert_eq!(self.json["success"], true, "{}", self.json);
        &self.json["data"]
    }

    /// The error of a failure with this status and code; panics on anything else.
    #[track_caller]
    pub(crate) fn error(&self, status: u16, code: &str) -> &Value {
        assert_eq!(self.response.status(), status, "{}", self.json);
        assert_eq!(self.json["success"], false, "{}", self.json);
        let error = &self.json["error"];
        assert_eq!(error["code"], code, "{}", self.json);
        assert_eq!(error["request_id"].as_str(), self.header("x-request-id"), "{}", self.json);
        error
    }
}
