//! Configuration → hub → application → serve → drain.

use std::{
    io::{self, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use hub_core::{
    Hub, demo,
    local_http::{self, Limits},
    random::Random,
    tasks::Tasks,
    time::Clock,
};
use hub_server::{
    AppSettings, app,
    banner::{banner, banner_line, loopback_origins, public_url},
    boot, command_line,
    config::{Config, DEFAULT_FILE, LogFormat, Report, Sources},
    health, logging, metrics_app,
    running_server::Mark,
    serve::{self, ServeLimits, Server, bind},
    service_manager,
    settings::Values,
};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
};

/// Wrong configuration, or a port that is taken.
const EXIT_USAGE: u8 = 2;

/// `config check` found problems: the code of a failed check in `hub-cli`.
const EXIT_CHECK_FAILED: u8 = 9;

/// Maximum connections to the simulator's control address.
const SIM_CONNECTIONS: usize = 21_000;

/// Grace period of a held call to the simulator: nothing is lost when it is cut.
const SIM_DRAIN: Duration = Duration::from_millis(50);

/// Maximum connections to the listener of `/metrics`, separate so that it responds under overload.
const METRICS_CONNECTIONS: usize = 16;

/// Grace period of WebSockets to close; it begins when requests in flight have ended.
const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// Grace period of the server's own tasks.
const BACKGROUND_GRACE: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    hub_core::sandbox::run_worker_if_asked();
    let matches = command_line::command().get_matches();
    let sources = command_line::sources(&matches);
    match matches.subcommand() {
        Some(("config", config)) => match config.subcommand() {
            Some(("init", arguments)) => {
                init_config(arguments.get_one::<PathBuf>("file").expect("has a default"))
            }
            Some((_, arguments)) => check_config(&sources, arguments.get_flag("all")),
            None => check_config(&sources, false),
        },
        Some(("health", _)) => check_health(&sources),
        _ => serve_until_stopped(&sources),
    }
}

fn serve_until_stopped(sources: &Sources) -> ExitCode {
    match Config::load(sources) {
        Ok(config) => run(&config),
        Err(problems) => {
            say(&format!(
                "{problems}hint: hub-server config check lists the settings and what is wrong with them"
            ));
            ExitCode::from(EXIT_USAGE)
        }
    }
}

/// Writes a line to stderr; a failure cannot be reported.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", text.trim_end());
}

fn init_config(path: &Path) -> ExitCode {
    let mut file = match std::fs::File::create_new(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            say(&format!("error: {} exists; nothing was changed", path.display()));
            return ExitCode::from(EXIT_USAGE);
        }
        Err(error) => {
            say(&format!("error: {}: {error}", path.display()));
            return ExitCode::FAILURE;
        }
    };
    match file.write_all(DEFAULT_FILE.as_bytes()) {
        Ok(()) => {
            say(&format!("wrote {}; every setting is in it, commented out", path.display()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("error: {}: {error}", path.display()));
            ExitCode::FAILURE
        }
    }
}

fn check_config(sources: &Sources, all: bool) -> ExitCode {
    let report = Report::new(Config::load(sources), all);
    // A closed pipe is intended by the reader.
    let _ = writeln!(io::stdout(), "{report}");
    if report.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_CHECK_FAILED) }
}

/// Every failure has exit code 1, invalid configuration included: container engines know no other.
fn check_health(sources: &Sources) -> ExitCode {
    let health = match Config::load(sources) {
        Ok(config) => ask_health(&config).map_err(|reason| format!("error: {reason}")),
        Err(problems) => Err(problems.to_string()),
    };
    match health {
        Ok(()) => {
            // A closed pipe is intended by the reader.
            let _ = writeln!(io::stdout(), "ready");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            say(&reason);
            ExitCode::FAILURE
        }
    }
}

fn ask_health(config: &Config) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(health::ask(&config.listen))
}

fn run(config: &Config) -> ExitCode {
    // Absent only if another crate of this process installed one first, which is equivalent.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!("error: cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let logging = match logging::start(config, runtime.handle()) {
        Ok(logging) => logging,
        Err(reason) => {
            say(&format!("error: {reason}"));
            return ExitCode::from(EXIT_USAGE);
        }
    };
    for warning in &config.warnings {
        match logging::format(config) {
            LogFormat::Text => say(&format!("warning: {warning}")),
            LogFormat::Json => tracing::warn!(check = warning.check, "{warning}"),
        }
    }
    let exit = runtime.block_on(async {
        match up(config).await {
            Ok(running) => running.until_stopped().await,
            Err(failure) => {
                say(&format!("error: {}", failure.message));
                ExitCode::from(failure.exit)
            }
        }
    });
    logging.finish();
    exit
}

