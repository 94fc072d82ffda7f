//! A bot's channels as the workers use them: loaded in one read, compiled, with their secrets open.
//!
//! Nothing here checks access: the module is for `delivery`, which works for the bot itself.

use std::{collections::HashMap, sync::Arc, time::Duration};

use crate::{
    delivery::{plugins::Installed, work_store::WorkContext},
    egress::{CheckedUrl, Egress},
    error::{Error, Result},
    filter::{CompiledFilter, Filter, FilterInput},
    id::{BotId, ChannelId},
    model::{
        app::AppRuntime,
        cause::Cause,
        channel::{ChannelRecord, OnPluginError, decode},
        handle::Handle,
        sinks::{AiSettings, SinkId, SinkKey, SinkKind, WebSocketSettings, WebhookSettings},
    },
    network::MessageKind,
    redact::Redactor,
    secret::{Sealer, Secret},
    signing::{Method, SigningSecret},
    time::Timestamp,
};

/// The rules of one bot at one revision.
#[derive(Debug, Clone)]
pub struct BotChannels {
    /// Revision of the rules. A batch is stored under it, and is rejected if the rules have changed.
    pub config_rev: i64,
    /// Every channel, oldest first, those that are off included.
    pub channels: Vec<Arc<ChannelRuntime>>,
    /// The apps on the bot that receive events, oldest first.
    pub apps: Vec<AppRuntime>,
}

impl BotChannels {
    /// The sinks of a kind, of every channel.
    pub(super) fn sinks(&self, kind: SinkKind) -> impl Iterator<Item = SinkKey> {
        let channels = kind
            .of_channel()
            .map(|sink| self.channels.iter().map(move |channel| SinkKey::Channel(channel.id, sink)));
        let apps = self.apps.iter().map(|app| SinkKey::App(app.app.installation_id));
        let apps = apps.filter(move |_| kind == SinkKind::App);
        channels.into_iter().flatten().chain(apps)
    }
}

/// One channel, ready for use.
#[derive(Debug, Clone)]
pub struct ChannelRuntime {
    /// Id.
    pub id: ChannelId,
    /// If set, the channel takes only messages that mention it.
    pub handle: Option<Handle>,
    /// Whether any message is taken.
    pub enabled: bool,
    pub filter: ChannelFilter,
    /// The WebSocket sink.
    pub websocket: WebSocketSettings,
    /// The webhook sink; off also when the hub switched it off by itself.
    pub webhook: WebhookSettings,
    /// Secret that authenticates and signs webhook requests.
    pub webhook_secret: Option<SigningSecret>,
    /// Previous secret, which also signs until it expires; see [`ChannelRuntime::old_secret_at`].
    pub webhook_old_secret: Option<OldSecret>,
    /// The AI sink.
    pub ai: AiSettings,
    /// Key of the AI sink's own endpoint.
    pub ai_api_key: Option<Secret>,
    /// Its plugins that are switched on, in the order they run.
    pub plugins: Vec<Arc<Installed>>,
    /// Handling of a delivery whose plugin failed.
    pub on_plugin_error: OnPluginError,
    /// Longest time that a failing delivery may block its conversation.
    pub lane_hold: Duration,
    /// Masks the webhook's secrets.
    pub redactor: Redactor,
    /// The webhook's URL, if it may be called: requests to other origins carry no credentials.
    pub webhook_target: Option<CheckedUrl>,
    /// The ids as filters see them.
    id_texts: (String, String),
}

/// A webhook secret that was replaced. The rules may stay loaded after it expires.
#[derive(Debug, Clone)]
pub struct OldSecret {
    /// The secret.
    pub secret: SigningSecret,
    /// Time at which it stops signing.
    pub until: Timestamp,
}

/// A channel's filter, or the reason why it does not compile.
#[derive(Debug, Clone)]
pub enum ChannelFilter {
    /// It works.
    Ready(CompiledFilter),
    /// The stored filter no longer compiles. No message passes, because the hub cannot tell which ones the filter
    /// excludes.
    Broken(String),
}

/// The parts of a message that routing depends on.
#[derive(Debug, Clone, Copy)]
pub struct RouteInput<'a> {
    /// Text of the message.
    pub content: &'a str,
    /// The sender.
    pub user_id: &'a str,
    /// The sender's display name.
    pub user_name: &'a str,
    /// The conversation.
    pub session_id: &'a str,
    pub kind: MessageKind,
    pub sent_at: Timestamp,
}

/// Decision of a channel about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route<'a> {
    /// It takes it.
    Passed {
        /// The text for this channel: without the mention of its handle at the start.
        content: &'a str,
    },
    /// It does not.
    Skipped {
        /// The cause for the trace: of the channel, its handle or its filter.
        cause: Cause,
    },
}

