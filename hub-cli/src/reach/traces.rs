//! Traces: read, with their messages, and replayed.

use hub_core::{
    Error, ErrorCode,
    access::Actor,
    bots::Bots,
    channels::Channels,
    id::{BotId, ChannelId, TraceId},
    page::{MAX_LIMIT, Page, PageRequest},
    replay::{AsActor, RecordedMessage, Recording, ReplayingHub},
    traces::{Expand, ExpandedTrace, Trace, TraceQuery},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    Reach,
    apps::{called, id_of, paging},
};
use crate::{
    args::PageArgs,
    exit::{Exit, Failure},
    remote::Remote,
};

/// Bots that are asked for a trace of which only the id is known.
const MAX_BOTS: u32 = MAX_LIMIT;

impl Reach {
    /// A page of the traces of a bot, without their steps.
    pub async fn traces(
        &self,
        bot: BotId,
        query: &TraceQuery,
        page: &PageArgs,
    ) -> Result<Page<Trace>, Failure> {
        match self {
            Self::Local(hub) => {
                let request =
                    PageRequest::parse(&query.list_name(bot), Some(page.limit), page.cursor.as_deref())?;
                Ok(hub.traces().list(&Actor::Operator, bot, query, &request).await?)
            }
            Self::Remote(remote) => {
                let (items, next_cursor) = page_of(remote, bot, query, page, None).await?;
                Ok(Page { items: items.into_iter().map(read).collect::<Result<_, _>>()?, next_cursor })
            }
        }
    }

    /// A page of the traces of a bot with their steps and messages: one request.
    pub async fn recordings(
        &self,
        bot: BotId,
        query: &TraceQuery,
        page: &PageArgs,
    ) -> Result<Page<Recording>, Failure> {
        match self {
            Self::Local(hub) => {
                let request =
                    PageRequest::parse(&query.list_name(bot), Some(page.limit), page.cursor.as_deref())?;
                let expand = Expand { steps: true, message: true };
                let found = hub.traces().expanded(&Actor::Operator, bot, query, &request, expand).await?;
                Ok(found.map(|ExpandedTrace { trace, message }| {
                    Recording::new(trace, message.map(RecordedMessage::from).as_ref())
                }))
            }
            Self::Remote(remote) => {
                let (items, next_cursor) = page_of(remote, bot, query, page, Some("steps,message")).await?;
                let recording = |mut item: Value| {
                    let message: Option<RecordedMessage> = read(item["message"].take())?;
                    Ok(Recording::new(read(item)?, message.as_ref()))
                };
                let items = items.into_iter().map(recording).collect::<Result<_, Failure>>()?;
                Ok(Page { items, next_cursor })
            }
        }
    }

    /// A trace with its steps. Without its bot all bots are asked.
    pub async fn trace(&self, bot: Option<BotId>, id: TraceId) -> Result<Trace, Failure> {
        let found = match (self, bot) {
            (Self::Local(hub), _) => hub.traces().find(&Actor::Operator, bot, id).await?,
            (Self::Remote(_), Some(bot)) => self.trace_of(bot, id).await?,
            (Self::Remote(_), None) => {
                let mut found = None;
                for bot in self.bots().await? {
                    found = self.trace_of(bot, id).await?;
                    if found.is_some() {
                        break;
                    }
                }
                found
            }
        };
        found.ok_or_else(|| {
            Failure::not_found(format!("there is no trace {id}")).with_hint("hub-cli traces list --bot BOT")
        })
    }

