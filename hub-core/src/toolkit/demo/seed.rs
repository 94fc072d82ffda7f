//! Seeding: once per database, and safe to call at every start.

use std::time::Duration;

use super::{ADA, DemoReceiver, NAME, NETWORK, RECEIVER_URL};
use crate::{
    access::{Actor, Role, UserActor},
    accounts::{User, UserStatus},
    bots::{BindStatus, Bot, Bots, NewBind},
    channels::{Channel, Channels, Filter, NewChannel},
    error::{Error, ErrorCode, Result},
    hub::Hub,
    id::{BotId, ChannelId, UserId},
    model::sinks::{AuthMethod, AuthUpdate, Change, WebhookUpdate},
    network::sim::Simulator,
    page::{MAX_LIMIT, PageRequest},
    secret::Secret,
    signing,
    store::demo::DEMO_USER,
};

/// The demo in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demo {
    /// Its bot.
    pub bot_id: BotId,
    /// Its channel.
    pub channel_id: ChannelId,
    /// The bot's account on the simulated network.
    pub wx_id: String,
    /// Whether this call made it.
    pub created: bool,
}

/// Finds the demo, or makes it in a hub that never had one: a bot `demo` of Ada's, bound through the simulator, with
/// a channel `demo` that posts to the receiver. The receiver learns the channel's secret. It belongs to the first
/// admin, or to a user who cannot sign in until there is one. `None` if it was deleted: it is not created again.
///
/// # Errors
/// Errors of binding and of the store.
pub async fn seed(hub: &Hub, simulator: &Simulator, receiver: &DemoReceiver) -> Result<Option<Demo>> {
    let known = hub.context().store.read().await?.demo().bot().await?;
    let (bot, channel) = if let Some(id) = known {
        let Some(bot) = found(hub.bots().get(&Actor::Operator, id).await)? else { return Ok(None) };
        let Some(channel) = find_channel(hub, id).await? else { return Ok(None) };
        (bot, channel)
    } else {
        let owner = holder(hub).await?;
        let bot = bind(hub, simulator, owner, Some(NAME), None, ADA).await?;
        let channel = create_channel(hub, bot.id).await?;
        let id = bot.id;
        hub.context()
            .store
            .write(move |tx| Box::pin(async move { tx.demo().remember_bot(id).await }))
            .await?;
        (bot, channel)
    };
    if let Some(secret) = secret_of(hub, bot.id, channel).await? {
        receiver.set_secret(secret);
    }
    Ok(Some(Demo { bot_id: bot.id, channel_id: channel, wx_id: bot.wx_id, created: known.is_none() }))
}

/// Logs every bot of the simulated network in again: a simulator that lives in the process forgets its
/// accounts when the process ends, the store does not. Returns how many; at most 200.
///
/// # Errors
/// Errors of binding and of the store.
pub async fn renew_logins(hub: &Hub, simulator: &Simulator) -> Result<usize> {
    let bots = {
        let page = PageRequest::parse(&Bots::bot_list(&Actor::Operator), Some(MAX_LIMIT), None)?;
        hub.bots().list(&Actor::Operator, &page).await?
    };
    let mut renewed = 0;
    for bot in bots.items.into_iter().filter(|bot| bot.network == NETWORK) {
        let record = hub.context().store.read().await?.bots().find(None, bot.id).await?;
        let Some(record) = record else { continue };
        bind(hub, simulator, record.owner_id, None, Some(bot.id), &record.owner_user_id).await?;
        renewed += 1;
    }
    Ok(renewed)
}

/// Binds an account as its person would: by scanning and confirming.
pub(super) async fn bind(
    hub: &Hub,
    simulator: &Simulator,
    owner: UserId,
    name: Option<&str>,
    for_bot: Option<BotId>,
    person: &str,
) -> Result<Bot> {
    let actor = Actor::User(UserActor::embedded(owner, Role::Member));
    let new = NewBind { network: Some(NETWORK.to_owned()), name: name.map(str::to_owned), for_bot };
    let login = hub.bots().start_bind(&actor, new).await?;
    simulator.scan(login.qr_text.expose())?;
    simulator.confirm(login.qr_text.expose(), Some(person))?;
    let step = hub.bots().confirm_bind(&actor, login.bind_id, None, Duration::from_secs(5)).await?;
    match (step.status, step.bot) {
        (BindStatus::Confirmed | BindStatus::AlreadyBound, Some(bot)) => Ok(bot),
        (status, _) => {
            let why = step.reason.unwrap_or_else(|| format!("the login is {}", status.as_str()));
            Err(Error::new(ErrorCode::UpstreamError, format!("the simulated account was not bound: {why}")))
        }
    }
}

async fn create_channel(hub: &Hub, bot: BotId) -> Result<ChannelId> {
    let secret = signing::new_secret(&hub.context().random);
    let mut channel = NewChannel::named(NAME);
    channel.filter = Filter { message_types: vec!["text".to_owned()], ..Filter::default() };
    channel.webhook = Some(WebhookUpdate {
        url: RECEIVER_URL.to_owned(),
        auth: AuthUpdate { method: AuthMethod::Hmac, header_name: None, secret: Change::Set(secret) },
        auto_reply: true,
        ..WebhookUpdate::default()
    });
    Ok(hub.channels().create(&Actor::Operator, bot, channel, None).await?.channel.id)
}

async fn find_channel(hub: &Hub, bot: BotId) -> Result<Option<ChannelId>> {
    let page = PageRequest::parse(&Channels::channel_list(bot), Some(MAX_LIMIT), None)?;
    let channels = hub.channels().list(&Actor::Operator, bot, &page).await?;
    Ok(channels.items.iter().find(|channel: &&Channel| channel.name == NAME).map(|channel| channel.id))
}

async fn secret_of(hub: &Hub, bot: BotId, channel: ChannelId) -> Result<Option<Secret>> {
    let ctx = hub.context();
    let scope = Actor::Operator.scope()?;
    let record = ctx.store.read().await?.channels().find(scope, bot, channel).await?;
    Ok(record.map(|record| record.webhook_secret(&ctx.sealer)).transpose()?.flatten())
}

/// The owner of the demo, created if there is no user yet.
pub(super) async fn holder(hub: &Hub) -> Result<UserId> {
    let ctx = hub.context();
    let user = User {
        id: ctx.ids.next(),
        username: DEMO_USER.to_owned(),
        display_name: "Demo".to_owned(),
        email: String::new(),
        role: Role::Member,
        status: UserStatus::Active,
        created_at: ctx.store.now(),
    };
    let holder = ctx.store.write(move |tx| {
        Box::pin(async move {
            if let Some(holder) = tx.demo().holder().await? {
                return Ok(holder);
            }
            // Without a password the user cannot sign in, and a member is not the first administrator.
            tx.accounts().insert_user(&user, None, Some(Role::Member)).await?;
            Ok(user.id)
        })
    });
    holder.await
}

pub(super) fn found<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        other => other.map(Some),
    }
}
