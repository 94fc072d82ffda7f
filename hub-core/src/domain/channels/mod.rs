//! Channels: where the messages of a bot go, and how.
//!
//! A channel has a key for its client, rules that select messages, and sinks. Nothing here sends: the workers
//! in `delivery` load a bot's channels and follow them. Every change raises the revision of
//! the bot's rules in the same commit, by which the workers know that what they loaded is old.

use std::collections::HashMap;

use futures_util::FutureExt;

mod changes;
mod channel;
mod clients;
mod filter_trial;
pub mod keys;
pub mod log;
#[cfg(test)]
mod tests;

pub use channel::{Channel, ChannelPatch, ChannelStats, CreatedChannel, NewChannel};
pub use clients::{ChannelClient, ChannelClients};
pub use filter_trial::{FilterVerdict, MAX_TESTED, TestedFilter};
pub use keys::RegeneratedKey;

use crate::{
    access::{Actor, ChannelActor, Role, Scope, UserActor},
    admin::ai_config::GlobalAi,
    context::Context,
    error::{Error, Result},
    id::{BotId, ChannelId},
    idempotency::{self, Idempotent},
    model::{
        audit::Action,
        cause::Cause,
        channel::encode,
        revocation::Revoked,
        sinks::{AiSource, AiUpdate, IlinkSettings, WebSocketSettings, WebhookUpdate},
    },
    page::{Page, PageRequest},
    plugins::InstalledPlugin,
    secret::TokenHash,
    store::{Read, Tx, fault::is_constraint},
    wake::Hint,
};
pub use crate::{
    filter::{self, Filter},
    model::{
        channel::{
            AfterChange, ChannelHealth, ChannelOptions, ChannelRecord, ChannelTotals, DEFAULT_LANE_HOLD_S,
            MAX_LANE_HOLD_S, NewKey, OLD_SECRET_LIFE, OnPluginError,
        },
        handle::Handle,
        sinks,
    },
};

/// Channels and their settings: every operation takes the actor of the caller. A bot or channel of another user, and
/// a channel of another bot, does not exist for the caller: `NOT_FOUND`.
#[derive(Debug, Clone, Copy)]
pub struct Channels<'h> {
    ctx: &'h Context,
}

impl<'h> Channels<'h> {
    pub(crate) fn new(ctx: &'h Context) -> Self {
        Self { ctx }
    }

