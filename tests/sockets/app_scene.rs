//! An app without a webhook, with sockets in place of it.

use std::time::Duration;

use hub_core::{
    access::Actor,
    accounts::{ClientInfo, NewUser},
    apps::{
        App, AppCall, AppEvent, AppEventState, AppPatch, AppTool, Apps, Install, Installation, NewApp,
        NewInstallation,
    },
    id::{AppId, BotId},
    page::PageRequest,
    secret::Secret,
    time::Clock,
};
use serde_json::Value;

use super::{
    client::{Client, Refused, open},
    stage::Stage,
};

pub const WS: &str = "/bot/v1/ws";
pub const APP_WS: &str = "/bot/v1/app/ws";

/// Everything that an app may be granted.
pub const ALL: [&str; 6] =
    ["message:read", "message:write", "contact:read", "bot:read", "tools:write", "config:read"];

/// An app without a webhook, on the stage's bot.
pub struct Scene {
    pub stage: Stage,
    pub app: App,
    pub secret: Secret,
    pub installation: Installation,
    pub token: String,
}

impl Scene {
    /// With these events and scopes, and the command `/weather`.
    pub async fn new(events: &[&str], scopes: &[&str]) -> Self {
        let stage = Stage::new().await;
        let (app, secret) = make(&stage, "Weather", events, scopes).await;
        let (installation, token) = install(&stage, stage.bot.id, app.id).await;
        Self { stage, app, secret, installation, token }
    }

    pub async fn try_connect(&self, query: &str) -> Result<Client, Refused> {
        open(self.stage.address, &format!("{WS}?token={}&{query}", self.token), &[]).await
    }

    /// Opens a socket of the installation, and reads the greeting.
    pub async fn connect(&self, query: &str) -> Client {
        let mut client = self.try_connect(query).await.unwrap_or_else(|refused| panic!("{}", refused.json));
        client.hear("init").await;
        client
    }

    pub async fn try_connect_app(&self, query: &str) -> Result<Client, Refused> {
        let target = format!("{APP_WS}?app_id={}&secret={}&{query}", self.app.id, self.secret.expose());
        open(self.stage.address, &target, &[]).await
    }

    /// Opens a socket of the whole app, and reads the greeting.
    pub async fn connect_app(&self, query: &str) -> Client {
        let mut client =
            self.try_connect_app(query).await.unwrap_or_else(|refused| panic!("{}", refused.json));
        client.hear("init").await;
        client
    }

    /// The next event, while the clock moves.
    pub async fn event(&self, client: &mut Client) -> Value {
        self.while_time_passes(client.hear("event")).await
    }

    /// Text of the message in the next event.
    pub async fn content(&self, client: &mut Client) -> String {
        self.event(client).await["event"]["data"]["content"].as_str().unwrap().to_owned()
    }

    /// Texts of the next `count` events.
    pub async fn contents(&self, client: &mut Client, count: usize) -> Vec<String> {
        let mut contents = Vec::new();
        while contents.len() < count {
            contents.push(self.content(client).await);
        }
        contents
    }

    /// Close code of the hub, while the clock moves.
    pub async fn closed(&self, client: &mut Client) -> u16 {
        self.while_time_passes(client.closed()).await.0
    }

    pub async fn while_time_passes<T>(&self, what: impl Future<Output = T>) -> T {
        let clock = self.stage.clock();
        let passes = async {
            for _ in 0..10_000 {
                Clock::system().sleep(Duration::from_millis(4)).await;
                clock.advance(Duration::from_millis(20));
            }
        };
        tokio::select! {
            done = what => done,
            () = passes => panic!("waited in vain"),
        }
    }

    pub async fn events(&self) -> Vec<AppEvent> {
        let (apps, owner) = (self.stage.world.hub.apps(), &self.stage.world.owner);
        let (bot, app) = (self.stage.bot.id, self.app.id);
        let page = PageRequest::parse(&Apps::event_list(bot, app), Some(200), None).unwrap();
        let mut items = apps.events(owner, bot, app, &page).await.unwrap().items;
        items.reverse();
        items
    }

    /// Waits until the log has so many events that stand like this.
    pub async fn logged(&self, state: AppEventState, count: usize) -> Vec<AppEvent> {
        let look = async || {
            let events: Vec<_> =
                self.events().await.into_iter().filter(|event| event.state == state).collect();
            (events.len() >= count).then_some(events)
        };
        self.stage.world.until(&format!("{count} events are {}", state.as_str()), look).await
    }

    pub async fn calls(&self, count: usize) -> Vec<AppCall> {
        let (apps, owner) = (self.stage.world.hub.apps(), &self.stage.world.owner);
        let (bot, app) = (self.stage.bot.id, self.app.id);
        let page = PageRequest::parse(&Apps::call_list(bot, app), None, None).unwrap();
        let look = async || {
            let items = apps.calls(owner, bot, app, &page).await.unwrap().items;
            (items.len() >= count).then_some(items)
        };
        self.stage.world.until("the calls are noted", look).await
    }

    pub async fn stop(self) {
        self.stage.stop().await;
    }
}

/// An app of the stage's owner.
pub async fn make(stage: &Stage, name: &str, events: &[&str], scopes: &[&str]) -> (App, Secret) {
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
    let tool = AppTool {
        name: "weather".to_owned(),
        description: String::new(),
        command: Some("weather".to_owned()),
        parameters: None,
    };
    let rest = AppPatch {
        events: words(events),
        scopes: words(scopes),
        tools: Some(vec![tool]),
        ..AppPatch::default()
    };
    let new = NewApp { name: name.to_owned(), slug: None, rest };
    let created = stage.world.hub.apps().create(&stage.world.owner, new, None).await.unwrap();
    (created.app, created.webhook_secret.0)
}

pub async fn install(stage: &Stage, bot: BotId, app_id: AppId) -> (Installation, String) {
    let new = NewInstallation { app_id, scopes: None, handle: None, config: None };
    let installed = stage.world.hub.apps().install(&stage.world.owner, bot, new, None).await.unwrap();
    let Install::Done(installed) = installed else { panic!("the app has no setup page") };
    (installed.installation, installed.app_token.expose().to_owned())
}

/// One more user.
pub async fn user(stage: &Stage, name: &str) -> Actor {
    let new = NewUser {
        username: name.to_owned(),
        password: "another long one".into(),
        display_name: None,
        email: None,
    };
    let accounts = stage.world.hub.accounts();
    let signed_in = accounts.register(new, None, &ClientInfo::default()).await.unwrap();
    accounts.authenticate_session(signed_in.token.expose()).await.unwrap()
}
