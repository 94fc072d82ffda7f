//! The traces of all bots of a user.

use super::Traces;
use crate::{
    access::Actor,
    error::{Problems, Result},
    model::trace::{Trace, TraceSearch},
    page::{CountedPage, MAX_SCANNED, PageRequest},
};

/// Traces that a page reads at most if the filters need their steps, which may be long.
pub const MAX_STEPS_SCANNED: u32 = 200;

/// Longest text to look for, in characters.
const MAX_QUERY: usize = 200;

impl Traces<'_> {
    /// The traces of all bots of the actor, newest first, without their steps. A page reads at most [`MAX_SCANNED`]
    /// traces, or [`MAX_STEPS_SCANNED`] with a filter that needs their steps: it may have fewer items than its limit,
    /// or none, and a cursor.
    ///
    /// # Errors
    /// `FORBIDDEN` for a channel client and for an app; `INVALID_PARAMS` on a bad filter.
    pub async fn search(
        &self,
        actor: &Actor,
        search: &TraceSearch,
        page: &PageRequest,
    ) -> Result<CountedPage<Trace>> {
        let scope = actor.scope()?;
        let mut problems = Problems::default();
        let is_ordered = search.since.zip(search.until).is_none_or(|(since, until)| since <= until);
        problems.check(is_ordered, "until", "must not be before since");
        let fits = search.q.as_ref().is_none_or(|q| q.chars().count() <= MAX_QUERY && !q.contains('\0'));
        problems.check(fits, "q", "must be at most 200 characters without NUL");
        let is_status = search.http_status.is_none_or(|status| (100..=599).contains(&status));
        problems.check(is_status, "http_status", "must be from 100 to 599");
        problems.finish()?;
        let list = Self::search_list(actor, search);
        let mut search = search.effective();
        let mut read = self.ctx.store.read().await?;
        if let Some(channel) = search.channel_id {
            let bot = read.channels().bot_of(scope, channel).await?;
            let Some(bot) = bot.filter(|bot| search.bot_id.is_none_or(|wanted| wanted == *bot)) else {
                return Ok(CountedPage::empty());
            };
            search.bot_id = Some(bot);
        }
        let max = if search.reads_steps() { MAX_STEPS_SCANNED } else { MAX_SCANNED };
        let (scan, matching) = read.traces().search(scope.owner(), &search, page, max).await?;
        let CountedPage { items: ids, next_cursor, total } = scan.page(&list, matching);
        let items = read.traces().listed(&ids).await?.into_iter().map(Trace::from).collect();
        Ok(CountedPage { items, next_cursor, total })
    }

    /// The name of the list under a search, for [`PageRequest::parse`].
    pub fn search_list(actor: &Actor, search: &TraceSearch) -> String {
        format!("all-traces:{}:{search:?}", actor.principal())
    }
}