    /// The channels of a bot, newest first.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn list(&self, actor: &Actor, bot_id: BotId, page: &PageRequest) -> Result<Page<Channel>> {
        let scope = actor.scope()?;
        let mut read = self.ctx.store.read().await?;
        if !read.channels().sees_bot(scope, bot_id).await? {
            return Err(Error::not_found("bot"));
        }
        let rows = read.channels().page(scope, bot_id, page).await?;
        let page = Page::from_rows(&Self::channel_list(bot_id), page, rows, |channel| channel.id.to_string());
        let items = self.show(&mut read, bot_id, page.items).await?;
        Ok(Page { items, next_cursor: page.next_cursor })
    }

    /// The name of a bot's list of channels, for [`PageRequest::parse`].
    pub fn channel_list(bot_id: BotId) -> String {
        format!("channels:{bot_id}")
    }

    /// Makes a channel with a fresh key. `idempotency_key` is the caller's `Idempotency-Key`: the same key
    /// with the same channel gives the first answer again, key included.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every bad field; `NOT_FOUND`; `CONFLICT` when the bot has as many channels as it
    /// may have, or one with the name or the handle, or the idempotency key was used for something else.
    pub async fn create(
        &self,
        actor: &Actor,
        bot_id: BotId,
        mut new: NewChannel,
        idempotency_key: Option<&str>,
    ) -> Result<CreatedChannel> {
        let scope = actor.scope()?;
        let (api_key, key) = NewKey::generate(self.ctx, None);
        let secrets = new.secret_hashes();
        // After the hashes: the same request again has no secret either.
        let generated = new.generate_secret(&self.ctx.random);
        let (ctx, made_key) = (self.ctx.clone(), key.clone());
        let make = move || new.into_record(&ctx, bot_id, &made_key);
        let record = self.ctx.computations.run(make).await??;
        let secrets = secrets.each_ref().map(|hash| hash.as_ref().map(TokenHash::as_str));
        let once = Idempotent::read(
            self.ctx,
            actor,
            "channel.create",
            &(record.wanted(), secrets),
            idempotency_key,
        )?;
        let mut channel = channel::show(record.clone(), Default::default(), Vec::new(), key.at)?;
        channel.webhook.auth.secret = generated.map(Into::into);
        let entry = changes::created(self.ctx.audit(actor, Action::ChannelCreated), &record);
        let most = self.ctx.config.max_channels;
        let created = idempotency::write_once(&self.ctx.store, once, move |tx| {
            async move {
                tx.channels().begin_change(scope, bot_id).await?;
                if tx.channels().count(bot_id).await? >= i64::from(most) {
                    return Err(Error::conflict(format!("a bot may have at most {most} channels")));
                }
                check_name_is_free(tx, &record).await?;
                tx.channels().insert(&record, &key.hash).await.map_err(handle_taken)?;
                tx.audit().add(&entry).await?;
                Ok(CreatedChannel { channel, api_key: api_key.into() })
            }
            .boxed()
        })
        .await?;
        self.ctx.node.wake.hint(Hint::Bot(bot_id));
        Ok(created)
    }

    /// One channel.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn get(&self, actor: &Actor, bot_id: BotId, id: ChannelId) -> Result<Channel> {
        self.find(actor.scope()?, bot_id, id).await
    }

    /// The channel of a channel client.
    ///
    /// # Errors
    /// `NOT_FOUND` when it was deleted meanwhile.
    pub async fn of_client(&self, client: &ChannelActor) -> Result<Channel> {
        let owner = UserActor::embedded(client.owner_id, Role::Member);
        self.find(Actor::User(owner).scope()?, client.bot_id, client.channel_id).await
    }

    /// Changes the channel itself.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every bad field, `NOT_FOUND`, `CONFLICT` when the bot has another channel with the new name
    /// or the handle.
    pub async fn update(
        &self,
        actor: &Actor,
        bot_id: BotId,
        id: ChannelId,
        patch: ChannelPatch,
    ) -> Result<Channel> {
        patch.check()?;
        self.change(actor, bot_id, id, Action::ChannelUpdated, move |record| {
            patch.apply(record);
            Ok(())
        })
        .await
    }

    /// Deletes a channel, its key, its log and its deliveries.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn delete(&self, actor: &Actor, bot_id: BotId, id: ChannelId) -> Result<()> {
        let scope = actor.scope()?;
        let revocation = self.ctx.revocation(Revoked::Channel(id));
        let entry = self.ctx.audit(actor, Action::ChannelDeleted);
        self.ctx
            .store
            .write(move |tx| {
                async move {
                    tx.channels().begin_change(scope, bot_id).await?;
                    let record = found(tx.channels().find(scope, bot_id, id).await?)?;
                    tx.channels().delete(bot_id, id).await?;
                    tx.audit().add(&changes::deleted(entry, &record)).await?;
                    tx.revocations().add(&revocation).await
                }
                .boxed()
            })
            .await?;
        self.ctx.notify_revoked(revocation.revoked);
        self.ctx.node.wake.hint(Hint::Bot(bot_id));
        Ok(())
    }

    /// Replaces the filter.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every bad field, also when the expression does not compile; `NOT_FOUND`.
    pub async fn set_filter(
        &self,
        actor: &Actor,
        bot_id: BotId,
        id: ChannelId,
        filter: &Filter,
    ) -> Result<Channel> {
        let (json, checked) = (encode(filter)?, filter.clone());
        self.ctx.computations.run(move || checked.validate()).await??;
        self.change(actor, bot_id, id, Action::FilterChanged, move |record| {
            record.filter = json;
            Ok(())
        })
        .await
    }

    /// Replaces the WebSocket sink's settings.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every bad origin, `NOT_FOUND`.
    pub async fn set_websocket(
        &self,
        actor: &Actor,
        bot_id: BotId,
        id: ChannelId,
        websocket: &WebSocketSettings,
    ) -> Result<Channel> {
        websocket.validate()?;
        let json = encode(websocket)?;
        self.change(actor, bot_id, id, Action::WebSocketChanged, move |record| {
            record.websocket = json;
            Ok(())
        })
        .await
    }

    /// Replaces the iLink sink's settings. Clients that are logged in stay so when fewer are admitted.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every bad field, `NOT_FOUND`.
    pub async fn set_ilink(
        &self,
        actor: &Actor,
        bot_id: BotId,
        id: ChannelId,
        ilink: IlinkSettings,
    ) -> Result<Channel> {
        ilink.validate()?;
        let json = encode(&ilink)?;
        self.change(actor, bot_id, id, Action::IlinkChanged, move |record| {
            record.ilink = json;
            Ok(())
        })
        .await
    }

    /// Replaces the webhook sink's settings. A replaced secret signs for another 24 hours in addition to the new one;
    /// a sink that the hub switched off is switched on again. The method `hmac` without a secret gets a generated
    /// one, which is returned only here.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every bad field, `NOT_FOUND`.
    pub async fn set_webhook(
        &self,
        actor: &Actor,
        bot_id: BotId,
        id: ChannelId,
        mut webhook: WebhookUpdate,
    ) -> Result<Channel> {
        let (egress, sealer, now) = (self.ctx.egress.clone(), self.ctx.sealer.clone(), self.ctx.store.now());
        let random = self.ctx.random.clone();
        // Checked with the write, because the method depends on the stored secret.
        let change = move |record: &mut ChannelRecord| {
            let stored = record.webhook_secret(&sealer)?;
            let generated = webhook.auth.generate(stored.as_ref(), &random);
            record.webhook = encode(&webhook.validate(&egress, stored.as_ref())?)?;
            record.webhook_disabled = None;
            record.change_webhook_secret(&webhook.auth.secret, &sealer, now)?;
            Ok(generated)
        };
        let (mut channel, generated) =
            self.change_with(actor, bot_id, id, Action::WebhookChanged, change).await?;
        channel.webhook.auth.secret = generated.map(Into::into);
        Ok(channel)
    }

    /// Replaces the AI sink's settings. The returned channel has a warning if no model can respond yet.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every bad field, `NOT_FOUND`.
    pub async fn set_ai(&self, actor: &Actor, bot_id: BotId, id: ChannelId, ai: AiUpdate) -> Result<Channel> {
        let json = encode(&ai.validate(&self.ctx.egress)?)?;
        let sealer = self.ctx.sealer.clone();
        let change = self.change(actor, bot_id, id, Action::AiSinkChanged, move |record| {
            record.ai = json;
            record.change_ai_api_key(&ai.api_key, &sealer);
            Ok(())
        });
        let mut channel = change.await?;
        channel.ai.warning = self.ai_warning(&channel).await?.map(|cause| cause.to_string());
        Ok(channel)
    }

    /// Returns the cause for which a channel's model cannot respond for now, if any.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the store cannot be read.
    pub async fn ai_warning(&self, channel: &Channel) -> Result<Option<Cause>> {
        if !channel.ai.settings.enabled || channel.ai.settings.source != AiSource::Global {
            return Ok(None);
        }
        let row = self.ctx.store.read().await?.ai().config().await?;
        let is_set = row.is_some_and(|row| GlobalAi::is_enabled(&row));
        Ok((!is_set).then_some(Cause::NoEndpoint))
    }

    async fn change(
        &self,
        actor: &Actor,
        bot_id: BotId,
        id: ChannelId,
        action: Action,
        change: impl FnOnce(&mut ChannelRecord) -> Result<()> + Send + 'static,
    ) -> Result<Channel> {
        Ok(self.change_with(actor, bot_id, id, action, change).await?.0)
    }

    /// Changes one row and the revision of the bot's rules in one command, with its entry of the audit log, and notifies
    /// the workers. Returns the channel and what `change` returned.
    async fn change_with<T: Send + 'static>(
        &self,
        actor: &Actor,
        bot_id: BotId,
        id: ChannelId,
        action: Action,
        change: impl FnOnce(&mut ChannelRecord) -> Result<T> + Send + 'static,
    ) -> Result<(Channel, T)> {
        let scope = actor.scope()?;
        let now = self.ctx.store.now();
        let revocation = self.ctx.revocation(Revoked::Channel(id));
        let entry = self.ctx.audit(actor, action);
        let after_change = match action {
            Action::WebhookChanged => AfterChange::RestartWebhook,
            _ => AfterChange::Nothing,
        };
        let (record, ended, changed) = self
            .ctx
            .store
            .write(move |tx| {
                async move {
                    tx.channels().begin_change(scope, bot_id).await?;
                    let mut record = found(tx.channels().find(scope, bot_id, id).await?)?;
                    let before = record.clone();
                    let changed = change(&mut record)?;
                    if record.name != before.name {
                        check_name_is_free(tx, &record).await?;
                    }
                    record.updated_at = now;
                    tx.channels().update(&record, after_change).await.map_err(handle_taken)?;
                    tx.audit().add(&changes::changed(entry, &before, &record)).await?;
                    let ended = before.enabled && !record.enabled;
                    if ended {
                        tx.revocations().add(&revocation).await?;
                    }
                    Ok((record, ended, changed))
                }
                .boxed()
            })
            .await?;
        if ended {
            self.ctx.notify_revoked(revocation.revoked);
        }
        self.ctx.node.wake.hint(Hint::Bot(bot_id));
        let mut read = self.ctx.store.read().await?;
        Ok((self.show_one(&mut read, record).await?, changed))
    }

    async fn find(&self, scope: Scope, bot_id: BotId, id: ChannelId) -> Result<Channel> {
        let mut read = self.ctx.store.read().await?;
        let record = found(read.channels().find(scope, bot_id, id).await?)?;
        self.show_one(&mut read, record).await
    }

    async fn show_one(&self, read: &mut Read, record: ChannelRecord) -> Result<Channel> {
        let mut shown = self.show(read, record.bot_id, vec![record]).await?;
        Ok(shown.remove(0))
    }

    /// Adds the counts to rows that stand next to each other in a bot's list, with one query of each kind for all.
    async fn show(&self, read: &mut Read, bot_id: BotId, rows: Vec<ChannelRecord>) -> Result<Vec<Channel>> {
        let ids = || rows.iter().map(|row| row.id);
        let (Some(first), Some(last)) = (ids().min(), ids().max()) else { return Ok(Vec::new()) };
        let mut stats: HashMap<ChannelId, ChannelStats> = HashMap::new();
        for (id, state, count) in read.channels().deliveries_by_state(bot_id, first, last).await? {
            stats.entry(id).or_default().add(state, u64::try_from(count).unwrap_or(0));
        }
        let health = read.channels().health(bot_id, first, last).await?;
        let health: HashMap<ChannelId, ChannelHealth> = health.into_iter().collect();
        let mut plugins: HashMap<ChannelId, Vec<InstalledPlugin>> = HashMap::new();
        for row in read.channel_plugins().installed(bot_id, first, last).await? {
            plugins.entry(row.channel_id).or_default().push(row.plugin);
        }
        let now = self.ctx.store.now();
        rows.into_iter()
            .map(|row| {
                let mut stats = stats.remove(&row.id).unwrap_or_default();
                stats.received = u64::try_from(row.last_seq).unwrap_or(0);
                let plugins = plugins.remove(&row.id).unwrap_or_default();
                let health = health.get(&row.id).copied().unwrap_or_default();
                channel::show(row, (stats, health), plugins, now)
            })
            .collect()
    }
}

fn found(record: Option<ChannelRecord>) -> Result<ChannelRecord> {
    record.ok_or_else(|| Error::not_found("channel"))
}

/// Refuses a name that another channel of the bot has: commands find channels by it. Channels that had the same name
/// before keep it. The caller's change of the bot's rules locks the others out until the transaction ends.
async fn check_name_is_free(tx: &mut Tx, record: &ChannelRecord) -> Result<()> {
    if tx.channels().has_name(record.bot_id, &record.name, record.id).await? {
        let message = format!("the bot has a channel called {} already", record.name);
        return Err(Error::conflict(message).with_hint("choose another name, or use that channel"));
    }
    Ok(())
}

fn handle_taken(error: Error) -> Error {
    if is_constraint(&error) {
        Error::conflict("another channel of this bot has the handle").with_source(error)
    } else {
        error
    }
}
