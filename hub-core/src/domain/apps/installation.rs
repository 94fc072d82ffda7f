//! Apps on bots: put there, changed, taken off.

use std::collections::BTreeMap;

use futures_util::FutureExt;
use serde::{Deserialize, Serialize};

use super::{AppConfig, Apps, MAX_CONFIG_ENTRIES, config::shown, draft::MAX_WORD, not_found};
use crate::{
    access::{Actor, AppScopes, Scope},
    context::Context,
    error::{Error, Result},
    events::{Changed, Event},
    id::{AppId, BotId, InstallationId},
    idempotency::{self, Idempotent},
    model::{
        app::{App, Installation, InstallationRecord, NewToken, SocketScope},
        app_event::AppEventKind,
        audit::Action,
        handle::Handle,
        revocation::Revoked,
    },
    page::{Page, PageRequest},
    secret::ShownOnce,
    store::{Tx, fault::is_constraint},
    wake::Hint,
};

/// Apps on one bot.
pub const MAX_INSTALLATIONS: u32 = 50;

/// A created installation. The token is shown only here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, hub_macros::Api)]
pub struct InstalledApp {
    /// The installation.
    #[api(flatten)]
    pub installation: Installation,
    /// Its token, for the bot API.
    pub app_token: ShownOnce,
}

/// Outcome of installing an app.
#[derive(Debug, Clone, PartialEq)]
pub enum Install {
    /// The app is installed.
    Done(Box<InstalledApp>),
    /// The app starts its installation itself: the browser has to go there first, by this address of the hub.
    AtTheApp(String),
}

/// An app to install on a bot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, hub_macros::Api)]
#[api(name = "InstallApp", input, example = {
    "app_id": "app_01KAG00000E008000000000007",
    "scopes": ["message:read"],
})]
pub struct NewInstallation {
    /// Id of the app.
    pub app_id: AppId,
    /// Granted scopes, all or some of those that the app requests; all if absent.
    #[api(length = 0..=MAX_WORD)]
    pub scopes: Option<Vec<String>>,
    /// Handle on this bot, without the `@`: 2 to 32 of `a-z0-9_-`; the slug if absent.
    #[api(length = 2..=32)]
    pub handle: Option<String>,
    /// Configuration of the app on this bot: texts by name, numbers and booleans are stored as text. At most 64
    /// entries, names of 1 to 64 characters, 16 KiB in total. It is encrypted at rest; the app reads it with the scope
    /// `config:read`.
    #[api(from(Option<crate::openapi::ConfigValues>, AppConfig::from_iter), properties = ..=MAX_CONFIG_ENTRIES)]
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "AppConfig::serialize_hashes")]
    pub config: Option<AppConfig>,
}

/// A change of an installed app; absent fields keep their values.
#[derive(Debug, Clone, Default, PartialEq, Eq, hub_macros::Api)]
#[api(name = "ChangeApp", input, example = { "enabled": false })]
pub struct InstallationPatch {
    /// Handle, without the `@`.
    #[api(length = 2..=32)]
    pub handle: Option<String>,
    /// Granted scopes.
    #[api(length = 0..=MAX_WORD)]
    pub scopes: Option<Vec<String>>,
    /// Whether the app receives events and its token works.
    pub enabled: Option<bool>,
    /// Replaces the configuration, with the bounds of an installation. A value that begins with `***`, as the
    /// response has it, keeps the stored value of its name.
    #[api(from(Option<crate::openapi::ConfigValues>, AppConfig::from_iter), properties = ..=MAX_CONFIG_ENTRIES)]
    pub config: Option<AppConfig>,
}

