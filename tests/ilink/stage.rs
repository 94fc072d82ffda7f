//! A simulator on a loopback port, what passed through that port, and a connector that talks to it.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, request::Parts};
use hub_core::{
    egress::{Egress, EgressConfig},
    local_http::{self, Cut, Limits, LocalService},
    network::{
        Batch, Connection, Credentials, InboundMessage, LoginState, LoginStep, Network, Outgoing,
        ilink::{IlinkConfig, IlinkNetwork},
        sim::{Account, SimConfig, Simulator},
    },
    random::Random,
    secret::Secret,
    tasks::Tasks,
    time::Clock,
};
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// Longer than anything in these tests should take.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Ends a test that hangs.
pub async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TEST_TIMEOUT, future).await.expect("the test hangs")
}

/// Keeps every request and passes it on to the simulator.
pub struct Tap {
    simulator: Simulator,
    seen: Mutex<Vec<Request<Bytes>>>,
    answered: watch::Sender<Vec<String>>,
}

#[async_trait]
impl LocalService for Tap {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let path = request.uri().path().to_owned();
        self.seen.lock().unwrap().push(request.clone());
        let answer = self.simulator.call(request).await;
        self.answered.send_modify(|paths| paths.push(path));
        answer
    }

    fn max_body(&self, head: &Parts) -> usize {
        self.simulator.max_body(head)
    }
}

impl Tap {
    /// The requests to an endpoint so far.
    pub fn requests(&self, endpoint: &str) -> Vec<Request<Bytes>> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|request| request.uri().path().ends_with(endpoint)).cloned().collect()
    }

    /// The bodies of these requests.
    pub fn bodies(&self, endpoint: &str) -> Vec<Value> {
        self.requests(endpoint).iter().map(|r| serde_json::from_slice(r.body()).unwrap()).collect()
    }

    /// Every request so far.
    pub fn all(&self) -> Vec<Request<Bytes>> {
        self.seen.lock().unwrap().clone()
    }

    /// Number of responses of an endpoint. Requests that were abandoned are not counted.
    pub fn answered(&self, endpoint: &str) -> usize {
        count_of(&self.answered.borrow(), endpoint)
    }

    /// Waits until an endpoint has sent `count` responses.
    pub async fn wait_answered(&self, endpoint: &str, count: usize) {
        let mut answered = self.answered.subscribe();
        within(answered.wait_for(|paths| count_of(paths, endpoint) >= count)).await.unwrap();
    }
}

fn count_of(paths: &[String], endpoint: &str) -> usize {
    paths.iter().filter(|path| path.ends_with(endpoint)).count()
}

/// The whole set-up.
pub struct Stage {
    pub sim: Simulator,
    pub tap: Arc<Tap>,
    pub network: IlinkNetwork,
    pub address: SocketAddr,
    pub clock: Clock,
    server: Tasks,
}

/// A logged-in account.
pub struct Bot {
    pub account: Account,
    pub credentials: Credentials,
    pub connection: Arc<dyn Connection>,
}

impl Stage {
    /// With short holds, on the system clock.
    pub async fn quick() -> Self {
        Self::start(SimConfig::quick(), IlinkConfig::default(), Clock::system()).await
    }

    pub async fn start(sim: SimConfig, config: IlinkConfig, clock: Clock) -> Self {
        let sim = Simulator::new(sim, clock.clone(), Random::seeded(1));
        let tap = Arc::new(Tap {
            simulator: sim.clone(),
            seen: Mutex::default(),
            answered: watch::Sender::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = serve(listener, &tap);
        let network = connector(address, config, clock.clone());
        Self { sim, tap, network, address, clock, server }
    }

    /// Closes the port: connections are refused.
    pub async fn close_port(&self) {
        self.server.stop();
        assert!(self.server.wait(&Clock::system(), TEST_TIMEOUT).await);
    }

    /// Opens the port again.
    pub async fn open_port(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.server = serve(listener, &self.tap);
    }

    /// One step of a login, with its new state.
    pub async fn step(&self, state: &mut LoginState, code: Option<&str>) -> LoginStep {
        let progress = self.network.login_step(state, code, TEST_TIMEOUT).await.unwrap();
        *state = progress.state;
        progress.step
    }

    /// Binds a new person.
    pub async fn bind(&self) -> Bot {
        self.bind_through(&self.network).await
    }

    /// Binds a new person through another connector.
    pub async fn bind_through(&self, network: &IlinkNetwork) -> Bot {
        let prompt = network.begin_login(&[]).await.unwrap();
        let account = self.sim.confirm(prompt.qr_text.expose(), None).unwrap();
        let step = within(network.login_step(&prompt.state, None, TEST_TIMEOUT)).await.unwrap().step;
        let LoginStep::Confirmed(credentials) = step else { panic!("the login was confirmed") };
        let connection = network.connect(&credentials);
        Bot { account, credentials, connection }
    }

    /// Binds a new person, who has said something: the bot may answer.
    pub async fn bind_and_greet(&self) -> (Bot, InboundMessage) {
        let bot = self.bind().await;
        self.sim.say(&bot.account.wx_id, None, "hello").unwrap();
        let message = bot.receive("").await.messages.remove(0);
        (bot, message)
    }
}

impl Bot {
    /// One poll that has to succeed.
    pub async fn receive(&self, cursor: &str) -> Batch {
        within(self.connection.receive(cursor)).await.unwrap()
    }
}

/// An answer to a message.
pub fn reply_to(message: &InboundMessage, client_id: &str, text: &str) -> Outgoing {
    Outgoing {
        to_user_id: message.from_user_id.clone(),
        context_token: message.context_token.clone().unwrap_or_else(|| Secret::new("")),
        client_id: client_id.to_owned(),
        text: text.to_owned(),
        media: None,
    }
}

/// A connector for a listener.
pub fn connector(address: SocketAddr, config: IlinkConfig, clock: Clock) -> IlinkNetwork {
    let config = IlinkConfig {
        login_base_url: format!("http://{address}").parse().unwrap(),
        // Another name for the same listener: an allowed host for redirects.
        cdn_base_url: format!("http://localhost:{}/c2c", address.port()).parse().unwrap(),
        ..config
    };
    let egress = Egress::new(EgressConfig::default()).unwrap();
    IlinkNetwork::new("sim", config, &egress, clock, Random::seeded(2)).unwrap()
}

/// A port that passes connections on to `target`, and how many it has passed on.
pub async fn counting_port(target: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let (tasks, passed) = (Tasks::new(), count.clone());
    tasks.clone().spawn("counting port", async move {
        while let Ok((mut near, _)) = listener.accept().await {
            passed.fetch_add(1, Ordering::Relaxed);
            tasks.spawn("passed connection", async move {
                let mut far = TcpStream::connect(target).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    (address, count)
}

fn serve(listener: TcpListener, tap: &Arc<Tap>) -> Tasks {
    let tasks = Tasks::new();
    let limits = Limits { drain: Duration::from_millis(1), ..Limits::default() };
    tasks.spawn("simulator", local_http::serve(listener, tap.clone(), limits, tasks.clone()));
    tasks
}
