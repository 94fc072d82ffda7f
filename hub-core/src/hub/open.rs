//! Opening of a hub. What may refuse it is checked first, so that a refused start leaves everything as it was.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use zeroize::Zeroizing;

use super::{Hub, HubBuilder};
use crate::{
    accounts::PasswordHasher,
    ai::NoTools,
    context::Context,
    data_dir,
    delivery::tools::AppTools,
    egress::Egress,
    error::{Advice, Error, ErrorCode, Problems, Result, Setting},
    id::Ids,
    media::{Links, MediaConfig, MediaStore},
    node::Node,
    random::Random,
    sandbox::Sandbox,
    secret::Sealer,
    store::{Store, StoreConfig, inspect, refuse_emptied},
    tasks::{Computations, Tasks},
    time::Clock,
};

/// Filters compiled at a time.
const COMPUTATIONS: usize = 2;

/// Use of the database by a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// A SQLite file is claimed and created; the schema is migrated.
    Migrate,
    /// A SQLite file is claimed; the schema must be current.
    Exclusive,
    /// Another process may work on a SQLite file; the schema must be current.
    Shared,
}

/// Origin of the key that seals secrets.
#[derive(Clone)]
pub(super) enum KeySource {
    Value([u8; 32]),
    File(PathBuf),
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(_) => f.write_str("Value(***)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// The keys of a hub.
struct Keys {
    current: Zeroizing<[u8; 32]>,
    /// The key that an interrupted rotation began to seal with.
    next: Option<Zeroizing<[u8; 32]>>,
    /// The file that does not exist yet; the current key is a fresh one.
    missing_file: Option<PathBuf>,
}

impl Keys {
    /// Reads the keys, and writes nothing.
    fn read(source: &KeySource, random: &Random) -> Result<Self> {
        let path = match source {
            KeySource::Value(key) => {
                return Ok(Self { current: Zeroizing::new(*key), next: None, missing_file: None });
            }
            KeySource::File(path) => path,
        };
        let next_file = data_dir::next_key_file(path);
        let next = if next_file.exists() { Some(data_dir::read_key(&next_file)?.into()) } else { None };
        if path.exists() {
            return Ok(Self { current: data_dir::read_key(path)?.into(), next, missing_file: None });
        }
        Ok(Self { current: random.bytes().into(), next, missing_file: Some(path.clone()) })
    }

    fn sealer(&self, random: &Random) -> Sealer {
        let sealer = Sealer::new(&self.current, random.clone());
        self.next.iter().fold(sealer, |sealer, next| sealer.opening(next))
    }

    /// Creates the missing file. Of two nodes that share a data directory, the first one decides its content.
    fn written(mut self) -> Result<Self> {
        if let Some(path) = self.missing_file.take() {
            self.current = data_dir::store_key(&path, &self.current)?.into();
        }
        Ok(self)
    }
}

pub(super) async fn open(builder: HubBuilder, access: Access) -> Result<Hub> {
    let mut problems = Problems::default();
    problems.check(builder.store.is_some(), "store", "must be set");
    problems.check(builder.key.is_some(), "secret_key", "must be set");
    let names: HashSet<&str> = builder.networks.iter().map(|network| network.name()).collect();
    problems.check(names.len() == builder.networks.len(), "network", "must have a unique name");
    problems.finish()?;
    let (config, key) = builder.store.zip(builder.key).expect("both are set");
    let clock = builder.clock.unwrap_or_else(Clock::system);
    let random = builder.random.unwrap_or_else(Random::system);
    let networks: HashMap<_, _> =
        builder.networks.into_iter().map(|network| (network.name().to_owned(), network)).collect();
    let egress = Egress::new(builder.egress)?;

    let claimed = if access == Access::Shared { None } else { config.claim()? };
    let keys = Keys::read(&key, &random)?;
    check_database(&config, access, &keys, &random).await?;

    let keys = keys.written()?;
    let is_media_set = builder.media.is_some();
    let media = builder.media.or_else(|| match &config {
        StoreConfig::Sqlite(path) => Some(MediaConfig::Folder(path.with_file_name("media"))),
        StoreConfig::Postgres(_) => None,
    });
    let links = Links::new(&keys.current, builder.config.public_url.as_str());
    let media = MediaStore::open(media.as_ref(), &egress, links, &builder.config.media)?;
    if is_media_set {
        media.check()?;
    }
    let store = match access {
        Access::Migrate => Store::open(&config, clock.clone()).await?,
        Access::Exclusive | Access::Shared => Store::open_existing(&config, clock.clone()).await?,
    };
    let claim = claimed.map(|file| store.work_on(file));
    let mut ctx = Context {
        store,
        ids: Ids::new(clock.clone(), random.clone()),
        sealer: keys.sealer(&random),
        passwords: PasswordHasher::new(builder.config.password_hashers, random.clone()),
        computations: Computations::new(COMPUTATIONS),
        egress,
        media,
        sandbox: Sandbox::new(builder.sandbox, clock.clone()),
        tools: Arc::new(NoTools),
        networks: Arc::new(networks),
        config: Arc::new(builder.config),
        node: Node::default(),
        clock,
        random,
    };
    ctx.tools = builder.tools.unwrap_or_else(|| Arc::new(AppTools::new(ctx.clone())));
    Ok(Hub {
        ctx: Arc::new(ctx),
        tasks: Tasks::new(),
        supervisor: Arc::default(),
        claim: Arc::new(Mutex::new(claim)),
    })
}

/// Refuses a database that this program must not use, or that is sealed with another key. Writes nothing.
async fn check_database(config: &StoreConfig, access: Access, keys: &Keys, random: &Random) -> Result<()> {
    if let StoreConfig::Sqlite(path) = config {
        refuse_emptied(path)?;
    }
    let Some((mut database, _)) = inspect(config, access == Access::Migrate).await? else { return Ok(()) };
    let sealer = keys.sealer(random);
    let missing = database.sealed().missing_key(&sealer).await;
    database.close().await?;
    let Some(missing) = missing? else { return Ok(()) };
    let here = match &keys.missing_file {
        Some(path) => format!("{} does not exist", path.display()),
        None => format!("the key here is {}", sealer.key_id()),
    };
    let message = format!("the database is sealed with the key {missing}, and {here}");
    Err(wrong_key(message))
}

/// The error of a hub whose key is wrong or missing, with what helps.
pub fn wrong_key(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorCode::Unavailable, message)
        .with_hint(
            "put the key file secret.key back, or set the key; if it is lost, restore a backup that contains its key; \
             an interrupted rotation of keys is completed by rotating again",
        )
        .with_advice([Advice::Set(Setting::SecretKey, None), Advice::RestoreBackup, Advice::RotateKey])
}
