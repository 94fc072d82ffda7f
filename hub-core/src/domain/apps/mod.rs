//! Apps: programs of third parties that users install onto their bots.
//!
//! An app belongs to the user who made it; others find it once an administrator has approved its listing, or
//! meet it on a bot of theirs. An [`Installation`] is an app on one bot, with the scopes that the bot's owner
//! granted; its token is shown once and acts for that bot alone.

use futures_util::FutureExt;

use crate::{
    access::Actor,
    audit::{Action, NewEntry, origin},
    context::Context,
    error::{Error, Result},
    events::Changed,
    id::AppId,
    idempotency::{self, Idempotent},
    model::revocation::Revoked,
    page::{Page, PageRequest},
    secret::{Secret, TokenHash, TokenKind, new_token},
    store::{apps::AppSecrets, fault::is_constraint},
    wake::Hint,
};

mod announcement;
mod bot_api;
mod calls;
mod config;
mod draft;
mod events;
mod installation;
mod listing;
mod oauth;
mod routing;
pub mod sockets;
mod token;
mod tool;
pub(crate) mod tool_calls;
mod verification;

pub use crate::{
    access::{AppScope, AppScopes},
    model::{
        app::{
            App, AppCall, AppRuntime, AppTool, AppView, Installation, InstallationRecord, Listing,
            NewAppCall, NewToken, Toolbox, token_prefix,
        },
        app_event::{AppEvent, AppEventKind, AppEventState},
    },
};
pub use calls::MAX_LOGGED_BODY;
pub use config::{AppConfig, MAX_CONFIG_ENTRIES};
pub use draft::{AppPatch, CreatedApp, MAX_REDIRECTS, NewApp};
pub use installation::{Install, InstallationPatch, InstalledApp, MAX_INSTALLATIONS, NewInstallation};
pub use oauth::{Authorization, AuthorizationRequest, Decision, Granted, TokenError, TokenRequest};
pub use routing::AppInput;
pub use token::{MAX_GRACE_HOURS, RegeneratedToken};
pub use tool::MAX_TOOLS;

pub(crate) use events::{SourceMessage, add_links, envelope, of_message};

/// Apps of one user.
pub const MAX_APPS: u32 = 50;

/// Apps, their listing and installation: every operation takes the actor of the caller. An app that the caller may
/// not see does not exist for them: `NOT_FOUND`.
#[derive(Debug, Clone, Copy)]
pub struct Apps<'h> {
    ctx: &'h Context,
}

/// Returns the context that the webhook secret of an app is sealed with.
pub(crate) fn secret_place(id: AppId) -> String {
    format!("apps.webhook_secret:{id}")
}

impl<'h> Apps<'h> {
    pub(crate) fn new(ctx: &'h Context) -> Self {
        Self { ctx }
    }

    /// Apps that the caller may see, newest first.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is a user or the operator.
    pub async fn list(&self, actor: &Actor, view: AppView, page: &PageRequest) -> Result<Page<App>> {
        let scope = actor.scope()?;
        let rows = self.ctx.store.read().await?.apps().page(scope, view, page).await?;
        let page = Page::from_rows(&Self::app_list(actor, view), page, rows, |app| app.id.to_string());
        let user = actor.user().ok().map(|user| user.user_id);
        Ok(page.map(|app| app.shown_to(user)))
    }

    /// The name of a caller's list of apps, for [`PageRequest::parse`].
    pub fn app_list(actor: &Actor, view: AppView) -> String {
        format!("apps:{}:{}", actor.principal(), view.as_str())
    }

