//! `sim app`: a complete hub in this process, for the development of an app.

use std::{
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use hub_core::{
    Hub,
    config::HubConfig,
    demo::{AppMock, DemoListener, DemoReceiver, MockSetup, connector},
    egress::{AllowRule, EgressConfig},
    network::sim::{SimConfig, Simulator},
    random::Random,
    store::StoreConfig,
    tasks::Tasks,
    time::Clock,
};
use hub_server::{
    AppSettings, app,
    serve::{ServeLimits, Server},
    settings::Values,
    with_simulator::WithSimulator,
};
use serde_json::Value;
use tokio::net::TcpListener;
use url::Url;

use crate::{
    args::SimAppArgs,
    commands::plugins::run::own_plugins,
    document::lines,
    exit::{Exit, Failure},
    local,
    printer::Printer,
    signals::stopped,
};

/// The simulator's default address.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9801);
/// Timeout for connections to end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

pub async fn run(args: SimAppArgs, printer: &Printer) -> Result<(), Failure> {
    let (listener, address) = listen(args.listen, printer).await?;
    if !address.ip().is_loopback() {
        printer.note("warning: anyone who can reach this address gets the app's token");
    }
    let folder = tempfile::tempdir().map_err(|error| {
        Failure::new(Exit::Failed, "UNAVAILABLE", format!("no temporary folder: {error}"))
    })?;
    let url = url_of(address)?;
    let (clock, random) = (Clock::system(), Random::system());
    let simulator = Simulator::new(SimConfig::default(), clock.clone(), random.clone());
    let hub = open(folder.path(), &url, address, &simulator).await?;
    hub.start().await?;
    let setup = MockSetup {
        slug: args.app_slug,
        webhook_url: args.webhook_url.map(String::from),
        commands: args.command,
        app_token: args.app_token.clone(),
        bot_id: args.bot_id,
    };
    let mock = AppMock::new(hub.clone(), simulator.clone(), setup);
    // Before the first request: errors of the app are reported here.
    let config = match mock.config().await {
        Ok(config) => config,
        Err(error) => {
            hub.shutdown().await;
            return Err(error.into());
        }
    };
    let control = DemoListener {
        simulator,
        receiver: DemoReceiver::new(clock.clone()),
        hub: Some(hub.clone()),
        mock: Some(mock.clone()),
    };
    let tasks = Tasks::new();
    let settings = AppSettings::from(Values { sim_control: Some(address), ..Values::new(url) });
    let mut endpoint = WithSimulator::new(app(hub.clone(), settings.clone()), Arc::new(control));
    if let Some(token) = &args.app_token {
        endpoint = endpoint.with_app_token(token, mock);
    }
    Server::new(ServeLimits::default(), tasks.clone(), clock.clone(), random).serve(vec![listener], endpoint);
    let names = ["hub_url", "app_token", "webhook_secret", "app_slug", "bot_id", "webhook_url"];
    let text = format!("{}\n\n{}", lines(&config, names, 14), next_commands(&config));
    printer.one(config, &text)?;
    Printer::flush()?;
    let stopped = stopped();
    // The line that scripts wait for: the same with every output format.
    Printer::ready(&format!("ready http://{address}"));
    stopped.await;
    settings.draining.cancel();
    for tasks in [&tasks, &settings.sockets] {
        tasks.stop();
        tasks.wait(&clock, DRAIN_TIMEOUT).await;
    }
    hub.shutdown().await;
    Ok(())
}

/// Listens on the chosen address; without one, on the simulator's default port, or a free one while a server uses
/// that.
async fn listen(chosen: Option<SocketAddr>, printer: &Printer) -> Result<(TcpListener, SocketAddr), Failure> {
    let wanted = chosen.unwrap_or(DEFAULT_ADDRESS);
    let mut listener = TcpListener::bind(wanted).await;
    if chosen.is_none() && listener.as_ref().is_err_and(|error| error.kind() == ErrorKind::AddrInUse) {
        printer
            .note(&format!("{wanted} is in use, perhaps by a running hub-server; using a free port instead"));
        listener = TcpListener::bind((wanted.ip(), 0)).await;
    }
    let listener = listener.map_err(|error| {
        Failure::usage(format!("cannot listen on {wanted}: {error}"))
            .with_hint("choose another address with --listen")
    })?;
    let address = listener.local_addr().unwrap_or(wanted);
    Ok((listener, address))
}

/// The next steps, ready to paste.
fn next_commands(config: &Value) -> String {
    let of = |name: &str| config[name].as_str().unwrap_or_default();
    let (url, token, secret) = (of("hub_url"), of("app_token"), of("webhook_secret"));
    format!(
        "Start your app, or an example, in another terminal:\n  \
         HUB_URL={url} APP_TOKEN={token} WEBHOOK_SECRET={secret} python3 examples/apps/python/app.py\n\
         Write to the bot as a person, and see what the app sent:\n  \
         curl -d '{{\"sender\":\"user_alice\",\"content\":\"/hello\"}}' {url}/mock/event\n  \
         curl '{url}/mock/messages?wait_ms=5000'"
    )
}

/// The address for programs on this machine.
fn url_of(address: SocketAddr) -> Result<Url, Failure> {
    let mut reached = address;
    if address.ip().is_unspecified() {
        reached.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{reached}")
        .parse()
        .map_err(|_| Failure::usage(format!("{address} cannot be used in a URL")))
}

async fn open(
    folder: &std::path::Path,
    url: &Url,
    address: SocketAddr,
    simulator: &Simulator,
) -> Result<Hub, Failure> {
    let (clock, random) = (Clock::system(), Random::system());
    // The app listens on this machine, which a hub otherwise does not call.
    let mut allow: Vec<AllowRule> = local::allowed()?;
    for here in ["127.0.0.0/8", "::1/128"] {
        allow.push(here.parse()?);
    }
    let mut config = HubConfig::default();
    config.public_url = url.clone();
    // No one waits for the result of the pending long poll.
    config.poll_grace = Duration::ZERO;
    let hub = Hub::builder()
        .config(config)
        .store(StoreConfig::Sqlite(folder.join("hub.db")))
        .secret_key(random.bytes())
        .sandbox(own_plugins())
        .network(connector(simulator, clock, random)?)
        .egress(EgressConfig { allow, own_listeners: vec![address], ..EgressConfig::default() })
        .open()
        .await?;
    Ok(hub)
}
