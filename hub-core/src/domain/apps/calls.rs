//! The log of an app's calls of the Bot API, for debugging.

use super::Apps;
use crate::{
    access::Actor,
    error::{Error, Result},
    id::{AppId, BotId},
    model::app::{AppCall, NewAppCall},
    page::{Page, PageRequest},
};

/// Most of a body that is kept, in bytes.
pub const MAX_LOGGED_BODY: usize = 4 * 1024;

impl Apps<'_> {
    /// Logs a request after its response was sent. A crash may lose the entry, and nothing else.
    pub fn note_call(&self, mut call: NewAppCall) {
        for body in [&mut call.request_body, &mut call.response_body] {
            // PostgreSQL holds no U+0000.
            *body = body.replace('\0', "\u{fffd}");
            body.truncate(body.floor_char_boundary(MAX_LOGGED_BODY));
        }
        let (id, now) = (self.ctx.ids.next(), self.ctx.store.now());
        self.ctx
            .store
            .write_later(move |tx| Box::pin(async move { tx.app_calls().insert(id, &call, now).await }));
    }

    /// Lists the Bot API requests of an app on a bot, newest first.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the bot is the caller's and has the app.
    pub async fn calls(
        &self,
        actor: &Actor,
        bot_id: BotId,
        app_id: AppId,
        page: &PageRequest,
    ) -> Result<Page<AppCall>> {
        let mut read = self.ctx.store.read().await?;
        let found = read.installations().find(actor.scope()?, bot_id, app_id).await?;
        let installation = found.ok_or_else(|| Error::not_found("app on this bot"))?.installation;
        let rows = read.app_calls().page(installation.id, page).await?;
        Ok(Page::from_rows(&Self::call_list(bot_id, app_id), page, rows, |call| call.id.to_string()))
    }

    /// The name of the list of calls, for [`PageRequest::parse`].
    pub fn call_list(bot_id: BotId, app_id: AppId) -> String {
        format!("app_calls:{bot_id}:{app_id}")
    }
}