/// Reason why the server did not start, with its exit code.
struct Failure {
    message: String,
    exit: u8,
}

impl From<hub_core::Error> for Failure {
    fn from(error: hub_core::Error) -> Self {
        let mut message = error.chain();
        if let Some(hint) = hub_server::advice::hint(&error) {
            message = format!("{message}\nhint: {hint}");
        }
        Self { message, exit: 1 }
    }
}

/// A server that is up.
struct Running {
    hub: Hub,
    _mark: Option<Mark>,
    http: Tasks,
    background: Tasks,
    settings: AppSettings,
    terminate: Signal,
    interrupt: Signal,
}

/// Binds first, so that a port in use is found before anything is written.
async fn up(config: &Config) -> Result<Running, Failure> {
    let (terminate, interrupt) =
        signals().map_err(|error| Failure { message: error.to_string(), exit: 1 })?;
    let listeners = listen(config).await?;
    let mut bound = addresses(&listeners);
    let url = public_url(config, &bound);
    // In development, the listener is reached under every name of loopback. In production, the public URL is the only
    // own origin.
    let other_origins = if config.development { loopback_origins(&bound) } else { Vec::new() };
    let needs_sim = config.networks.sim && config.sim_url.is_none();
    let sim_listener =
        if needs_sim { Some(bind_or_explain(config.sim_listen, "sim-listen").await?) } else { None };
    let sim_control = sim_listener.as_ref().and_then(|listener| listener.local_addr().ok());
    bound.extend(sim_control);
    let metrics_listener = match config.metrics_listen {
        Some(address) => Some(bind_or_explain(address, "metrics-listen").await?),
        None => None,
    };
    bound.extend(metrics_listener.as_ref().and_then(|listener| listener.local_addr().ok()));

    service_manager::starting();
    let booted = boot::open(config, &url, bound).await?;
    let setup = boot::prepare_admin(&booted.hub, config).await?;
    let settings = AppSettings::from(Values {
        other_origins,
        trusted_proxies: config.trusted_proxies.clone(),
        proxy_header: config.proxy_header,
        max_body: config.max_body,
        rate_limits: config.rate_limits,
        sim_control,
        playground: booted.simulated.as_ref().map(hub_core::demo::DemoListener::playground),
        metrics_token: config.metrics_token.clone().filter(|_| metrics_listener.is_none()),
        ..Values::new(url.clone())
    });
    let (http, background) = (Tasks::new(), Tasks::new());
    let demo = boot::prepare_demo(&booted, config).await?;
    if let (Some(simulated), Some(listener)) = (booted.simulated, sim_listener) {
        let limits = Limits { connections: SIM_CONNECTIONS, drain: SIM_DRAIN, ..Limits::default() };
        let served = local_http::serve(listener, Arc::new(simulated), limits, background.clone());
        background.spawn("simulator", served);
    }
    // Before the first log line of the bots; the listeners already accept connections.
    say(&match logging::format(config) {
        LogFormat::Text => banner(config, &url, sim_control, setup.as_ref()),
        LogFormat::Json => banner_line(config, &url, sim_control, setup.as_ref()),
    });
    booted.hub.start().await?;
    if let Some(nightly) = config.nightly() {
        let (counters, draining) =
            (Arc::clone(&booted.hub.context().node.counters), settings.draining.clone());
        background.supervise("nightly backups", Clock::system(), move || {
            let (nightly, counters, draining) = (nightly.clone(), Arc::clone(&counters), draining.clone());
            async move {
                // A backup in progress is abandoned: nothing of it remains, and the next start creates one.
                let (clock, random) = (Clock::system(), Random::system());
                let made = nightly.run(&clock, &random, &counters);
                let Some(never) = draining.run_until_cancelled(made).await else { return };
                match never {}
            }
        });
    }
    if let Some(demo) = demo.filter(|demo| demo.created) {
        let hub = booted.hub.clone();
        background.spawn("demo names", async move {
            if let Err(error) = demo::name_contacts(&hub, &demo).await {
                tracing::debug!(%error, "the demo's people have no names");
            }
        });
    }
    let sandbox = booted.hub.context().sandbox.clone();
    background.spawn("sandbox probe", async move {
        // A worker that does not start is the failure of the plugin that needs one.
        if let Err(fault) = sandbox.probe().await {
            tracing::debug!(%fault, "the sandbox cannot be probed");
        }
    });
    let endpoint = app(booted.hub.clone(), settings.clone());
    if let Some(descriptors) = serve::descriptors().filter(|count| *count < config.max_connections) {
        let wanted = config.max_connections;
        tracing::warn!(descriptors, wanted, "fewer file descriptors than max_connections; raise ulimit -n");
    }
    let limits = ServeLimits {
        connections: config.max_connections,
        connections_per_network: config.max_connections_per_address,
        uncapped: config.trusted_proxies.clone(),
        ..ServeLimits::default()
    };
    let new_server = |limits| Server::new(limits, http.clone(), Clock::system(), Random::system());
    let server = new_server(limits);
    settings.metrics.show_listeners(server.stats());
    server.serve(listeners, endpoint);
    if let Some(listener) = metrics_listener {
        let token = config.metrics_token.clone();
        let page = metrics_app(booted.hub.clone(), settings.clone(), token);
        new_server(ServeLimits { connections: METRICS_CONNECTIONS, ..ServeLimits::default() })
            .serve(vec![listener], page);
    }
    service_manager::feed_watchdog(&Clock::system(), &background);
    service_manager::ready(&url);
    Ok(Running { hub: booted.hub, _mark: booted.mark, http, background, settings, terminate, interrupt })
}