    /// One app.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn get(&self, actor: &Actor, id: AppId) -> Result<App> {
        let found = self.ctx.store.read().await?.apps().find(actor.reviewing_scope()?, id).await?;
        let user = actor.user().ok().filter(|_| actor.admin().is_err()).map(|user| user.user_id);
        Ok(found.ok_or_else(not_found)?.shown_to(user))
    }

    /// Makes an app, with secrets that are shown this once, and tries its URL for events. `idempotency_key` is
    /// the caller's `Idempotency-Key`: the same key with the same app gives the first answer again, secrets
    /// included.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every bad field; `FORBIDDEN` unless the caller is a user; `CONFLICT` when the short name
    /// is taken, the user has [`MAX_APPS`], or the idempotency key was used for something else.
    pub async fn create(
        &self,
        actor: &Actor,
        new: NewApp,
        idempotency_key: Option<&str>,
    ) -> Result<CreatedApp> {
        let owner = actor.user()?.user_id;
        let once = Idempotent::read(self.ctx, actor, "app.create", &new, idempotency_key)?;
        let mut created = self.draft(owner, new).await?;
        let chosen = !created.app.slug.is_empty();
        let end = created.app.id.to_string().to_lowercase();
        let end = end[end.len() - 6..].to_owned();
        let webhook_secret = self.ctx.sealer.seal(&secret_place(created.app.id), &created.webhook_secret);
        let hash = TokenHash::of(created.client_secret.expose());
        let secrets = AppSecrets { client_secret_hash: hash.as_str().to_owned(), webhook_secret };
        let entry = self.ctx.audit(actor, Action::AppCreated).target(created.app.id, &*created.app.name);
        let created = idempotency::write_once(&self.ctx.store, once, move |tx| {
            async move {
                if tx.apps().count_of(owner).await? >= i64::from(MAX_APPS) {
                    return Err(Error::conflict(format!("a user may have at most {MAX_APPS} apps")));
                }
                if !chosen {
                    let plain = draft::slug_of(&created.app.name, None);
                    let free = !tx.apps().has_slug(&plain).await?;
                    created.app.slug =
                        if free { plain } else { draft::slug_of(&created.app.name, Some(&end)) };
                }
                let owner_name = tx.users().names(&[owner]).await?.remove(&owner);
                created.app.owner_name = owner_name.ok_or_else(|| Error::not_found("user"))?;
                tx.apps().insert(&created.app, &secrets).await.map_err(slug_taken)?;
                tx.audit().add(&entry).await?;
                Ok(created)
            }
            .boxed()
        })
        .await?;
        self.try_url(created).await
    }

    /// A new app that is not stored yet, without its owner's name; the short name is empty when it was left to us.
    async fn draft(self, owner: crate::id::UserId, new: NewApp) -> Result<CreatedApp> {
        let NewApp { name, slug, mut rest } = new;
        rest.name = Some(name);
        let egress = self.ctx.egress.clone();
        let checked_slug = slug.as_deref().map_or(Ok(()), draft::check_slug);
        let checked = self.ctx.computations.run(move || rest.check(&egress)).await?;
        let checked = match (checked, checked_slug) {
            (Ok(checked), Ok(())) => checked,
            (Err(error), Ok(())) | (Ok(_), Err(error)) => return Err(error),
            (Err(more), Err(error)) => {
                return Err(
                    Error::invalid_fields([error.details(), more.details()].concat()).with_hint_of(&more)
                );
            }
        };
        let now = self.ctx.store.now();
        let mut app = App {
            id: self.ctx.ids.next(),
            owner_id: owner,
            owner_name: String::new(),
            name: String::new(),
            slug: slug.unwrap_or_default(),
            description: String::new(),
            icon_url: String::new(),
            homepage: String::new(),
            redirect_uris: Vec::new(),
            setup_url: None,
            webhook_url: None,
            webhook_verified: false,
            events: Vec::new(),
            scopes: AppScopes::default(),
            tools: Vec::new(),
            listing: Listing::Unlisted,
            listing_reason: None,
            installs: 0,
            created_at: now,
            updated_at: now,
        };
        checked.apply(&mut app);
        let secret = |kind| -> Secret { new_token(kind, &self.ctx.random) };
        Ok(CreatedApp {
            app,
            client_secret: secret(TokenKind::AppClient).into(),
            webhook_secret: secret(TokenKind::AppWebhook).into(),
        })
    }

    /// Changes an app, and tries its URL for events when that is another one. Whatever may be done with it on bots
    /// stays what their owners granted. A listed app whose abilities or addresses change waits for an administrator
    /// again.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every bad field; `NOT_FOUND` unless it is the caller's; `FORBIDDEN` for another user's
    /// app that the caller can see.
    pub async fn update(&self, actor: &Actor, id: AppId, patch: AppPatch) -> Result<App> {
        let scope = actor.scope()?;
        let egress = self.ctx.egress.clone();
        let checked = self.ctx.computations.run(move || patch.check(&egress)).await??;
        let now = self.ctx.store.now();
        self.check_own(actor, id).await?;
        let entry = self.ctx.audit(actor, Action::AppUpdated);
        let (app, retry, bots) = self
            .ctx
            .store
            .write(move |tx| {
                async move {
                    let mut app = tx.apps().find_own(scope, id).await?.ok_or_else(not_found)?;
                    let before = app.webhook_url.clone();
                    checked.apply(&mut app);
                    app.updated_at = now;
                    tx.apps().update(&app).await?;
                    let retry = app.webhook_url.is_some() && app.webhook_url != before;
                    tx.audit().add(&updated(entry, &app)).await?;
                    Ok((app, retry, tx.apps().begin_change(id).await?))
                }
                .boxed()
            })
            .await?;
        for bot_id in bots {
            self.ctx.node.wake.hint(Hint::Bot(bot_id));
        }
        if !retry {
            return Ok(app);
        }
        let webhook_verified = self.challenge(&app, None).await.is_ok();
        Ok(App { webhook_verified, ..app })
    }

    /// Deletes an app with all of its installations: their tokens end at once.
    ///
    /// # Errors
    /// `NOT_FOUND` unless it is the caller's; `FORBIDDEN` for another user's app that the caller can see.
    pub async fn delete(&self, actor: &Actor, id: AppId) -> Result<()> {
        let scope = actor.scope()?;
        self.check_own(actor, id).await?;
        let revocation = self.ctx.revocation(Revoked::App(id));
        let entry = self.ctx.audit(actor, Action::AppDeleted);
        let bots = self
            .ctx
            .store
            .write(move |tx| {
                async move {
                    let app = tx.apps().find_own(scope, id).await?.ok_or_else(not_found)?;
                    let bots = tx.apps().begin_change(id).await?;
                    tx.apps().delete(id).await?;
                    tx.audit().add(&entry.target(id, app.name)).await?;
                    tx.revocations().add(&revocation).await?;
                    Ok(bots)
                }
                .boxed()
            })
            .await?;
        self.ctx.notify_revoked(revocation.revoked);
        for bot_id in bots {
            self.notify_changed(bot_id, id, Changed::Removed);
        }
        Ok(())
    }

    /// Whether an app is the caller's to change.
    async fn check_own(self, actor: &Actor, id: AppId) -> Result<()> {
        let scope = actor.scope()?;
        let mut read = self.ctx.store.read().await?;
        let app = read.apps().find(scope, id).await?.ok_or_else(not_found)?;
        match scope.owner() {
            Some(user) if user != app.owner_id => {
                Err(Error::new(crate::ErrorCode::Forbidden, "only the app's author can do this"))
            }
            _ => Ok(()),
        }
    }
}

/// An entry about an app that was changed.
fn updated(entry: NewEntry, app: &App) -> NewEntry {
    let redirects: Vec<_> = app.redirect_uris.iter().filter_map(|uri| origin(uri)).collect();
    let detail = serde_json::json!({
        "webhook_origin": app.webhook_url.as_deref().and_then(origin),
        "redirect_origins": redirects,
        "scopes": app.scopes,
    });
    entry.target(app.id, &*app.name).detail(detail)
}

/// The scope of the hub itself: what follows from a change that was allowed touches bots of others.
fn everybody() -> Result<crate::access::Scope> {
    Actor::Operator.scope()
}

fn not_found() -> Error {
    Error::not_found("app")
}

fn slug_taken(error: Error) -> Error {
    if is_constraint(&error) {
        Error::conflict("another app has this short name").with_source(error)
    } else {
        error
    }
}
