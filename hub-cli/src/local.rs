//! The hub in a data folder or a database, opened but not started. A server may be running on it; it notices changes
//! within a second.

use std::{collections::BTreeMap, path::PathBuf};

use hub_core::{
    Error, ErrorCode, Hub, backup,
    demo::NETWORK,
    egress::{AllowRule, Egress, EgressConfig},
    network::ilink::{IlinkConfig, IlinkNetwork},
    random::Random,
    store::{StoreConfig, Upkeep},
    time::Clock,
};

use hub_server::{
    banner::public_url,
    boot::{ilink_config, sim_config},
    config::{Config, Origin, Problems, SETTINGS, Sources},
    running_server,
};

use url::Url;

use crate::{
    args::LocalArgs,
    exit::{Exit, Failure},
};

/// Requirement on the store that a command opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// The store must exist with a current schema.
    Existing,
    /// The store is created or migrated if necessary.
    Migrate,
}

/// Loads the settings of the hub from the same sources as its server: flags, environment, `hub.toml`.
///
/// # Errors
/// During a restore; all problems of the settings; a secret in a `hub.toml` that was not named, because such a file
/// is often shared.
pub fn settings(args: &LocalArgs) -> Result<Config, Failure> {
    let flags = [
        ("data_dir", args.data_dir.as_ref().map(|path| path.display().to_string())),
        ("database_url", args.database_url.clone()),
    ];
    let flags = flags.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    let config = Config::load(&Sources { flags, ..sources(None) }).map_err(|problems| unusable(&problems))?;
    refuse_shared_secrets(&config)?;
    backup::settle(&config.data_dir)?;
    Ok(config)
}

/// Collects the sources of the settings: the environment and a file.
pub fn sources(config_file: Option<PathBuf>) -> Sources {
    let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let env = std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect();
    Sources { flags: BTreeMap::new(), config_file, env }
}

/// Converts invalid settings to a failure that names every problem.
pub fn unusable(problems: &Problems) -> Failure {
    let mut failure = Failure::usage(problems.problems.join("; "));
    failure.causes = problems.warnings.iter().map(ToString::to_string).collect();
    failure.with_hint("hub-cli config check lists each problem")
}

fn refuse_shared_secrets(config: &Config) -> Result<(), Failure> {
    // Other files are named by their path, or belong to the machine.
    if config.file.as_deref() != Some(std::path::Path::new("hub.toml")) {
        return Ok(());
    }
    let in_file = |name: &str| {
        config.effective.iter().any(|(_, _, origin)| matches!(origin, Origin::File(key, _) if key == name))
    };
    match SETTINGS.iter().find(|setting| setting.secret && in_file(setting.name)) {
        Some(setting) => Err(Failure::usage(format!("hub.toml contains a secret: {}", setting.name))
            .with_hint(format!(
                "put it into a separate file and name that in {}_file, or point HUB_CONFIG at this file",
                setting.name
            ))),
        None => Ok(()),
    }
}

/// Opens the hub.
///
/// # Errors
/// `NOT_FOUND` if the hub does not exist and is not to be created; errors of opening it.
pub async fn open(args: &LocalArgs, how: Open) -> Result<Hub, Failure> {
    let settings = settings(args)?;
    if how == Open::Existing
        && let StoreConfig::Sqlite(path) = &settings.store
        && !path.exists()
    {
        return Err(Failure::not_found(format!("there is no hub in {}", settings.data_dir.display()))
            .with_hint("start hub-server once, or name its folder with --data-dir"));
    }
    let (clock, random) = (Clock::system(), Random::system());
    // The running server makes the requests, and its rules for addresses apply.
    let rules = running_server::egress(&settings.data_dir)
        .unwrap_or_else(|| EgressConfig { allow: settings.egress_allow.clone(), ..EgressConfig::default() });
    let egress_config = EgressConfig { proxy: settings.egress_proxy.clone(), ..rules };
    let egress = Egress::new(egress_config.clone())?;
    let network = |name: &str, addresses: IlinkConfig| -> Result<IlinkNetwork, Error> {
        IlinkNetwork::new(name, addresses, &egress, clock.clone(), random.clone())
    };
    // The default address of a local server's simulator, unless the settings name another one.
    let simulator = format!("http://{}", settings.sim_listen).parse().map_err(Error::internal)?;
    let simulator = settings.sim_url.as_ref().unwrap_or(&simulator);
    let mut config = settings.hub.clone();
    config.public_url = address(&settings);
    let mut builder = Hub::builder()
        .config(config)
        .store(settings.store.clone())
        .media(settings.media.clone())
        .sandbox(settings.sandbox.clone())
        .egress(egress_config)
        .clock(clock.clone())
        .random(random.clone());
    builder = settings
        .with_key(builder)
        .map_err(|reason| Failure::new(Exit::Unreachable, "UNAVAILABLE", reason))?;
    // The networks of the server: a bind without a network uses the same default.
    if settings.networks.sim {
        builder = builder.network(network(NETWORK, sim_config(simulator, &settings))?);
    }
    if settings.networks.ilink {
        builder = builder.network(network("ilink", ilink_config(&settings))?);
    }
    let is_ready = how == Open::Existing || is_current(&settings.store).await?;
    Ok(if is_ready { builder.open_existing().await? } else { builder.open().await? })
}

/// Returns the address for users: that of the server running on the data directory, or else the one that it would
/// use.
pub fn address(settings: &Config) -> Url {
    running_server::public_url(&settings.data_dir).unwrap_or_else(|| public_url(settings, &settings.listen))
}

/// Whether a database exists with a current schema, so that it can be used while a server runs on it.
async fn is_current(store: &StoreConfig) -> Result<bool, Failure> {
    let mut database = match Upkeep::open(store).await {
        Ok(database) => database,
        Err(error) if error.code() == ErrorCode::NotFound => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let schema = database.schema().await;
    database.close().await?;
    Ok(schema?.pending.is_empty())
}

/// Returns the private targets that this process may call, from its environment. A running server has its own
/// setting: see [`open`].
pub fn allowed() -> Result<Vec<AllowRule>, Error> {
    let text = std::env::var("HUB_EGRESS_ALLOW").unwrap_or_default();
    let rules = text.split(',').map(str::trim).filter(|rule| !rule.is_empty());
    rules.map(str::parse).collect()
}
