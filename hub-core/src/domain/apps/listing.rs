//! Listing of apps: the author requests it, an administrator decides.

use futures_util::FutureExt;

use super::{App, Apps, Listing, not_found};
use crate::{
    access::{Actor, Scope},
    audit::Action,
    error::{Error, Problems, Result},
    events::Event,
    id::AppId,
    page::{Page, PageRequest},
    text,
};

/// Longest reason of an administrator, in bytes.
const MAX_REASON: usize = 2_000;

impl Apps<'_> {
    /// Requests the listing of an app.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the app is the caller's, `FORBIDDEN` for another user's app that the caller can see,
    /// `CONFLICT` while it lacks what makes it useful to others, or when it is listed or waits already.
    pub async fn request_listing(&self, actor: &Actor, id: AppId) -> Result<App> {
        self.check_own(actor, id).await?;
        self.relist(actor.scope()?, id, None, |app| {
            if matches!(app.listing, Listing::Listed | Listing::Pending) {
                return Err(Error::conflict(format!("the app is {} already", app.listing.as_str())));
            }
            let lacks = [
                (app.description.is_empty(), "a description"),
                (app.webhook_url.is_none() && app.setup_url.is_none(), "a webhook_url or a setup_url"),
                (app.events.is_empty() && app.tools.is_empty(), "an event or a tool"),
                (app.scopes.iter().next().is_none(), "a scope"),
            ];
            if let Some((_, what)) = lacks.into_iter().find(|(lacks, _)| *lacks) {
                return Err(Error::conflict(format!("before it is listed the app needs {what}")));
            }
            (app.listing, app.listing_reason) = (Listing::Pending, None);
            Ok(())
        })
        .await
    }

    /// Takes an app off the list, or the request back. Installations stay.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the app is the caller's, `FORBIDDEN` for another user's app that the caller can see.
    pub async fn withdraw_listing(&self, actor: &Actor, id: AppId) -> Result<App> {
        self.check_own(actor, id).await?;
        self.relist(actor.scope()?, id, None, |app| {
            (app.listing, app.listing_reason) = (Listing::Unlisted, None);
            Ok(())
        })
        .await
    }

    /// The apps that wait for an administrator, newest first.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator.
    pub async fn pending(&self, actor: &Actor, page: &PageRequest) -> Result<Page<App>> {
        actor.admin()?;
        let rows = self.ctx.store.read().await?.apps().pending(page).await?;
        Ok(Page::from_rows(Self::PENDING_LIST, page, rows, |app| app.id.to_string()))
    }

    /// The name of the list of apps that wait, for [`PageRequest::parse`].
    pub const PENDING_LIST: &'static str = "apps:pending";

    /// Approves the listing of an app.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator, `NOT_FOUND`, `CONFLICT` when the app does not wait.
    pub async fn approve(&self, actor: &Actor, id: AppId) -> Result<App> {
        actor.admin()?;
        self.relist(actor.reviewing_scope()?, id, Some(actor), |app| {
            if app.listing != Listing::Pending {
                return Err(Error::conflict("the app does not wait for a review"));
            }
            app.listing = Listing::Listed;
            Ok(())
        })
        .await
    }

    /// Rejects a listing, also one that was approved before, with a reason for the author. Installations are not
    /// affected.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator, `NOT_FOUND`, `INVALID_PARAMS` on the field `reason`,
    /// `CONFLICT` when the app neither waits nor is listed.
    pub async fn reject(&self, actor: &Actor, id: AppId, reason: &str) -> Result<App> {
        actor.admin()?;
        let mut problems = Problems::default();
        problems.check(!reason.trim().is_empty(), "reason", "must not be blank");
        text::check_body(&mut problems, "reason", reason, MAX_REASON);
        problems.finish()?;
        let reason = reason.trim().to_owned();
        self.relist(actor.reviewing_scope()?, id, Some(actor), move |app| {
            if !matches!(app.listing, Listing::Pending | Listing::Listed) {
                return Err(Error::conflict("the app does not wait for a review"));
            }
            (app.listing, app.listing_reason) = (Listing::Rejected, Some(reason));
            Ok(())
        })
        .await
    }

    async fn relist(
        &self,
        scope: Scope,
        id: AppId,
        reviewer: Option<&Actor>,
        change: impl FnOnce(&mut App) -> Result<()> + Send + 'static,
    ) -> Result<App> {
        let entry = reviewer.map(|actor| self.ctx.audit(actor, Action::AppReviewed));
        let now = self.ctx.store.now();
        let write = self.ctx.store.write(move |tx| {
            async move {
                let mut app = tx.apps().find_own(scope, id).await?.ok_or_else(not_found)?;
                change(&mut app)?;
                app.updated_at = now;
                tx.apps().update(&app).await?;
                if let Some(entry) = entry {
                    let detail = serde_json::json!({ "listing": app.listing.as_str() });
                    tx.audit().add(&entry.target(id, &*app.name).detail(detail)).await?;
                }
                Ok(app)
            }
            .boxed()
        });
        let app = write.await?;
        let (owner_id, state) = (app.owner_id, app.listing);
        self.ctx.node.events.notify(Event::AppReview { owner_id, app_id: id, state });
        Ok(app)
    }
}
