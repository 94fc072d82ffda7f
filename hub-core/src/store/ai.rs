//! Statements about the AI sink: the administrator's endpoint, conversations as models are shown them, and what
//! answers cost.

use super::{
    conn::{Conn, sql},
    rows::{self, row},
};
use crate::{
    error::Result,
    id::{BotId, ChannelId, MessageId},
    model::message::Direction,
    secret::Sealed,
    time::Timestamp,
};

/// Messages with one person that are looked through, newest first, however many of them other channels got.
const LOOK_BACK: i64 = 400;

/// Statements about the AI sink, on a lent connection.
#[derive(Debug)]
pub struct Ai<'c>(pub(super) Conn<'c>);

/// The administrator's endpoint as stored.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::FromRow)]
#[row(table = "ai_config")]
pub struct AiConfigRow {
    /// JSON of the settings.
    pub settings: String,
    /// The sealed key.
    pub api_key: Option<Sealed>,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// A conversation to read, up to a message.
#[derive(Debug, Clone)]
pub struct ConversationQuery {
    /// The bot.
    pub bot_id: BotId,
    /// The channel whose conversation it is.
    pub channel_id: ChannelId,
    /// The person or group on the other side.
    pub peer: String,
    /// The message to answer.
    pub message_id: MessageId,
    /// Whether replies stored after this message are read too: a person may write on while the model works.
    pub later_answers: bool,
    /// Maximum number of messages.
    pub limit: u32,
    /// Start of the period in which replies of the channel are counted.
    pub replies_since: Timestamp,
    /// The day for which tokens are counted, in days since 1970.
    pub day: i64,
}

/// A conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation {
    /// Texts before the message, newest first.
    pub messages: Vec<SaidRow>,
    /// Replies of the channel to the person since [`ConversationQuery::replies_since`].
    pub replies: i64,
    /// Tokens of the administrator's endpoint that the channel has used that day.
    pub tokens_today: i64,
}

/// Text of a message.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::FromRow)]
pub struct SaidRow {
    /// Direction: from the person or to the person.
    pub direction: Direction,
    /// Display name of the sender.
    pub user_name: String,
    /// Kind, by its name.
    pub kind: String,
    /// The text, as the channel sees it.
    pub content: String,
}

/// Cost of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AiUsage {
    /// The channel.
    pub channel_id: ChannelId,
    /// The day, in days since 1970 (UTC).
    pub day: i64,
    /// Owner of the endpoint: `global` for the administrator's, `custom` for the channel's.
    pub source: &'static str,
    /// Calls to the model.
    pub calls: i64,
    /// Tokens read.
    pub prompt_tokens: i64,
    /// Tokens written.
    pub completion_tokens: i64,
}

impl Ai<'_> {
    /// The administrator's endpoint; `None` when it was never set.
    pub async fn config(&mut self) -> Result<Option<AiConfigRow>> {
        sql!(self.0, optional: "SELECT settings, api_key, updated_at FROM ai_config WHERE id = 1")
    }

    /// Replaces the administrator's endpoint.
    pub async fn set_config(&mut self, row: &AiConfigRow) -> Result<()> {
        sql!(self.0, run:
            "INSERT INTO ai_config (id, settings, api_key, updated_at) VALUES (1, $1, $2, $3)
            ON CONFLICT (id) DO UPDATE SET settings = excluded.settings, api_key = excluded.api_key,
               updated_at = excluded.updated_at";
            &row.settings, &row.api_key, row.updated_at
        )
    }

    /// Makes deliveries due that wait for an endpoint, for the reason that they note. Their attempts count from here:
    /// what they did before was waiting.
    pub async fn wake_waiting(&mut self, reason: &str, now: Timestamp) -> Result<()> {
        sql!(self.0, run:
            "UPDATE deliveries SET due_at = $1, attempts = 0
            WHERE state = 'parked' AND sink = 'ai' AND last_error = $2 AND due_at > $1";
            now, reason
        )
    }

    /// Reads the texts before a message, and the usage that limits apply to.
    pub async fn conversation(&mut self, query: &ConversationQuery) -> Result<Conversation> {
        let messages = sql!(self.0, all:
            "SELECT m.direction, m.user_name, m.kind, COALESCE(l.content, m.content) AS content
            FROM (SELECT id, direction, user_name, kind, content, status, channel_id FROM messages
               WHERE bot_id = $1 AND peer = $2
                   AND (id < $3 OR (direction = 'outbound' AND CAST($4 AS BIGINT) = 1))
               ORDER BY id DESC LIMIT $5) AS m
            LEFT JOIN channel_log AS l ON l.message_id = m.id AND l.channel_id = $6
            WHERE (m.direction = 'inbound' AND l.seq IS NOT NULL)
               OR (m.direction = 'outbound' AND m.channel_id = $6 AND m.status NOT IN ('failed', 'expired'))
            ORDER BY m.id DESC LIMIT $7";
            query.bot_id, &query.peer, query.message_id, i64::from(query.later_answers), LOOK_BACK,
            query.channel_id, i64::from(query.limit)
        )?;
        // Replies to a delivery have its id in their key; sends of programs do not.
        let replies = sql!(self.0, value:
            "SELECT COUNT(*) FROM (SELECT channel_id, created_at, dedupe_key FROM messages
               WHERE bot_id = $1 AND peer = $2 AND direction = 'outbound' ORDER BY id DESC LIMIT $3) AS m
            WHERE m.channel_id = $4 AND m.created_at >= $5 AND m.dedupe_key LIKE 'dlv~_%' ESCAPE '~'";
            query.bot_id, &query.peer, LOOK_BACK, query.channel_id, query.replies_since
        )?;
        let tokens_today = sql!(self.0, value:
            "SELECT CAST(COALESCE(SUM(prompt_tokens + completion_tokens), 0) AS BIGINT) FROM ai_usage
            WHERE channel_id = $1 AND day = $2 AND source = 'global'";
            query.channel_id, query.day
        )?;
        Ok(Conversation { messages, replies, tokens_today })
    }

    /// Adds what a call cost.
    pub async fn add_usage(&mut self, used: &AiUsage) -> Result<()> {
        rows::run(&mut self.0, &[used], add_usage).await
    }

    /// Deletes at most `limit` rows of usage before a day; returns how many.
    pub async fn delete_usage_before(&mut self, day: i64, limit: u32) -> Result<u64> {
        sql!(self.0, execute: DELETE_USAGE; day, i64::from(limit))
    }
}

/// The statement of [`Ai::delete_usage_before`].
pub(super) const DELETE_USAGE: &str = "DELETE FROM ai_usage WHERE (channel_id, day, source) IN
    (SELECT channel_id, day, source FROM ai_usage WHERE day < $1 LIMIT $2)";

row!(AiUsage, |row| {
    Text channel = row.channel_id,
    Number day = row.day,
    Text source = row.source,
    Number calls = row.calls,
    Number prompt = row.prompt_tokens,
    Number completion = row.completion_tokens,
});

/// Adds up what calls cost, out of one row.
pub(super) fn add_usage(rows: &str) -> String {
    format!(
        "INSERT INTO ai_usage (channel_id, day, source, calls, prompt_tokens, completion_tokens)
         SELECT x.channel, x.day, x.source, x.calls, x.prompt, x.completion FROM {rows} WHERE x.channel IS NOT NULL
         ON CONFLICT (channel_id, day, source) DO UPDATE SET calls = ai_usage.calls + excluded.calls,
            prompt_tokens = ai_usage.prompt_tokens + excluded.prompt_tokens,
            completion_tokens = ai_usage.completion_tokens + excluded.completion_tokens"
    )
}
