//! The bot and the app of the mock: found, or created.

use std::time::Duration;

use super::{Inner, MOCK_SLUG, event::SENDER};
use crate::{
    access::{Actor, Role, UserActor},
    apps::{
        AppPatch, AppScope, AppTool, CreatedApp, Install, Installation, MAX_GRACE_HOURS, NewApp,
        NewInstallation, secret_place,
    },
    bots::Bots,
    demo::seed::{bind, holder},
    error::{Error, ErrorCode, Result},
    id::{AppId, BotId, MessageId},
    page::PageRequest,
    secret::Secret,
};

/// Name of the mock's bot.
const BOT: &str = "mock";
/// The people who have written to it before the app came: it may write to them.
const PEOPLE: [&str; 3] = [SENDER, "user_alice", "user_bob"];
/// Longest wait for their first messages.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of the checks for them.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The bot, channel and app of the mock.
#[derive(Debug, Clone)]
pub(super) struct Fixture {
    pub(super) bot_id: BotId,
    pub(super) app_id: AppId,
    pub(super) token: Secret,
    /// The newest message that is not listed any more.
    pub(super) since: Option<MessageId>,
    /// The number of the newest send of the simulator that is not listed any more.
    pub(super) after: u64,
}

impl Inner {
    /// The bot, channel and app of the mock; created again if they are gone.
    pub(super) async fn fixture<'s>(&self, known: &'s mut Option<Fixture>) -> Result<&'s mut Fixture> {
        if let Some(fixture) = known
            && self.installation(fixture.bot_id, fixture.app_id).await?.is_none()
        {
            *known = None;
        }
        match known {
            Some(fixture) => Ok(fixture),
            None => Ok(known.insert(self.find_or_make().await?)),
        }
    }

    /// The app on its bot.
    pub(super) async fn installation(&self, bot: BotId, app: AppId) -> Result<Option<Installation>> {
        let mut read = self.hub.context().store.read().await?;
        let found = read.installations().find(Actor::Operator.scope()?, bot, app).await?;
        Ok(found.map(|record| record.installation))
    }

    /// Returns the secret that signs the app's events.
    pub(super) async fn webhook_secret(&self, app: AppId) -> Result<Secret> {
        let ctx = self.hub.context();
        let secrets = ctx.store.read().await?.apps().secrets(app).await?;
        let secrets = secrets.ok_or_else(|| Error::not_found("app"))?;
        ctx.sealer.open(&secret_place(app), &secrets.webhook_secret)
    }

    async fn find_or_make(&self) -> Result<Fixture> {
        let remembered = self.hub.context().store.read().await?.demo().app().await?;
        if let Some((bot_id, app_id)) = remembered
            && self.installation(bot_id, app_id).await?.is_some()
        {
            // A token is shown once; the one from before the restart stays valid.
            let apps = self.hub.apps();
            let token = apps.regenerate_token(&Actor::Operator, bot_id, app_id, Some(MAX_GRACE_HOURS), None);
            let token = token.await?.app_token.0;
            return Ok(Fixture { bot_id, app_id, token, since: None, after: 0 });
        }
        self.make().await
    }

    async fn make(&self) -> Result<Fixture> {
        let owner = holder(&self.hub).await?;
        let bot = bind(
            &self.hub,
            &self.simulator,
            owner,
            Some(self.setup.bot_id.as_deref().unwrap_or(BOT)),
            None,
            SENDER,
        )
        .await?;
        for person in PEOPLE {
            self.simulator.say(&bot.wx_id, Some(person), "hello")?;
        }
        self.meet(bot.id).await?;
        let author = Actor::User(UserActor::embedded(owner, Role::Member));
        let app_id = self.create(&author).await?.app.id;
        let new = NewInstallation { app_id, scopes: None, handle: None, config: None };
        let Install::Done(installed) = self.hub.apps().install(&author, bot.id, new, None).await? else {
            return Err(Error::conflict("the app of the mock is installed elsewhere"));
        };
        let bot_id = bot.id;
        let remember = self
            .hub
            .context()
            .store
            .write(move |tx| Box::pin(async move { tx.demo().remember_app(bot_id, app_id).await }));
        remember.await?;
        Ok(Fixture { bot_id, app_id, token: installed.app_token.0, since: None, after: 0 })
    }

    /// Waits until the people's first messages have arrived, so that the app gets no events for them.
    async fn meet(&self, bot: BotId) -> Result<()> {
        let clock = &self.hub.context().clock;
        let until = clock.instant() + READY_TIMEOUT;
        let page = PageRequest::parse(&Bots::contact_list(bot), Some(10), None)?;
        while self.hub.bots().contacts(&Actor::Operator, bot, &page).await?.items.len() < PEOPLE.len() {
            if clock.instant() >= until {
                return Err(Error::new(ErrorCode::Unavailable, "the simulated bot receives nothing"));
            }
            clock.sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    async fn create(&self, author: &Actor) -> Result<CreatedApp> {
        let tool = |command: &String| AppTool {
            name: command.trim_start_matches('/').to_owned(),
            description: String::new(),
            command: Some(command.clone()),
            parameters: None,
        };
        let new = |slug: Option<String>| NewApp {
            name: "Test app".to_owned(),
            slug,
            rest: AppPatch {
                description: Some("Represents the app that is being developed.".to_owned()),
                webhook_url: self.setup.webhook_url.clone(),
                events: Some(vec!["message".to_owned()]),
                scopes: Some(AppScope::ALL.map(|scope| scope.as_str().to_owned()).to_vec()),
                tools: Some(self.setup.commands.iter().map(tool).collect()),
                ..AppPatch::default()
            },
        };
        let slug = self.setup.slug.clone().unwrap_or_else(|| MOCK_SLUG.to_owned());
        match self.hub.apps().create(author, new(Some(slug)), None).await {
            // Another app has this name: ours gets a suffix.
            Err(error) if error.code() == ErrorCode::Conflict && self.setup.slug.is_none() => {
                self.hub.apps().create(author, new(None), None).await
            }
            created => created,
        }
    }
}
