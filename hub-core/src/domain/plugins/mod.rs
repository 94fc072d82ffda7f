//! Plugins: JavaScript that runs before and after a webhook request.
//!
//! A plugin has a name, which belongs to its first author, and versions. A version is a source and never
//! changes. It waits for a review, and the approved source runs, byte for byte. Channels pin versions.
//! `sandbox` runs a source, and `delivery` decides when.

use crate::{
    access::Actor,
    context::Context,
    error::{Error, Result},
    id::PluginId,
    page::{Page, PageRequest},
};

pub mod breaker;
mod connect;
pub mod debug;
pub mod diff;
pub mod gate;
mod installation;
pub mod manifest;
pub mod outcome;
mod permission;
mod record;
pub mod request;
mod review;
mod rule;
mod submission;

pub use crate::model::plugin::{InstalledPlugin, Plugin, Version, VersionState};
pub use installation::{InstallationPatch, MAX_INSTALLED, NewInstallation};
pub use manifest::Manifest;
pub use permission::Permissions;
pub use record::{PendingVersion, PluginDetail};
pub use review::PluginRef;
pub use rule::MatchRules;
pub use submission::{MAX_PLUGINS, Submission, content_hash};

/// The marketplace, reviews and installations: every operation takes the actor of the caller. A plugin of another
/// user without an approved version does not exist for the caller: `NOT_FOUND`.
#[derive(Debug, Clone, Copy)]
pub struct Plugins<'h> {
    ctx: &'h Context,
}

impl<'h> Plugins<'h> {
    pub(crate) fn new(ctx: &'h Context) -> Self {
        Self { ctx }
    }

    /// The marketplace: plugins with an approved version, newest first, each shown by it.
    ///
    /// # Errors
    /// `FORBIDDEN` for a channel client.
    pub async fn list(&self, actor: &Actor, page: &PageRequest) -> Result<Page<Plugin>> {
        actor.scope()?;
        let plugins = self.ctx.store.read().await?.plugins().page(page).await?;
        Ok(Page::from_rows(Self::MARKETPLACE, page, plugins, |plugin| plugin.id.to_string()))
    }

    /// The caller's own plugins in whatever state, newest first, each shown by its newest version.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is a user.
    pub async fn list_own(&self, actor: &Actor, page: &PageRequest) -> Result<Page<Plugin>> {
        let author = actor.user()?.user_id;
        let plugins = self.ctx.store.read().await?.plugins().page_of(author, page).await?;
        Ok(Page::from_rows(&Self::own_list(actor), page, plugins, |plugin| plugin.id.to_string()))
    }

    /// The name of the marketplace's list, for [`PageRequest::parse`].
    pub const MARKETPLACE: &'static str = "plugins";

    /// The name of a caller's list of their own plugins, for [`PageRequest::parse`].
    pub fn own_list(actor: &Actor) -> String {
        format!("plugins:{}", actor.principal())
    }

    /// One plugin with its versions and the source of the newest, or of the version that is named, as far as the
    /// caller may see them.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn get(&self, actor: &Actor, target: impl Into<PluginRef>) -> Result<PluginDetail> {
        let scope = actor.reviewing_scope()?;
        let mut read = self.ctx.store.read().await?;
        let (id, named) = match target.into() {
            PluginRef::Plugin(id) => (id, None),
            PluginRef::Version(version) => {
                let source = read.plugins().source(scope, version).await?;
                (source.ok_or_else(|| Error::not_found("plugin"))?.plugin_id, Some(version))
            }
        };
        let plugin = found(read.plugins().find(scope, id).await?)?;
        let versions = read.plugins().versions(scope, id).await?;
        let source = read.plugins().source(scope, named.unwrap_or(plugin.latest.id)).await?;
        let script = source.ok_or_else(|| Error::not_found("plugin"))?.script;
        let read_back = script.clone();
        let permissions = self
            .ctx
            .computations
            .run(move || Permissions::from(&Manifest::parse(&read_back).unwrap_or_default()))
            .await?;
        Ok(PluginDetail { plugin, script, permissions, versions })
    }

    /// The plugin with a name, or an id, that the caller may see.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn named(&self, actor: &Actor, name: &str) -> Result<Plugin> {
        self.find_named(actor, name, false).await?.ok_or_else(|| Error::not_found("plugin"))
    }

    /// As [`named`](Self::named), when there is one; with `own` only of the caller's own.
    ///
    /// # Errors
    /// `FORBIDDEN` for a channel client.
    pub async fn find_named(&self, actor: &Actor, name: &str, own: bool) -> Result<Option<Plugin>> {
        let scope = actor.reviewing_scope()?;
        let mut read = self.ctx.store.read().await?;
        let id = match name.parse() {
            Ok(id) => id,
            Err(_) => match read.plugins().find_by_name(&submission::name_key(name)).await? {
                Some((id, _)) => id,
                None => return Ok(None),
            },
        };
        if own && !read.plugins().is_owned(actor.scope()?, id).await? {
            return Ok(None);
        }
        read.plugins().find(scope, id).await
    }

    /// Checks that a plugin is the caller's to change: its author's, or an administrator's.
    async fn own(&self, actor: &Actor, id: PluginId) -> Result<()> {
        let scope = actor.reviewing_scope()?;
        let mut read = self.ctx.store.read().await?;
        if read.plugins().is_owned(scope, id).await? { Ok(()) } else { Err(Error::not_found("plugin")) }
    }
}

fn found(plugin: Option<Plugin>) -> Result<Plugin> {
    plugin.ok_or_else(|| Error::not_found("plugin"))
}
