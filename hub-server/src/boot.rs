//! From a configuration to a running hub, and back.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use hub_core::{
    Hub, Result,
    accounts::EnsuredAdmin,
    egress::{Egress, EgressConfig},
    local_http::LocalService,
    network::{
        ilink::{IlinkConfig, IlinkNetwork},
        sim::{SIM_HOST, SimConfig, Simulator},
    },
    random::Random,
    secret::Secret,
    time::Clock,
};
use url::Url;

use crate::config::Config;

/// A hub, and the simulator it talks to when that is built in.
#[derive(Debug)]
pub struct Booted {
    /// The hub; nothing runs yet.
    pub hub: Hub,
    /// The built-in simulator, to be served on its control address.
    pub simulator: Option<Simulator>,
}

/// Opens the store and puts the networks together.
///
/// # Errors
/// What opening the store says.
pub async fn open(config: &Config, key: [u8; 32], own_listeners: Vec<SocketAddr>) -> Result<Booted> {
    let (clock, random) = (Clock::system(), Random::system());
    let simulator = (config.networks.sim && config.sim_url.is_none())
        .then(|| Simulator::new(SimConfig::default(), clock.clone(), random.clone()));
    let in_process: HashMap<String, Arc<dyn LocalService>> = simulator
        .iter()
        .map(|simulator| (SIM_HOST.to_owned(), Arc::new(simulator.clone()) as Arc<dyn LocalService>))
        .collect();
    let egress = EgressConfig { allow: config.egress_allow.clone(), own_listeners, in_process };
    let client = Egress::new(egress.clone())?;
    let mut settings = config.hub.clone();
    if !config.networks.ilink {
        // The simulator loses nothing when a poll is cut: a stop need not wait for one.
        settings.poll_grace = Duration::ZERO;
    }
    let mut builder = Hub::builder()
        .store(config.store.clone())
        .secret_key(key)
        .egress(egress)
        .config(settings)
        .clock(clock.clone())
        .random(random.clone());
    let network = |name: &str, settings: IlinkConfig| {
        IlinkNetwork::new(name, settings, &client, clock.clone(), random.clone())
    };
    if config.networks.sim {
        builder = builder.network(network("sim", sim_config(config))?);
    }
    if config.networks.ilink {
        let public = IlinkConfig::default();
        let settings = IlinkConfig {
            login_base_url: config.ilink_base_url.clone().unwrap_or(public.login_base_url),
            cdn_base_url: config.ilink_cdn_url.clone().unwrap_or(public.cdn_base_url),
            ..IlinkConfig::default()
        };
        builder = builder.network(network("ilink", settings)?);
    }
    Ok(Booted { hub: builder.open().await?, simulator })
}

/// The simulator speaks the network's own protocol; only the addresses differ.
fn sim_config(config: &Config) -> IlinkConfig {
    let built_in = || Url::parse(&format!("http://{SIM_HOST}")).expect("a host makes a URL");
    let base = config.sim_url.clone().unwrap_or_else(built_in);
    let mut cdn = base.clone();
    cdn.set_path(&format!("{}/c2c", base.path().trim_end_matches('/')));
    IlinkConfig { login_base_url: base, cdn_base_url: cdn, ..IlinkConfig::default() }
}

/// Makes the configured admin; otherwise, where registering needs one, a setup token to be printed.
///
/// # Errors
/// `INVALID_PARAMS` or `CONFLICT` about the configured admin.
pub async fn prepare_admin(hub: &Hub, config: &Config) -> Result<Option<Secret>> {
    if let Some((username, password)) = &config.admin
        && hub.accounts().ensure_admin(username, password.clone()).await? == EnsuredAdmin::Exists
    {
        tracing::info!("admin_username is ignored: the hub has an admin already");
    }
    if config.hub.setup_token_required { hub.accounts().mint_setup_token().await } else { Ok(None) }
}