impl Apps<'_> {
    /// The apps on a bot, newest first.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the bot is the caller's.
    pub async fn installed(
        &self,
        actor: &Actor,
        bot_id: BotId,
        page: &PageRequest,
    ) -> Result<Page<Installation>> {
        let scope = actor.scope()?;
        let mut read = self.ctx.store.read().await?;
        if !read.channels().sees_bot(scope, bot_id).await? {
            return Err(Error::not_found("bot"));
        }
        let rows = read.installations().page(bot_id, page).await?;
        let rows: Vec<_> = rows.into_iter().map(|row| shown(row, &self.ctx.sealer)).collect::<Result<_>>()?;
        Ok(Page::from_rows(&Self::installed_list(bot_id), page, rows, |row| row.id.to_string()))
    }

    /// The name of a bot's list of apps, for [`PageRequest::parse`].
    pub fn installed_list(bot_id: BotId) -> String {
        format!("installations:{bot_id}")
    }

    /// Puts an app onto a bot. `idempotency_key` is the caller's `Idempotency-Key`: the same key with the same input
    /// gives the first answer again, token included. An app with a `setup_url` is installed there, by OAuth; one with
    /// redirect URIs is notified of its installation at the first of them.
    ///
    /// # Errors
    /// `NOT_FOUND` for a bot of another user and for an app that the caller may not see; `INVALID_PARAMS` on a bad
    /// handle or configuration, and on scopes that the app does not ask for; `CONFLICT` when it is there already,
    /// another app there has the handle, or the bot has [`MAX_INSTALLATIONS`].
    pub async fn install(
        &self,
        actor: &Actor,
        bot_id: BotId,
        new: NewInstallation,
        idempotency_key: Option<&str>,
    ) -> Result<Install> {
        let scope = actor.scope()?;
        let app = self.installable(scope, bot_id, new.app_id).await?;
        if app.setup_url.is_some() {
            let mut setup = self.ctx.config.address(&format!("/api/apps/{}/oauth/setup", app.id));
            setup.query_pairs_mut().append_pair("bot_id", &bot_id.to_string());
            return Ok(Install::AtTheApp(setup.into()));
        }
        let once = Idempotent::read(self.ctx, actor, "app.install", &(bot_id, &new), idempotency_key)?;
        let config = new.config.map(|config| AppConfig::default().replaced_by(config)).transpose()?;
        let (app_token, token) = NewToken::generate(self.ctx, None);
        let id = self.ctx.ids.next();
        let (ctx, entry) = (self.ctx.clone(), self.ctx.audit(actor, Action::AppInstalled));
        let installed = idempotency::write_once(&self.ctx.store, once, move |tx| {
            async move {
                tx.channels().begin_change(scope, bot_id).await?;
                let app = tx.apps().find(scope, new.app_id).await?.ok_or_else(not_found)?;
                let scopes = granted(&app, new.scopes.as_deref())?;
                let handle = checked_handle(new.handle.as_deref(), &app)?;
                let mut installation = fresh(id, &app, bot_id, handle, scopes, &token);
                insert(tx, scope, &installation, &token).await?;
                let mut detail = serde_json::json!({ "app": app.id, "bot": bot_id, "scopes": scopes });
                if let Some(config) = config {
                    config.store(tx, &ctx.sealer, id, token.at).await?;
                    detail["config"] = config.names().collect();
                    installation.config = config.masked();
                }
                notify(tx, &ctx, &app, &installation, AppEventKind::AppInstalled).await?;
                tx.audit().add(&entry.target(id, &*app.name).detail(detail)).await?;
                Ok(InstalledApp { installation, app_token: app_token.into() })
            }
            .boxed()
        })
        .await?;
        self.notify_changed(bot_id, app.id, Changed::Installed);
        self.ctx.node.wake.hint(Hint::AppEvents);
        self.ctx.node.wake.hint(Hint::Delivery(bot_id));
        self.announce(actor, &app, &installed).await;
        Ok(Install::Done(Box::new(installed)))
    }

    /// An app that the caller sees, for a bot of theirs.
    async fn installable(&self, scope: Scope, bot_id: BotId, app_id: AppId) -> Result<App> {
        let mut read = self.ctx.store.read().await?;
        if !read.channels().sees_bot(scope, bot_id).await? {
            return Err(Error::not_found("bot"));
        }
        read.apps().find(scope, app_id).await?.ok_or_else(not_found)
    }

    /// Changes an app on a bot: its owner may give it what it asks for, or less, and switch it off.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the bot is the caller's and has the app; `INVALID_PARAMS` on a bad handle or configuration,
    /// and on scopes that the app does not ask for; `CONFLICT` when another app there has the handle.
    pub async fn change_installation(
        &self,
        actor: &Actor,
        bot_id: BotId,
        app_id: AppId,
        patch: InstallationPatch,
    ) -> Result<Installation> {
        let scope = actor.scope()?;
        let (sealer, now) = (self.ctx.sealer.clone(), self.ctx.store.now());
        let entry = self.ctx.audit(actor, Action::InstallationChanged);
        let write = self.ctx.store.write(move |tx| {
            async move {
                tx.channels().begin_change(scope, bot_id).await?;
                let InstallationRecord { mut installation, config } = find(tx, scope, bot_id, app_id).await?;
                let id = installation.id;
                let mut config = AppConfig::open(&sealer, id, config.as_ref())?;
                if let Some(scopes) = &patch.scopes {
                    let everybody = super::everybody()?;
                    let app = tx.apps().find(everybody, app_id).await?.ok_or_else(not_found)?;
                    installation.scopes = granted(&app, Some(scopes))?;
                }
                if let Some(handle) = patch.handle {
                    installation.handle = handle.parse::<Handle>()?.to_string();
                }
                installation.enabled = patch.enabled.unwrap_or(installation.enabled);
                let Installation { handle, scopes, enabled, .. } = &installation;
                let updated = tx.installations().update(id, handle, *scopes, *enabled, now).await;
                updated.map_err(handle_taken)?;
                let mut detail = serde_json::json!({ "app": app_id, "bot": bot_id, "handle": handle,
                    "scopes": scopes, "enabled": enabled });
                if let Some(new) = patch.config {
                    config = config.replaced_by(new)?;
                    config.store(tx, &sealer, id, now).await?;
                    detail["config"] = config.names().collect();
                }
                installation.config = config.masked();
                tx.audit().add(&entry.target(id, &*installation.app_name).detail(detail)).await?;
                Ok(installation)
            }
            .boxed()
        });
        let installation = write.await?;
        // Whatever is open with the token is looked at again: it may be switched off, or have fewer scopes.
        self.end(installation.id).await?;
        self.notify_changed(bot_id, app_id, Changed::Installed);
        Ok(installation)
    }

    /// Takes an app off a bot: its token ends at once.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the bot is the caller's and has the app.
    pub async fn uninstall(&self, actor: &Actor, bot_id: BotId, app_id: AppId) -> Result<()> {
        let scope = actor.scope()?;
        let entry = self.ctx.audit(actor, Action::AppUninstalled);
        let (ctx, now) = (self.ctx.clone(), self.ctx.store.now());
        let write = self.ctx.store.write(move |tx| {
            async move {
                tx.channels().begin_change(scope, bot_id).await?;
                let installation = find(tx, scope, bot_id, app_id).await?.installation;
                let app = tx.apps().find(super::everybody()?, app_id).await?.ok_or_else(not_found)?;
                // What is open fails, and its traces say why.
                tx.app_events().hasten(SocketScope::Installation(installation.id), now).await?;
                notify(tx, &ctx, &app, &installation, AppEventKind::AppUninstalled).await?;
                let Installation { id, app_name, .. } = installation;
                tx.installations().delete(id).await?;
                let detail = serde_json::json!({ "app": app_id, "bot": bot_id });
                tx.audit().add(&entry.target(id, app_name).detail(detail)).await?;
                let revoked = Revoked::Installation(id);
                let revocation =
                    crate::model::revocation::Revocation { id: ctx.ids.next(), revoked, at: now };
                tx.revocations().add(&revocation).await?;
                Ok(revoked)
            }
            .boxed()
        });
        let revoked = write.await?;
        self.ctx.notify_revoked(revoked);
        self.notify_changed(bot_id, app_id, Changed::Removed);
        self.ctx.node.wake.hint(Hint::AppEvents);
        self.ctx.node.wake.hint(Hint::Delivery(bot_id));
        Ok(())
    }

    /// Notifies the workers and the clients that the apps on a bot changed.
    pub(super) fn notify_changed(self, bot_id: BotId, app_id: AppId, change: Changed) {
        self.ctx.node.wake.hint(Hint::Bot(bot_id));
        self.ctx.node.events.notify(Event::App { bot_id, app_id, change });
    }

    /// Makes open connections with a token authenticate again.
    pub(super) async fn end(&self, id: InstallationId) -> Result<()> {
        let revocation = self.ctx.revocation(Revoked::Installation(id));
        let write =
            self.ctx.store.write(move |tx| Box::pin(async move { tx.revocations().add(&revocation).await }));
        write.await?;
        self.ctx.notify_revoked(revocation.revoked);
        Ok(())
    }
}

