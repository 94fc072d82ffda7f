//! The demo's last messages, for a page that shows them.

use std::collections::HashMap;

use crate::{
    access::Actor,
    bots::{Bots, Direction, MessageFilter},
    error::Result,
    hub::Hub,
    id::TraceId,
    model::trace::TraceStatus,
    page::PageRequest,
    time::Timestamp,
    traces::TraceQuery,
};

/// A message to or from the demo's bot, and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recent {
    /// When the hub took it.
    pub at: Timestamp,
    /// Who wrote: a person's name where one is known, else their id; the bot's name for what it sent.
    pub from: String,
    /// The text.
    pub text: String,
    /// One line.
    pub outcome: String,
    /// The trace that tells more.
    pub trace_id: Option<TraceId>,
}

/// The demo's last messages, newest first, at most `limit` (1 to 200). None when there is no demo.
///
/// # Errors
/// `INVALID_PARAMS` on the limit; what the store says.
pub async fn recent(hub: &Hub, limit: u32) -> Result<Vec<Recent>> {
    let Some(bot) = hub.context().store.read().await?.demo().bot().await? else { return Ok(Vec::new()) };
    let Some(bot) = super::seed::found(hub.bots().get(&Actor::Operator, bot).await)? else {
        return Ok(Vec::new());
    };
    let filter = MessageFilter::default();
    let page = PageRequest::parse(&Bots::message_list(bot.id, &filter), Some(limit), None)?;
    let messages = hub.bots().messages(&Actor::Operator, bot.id, &filter, &page).await?;
    let query = TraceQuery::default();
    let page = PageRequest::parse(&query.list_name(bot.id), Some(200), None)?;
    let traces = hub.traces().list(&Actor::Operator, bot.id, &query, &page).await?;
    // Newest first: of several channels' traces the oldest, which is the demo's own, wins.
    let traces: HashMap<_, _> = traces.items.into_iter().map(|trace| (trace.message_id, trace)).collect();
    let page = PageRequest::parse(&Bots::contact_list(bot.id), Some(200), None)?;
    let contacts = hub.bots().contacts(&Actor::Operator, bot.id, &page).await?;
    let names: HashMap<_, _> =
        contacts.items.into_iter().map(|contact| (contact.user_id, contact.remark)).collect();
    let view = |message: crate::bots::Message| {
        let trace = traces.get(&message.id);
        let outcome = match trace {
            Some(trace) if trace.status == TraceStatus::Ok => {
                format!("{} in {} ms", trace.summary, trace.duration_ms)
            }
            Some(trace) => format!("{}: {}", trace.status.as_str(), trace.summary),
            None => message.status.clone(),
        };
        let named = names.get(&message.from_user_id).filter(|name| !name.is_empty()).cloned();
        let from = match message.direction {
            Direction::Outbound => bot.name.clone(),
            Direction::Inbound => named.unwrap_or(message.from_user_id),
        };
        let trace_id = trace.map(|trace| trace.trace_id).or(message.trace_id);
        Recent { at: message.created_at, from, text: message.content, outcome, trace_id }
    };
    Ok(messages.items.into_iter().map(view).collect())
}
