//! A hub behind a real port, reached by its name, and what it is tested with.

use std::{
    io::Write,
    net::Ipv4Addr,
    num::NonZeroU32,
    path::{Path, PathBuf},
};

use hub_core::{
    Hub, config::HubConfig, egress::EgressConfig, random::Random, store::StoreConfig, tasks::Tasks,
    time::Clock,
};
use hub_server::{
    AppSettings, app,
    serve::{ServeLimits, Server},
    settings::Values,
};
use tokio::net::TcpListener;

/// A hub at `http://localhost:PORT`.
pub struct Fixture {
    pub hub: Hub,
    /// Its public URL, without a slash at the end.
    pub url: String,
    tasks: Tasks,
    _folder: tempfile::TempDir,
}

impl Fixture {
    /// Opens a hub with these settings next to its own address.
    pub async fn open(egress: EgressConfig, change: impl FnOnce(&mut HubConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("http://localhost:{port}");
        let mut config = HubConfig::default();
        config.public_url = url.parse().unwrap();
        change(&mut config);
        let hub = Hub::builder()
            .store(StoreConfig::Sqlite(folder.path().join("hub.db")))
            .secret_key([7; 32])
            .egress(egress)
            .config(config);
        let hub = hub.open().await.unwrap();
        let mut values = Values::new(url.parse().unwrap());
        values.other_origins = vec![format!("http://127.0.0.1:{port}")];
        // Everyone comes from one address here.
        values.rate_limits.auth_per_ip = NonZeroU32::MAX;
        values.rate_limits.default = NonZeroU32::MAX;
        let tasks = Tasks::new();
        let endpoint = app(hub.clone(), AppSettings::from(values));
        Server::new(ServeLimits::default(), tasks.clone(), Clock::system(), Random::system())
            .serve(vec![listener], endpoint);
        Self { hub, url, tasks, _folder: folder }
    }

    /// Ends it.
    pub async fn close(self) {
        self.tasks.stop();
        self.hub.shutdown().await;
    }
}

/// A script of this folder.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("identity").join(name)
}

/// An npm package that `.ci/run clients` installed, by its folder there; `None` where it is missing, which CI
/// does not accept.
pub fn npm(package: &str) -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("HUB_TEST_CLIENTS").unwrap_or_else(|| {
        let cache = set("XDG_CACHE_HOME");
        let cache = cache.unwrap_or_else(|| set("HOME").unwrap_or_default().join(".cache"));
        cache.join("message-hub-ci/clients")
    });
    present(package, folder.join(format!("npm-{package}/node_modules")))
}

/// Debian's Chromium, if possible the one without windows, which loads pages in a third less time.
pub fn chromium() -> Option<PathBuf> {
    let headless = Path::new("/usr/bin/chromium-headless-shell");
    if headless.exists() {
        return Some(headless.to_owned());
    }
    present("chromium", PathBuf::from("/usr/bin/chromium"))
}

fn present(name: &str, path: PathBuf) -> Option<PathBuf> {
    if path.exists() {
        return Some(path);
    }
    let told = format!("{name} is not installed ({} is missing; see `.ci/run`)", path.display());
    assert!(std::env::var_os("CI").is_none(), "{told}");
    let _ = writeln!(std::io::stderr(), "{told}: its test is SKIPPED");
    None
}