fn signals() -> io::Result<(Signal, Signal)> {
    Ok((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?))
}

async fn listen(config: &Config) -> Result<Vec<TcpListener>, Failure> {
    let mut listeners = Vec::new();
    for address in &config.listen {
        match bind(*address).await {
            Ok(listener) => listeners.push(listener),
            // A machine without IPv6 has no ::1, which was not requested by name.
            Err(error)
                if config.listen_is_default
                    && address.is_ipv6()
                    && error.kind() == io::ErrorKind::AddrNotAvailable => {}
            Err(error) => return Err(explain(&error, *address, "listen")),
        }
    }
    Ok(listeners)
}

async fn bind_or_explain(address: SocketAddr, flag: &str) -> Result<TcpListener, Failure> {
    bind(address).await.map_err(|error| explain(&error, address, flag))
}

fn explain(error: &io::Error, address: SocketAddr, flag: &str) -> Failure {
    let message = if error.kind() == io::ErrorKind::AddrInUse {
        format!("{address} is in use by another program\nhint: choose another address with --{flag}")
    } else {
        format!("cannot listen on {address}: {error}\nhint: choose another address with --{flag}")
    };
    Failure { message, exit: EXIT_USAGE }
}

fn addresses(listeners: &[TcpListener]) -> Vec<SocketAddr> {
    listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
}

impl Running {
    /// Serves until a signal or until the storage fails, then drains.
    async fn until_stopped(mut self) -> ExitCode {
        let failed = self.hub.context().store.failed().clone();
        let exit = tokio::select! {
            _ = self.terminate.recv() => ExitCode::SUCCESS,
            _ = self.interrupt.recv() => ExitCode::SUCCESS,
            // The store has logged the reason.
            () = failed.cancelled() => ExitCode::FAILURE,
        };
        service_manager::stopping();
        self.settings.draining.cancel();
        tracing::info!("draining");
        self.http.stop();
        let clock = Clock::system();
        // In the same time as the work of the hub.
        let limit = self.hub.context().config.drain.saturating_sub(CLOSE_GRACE);
        let requests = async {
            if !self.http.wait(&clock, limit).await {
                tracing::warn!("requests did not end in time and were cut");
            }
            self.settings.sockets.stop();
            if !self.settings.sockets.wait(&clock, CLOSE_GRACE).await {
                tracing::warn!("WebSockets did not end in time and were cut");
            }
        };
        let drain = async {
            self.hub.shutdown_after(requests).await;
            self.background.stop();
            self.background.wait(&clock, BACKGROUND_GRACE).await;
        };
        tokio::select! {
            () = drain => exit,
            _ = self.terminate.recv() => ExitCode::FAILURE,
            _ = self.interrupt.recv() => ExitCode::FAILURE,
        }
    }
}