/// Tells an app, if it asked for that, that it was put onto a bot or taken off.
pub(super) async fn notify(
    tx: &mut Tx,
    ctx: &Context,
    app: &App,
    installation: &Installation,
    kind: AppEventKind,
) -> Result<()> {
    if !app.events.contains(&kind) {
        return Ok(());
    }
    let data = serde_json::json!({ "installation_id": installation.id, "app_id": app.id,
        "bot_id": installation.bot_id, "handle": installation.handle, "scopes": installation.scopes });
    let now = ctx.store.now();
    let of = (app.id, installation.bot_id, installation.id);
    let has_webhook = app.webhook_verified && app.webhook_url.is_some();
    let event = crate::app_status::new_event(of, "", has_webhook, kind, &data, &ctx.ids, now, now);
    tx.app_events().insert(&[&event]).await
}

/// An installation that is not stored yet.
pub(super) fn fresh(
    id: InstallationId,
    app: &App,
    bot_id: BotId,
    handle: String,
    scopes: AppScopes,
    token: &NewToken,
) -> Installation {
    Installation {
        id,
        app_id: app.id,
        app_name: app.name.clone(),
        app_slug: app.slug.clone(),
        bot_id,
        handle,
        scopes,
        tools: Vec::new(),
        config: BTreeMap::new(),
        enabled: true,
        token_last4: token.last4.clone(),
        created_at: token.at,
    }
}

