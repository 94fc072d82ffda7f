//! The connector for the WeChat iLink Bot API, and for everything that speaks it: the simulator is a different server
//! behind the same connector.
//!
//! [`IlinkNetwork`] logs accounts in and makes their connections. Nothing here keeps state
//! that matters across a restart: cursors, tokens and windows belong to the hub.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use url::Url;

use self::{
    agent::sanitize_agent, connection::IlinkConnection, hosts::Hosts, login::Login, transport::Transport,
};
use crate::{
    egress::Egress,
    error::Result,
    network::{
        Connection, Credentials, LoginProgress, LoginPrompt, LoginState, Network, NetworkError, TextFormat,
        WindowRules,
    },
    random::Random,
    secret::Secret,
    time::Clock,
};

mod agent;
pub(crate) mod cipher;
mod connection;
mod fence;
pub(super) mod field;
mod hosts;
mod login;
mod markdown;
mod media;
mod message;
mod reply;
mod send;
mod text;
mod tickets;
mod transport;
mod updates;

/// Smallest and largest [`IlinkConfig::text_limit`]: enough for a line of code between two fences, and the longest
/// text that is known to be shown.
pub const TEXT_LIMITS: [usize; 2] = [200, 4_000];

/// The settings of the network. Every number is one that the service may change at any time.
#[derive(Debug, Clone)]
pub struct IlinkConfig {
    /// URL at which logins begin. Its host, port and scheme may also be an account's base URL.
    pub login_base_url: Url,
    /// Base URL of the CDN that stores media.
    pub cdn_base_url: Url,
    /// This client's version `major.minor.patch`: `iLink-App-ClientVersion` and `channel_version`.
    pub client_version: String,
    /// `iLink-App-Id`.
    pub app_id: String,
    /// Name of this client, like a `User-Agent`; parts that break the grammar are left out.
    pub bot_agent: String,
    /// `SKRouteTag`, only if the operator was given one.
    pub route_tag: Option<String>,
    /// Characters of one message; brought into 200..=4000.
    pub text_limit: usize,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Limits on messages from a bot to a person.
    pub window: WindowRules,
}

/// Time limits of calls.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Hold time of a poll until the server suggests one.
    pub hold: Duration,
    /// Added to the hold time: with the server's own limit every idle poll would be a race.
    pub hold_margin: Duration,
    /// The longest poll.
    pub hold_max: Duration,
    /// A poll once a gateway has been found to cut longer ones.
    pub short_poll: Duration,
    /// A new login code.
    pub login_code: Duration,
    /// The longest wait for a login's next state.
    pub login_status: Duration,
    /// A send.
    pub send: Duration,
    /// Typing, and the announcement that polling begins.
    pub control: Duration,
    /// The announcement that polling ended.
    pub stop: Duration,
    /// A file to or from the CDN.
    pub cdn: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            hold: Duration::from_secs(35),
            hold_margin: Duration::from_secs(10),
            hold_max: Duration::from_secs(70),
            short_poll: Duration::from_secs(10),
            login_code: Duration::from_secs(30),
            login_status: Duration::from_secs(45),
            send: Duration::from_secs(15),
            control: Duration::from_secs(10),
            stop: Duration::from_secs(3),
            cdn: Duration::from_secs(120),
        }
    }
}

impl Default for IlinkConfig {
    /// The public service.
    fn default() -> Self {
        let url = |text: &str| Url::parse(text).expect("a constant that is a URL");
        Self {
            login_base_url: url("https://ilinkai.weixin.qq.com"),
            cdn_base_url: url("https://novac2c.cdn.weixin.qq.com/c2c"),
            client_version: env!("CARGO_PKG_VERSION").to_owned(),
            app_id: "bot".to_owned(),
            bot_agent: agent::DEFAULT.to_owned(),
            route_tag: None,
            text_limit: 2_000,
            timeouts: Timeouts::default(),
            window: WindowRules {
                // Half an hour short of the 24 hours that are known.
                age: Some(Duration::from_secs(23 * 3600 + 30 * 60)),
                sends: Some(10),
                burst: None,
                gap: Duration::from_millis(300),
            },
        }
    }
}

impl IlinkConfig {
    fn normalized(mut self) -> Self {
        self.bot_agent = sanitize_agent(&self.bot_agent);
        self.text_limit = self.text_limit.clamp(TEXT_LIMITS[0], TEXT_LIMITS[1]);
        self
    }
}

/// A chat network that speaks the iLink Bot API.
#[derive(Debug)]
pub struct IlinkNetwork {
    name: String,
    transport: Transport,
    hosts: Arc<Hosts>,
    clock: Clock,
}

impl IlinkNetwork {
    /// A network under a name that bots are stored with: `ilink` for the real one, `sim` for the simulator.
    /// It dials what `config` names and the network's own hosts, and nothing else.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when no HTTP client can be made.
    pub fn new(
        name: &str,
        config: IlinkConfig,
        egress: &Egress,
        clock: Clock,
        random: Random,
    ) -> Result<Self> {
        let hosts = Arc::new(Hosts::new(&config.login_base_url, &config.cdn_base_url));
        // A message to a person must not arrive twice.
        let egress = egress.trusted().once();
        let transport = Transport::new(Arc::new(config.normalized()), egress, random);
        Ok(Self { name: name.to_owned(), transport, hosts, clock })
    }

    fn login(&self) -> Login<'_> {
        Login { transport: &self.transport, hosts: &self.hosts }
    }
}

#[async_trait]
impl Network for IlinkNetwork {
    fn name(&self) -> &str {
        &self.name
    }

    async fn begin_login(&self, known: &[Secret]) -> Result<LoginPrompt, NetworkError> {
        self.login().begin(known).await
    }

    /// Requests the status once, for at most `wait`; the caller leaves a second between two steps without a new
    /// code.
    async fn login_step(
        &self,
        state: &LoginState,
        verify_code: Option<&str>,
        wait: Duration,
    ) -> Result<LoginProgress, NetworkError> {
        self.login().step(state, verify_code, wait).await
    }

    fn connect(&self, credentials: &Credentials) -> Arc<dyn Connection> {
        let base = match credentials.base_url.as_str() {
            "" => Some(self.hosts.login().clone()),
            url => self.hosts.check(url),
        };
        let token = credentials.token.clone();
        let hosts = Arc::clone(&self.hosts);
        Arc::new(IlinkConnection::new(self.transport.share(), hosts, base, token, self.clock.clone()))
    }

    fn window_rules(&self) -> WindowRules {
        self.transport.config().window
    }

    /// Markdown is filtered first, unless nothing would be left; a blank text has no parts.
    fn split_text(&self, text: &str, format: TextFormat) -> Vec<String> {
        split(text, format, self.transport.config().text_limit)
    }

    fn split_long_text(&self, text: &str, format: TextFormat) -> Vec<String> {
        split(text, format, TEXT_LIMITS[1])
    }
}

fn split(text: &str, format: TextFormat, limit: usize) -> Vec<String> {
    let filtered = (format == TextFormat::Markdown).then(|| markdown::filter(text));
    let shown = filtered.as_deref().filter(|shown| !shown.trim().is_empty()).unwrap_or(text);
    text::split(shown, limit)
}

#[cfg(test)]
mod tests;