/// Loads the rules of a bot.
///
/// # Errors
/// `NOT_FOUND` when the bot is gone. `INTERNAL_ERROR` when settings or secrets of a channel cannot be read:
/// then nothing is accepted for the bot, rather than sent unsigned or not at all.
pub async fn load(ctx: &WorkContext, bot_id: BotId) -> Result<BotChannels> {
    let (config_rev, records) = ctx.store.channels(bot_id).await?;
    // Read after the revision: if these are newer, the rules are loaded again.
    let mut plugins: HashMap<ChannelId, Vec<Arc<Installed>>> = super::plugins::load(ctx, bot_id).await?;
    let apps = ctx.store.apps(bot_id).await?;
    let (sealer, egress) = (ctx.sealer.clone(), ctx.egress.clone());
    let compile = move || {
        let mut channels = Vec::with_capacity(records.len());
        for record in records {
            let plugins = plugins.remove(&record.id).unwrap_or_default();
            channels.push(Arc::new(ChannelRuntime::new(&record, plugins, &sealer, &egress)?));
        }
        Ok::<_, Error>(channels)
    };
    Ok(BotChannels { config_rev, channels: ctx.computations.run(compile).await??, apps })
}

impl BotChannels {
    /// Channels whose clients also see what the bot sends.
    pub fn shown_outbound(&self) -> Vec<ChannelId> {
        let shown = |channel: &&Arc<ChannelRuntime>| {
            channel.enabled && channel.websocket.enabled && channel.websocket.include_outbound
        };
        self.channels.iter().filter(shown).map(|channel| channel.id).collect()
    }
}

impl ChannelRuntime {
    fn new(
        record: &ChannelRecord,
        plugins: Vec<Arc<Installed>>,
        sealer: &Sealer,
        egress: &Egress,
    ) -> Result<Self> {
        let old_secret = record.webhook_old_secret(sealer)?;
        let (webhook, secret) = (record.webhook()?, record.webhook_secret(sealer)?);
        let custom_header = match Method::try_from(&webhook.auth) {
            Ok(Method::Header { name }) => Some(name),
            _ => None,
        };
        Ok(Self {
            redactor: Redactor::new(secret.iter().chain(&old_secret), custom_header),
            webhook_target: egress.check_url(&webhook.url).ok(),
            id: record.id,
            handle: record.handle()?,
            enabled: record.enabled,
            filter: ChannelFilter::new(record),
            websocket: decode(&record.websocket)?,
            webhook,
            webhook_secret: secret.map(SigningSecret::from),
            webhook_old_secret: old_secret
                .zip(record.webhook_old_until)
                .map(|(secret, until)| OldSecret { secret: secret.into(), until }),
            ai: decode(&record.ai)?,
            ai_api_key: record.ai_api_key(sealer)?,
            plugins,
            on_plugin_error: record.options.on_plugin_error,
            lane_hold: Duration::from_secs(record.options.lane_hold_s.into()),
            id_texts: (record.id.to_string(), record.bot_id.to_string()),
        })
    }

    /// Decides what the channel does with a message: first by the handle, which also determines the text, then by
    /// the filter, which gets that text.
    pub fn route<'a>(&self, message: &RouteInput<'a>) -> Route<'a> {
        let skipped = |cause: Cause| Route::Skipped { cause };
        if !self.enabled {
            return skipped(Cause::Disabled);
        }
        let content = match &self.handle {
            None => message.content,
            Some(handle) => match handle.addressed(message.content) {
                Some(content) => content,
                None => return skipped(Cause::NotAddressed),
            },
        };
        let (channel_id, bot_id) = &self.id_texts;
        let input = FilterInput {
            content,
            user_id: message.user_id,
            user_name: message.user_name,
            session_id: message.session_id,
            kind: message.kind,
            timestamp: message.sent_at.as_seconds(),
            bot_id,
            channel_id,
        };
        match &self.filter {
            ChannelFilter::Broken(reason) => {
                skipped(Cause::FilterFails { cause: Box::new(Cause::read(reason)) })
            }
            ChannelFilter::Ready(filter) => match filter.matches(&input) {
                decision if decision.passed => Route::Passed { content },
                decision => skipped(Cause::read(&decision.reason)),
            },
        }
    }

    /// Returns the sinks that receive the channel's messages, in addition to the log that clients read.
    pub fn sinks(&self) -> impl Iterator<Item = SinkId> + use<> {
        let sinks = [(SinkId::Webhook, self.webhook.enabled), (SinkId::Ai, self.ai.enabled)];
        sinks.into_iter().filter_map(|(sink, on)| on.then_some(sink))
    }

    /// The channel's id as text.
    pub fn id_text(&self) -> &str {
        &self.id_texts.0
    }

    /// The bot's id as text.
    pub fn bot_id_text(&self) -> &str {
        &self.id_texts.1
    }

    /// Returns the previous webhook secret if it still signs at `now`.
    pub fn old_secret_at(&self, now: Timestamp) -> Option<&SigningSecret> {
        self.webhook_old_secret.as_ref().filter(|old| now < old.until).map(|old| &old.secret)
    }
}

impl ChannelFilter {
    fn new(record: &ChannelRecord) -> Self {
        let filter = decode::<Filter>(&record.filter);
        match filter.and_then(|filter| filter.compile()) {
            Ok(filter) => Self::Ready(filter),
            Err(error) => {
                tracing::warn!(channel = %record.id, %error, "a stored filter does not work; nothing passes");
                Self::Broken(error.message().to_owned())
            }
        }
    }
}