/// Stores an installation, within what a bot may have.
pub(super) async fn insert(tx: &mut Tx, scope: Scope, new: &Installation, token: &NewToken) -> Result<()> {
    if tx.installations().find(scope, new.bot_id, new.app_id).await?.is_some() {
        return Err(Error::conflict("the app is installed on this bot already"));
    }
    if tx.installations().count(new.bot_id).await? >= i64::from(MAX_INSTALLATIONS) {
        return Err(Error::conflict(format!("a bot may have at most {MAX_INSTALLATIONS} apps")));
    }
    tx.installations().insert(new, token).await.map_err(handle_taken)
}

pub(super) async fn find(
    tx: &mut Tx,
    scope: Scope,
    bot_id: BotId,
    app_id: AppId,
) -> Result<InstallationRecord> {
    let found = tx.installations().find(scope, bot_id, app_id).await?;
    found.ok_or_else(|| Error::not_found("app on this bot"))
}

/// The scopes that an app gets: those it asks for, or fewer.
pub(super) fn granted(app: &App, wanted: Option<&[String]>) -> Result<AppScopes> {
    let Some(words) = wanted else { return Ok(app.scopes) };
    let wanted = AppScopes::parse(words)?;
    if wanted.is_within(app.scopes) {
        return Ok(wanted);
    }
    Err(Error::invalid("scopes", format!("must be of those that the app asks for: {}", app.scopes)))
}

/// The handle that was chosen, or else the short name as far as a handle goes.
pub(super) fn checked_handle(chosen: Option<&str>, app: &App) -> Result<String> {
    let text = chosen.unwrap_or_else(|| &app.slug[..app.slug.len().min(32)]);
    Ok(text.parse::<Handle>()?.to_string())
}

fn handle_taken(error: Error) -> Error {
    if is_constraint(&error) {
        Error::conflict("another app on this bot has the handle").with_source(error)
    } else {
        error
    }
}
