//! A hub behind a listener, with one bot and one channel.

use std::net::SocketAddr;

use hub_core::{
    access::Actor,
    channels::NewChannel,
    config::HubConfig,
    id::ChannelId,
    random::Random,
    tasks::Tasks,
    time::{Clock, ManualClock},
};
use hub_server::{
    AppSettings, app,
    rate_limit::RateLimitSettings,
    serve::{ServeLimits, Server, bind},
    settings::Values,
};
use serde_json::Value;

use super::client::{Client, Refused, open};
use crate::support::world::{TestBot, World};

pub const ORIGIN: &str = "http://localhost:9800";
pub const CONNECT: &str = "/api/v1/channels/connect";

pub struct Stage {
    pub world: World,
    pub bot: TestBot,
    pub channel: ChannelId,
    pub key: String,
    pub address: SocketAddr,
    pub settings: AppSettings,
    tasks: Tasks,
}

impl Stage {
    pub async fn new() -> Self {
        Self::with(NewChannel::named("orders"), |config| config.max_sockets_per_channel = 50).await
    }

    pub async fn with(channel: NewChannel, change: impl FnOnce(&mut HubConfig)) -> Self {
        let world = World::builder().config(change).start().await;
        let bot = world.bot().await;
        let created = world.hub.channels().create(&world.owner, bot.id, channel, None).await.unwrap();
        let (settings, address, tasks) = serve(&world).await;
        Self {
            world,
            bot,
            channel: created.channel.id,
            key: created.api_key.expose().to_owned(),
            address,
            settings,
            tasks,
        }
    }

    /// Stops the hub and its server, and starts both again, elsewhere.
    pub async fn restart(&mut self) {
        self.settings.draining.cancel();
        self.tasks.stop();
        self.world.restart().await;
        (self.settings, self.address, self.tasks) = serve(&self.world).await;
    }

    pub fn clock(&self) -> ManualClock {
        self.world.hub.context().clock.as_manual().unwrap().clone()
    }

    pub async fn client(&self) -> Actor {
        self.world.hub.channels().authenticate_key(&self.key).await.unwrap()
    }

    pub fn say(&self, text: &str) {
        self.world.say(&self.bot, text);
    }

    /// Opens a WebSocket with the channel's key; `query` follows the question mark.
    pub async fn try_connect(&self, query: &str) -> Result<Client, Refused> {
        open(self.address, &format!("{CONNECT}?{query}"), &[&format!("X-API-Key: {}", self.key)]).await
    }

    /// As [`try_connect`](Self::try_connect), and reads the first frame.
    pub async fn connect(&self, query: &str) -> (Client, Value) {
        let mut client = self.try_connect(query).await.unwrap_or_else(|refused| panic!("{}", refused.json));
        let init = client.hear("init").await;
        (client, init)
    }

    pub fn sockets(&self) -> usize {
        self.world.hub.context().node.channel_listeners.count().0
    }

    pub async fn wait_sockets(&self, count: usize) {
        self.world.until("the sockets end", async || (self.sockets() == count).then_some(())).await;
    }

    pub async fn stop(self) {
        self.settings.draining.cancel();
        self.tasks.stop();
        self.world.stop().await;
    }
}

/// Puts a listener in front of a hub.
async fn serve(world: &World) -> (AppSettings, SocketAddr, Tasks) {
    let many = std::num::NonZeroU32::new(10_000_000).unwrap();
    let limits = RateLimitSettings { default: many, sends: many, ..RateLimitSettings::default() };
    let settings = AppSettings::from(Values { rate_limits: limits, ..Values::new(ORIGIN.parse().unwrap()) });
    let (listener, tasks) = (bind("127.0.0.1:0".parse().unwrap()).await.unwrap(), Tasks::new());
    let address = listener.local_addr().unwrap();
    // Deadlines of HTTP have their own tests; here the clock is moved for other reasons.
    let server = Server::new(ServeLimits::default(), tasks.clone(), Clock::system(), Random::system());
    server.serve(vec![listener], app(world.hub.clone(), settings.clone()));
    (settings, address, tasks)
}
