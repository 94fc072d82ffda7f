//! Traces: read, with their messages, and replayed.

use std::collections::HashMap;

use hub_core::{
    Error, ErrorCode,
    id::{BotId, TraceId},
    page::{MAX_LIMIT, Page},
    replay::{RecordedMessage, Recording, ReplayingHub, case::TraceCase},
    traces::{Trace, TraceQuery},
};
use serde_json::{Value, json};

use super::{Client, id_of, read};
use crate::{
    args::PageArgs,
    document::{next_cursor, take_items},
    exit::{Exit, Failure},
};

/// A trace with the document that the server returned.
#[derive(Debug)]
pub struct TraceDocument {
    pub trace: Trace,
    pub document: Value,
}

impl TraceDocument {
    pub fn read(document: Value) -> Result<Self, Failure> {
        Ok(Self { trace: read(document.clone())?, document })
    }
}

impl Client {
    /// A page of the traces of a bot, without their steps.
    pub async fn traces(
        &self,
        bot: BotId,
        query: &TraceQuery,
        page: &PageArgs,
    ) -> Result<Page<TraceDocument>, Failure> {
        self.trace_page(bot, query, page, None, TraceDocument::read).await
    }

    /// A page of the traces of a bot with their steps and messages: one request.
    pub async fn recordings(
        &self,
        bot: BotId,
        query: &TraceQuery,
        page: &PageArgs,
    ) -> Result<Page<Recording>, Failure> {
        let recording = |mut item: Value| {
            let message: Option<RecordedMessage> = read(item["message"].take())?;
            Ok(Recording::new(read(item)?, message.as_ref()))
        };
        self.trace_page(bot, query, page, Some("steps,message"), recording).await
    }

    async fn trace_page<T>(
        &self,
        bot: BotId,
        query: &TraceQuery,
        page: &PageArgs,
        expand: Option<&str>,
        item: impl Fn(Value) -> Result<T, Failure>,
    ) -> Result<Page<T>, Failure> {
        let ids: Vec<_> = query.ids.iter().map(TraceId::to_string).collect();
        let filters = [
            ("trace_ids", Some(ids.join(",")).filter(|ids| !ids.is_empty())),
            ("channel_id", query.channel_id.map(|id| id.to_string())),
            ("status", query.status.map(|status| status.as_str().to_owned())),
            ("since", query.since.map(|at| at.to_string())),
            ("until", query.until.map(|at| at.to_string())),
            ("order", query.oldest_first.then(|| "oldest".to_owned())),
            ("expand", expand.map(str::to_owned)),
        ];
        let mut found = self.list(&format!("/api/bots/{bot}/traces"), &filters, page).await?;
        let next_cursor = next_cursor(&found);
        let items = take_items(&mut found).into_iter().map(item).collect::<Result<_, _>>()?;
        Ok(Page { items, next_cursor })
    }

    /// The traces that exist of these ids, with their steps and messages. Without a bot all bots are searched.
    pub async fn recordings_of(
        &self,
        bot: Option<BotId>,
        ids: &[TraceId],
    ) -> Result<HashMap<TraceId, Recording>, Failure> {
        let bots = match bot {
            Some(bot) => vec![bot],
            None => self.bots().await?,
        };
        let mut found = HashMap::new();
        for bot in bots {
            let missing: Vec<_> = ids.iter().filter(|id| !found.contains_key(*id)).copied().collect();
            if missing.is_empty() {
                break;
            }
            let query = TraceQuery { ids: missing, ..TraceQuery::default() };
            let mut page = PageArgs { limit: MAX_LIMIT, cursor: None };
            loop {
                let Page { items, next_cursor } = self.recordings(bot, &query, &page).await?;
                found.extend(items.into_iter().map(|recording| (recording.trace.trace_id, recording)));
                if next_cursor.is_none() {
                    break;
                }
                page.cursor = next_cursor;
            }
        }
        Ok(found)
    }

    /// The failure for an id that no trace has.
    pub fn no_trace(id: TraceId) -> Failure {
        Failure::not_found(format!("there is no trace {id}")).with_hint("hub-cli traces list --bot BOT")
    }

    /// A trace with its steps, whatever its bot.
    pub async fn trace(&self, bot: Option<BotId>, id: TraceId) -> Result<Trace, Failure> {
        read(self.trace_document(bot, id).await?)
    }

    /// The same as the server returned it.
    pub async fn trace_document(&self, bot: Option<BotId>, id: TraceId) -> Result<Value, Failure> {
        let path = match bot {
            Some(bot) => format!("/api/bots/{bot}/traces/{id}"),
            None => format!("/api/traces/{id}"),
        };
        match self.get(&path).await {
            Err(failure) if failure.exit == Exit::NotFound => Err(Self::no_trace(id)),
            found => found,
        }
    }

    /// The test case of the plugin that ran in a trace; `plugin` is its name, where several ran.
    pub async fn trace_case(&self, id: TraceId, plugin: Option<String>) -> Result<TraceCase, Failure> {
        let bot = self.trace(None, id).await?.bot_id;
        let path = format!("/api/bots/{bot}/traces/{id}/case");
        read(self.call("GET", &path, &[("plugin", plugin)], &Value::Null).await?)
    }

    /// The newest bots.
    pub async fn bots(&self) -> Result<Vec<BotId>, Failure> {
        let found = self.list("/api/bots", &[], &PageArgs { limit: MAX_LIMIT, cursor: None }).await?;
        found["items"].as_array().into_iter().flatten().map(id_of).collect()
    }

    /// The message of a trace; `None` when it was deleted.
    pub async fn message_of(&self, trace: &Trace) -> Result<Option<RecordedMessage>, Failure> {
        let path = format!("/api/bots/{}/messages/{}", trace.bot_id, trace.message_id);
        match self.get(&path).await {
            Err(failure) if failure.exit == Exit::NotFound => Ok(None),
            found => read(found?).map(Some),
        }
    }
}

#[async_trait::async_trait]
impl ReplayingHub for Client {
    async fn replay(&self, trace: &Trace, to: Option<&str>, supersede: bool) -> hub_core::Result<TraceId> {
        let path = format!("/api/bots/{}/traces/{}/replay", trace.bot_id, trace.trace_id);
        let body = json!({ "url": to, "supersede": supersede });
        let replayed = self.post(&path, &body).await.map_err(error)?;
        let id = replayed["trace_id"].as_str().and_then(|id| id.parse().ok());
        id.ok_or_else(|| Error::new(ErrorCode::UpstreamError, "the server's response has no trace"))
    }

    async fn trace(&self, bot_id: BotId, id: TraceId) -> hub_core::Result<Trace> {
        Self::trace(self, Some(bot_id), id).await.map_err(error)
    }
}

/// A failure as an error of the core.
fn error(failure: Failure) -> Error {
    let code = ErrorCode::ALL.into_iter().find(|code| code.as_str() == failure.code);
    Error::new(code.unwrap_or(ErrorCode::Internal), failure.message)
}
