//! From a configuration to a running hub, and back.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use hub_core::{
    Error, ErrorCode, Hub, Result,
    accounts::EnsuredAdmin,
    backup,
    demo::{self, AppMock, Demo, DemoListener, DemoReceiver, MockSetup, RECEIVER_HOST},
    egress::{Egress, EgressConfig},
    local_http::LocalService,
    network::{
        ilink::{IlinkConfig, IlinkNetwork},
        sim::{SimConfig, Simulator},
    },
    random::Random,
    secret::Secret,
    time::Clock,
};
use url::Url;

use crate::{
    config::Config,
    running_server::{self, Mark},
};

/// A hub, and the simulator if it is built in.
#[derive(Debug)]
pub struct Booted {
    /// The hub; not started yet.
    pub hub: Hub,
    /// The built-in simulator and the receiver of the demo, to be served on the control address.
    pub simulated: Option<DemoListener>,
    /// Publishes the egress rules of this server for programs on the same files, until it is dropped.
    pub mark: Option<Mark>,
}

/// Opens the store and creates the networks, for a hub with this `public_url`. The hub has its SQLite file to itself
/// from here on.
///
/// # Errors
/// Errors of opening the store, before anything was written.
pub async fn open(config: &Config, public_url: &Url, own_listeners: Vec<SocketAddr>) -> Result<Booted> {
    let (clock, random) = (Clock::system(), Random::system());
    let mut simulated = (config.networks.sim && config.sim_url.is_none()).then(|| DemoListener {
        simulator: Simulator::new(SimConfig::default(), clock.clone(), random.clone()),
        receiver: DemoReceiver::new(clock.clone()),
        hub: None,
        mock: None,
    });
    let mut in_process: HashMap<String, Arc<dyn LocalService>> = HashMap::new();
    if let Some(simulated) = &simulated {
        in_process.insert(RECEIVER_HOST.to_owned(), Arc::new(simulated.receiver.clone()));
    }
    let egress = EgressConfig {
        allow: config.egress_allow.clone(),
        proxy: config.egress_proxy.clone(),
        own_listeners,
        in_process,
        ..EgressConfig::default()
    };
    let client = Egress::new(egress.clone())?;
    let mut settings = config.hub.clone();
    settings.public_url = public_url.clone();
    if !config.networks.ilink {
        // The simulator loses nothing when a poll is cut: shutdown need not wait for one.
        settings.poll_grace = Duration::ZERO;
    }
    let mut builder = Hub::builder()
        .store(config.store.clone())
        .media(config.media.clone())
        .egress(egress.clone())
        .sandbox(config.sandbox.clone())
        .config(settings)
        .clock(clock.clone())
        .random(random.clone());
    let network = |name: &str, settings: IlinkConfig| {
        IlinkNetwork::new(name, settings, &client, clock.clone(), random.clone())
    };
    match (&simulated, &config.sim_url) {
        (Some(simulated), _) => {
            let settings = IlinkConfig { text_limit: config.text_part_chars, ..IlinkConfig::default() };
            let (clock, random) = (clock.clone(), random.clone());
            builder = builder.network(demo::connector_with(&simulated.simulator, settings, clock, random)?);
        }
        (None, Some(url)) if config.networks.sim => {
            builder = builder.network(network(demo::NETWORK, sim_config(url, config))?);
        }
        _ => {}
    }
    if config.networks.ilink {
        builder = builder.network(network("ilink", ilink_config(config))?);
    }
    let unusable = |message| Error::new(ErrorCode::Unavailable, message);
    builder = config.with_key(builder).map_err(unusable)?;
    if !config.migrate {
        builder = builder.without_migration();
    }
    // The database and the key may be what a restore was about to replace.
    backup::settle(&config.data_dir)?;
    let hub = builder.open().await?;
    let mark = running_server::announce(&config.data_dir, &egress, public_url).unwrap_or_else(|error| {
        tracing::warn!(%error, "the data folder cannot be written; programs on the same files do not know the address and the rules of this server");
        None
    });
    if let Some(simulated) = &mut simulated {
        simulated.hub = Some(hub.clone());
        let mock = || AppMock::new(hub.clone(), simulated.simulator.clone(), MockSetup::default());
        simulated.mock = config.development.then(mock);
    }
    Ok(Booted { hub, simulated, mark })
}

/// The URLs of the real network.
pub fn ilink_config(config: &Config) -> IlinkConfig {
    let public = IlinkConfig::default();
    IlinkConfig {
        login_base_url: config.ilink_base_url.clone().unwrap_or(public.login_base_url),
        cdn_base_url: config.ilink_cdn_url.clone().unwrap_or(public.cdn_base_url),
        text_limit: config.text_part_chars,
        ..IlinkConfig::default()
    }
}

/// Those of a simulator in another process, which speaks the protocol of the network.
pub fn sim_config(base: &Url, config: &Config) -> IlinkConfig {
    let mut cdn = base.clone();
    cdn.set_path(&format!("{}/c2c", base.path().trim_end_matches('/')));
    let text_limit = config.text_part_chars;
    IlinkConfig { login_base_url: base.clone(), cdn_base_url: cdn, text_limit, ..IlinkConfig::default() }
}

/// Logs the simulated bots in again, since the built-in simulator has forgotten them, and creates the demo if it is
/// enabled. Must be called before the hub starts.
///
/// # Errors
/// Errors of the store; a simulated bot that cannot be logged in is only reported.
pub async fn prepare_demo(booted: &Booted, config: &Config) -> Result<Option<Demo>> {
    let Some(DemoListener { simulator, receiver, .. }) = &booted.simulated else { return Ok(None) };
    if let Err(error) = demo::renew_logins(&booted.hub, simulator).await {
        tracing::warn!(%error, "not every simulated bot could be logged in again");
    }
    if !(config.demo && config.development) {
        return Ok(None);
    }
    let seeded = demo::seed(&booted.hub, simulator, receiver).await?;
    if let Some(demo) = seeded.as_ref().filter(|demo| demo.created) {
        demo::greet(simulator, demo)?;
    }
    Ok(seeded)
}

/// Creates the configured administrator; otherwise, if registration requires one, returns a setup token to print.
///
/// # Errors
/// `INVALID_PARAMS` or `CONFLICT` about the configured admin.
pub async fn prepare_admin(hub: &Hub, config: &Config) -> Result<Option<Secret>> {
    if let Some((username, password)) = &config.admin
        && hub.accounts().ensure_admin(username, password.clone()).await? == EnsuredAdmin::Exists
    {
        tracing::info!("admin_username is ignored: the hub already has an administrator");
    }
    if config.hub.setup_token_required { hub.accounts().mint_setup_token().await } else { Ok(None) }
}
