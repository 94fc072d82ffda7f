//! The hub behind a data folder or a database URL, opened but not started: it works beside a running server,
//! which finds what is written within a second.

use std::path::PathBuf;

use hub_core::{
    Error, Hub,
    access::Actor,
    bots::{Bot, Bots},
    config::HubConfig,
    data_dir,
    demo::NETWORK,
    egress::{AllowRule, Egress, EgressConfig},
    id::BotId,
    network::ilink::{IlinkConfig, IlinkNetwork},
    page::{MAX_LIMIT, PageRequest},
    random::Random,
    sandbox::{SandboxConfig, WorkerProgram},
    secret::Secret,
    store::StoreConfig,
    time::Clock,
};

use crate::{args::LocalArgs, exit::Failure};

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

/// Where the hub of these arguments keeps its things.
pub fn folder(args: &LocalArgs) -> PathBuf {
    args.data_dir.clone().unwrap_or_else(|| data_dir::default_path(|name| std::env::var(name).ok()))
}

/// Opens the hub.
///
/// # Errors
/// `NOT_FOUND` when there is none and none is to be made; what opening it says.
pub async fn open(args: &LocalArgs, how: Open) -> Result<Hub, Failure> {
    let folder = folder(args);
    let store = match &args.database_url {
        Some(url) => StoreConfig::from_url(&Secret::new(url.as_str()))?,
        None => StoreConfig::Sqlite(data_dir::database(&folder)),
    };
    if how == Open::Existing
        && let StoreConfig::Sqlite(path) = &store
        && !path.exists()
    {
        return Err(Failure::not_found(format!("there is no hub in {}", folder.display()))
            .with_hint("start hub-server once, or name its folder with --data-dir"));
    }
    let (clock, random) = (Clock::system(), Random::system());
    let egress_config = EgressConfig { allow: allowed()?, ..EgressConfig::default() };
    let egress = Egress::new(egress_config.clone())?;
    let network = |name: &str| -> Result<IlinkNetwork, Error> {
        IlinkNetwork::new(name, IlinkConfig::default(), &egress, clock.clone(), random.clone())
    };
    let mut config = HubConfig::default();
    if let Some(url) = set("HUB_PUBLIC_URL") {
        config.public_url =
            url.parse().map_err(|_| Error::invalid("public_url", "HUB_PUBLIC_URL must be a URL"))?;
    }
    let builder = Hub::builder()
        .config(config)
        .store(store)
        .secret_key(key(&folder, &random)?)
        .network(network(NETWORK)?)
        .network(network("ilink")?)
        .sandbox(SandboxConfig::of(WorkerProgram::SelfExe))
        .egress(egress_config)
        .clock(clock.clone())
        .random(random.clone());
    let hub = match how {
        Open::Existing => builder.open_existing().await?,
        Open::Migrate => builder.open().await?,
    };
    Ok(hub)
}

/// A variable that is set.
fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The private targets that the server may call, as it finds them in the environment.
pub fn allowed() -> Result<Vec<AllowRule>, Error> {
    let text = std::env::var("HUB_EGRESS_ALLOW").unwrap_or_default();
    let rules = text.split(',').map(str::trim).filter(|rule| !rule.is_empty());
    rules.map(str::parse).collect()
}

/// The key as the server finds it: the setting, the file it names, or the one in the folder.
fn key(folder: &std::path::Path, random: &Random) -> Result<[u8; 32], Error> {
    match (set("HUB_SECRET_KEY"), set("HUB_SECRET_KEY_FILE")) {
        (Some(text), None) => data_dir::parse_key(&Secret::new(text)),
        (None, Some(path)) => data_dir::read_key(path.as_ref()),
        (None, None) => data_dir::load_key(folder, random),
        (Some(_), Some(_)) => {
            Err(Error::invalid("secret_key", "is set by HUB_SECRET_KEY and HUB_SECRET_KEY_FILE; keep one"))
        }
    }
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
            names.sort_unstable();
            names.dedup();
            names.truncate(5);
            let missing = Failure::not_found(format!("there is no bot called {id_or_name}"));
            Err(missing.with_hint(if names.is_empty() {
                "this hub has no bots yet".to_owned()
            } else {
                format!("some bots of this hub: {}", names.join(", "))
            }))
        }
        1 => Ok(named.remove(0)),
        count => {
            let ids: Vec<_> = named.iter().map(|bot| bot.id.to_string()).take(5).collect();
            Err(Failure::usage(format!("{count} bots are called {id_or_name}"))
                .with_hint(format!("use an id: {}", ids.join(", "))))
        }
    }
}
