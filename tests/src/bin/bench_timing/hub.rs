//! The hub under test, with people of every kind.

use std::path::Path;

use hub_core::data_dir;
use serde_json::{Value, json};
use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};
use tokio::net::TcpListener;

use crate::{
    Options, Result,
    http_caller::{Caller, until},
    process::Process,
    program,
};

/// Everyone's password.
pub const PASSWORD: &str = "correct horse battery staple";

/// A hub in which ada has the demo's bot, bob nothing but a passkey and a password, carol is switched off, and dave has
/// no password.
pub struct Hub {
    _process: Process,
    pub stranger: Caller,
    pub bob: Caller,
    /// Ada's bot.
    pub bot: String,
    /// Its channel.
    pub channel: String,
}

async fn free_address() -> Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0").await?.local_addr()?.to_string())
}

impl Hub {
    /// Starts it, and makes the people.
    pub async fn start(options: &Options, folder: &Path) -> Result<Self> {
        let (address, simulator) = (free_address().await?, free_address().await?);
        let many = || "10000000".to_owned();
        let port = address.rsplit(':').next().unwrap_or_default();
        let variables = [
            ("HUB_LISTEN", address.clone()),
            // Passkeys want a name.
            ("HUB_PUBLIC_URL", format!("http://localhost:{port}")),
            ("HUB_DATA_DIR", folder.display().to_string()),
            ("HUB_NETWORK", "sim".to_owned()),
            ("HUB_SIM_LISTEN", simulator),
            ("HUB_LOG", "warn".to_owned()),
            ("HUB_RATE_DEFAULT", many()),
            ("HUB_RATE_AUTH_PER_IP", many()),
            ("HUB_RATE_AUTH_PER_ACCOUNT", many()),
        ];
        let process = Process::program(&program::find(options.hub_server.as_deref())?, &variables)?;
        until("the hub listens", async || tokio::net::TcpStream::connect(&address).await.ok()).await;
        let stranger = Caller::stranger(&format!("http://{address}"));
        let join = async |name: &str| {
            let mut caller = stranger.clone();
            caller.sign_in("/api/auth/register", json!({ "username": name, "password": PASSWORD })).await;
            caller
        };
        let (ada, bob) = (join("ada").await, join("bob").await);
        join("carol").await;
        join("dave").await;
        let bot = first(&ada.get("/api/bots").await)?;
        let channel = first(&ada.get(&format!("/api/bots/{bot}/channels")).await)?;
        let database = data_dir::database(folder);
        let mut database = SqliteConnectOptions::new().filename(&database).connect().await?;
        // As long as the made-up ids of credentials are.
        sqlx::raw_sql(
            "UPDATE users SET status = 'disabled' WHERE username = 'carol';
             UPDATE users SET password_hash = NULL WHERE username = 'dave';
             INSERT INTO passkeys (id, user_id, credential_id, credential, name, created_at)
                SELECT 'pky_01BX5ZZKBKACTAV9WEVGEMMVRZ', id, 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', '{}',
                    'Phone', 0 FROM users WHERE username = 'bob'",
        )
        .execute(&mut database)
        .await?;
        Ok(Self { _process: process, stranger, bob, bot, channel })
    }
}

/// The id of the first thing of a list.
fn first(page: &Value) -> Result<String> {
    let id = page["items"][0]["id"].as_str();
    Ok(id.ok_or_else(|| format!("the list is empty: {page}"))?.to_owned())
}
