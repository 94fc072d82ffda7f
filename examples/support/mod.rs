//! Setup of the examples: a hub in a temporary directory, a user who binds a bot, a receiver.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use hub_core::{
    Hub,
    access::{Actor, UserActor},
    accounts::{ClientInfo, NewUser},
    bots::{Bot, NewBind, NewSend},
    channels::{NewChannel, sinks::WebhookUpdate},
    local_http::{Cut, LocalService},
    network::{Network, sim::Simulator},
    random::Random,
    store::StoreConfig,
    time::Clock,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A running hub with one network; its folder goes when the first part is dropped.
pub async fn open(network: impl Network) -> Result<(TempDir, Hub), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let store = StoreConfig::Sqlite(folder.path().join("hub.db"));
    let hub =
        Hub::builder().store(store).secret_key(Random::system().bytes()).network(network).open().await?;
    hub.start().await?;
    Ok((folder, hub))
}

/// A plain text for the person who owns the bot.
pub fn text(content: &str) -> NewSend {
    NewSend { content: content.to_owned(), ..NewSend::default() }
}

/// A receiver of webhooks that prints what it gets, with the headers that start with `x-`, and answers `{}`.
#[derive(Debug)]
pub struct Prints;

#[async_trait::async_trait]
impl LocalService for Prints {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let own = request.headers().iter().filter(|(name, _)| name.as_str().starts_with("x-"));
        let headers: Vec<_> = own.map(|(name, value)| format!("{name}: {value:?}")).collect();
        println!("{} got {} {}", request.uri(), String::from_utf8_lossy(request.body()), headers.join(", "));
        Ok(Response::new(Bytes::from_static(b"{}")))
    }
}

/// A channel that posts to a URL.
pub fn posting_to(url: &str) -> NewChannel {
    let webhook = WebhookUpdate { url: url.to_owned(), ..WebhookUpdate::default() };
    NewChannel { webhook: Some(webhook), ..NewChannel::named("orders") }
}

/// As [`bind`], on the simulated network, whose person scans and confirms.
pub async fn bind_simulated(hub: &Hub, people: &Simulator) -> Result<(Actor, Bot), Box<dyn Error>> {
    bind_with(hub, |code| people.confirm(code, None).map(drop)).await
}

/// Registers a user and binds a bot on the hub's only network, which confirms by itself.
pub async fn bind(hub: &Hub) -> Result<(Actor, Bot), Box<dyn Error>> {
    bind_with(hub, |_| Ok(())).await
}

async fn bind_with(
    hub: &Hub,
    confirm: impl FnOnce(&str) -> hub_core::Result<()>,
) -> Result<(Actor, Bot), Box<dyn Error>> {
    let password = "correct horse".into();
    let new = NewUser { username: "ada".to_owned(), password, display_name: None, email: None };
    let user = hub.accounts().register(new, None, &ClientInfo::default()).await?.me.user;
    let actor = Actor::User(UserActor::embedded(user.id, user.role));
    let login = hub.bots().start_bind(&actor, NewBind::default()).await?;
    confirm(login.qr_text.expose())?;
    let step = hub.bots().confirm_bind(&actor, login.bind_id, None, Duration::from_secs(5)).await?;
    Ok((actor, step.bot.ok_or("the bot was not bound")?))
}

/// Posts JSON to a program on this machine and answers the body of the answer, as soon as there is one to connect to.
pub async fn post(to: SocketAddr, path: &str, body: &str) -> Result<String, Box<dyn Error>> {
    let mut stream = loop {
        if let Ok(stream) = TcpStream::connect(to).await {
            break stream;
        }
        Clock::system().sleep(Duration::from_millis(20)).await;
    };
    let (host, length) = (format!("localhost:{}", to.port()), body.len());
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n"
    );
    stream.write_all(format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}
