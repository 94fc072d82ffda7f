//! The hub behind a data folder or a database URL, opened but not started: it works beside a running server,
//! which finds what is written within a second.

use std::{collections::BTreeMap, path::PathBuf};

use hub_core::{
    Error, Hub,
    access::Actor,
    backup,
    bots::{Bot, Bots},
    config::HubConfig,
    demo::NETWORK,
    egress::{AllowRule, Egress, EgressConfig},
    id::BotId,
    network::ilink::{IlinkConfig, IlinkNetwork},
    page::{MAX_LIMIT, PageRequest},
    random::Random,
    sandbox::{SandboxConfig, WorkerProgram},
    store::StoreConfig,
    time::Clock,
};

use hub_server::{
    boot::{ilink_config, sim_config},
    config::{Config, Origin, Problems, SETTINGS, Sources},
    running,
};

use crate::{
    args::LocalArgs,
    exit::{Exit, Failure},
    likeness,
};

/// Bots that are looked through for a name.
const MAX_BOTS: usize = 2_000;

/// What a command wants of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// It has to be there, with a current schema.
    Existing,
    /// It is made or brought up to date.
    Migrate,
}

/// The settings of the hub of these arguments, from where its server has them: flags, environment, `hub.toml`.
///
/// # Errors
/// When a restore runs; every problem of the settings; a secret in a `hub.toml` that nobody named, which tends to be shared.
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

/// What the settings are read from: the environment, and a file.
pub fn sources(config_file: Option<PathBuf>) -> Sources {
    let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let env = std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect();
    Sources { flags: BTreeMap::new(), config_file, env }
}

/// Settings that are wrong, as a failure that names every problem.
pub fn unusable(problems: &Problems) -> Failure {
    let mut failure = Failure::usage(problems.problems.join("; "));
    failure.causes = problems.warnings.iter().map(ToString::to_string).collect();
    failure.with_hint("hub-cli config check lists each problem")
}

fn refuse_shared_secrets(config: &Config) -> Result<(), Failure> {
    // Another file was named by its path, or is the machine's own.
    if config.file.as_deref() != Some(std::path::Path::new("hub.toml")) {
        return Ok(());
    }
    let in_file = |name: &str| {
        config.effective.iter().any(|(_, _, origin)| matches!(origin, Origin::File(key, _) if key == name))
    };
    match SETTINGS.iter().find(|setting| setting.secret && in_file(setting.name)) {
        Some(setting) => {
            Err(Failure::usage(format!("hub.toml holds a secret: {}", setting.name)).with_hint(format!(
                "put it into a file of its own and name that with {}_file, or point HUB_CONFIG at this file",
                setting.name
            )))
        }
        None => Ok(()),
    }
}

/// Opens the hub.
///
/// # Errors
/// `NOT_FOUND` when there is none and none is to be made; what opening it says.
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
    // The running server makes the requests, so its rules decide which addresses are accepted.
    let egress_config = running::egress(&settings.data_dir)
        .unwrap_or_else(|| EgressConfig { allow: settings.egress_allow.clone(), ..EgressConfig::default() });
    let egress = Egress::new(egress_config.clone())?;
    let network = |name: &str, addresses: IlinkConfig| -> Result<IlinkNetwork, Error> {
        IlinkNetwork::new(name, addresses, &egress, clock.clone(), random.clone())
    };
    // Where the server beside this process has its simulator, unless the settings name another one.
    let simulator = format!("http://{}", settings.sim_listen).parse().map_err(Error::internal)?;
    let simulator = settings.sim_url.as_ref().unwrap_or(&simulator);
    let mut config = HubConfig::default();
    if let Some(url) = &settings.public_url {
        config.public_url = url.clone();
    }
    let new_key_file = settings.new_key_file();
    let key = settings.load_key(&random);
    let key = key.map_err(|reason| Failure::new(Exit::Unreachable, "UNAVAILABLE", reason))?;
    let mut builder = Hub::builder()
        .config(config)
        .store(settings.store.clone())
        .media(settings.media.clone())
        .secret_key(key)
        .sandbox(SandboxConfig::of(WorkerProgram::SelfExe))
        .egress(egress_config)
        .clock(clock.clone())
        .random(random.clone());
    if let Some(path) = new_key_file {
        builder = builder.new_key_file(path);
    }
    // Those that the server offers: a bind without a network uses the same one.
    if settings.networks.sim {
        builder = builder.network(network(NETWORK, sim_config(simulator, &settings))?);
    }
    if settings.networks.ilink {
        builder = builder.network(network("ilink", ilink_config(&settings))?);
    }
    if let Some(next) = settings.next_key()? {
        builder = builder.opening_key(next);
    }
    let hub = match how {
        Open::Existing => builder.open_existing().await?,
        Open::Migrate => builder.open().await?,
    };
    Ok(hub)
}

/// The private targets that this process may call, from its environment. What a running server may call is the server's
/// setting: see [`open`].
pub fn allowed() -> Result<Vec<AllowRule>, Error> {
    let text = std::env::var("HUB_EGRESS_ALLOW").unwrap_or_default();
    let rules = text.split(',').map(str::trim).filter(|rule| !rule.is_empty());
    rules.map(str::parse).collect()
}

/// A bot by its id or its name, which must be unique then.
///
/// # Errors
/// `NOT_FOUND`; `INVALID_PARAMS` when several bots have the name.
pub async fn find_bot(hub: &Hub, id_or_name: &str) -> Result<Bot, Failure> {
    if let Ok(id) = id_or_name.parse::<BotId>() {
        return Ok(hub.bots().get(&Actor::Operator, id).await?);
    }
    let mut named = Vec::new();
    let mut names = Vec::new();
    let mut cursor = None;
    loop {
        let list = Bots::bot_list(&Actor::Operator);
        let page = PageRequest::parse(&list, Some(MAX_LIMIT), cursor.as_deref())?;
        let page = hub.bots().list(&Actor::Operator, &page).await?;
        for bot in page.items {
            names.push(bot.name.clone());
            if bot.name == id_or_name {
                named.push(bot);
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() || names.len() >= MAX_BOTS {
            break;
        }
    }
    match named.len() {
        0 => {
            let hint = if names.is_empty() { "this hub has no bots yet" } else { "hub-cli bots list" };
            Err(Failure::not_found(format!("there is no bot called {id_or_name}"))
                .with_hint(likeness::hint(id_or_name, names, hint)))
        }
        1 => Ok(named.remove(0)),
        count => {
            let ids: Vec<_> = named.iter().map(|bot| bot.id.to_string()).take(5).collect();
            Err(Failure::usage(format!("{count} bots are called {id_or_name}"))
                .with_hint(format!("use an id: {}", ids.join(", "))))
        }
    }
}
