//! A running server with the demo bot and its channel, and the command line for it.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::{Command, Output},
    sync::Arc,
    time::Duration,
};

use hub_core::{
    Hub,
    access::Actor,
    accounts::{ClientInfo, NewApiKey, NewUser},
    bots::Message,
    config::HubConfig,
    data_dir,
    demo::{ADA, Demo, DemoListener, DemoReceiver, RECEIVER_HOST, connector, seed},
    egress::EgressConfig,
    local_http::{self, Limits},
    network::sim::{SimConfig, Simulator},
    page::PageRequest,
    random::Random,
    sandbox::{SandboxConfig, WorkerProgram},
    store::StoreConfig,
    tasks::Tasks,
    time::Clock,
    traces::{Trace, TraceQuery},
};
use hub_server::{
    AppSettings, app,
    rate_limit::RateLimitSettings,
    serve::{ServeLimits, Server, bind},
    settings::Values,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::program::{command, ends};

/// Maximum number of polls, one per 50 ms.
const MAX_POLLS: u32 = 600;

pub struct Stage {
    pub folder: TempDir,
    pub receiver: DemoReceiver,
    pub demo: Demo,
    pub url: String,
    /// An API key of Ada's.
    pub key: String,
    /// The secret of a session of hers.
    session: String,
    pub simulator: Simulator,
    /// Where the simulator and the receiver are controlled.
    pub sim: String,
    hub: Hub,
    settings: AppSettings,
    tasks: Tasks,
    runtime: Runtime,
}

impl Stage {
    pub fn new() -> Self {
        let (folder, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
        let (clock, random) = (Clock::system(), Random::system());
        let simulator = Simulator::new(SimConfig::quick(), clock.clone(), random.clone());
        let receiver = DemoReceiver::new(clock.clone());
        let mut egress = EgressConfig::default();
        egress.in_process.insert(RECEIVER_HOST.to_owned(), Arc::new(receiver.clone()));
        let mut config = HubConfig::default();
        // No one waits for the result of the pending long poll.
        config.poll_grace = Duration::ZERO;
        let worker = WorkerProgram::Path(env!("CARGO_BIN_EXE_hub-cli").into());
        let (hub, demo, key, session) = runtime.block_on(async {
            let hub = Hub::builder()
                .config(config)
                .store(StoreConfig::Sqlite(data_dir::database(folder.path())))
                .secret_key(data_dir::load_key(folder.path(), &random).unwrap())
                .network(connector(&simulator, clock.clone(), random.clone()).unwrap())
                .sandbox(SandboxConfig::of(worker))
                .egress(egress);
            let hub = hub.open().await.unwrap();
            let ada = NewUser {
                username: "ada".to_owned(),
                password: "tr0mbone solo".into(),
                display_name: None,
                email: None,
            };
            let signed_in = hub.accounts().register(ada, None, &ClientInfo::default()).await.unwrap();
            let ada = hub.accounts().authenticate_session(signed_in.token.expose()).await.unwrap();
            let new = NewApiKey { name: "cli".to_owned(), expires_in_days: None };
            let key = hub.accounts().create_api_key(&ada, new, None).await.unwrap();
            let demo = seed(&hub, &simulator, &receiver).await.unwrap().unwrap();
            hub.start().await.unwrap();
            (hub, demo, key.secret.expose().to_owned(), signed_in.token.expose().to_owned())
        });
        let many = std::num::NonZeroU32::new(1_000_000).unwrap();
        let rate_limits = RateLimitSettings { default: many, sends: many, ..RateLimitSettings::default() };
        let public = "http://localhost:9800".parse().unwrap();
        let settings = AppSettings::from(Values { rate_limits, ..Values::new(public) });
        let tasks = Tasks::new();
        let (url, sim) = runtime.block_on(async {
            let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let control = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
            let sim = format!("http://{}", control.local_addr().unwrap());
            let demo = DemoListener {
                simulator: simulator.clone(),
                receiver: receiver.clone(),
                hub: Some(hub.clone()),
                mock: None,
            };
            let serving = local_http::serve(control, Arc::new(demo), Limits::default(), tasks.clone());
            tasks.spawn("simulator", serving);
            let server = Server::new(ServeLimits::default(), tasks.clone(), clock, random);
            server.serve(vec![listener], app(hub.clone(), settings.clone()));
            (url, sim)
        });
        Self { folder, receiver, demo, url, key, session, simulator, sim, hub, settings, tasks, runtime }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Ada writes, and her message is over; gives its trace.
    pub fn say(&self, text: &str) -> Trace {
        let before = self.traces().len();
        self.simulator.say(&self.demo.wx_id, Some(ADA), text).unwrap();
        for _ in 0..MAX_POLLS {
            let traces = self.traces();
            if traces.len() > before && traces[0].status.as_str() != "pending" {
                return traces.into_iter().next().unwrap();
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{text} was not delivered");
    }

    /// Ada, in a browser that is signed in, confirms who asks with this link and code.
    #[track_caller]
    pub fn confirm(&self, link: &str, code: &str) {
        let (_, id) = link.split_once("?qr=").unwrap();
        let body = json!({ "qr_id": id, "user_code": code, "approve": true }).to_string();
        let address = self.url.trim_start_matches("http://");
        let request = format!(
            "POST /api/auth/qr/confirm HTTP/1.1\r\nhost: {address}\r\norigin: http://localhost:9800\r\n\
             cookie: session={}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n{body}",
            self.session,
            body.len()
        );
        let mut browser = TcpStream::connect(address).unwrap();
        browser.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        browser.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }

    /// The newest traces of the bot.
    pub fn traces(&self) -> Vec<Trace> {
        let (query, bot) = (TraceQuery::default(), self.demo.bot_id);
        let page = PageRequest::parse(&query.list_name(bot), Some(200), None).unwrap();
        let list = async { self.hub.traces().list(&Actor::Operator, bot, &query, &page).await };
        self.runtime.block_on(list).unwrap().items
    }

    /// A message of the bot by its id.
    pub fn message(&self, id: &str) -> Message {
        let find =
            async { self.hub.bots().message(&Actor::Operator, self.demo.bot_id, id.parse().unwrap()).await };
        self.runtime.block_on(find).unwrap()
    }

    /// The command line on the hub's files.
    pub fn files(&self, arguments: &[&str]) -> Output {
        command(self.path()).args(arguments).output().unwrap()
    }

    /// The command line with the server.
    pub fn server(&self, arguments: &[&str]) -> Output {
        self.signed_in().args(arguments).output().unwrap()
    }

    /// The program with the server and Ada's key, still without arguments.
    pub fn signed_in(&self) -> Command {
        let mut command = command(self.path());
        command.env_remove("HUB_DATA_DIR").env("HUB_SERVER", &self.url).env("HUB_TOKEN", &self.key);
        command.env("HUB_SIM_URL", &self.sim);
        command
    }

    /// The document of a command that works with the server.
    #[track_caller]
    pub fn document(&self, arguments: &[&str]) -> Value {
        let (out, _) = ends(&self.server(&[arguments, &["--json"]].concat()), 0);
        serde_json::from_str(&out).unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.settings.draining.cancel();
        self.tasks.stop();
        self.runtime.block_on(self.hub.shutdown());
    }
}
