//! What happened to a message: its steps, each with its time, without secrets (`contract.md` §6.7).

mod again;
mod expand;
mod wait;

pub use expand::{EXPANDED_BYTES, Expand, ExpandedTrace};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    access::Actor,
    channels::sinks::WebhookSettings,
    context::Context,
    error::{Error, Result},
    id::{BotId, ChannelId, MessageId, TraceId},
    page::{Page, PageRequest},
    store::{
        outbox::NewOutbound,
        traces::{NewTrace, TraceRow, TraceUpdate},
    },
    time::Timestamp,
};

/// How a trace stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceStatus {
    /// Work goes on.
    Pending,
    /// Everything that had to happen did.
    Ok,
    /// It was given up.
    Error,
    /// A filter or a plugin said that nothing has to happen.
    Skipped,
}

impl TraceStatus {
    /// The word on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Skipped => "skipped",
        }
    }

    fn from_word(word: &str) -> Self {
        match word {
            "ok" => Self::Ok,
            "error" => Self::Error,
            "skipped" => Self::Skipped,
            _ => Self::Pending,
        }
    }
}

/// The names of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepName {
    /// The hub has the message.
    #[serde(rename = "received")]
    Received,
    /// The channel's handle and filter looked at it.
    #[serde(rename = "filter")]
    Filter,
    /// A plugin's request hook ran.
    #[serde(rename = "plugin.on_request")]
    PluginOnRequest,
    /// A request went out.
    #[serde(rename = "request")]
    Request,
    /// What came back.
    #[serde(rename = "response")]
    Response,
    /// A plugin's response hook ran.
    #[serde(rename = "plugin.on_response")]
    PluginOnResponse,
    /// A reply, accepted or sent.
    #[serde(rename = "reply")]
    Reply,
    /// The AI sink worked.
    #[serde(rename = "ai")]
    Ai,
    /// The WebSocket sink worked.
    #[serde(rename = "websocket")]
    Websocket,
}

impl StepName {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Filter => "filter",
            Self::PluginOnRequest => "plugin.on_request",
            Self::Request => "request",
            Self::Response => "response",
            Self::PluginOnResponse => "plugin.on_response",
            Self::Reply => "reply",
            Self::Ai => "ai",
            Self::Websocket => "websocket",
        }
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What happened.
    pub name: StepName,
    /// Who did it: `inbox`, `filter`, `webhook`, `outbox`, `plugin`, …
    pub kind: String,
    /// How it ended.
    pub status: TraceStatus,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What there is to know, depending on the step; free of secrets.
    pub detail: Value,
}

impl Step {
    /// A step that began at `started_at` and ended at `ended_at`.
    pub fn new(
        name: StepName,
        kind: &str,
        status: TraceStatus,
        started_at: Timestamp,
        ended_at: Timestamp,
        detail: Value,
    ) -> Self {
        let duration_ms = u64::try_from(ended_at.since(started_at).as_millis()).unwrap_or(u64::MAX);
        Self { name, kind: kind.to_owned(), status, started_at, duration_ms, detail }
    }
}

/// Steps as the text that is appended to a stored array.
pub(crate) fn steps_text(steps: &[Step]) -> String {
    let array = crate::store::json(steps);
    array[1..array.len() - 1].to_owned()
}

/// The trace of a send that was just accepted.
pub(crate) fn of_send(outbound: &NewOutbound, id: TraceId, kind: &str) -> NewTrace {
    let detail = serde_json::json!({ "to": outbound.peer, "parts": outbound.parts.len() });
    let accepted = Step::new(StepName::Received, kind, TraceStatus::Ok, outbound.now, outbound.now, detail);
    NewTrace {
        id,
        message_id: outbound.message_id,
        bot_id: outbound.bot_id,
        channel_id: outbound.channel_id,
        replay_of: None,
        status: TraceStatus::Pending.as_str(),
        open_sinks: 0,
        summary: "queued for the chat".to_owned(),
        started_at: outbound.now.as_millis(),
        duration_ms: 0,
        steps: format!("[{}]", steps_text(&[accepted])),
    }
}

/// What a send that was just accepted adds to the trace it belongs to.
pub(crate) fn with_send(outbound: &NewOutbound, id: TraceId, kind: &str) -> TraceUpdate {
    let now = outbound.now;
    let detail = serde_json::json!({ "to": outbound.peer, "parts": outbound.parts.len(),
        "message_id": outbound.message_id });
    let accepted = Step::new(StepName::Reply, kind, TraceStatus::Pending, now, now, detail);
    TraceUpdate {
        id,
        status: None,
        ended: 0,
        summary: None,
        attempts: None,
        ended_at: now.as_millis(),
        steps: steps_text(&[accepted]),
    }
}