    async fn trace_of(&self, bot: BotId, id: TraceId) -> Result<Option<Trace>, Failure> {
        let Self::Remote(remote) = self else { return Ok(None) };
        let path = format!("/api/bots/{bot}/traces/{id}");
        match remote.call("GET", &path, &[], &Value::Null).await {
            Ok(document) => read(document).map(Some),
            Err(failure) if failure.exit == Exit::NotFound => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// The bots whose traces may be meant.
    pub async fn bots(&self) -> Result<Vec<BotId>, Failure> {
        let page = PageArgs { limit: MAX_BOTS, cursor: None };
        match self {
            Self::Local(hub) => {
                let list = Bots::bot_list(&Actor::Operator);
                let request = PageRequest::parse(&list, Some(page.limit), None)?;
                let found = hub.bots().list(&Actor::Operator, &request).await?;
                Ok(found.items.into_iter().map(|bot| bot.id).collect())
            }
            Self::Remote(remote) => {
                let found = remote.call("GET", "/api/bots", &paging(&page), &Value::Null).await?;
                found["items"].as_array().into_iter().flatten().map(id_of).collect()
            }
        }
    }

    /// The message of a trace; `None` when it is gone.
    pub async fn message_of(&self, trace: &Trace) -> Result<Option<RecordedMessage>, Failure> {
        let (bot, id) = (trace.bot_id, trace.message_id);
        let found = match self {
            Self::Local(hub) => {
                let found = hub.bots().message(&Actor::Operator, bot, id).await;
                found.map(RecordedMessage::from).map_err(Failure::from)
            }
            Self::Remote(remote) => {
                let path = format!("/api/bots/{bot}/messages/{id}");
                match remote.call("GET", &path, &[], &Value::Null).await {
                    Ok(document) => read(document),
                    Err(failure) => Err(failure),
                }
            }
        };
        match found {
            Err(failure) if failure.exit == Exit::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    /// A channel of a bot by id or name.
    pub async fn channel(&self, bot: BotId, wanted: &str) -> Result<ChannelId, Failure> {
        if let Ok(id) = wanted.parse() {
            return Ok(id);
        }
        let pages = async |page: PageArgs| match self {
            Self::Local(hub) => {
                let list = Channels::channel_list(bot);
                let request = PageRequest::parse(&list, Some(page.limit), page.cursor.as_deref())?;
                let found = hub.channels().list(&Actor::Operator, bot, &request).await?;
                let names = |channel| {
                    let hub_core::channels::Channel { id, name, .. } = channel;
                    json!({ "id": id, "name": name })
                };
                let found = found.map(names);
                Ok(json!({ "items": found.items, "next_cursor": found.next_cursor }))
            }
            Self::Remote(remote) => {
                remote.call("GET", &format!("/api/bots/{bot}/channels"), &paging(&page), &Value::Null).await
            }
        };
        id_of(&called(pages, "channel", wanted, &["name"], "hub-cli channels list --bot BOT").await?)
    }
}

/// The traces of a page as the server describes them, and the cursor of the next page.
async fn page_of(
    remote: &Remote,
    bot: BotId,
    query: &TraceQuery,
    page: &PageArgs,
    expand: Option<&str>,
) -> Result<(Vec<Value>, Option<String>), Failure> {
    let wanted = [
        ("channel_id", query.channel_id.map(|id| id.to_string())),
        ("status", query.status.map(|status| status.as_str().to_owned())),
        ("since", query.since.map(|at| at.to_string())),
        ("until", query.until.map(|at| at.to_string())),
        ("order", query.oldest_first.then(|| "oldest".to_owned())),
        ("expand", expand.map(str::to_owned)),
    ];
    let wanted = [&wanted[..], &paging(page)].concat();
    let mut found = remote.call("GET", &format!("/api/bots/{bot}/traces"), &wanted, &Value::Null).await?;
    let next_cursor = found["next_cursor"].as_str().map(str::to_owned);
    Ok((read(found["items"].take())?, next_cursor))
}

pub(super) fn read<T: DeserializeOwned>(document: Value) -> Result<T, Failure> {
    serde_json::from_value(document)
        .map_err(|error| Failure::unreachable(format!("the server's answer is not understood: {error}")))
}

#[async_trait::async_trait]
impl ReplayingHub for Reach {
    async fn replay(&self, trace: &Trace, to: Option<&str>) -> hub_core::Result<TraceId> {
        match self {
            Self::Local(hub) => {
                AsActor { hub: (**hub).clone(), actor: Actor::Operator }.replay(trace, to).await
            }
            Self::Remote(remote) => {
                let path = format!("/api/bots/{}/traces/{}/replay", trace.bot_id, trace.trace_id);
                let body = to.map_or_else(|| json!({}), |to| json!({ "url": to }));
                let made = remote.call("POST", &path, &[], &body).await.map_err(error)?;
                let id = made["trace_id"].as_str().and_then(|id| id.parse().ok());
                id.ok_or_else(|| Error::new(ErrorCode::UpstreamError, "the server's answer has no trace"))
            }
        }
    }

    async fn trace(&self, bot_id: BotId, id: TraceId) -> hub_core::Result<Trace> {
        Self::trace(self, Some(bot_id), id).await.map_err(error)
    }
}

/// A failure as the core knows them.
fn error(failure: Failure) -> Error {
    let code = ErrorCode::ALL.into_iter().find(|code| code.as_str() == failure.code);
    Error::new(code.unwrap_or(ErrorCode::Internal), failure.message)
}