/// A message's way through one channel. As a document it looks as in the API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Id.
    pub trace_id: TraceId,
    /// The message.
    pub message_id: MessageId,
    /// Its bot.
    pub bot_id: BotId,
    /// The channel; `None` for a send that no channel caused.
    pub channel_id: Option<ChannelId>,
    /// The trace that this one repeats.
    pub replay_of: Option<TraceId>,
    /// How it stands.
    pub status: TraceStatus,
    /// One line.
    pub summary: String,
    /// When it began.
    pub started_at: Timestamp,
    /// Until the last step's end, in milliseconds.
    pub duration_ms: u64,
    /// Attempts at the sink; of several sinks the most.
    pub attempts: u64,
    /// Name of the channel; absent for a send that no channel caused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_name: Option<String>,
    /// The person on the other side, as the network identifies them.
    #[serde(default)]
    pub user_id: String,
    /// Their name; empty when unknown.
    #[serde(default)]
    pub user_name: String,
    /// The first 120 characters of the message's text.
    #[serde(default)]
    pub preview: String,
    /// When the next attempt is due; absent in lists, and when none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// Attempts after which the webhook gives up; absent when it has none to make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u64>,
    /// The steps in order; empty in lists.
    #[serde(default)]
    pub steps: Vec<Step>,
}

impl Trace {
    /// Whether it tells of a send, not of a message that came: there is nothing to deliver then. Needs the steps.
    pub fn is_of_a_send(&self) -> bool {
        let first = self.steps.first();
        first.is_some_and(|step| {
            step.name == StepName::Received && !["inbox", "replay"].contains(&&*step.kind)
        })
    }
}

impl TryFrom<TraceRow> for Trace {
    type Error = Error;

    fn try_from(row: TraceRow) -> Result<Self> {
        let next_attempt_at = row.next_attempt_at.map(Timestamp::from_millis);
        let schedule = || serde_json::from_str::<WebhookSettings>(row.webhook.as_deref()?).ok();
        let max_attempts =
            next_attempt_at.and_then(|_| schedule()).map(|webhook| webhook.retry.schedule_s.len() + 1);
        Ok(Self {
            trace_id: row.id.parse()?,
            message_id: row.message_id.parse()?,
            bot_id: row.bot_id.parse()?,
            channel_id: row.channel_id.map(|id| id.parse()).transpose()?,
            replay_of: row.replay_of.map(|id| id.parse()).transpose()?,
            status: TraceStatus::from_word(&row.status),
            summary: row.summary,
            started_at: Timestamp::from_millis(row.started_at),
            duration_ms: u64::try_from(row.duration_ms).unwrap_or(0),
            attempts: u64::try_from(row.attempts).unwrap_or(0),
            channel_name: row.channel_name,
            user_id: row.user_id,
            user_name: row.user_name,
            preview: row.preview,
            next_attempt_at,
            max_attempts: max_attempts.and_then(|most| u64::try_from(most).ok()),
            steps: serde_json::from_str(&row.steps).map_err(Error::internal)?,
        })
    }
}

/// Which traces a list shows.
#[derive(Debug, Clone, Default)]
pub struct TraceQuery {
    /// Only of this channel.
    pub channel_id: Option<ChannelId>,
    /// Only in this state.
    pub status: Option<TraceStatus>,
    /// Only of this message.
    pub message_id: Option<MessageId>,
    /// Begun at this time or later.
    pub since: Option<Timestamp>,
    /// Begun before this time.
    pub until: Option<Timestamp>,
    /// Oldest first, in place of newest first.
    pub oldest_first: bool,
}

impl TraceQuery {
    /// The name of this list for [`PageRequest::parse`]: a cursor of another bot or filter is refused.
    pub fn list_name(&self, bot_id: BotId) -> String {
        format!("traces:{bot_id}:{self:?}")
    }
}

/// Traces: every operation takes the actor who asks.
#[derive(Debug, Clone, Copy)]
pub struct Traces<'h> {
    ctx: &'h Context,
}

impl<'h> Traces<'h> {
    pub(crate) fn new(ctx: &'h Context) -> Self {
        Self { ctx }
    }

    /// Traces of a bot, newest first unless the query says otherwise, without their steps.
    ///
    /// # Errors
    /// `NOT_FOUND` when the bot is not the actor's; `INVALID_PARAMS` when `until` is before `since`.
    pub async fn list(
        &self,
        actor: &Actor,
        bot_id: BotId,
        query: &TraceQuery,
        page: &PageRequest,
    ) -> Result<Page<Trace>> {
        let page = self.expanded(actor, bot_id, query, page, Expand::default()).await?;
        Ok(page.map(|expanded| expanded.trace))
    }

    /// One trace with its steps.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is none under this bot that the actor may see.
    pub async fn get(&self, actor: &Actor, bot_id: BotId, id: TraceId) -> Result<Trace> {
        self.find(actor, Some(bot_id), id).await?.ok_or_else(|| Error::not_found("trace"))
    }

    /// One trace with its steps, whatever its bot.
    pub async fn find(&self, actor: &Actor, bot_id: Option<BotId>, id: TraceId) -> Result<Option<Trace>> {
        let row = self.ctx.store.read().await?.traces().find(actor.scope()?, bot_id, id).await?;
        row.map(Trace::try_from).transpose()
    }
}
