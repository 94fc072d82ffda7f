//! Reviewing versions, and taking them back.

use std::str::FromStr;

use futures_util::FutureExt;
use serde_json::json;

use super::{
    PendingVersion, Plugin, Plugins, VersionState, diff, manifest::Manifest, permission::Permissions,
    submission::owner,
};
use crate::{
    access::{Actor, Scope},
    audit::Action,
    error::{Error, Problems, Result},
    events::Event,
    id::{BotId, PluginId, PluginVersionId, UserId},
    model::audit::NewEntry,
    page::{Page, PageRequest},
    store::{
        Tx,
        plugins::{SourceRow, StateChange},
    },
    text,
    time::Timestamp,
    wake::Hint,
};

/// Longest reason of a reviewer, in bytes.
const MAX_REASON: usize = 2_000;
/// Most versions on a page of the queue: each comes with its source.
const MAX_PENDING: u32 = 20;

/// A plugin, meaning the version that is looked at now, or one version of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginRef {
    /// By the plugin.
    Plugin(PluginId),
    /// By the version.
    Version(PluginVersionId),
}

impl From<PluginId> for PluginRef {
    fn from(id: PluginId) -> Self {
        Self::Plugin(id)
    }
}

impl FromStr for PluginRef {
    type Err = Error;

    /// # Errors
    /// `NOT_FOUND`: what is neither id names nothing.
    fn from_str(text: &str) -> Result<Self> {
        text.parse()
            .map(Self::Plugin)
            .or_else(|_| text.parse().map(Self::Version))
            .map_err(|_: Error| Error::not_found("plugin"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Approve,
    /// Also takes back a version that was approved before.
    Refuse(String),
}

impl Plugins<'_> {
    /// The versions that wait for a review, newest first, each with its source, what changes against the approved
    /// one and what it may do. A page has at most 20.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator.
    pub async fn pending(&self, actor: &Actor, page: &PageRequest) -> Result<Page<PendingVersion>> {
        actor.admin()?;
        let page = page.at_most(MAX_PENDING);
        let rows = self.ctx.store.read().await?.plugins().pending(&page).await?;
        let page = Page::from_rows(Self::PENDING_LIST, &page, rows, |row| row.version.id.to_string());
        let compare = move || {
            let items = page.items.into_iter().map(|row| {
                let before = row.approved_script.clone().unwrap_or_default();
                // It was read when it was submitted; rules that were narrowed since are no reason to hide it.
                let manifest = Manifest::parse(&row.script).unwrap_or_default();
                let diff = diff::unified(&before, &row.script);
                PendingVersion::new(row, Permissions::from(&manifest), diff)
            });
            Page { items: items.collect(), next_cursor: page.next_cursor }
        };
        self.ctx.computations.run(compare).await
    }

    /// The name of the list of pending versions, for [`PageRequest::parse`].
    pub const PENDING_LIST: &'static str = "plugins:pending";

    /// Approves a version that waits for its review. With `content_hash` only if its source has that hash: a plugin
    /// may get another version between the look and the click.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator, `NOT_FOUND`, `CONFLICT` when nothing waits for a review or
    /// the source is another one than was reviewed.
    pub async fn approve(
        &self,
        actor: &Actor,
        target: PluginRef,
        content_hash: Option<&str>,
    ) -> Result<Plugin> {
        self.review(actor, target, Verdict::Approve, content_hash).await
    }

    /// Rejects a version that waits for its review, with a reason for its author. A version that was approved before,
    /// named by its own id, is withdrawn: it does not run from the next message on.
    ///
    /// # Errors
    /// As [`Plugins::approve`], and `INVALID_PARAMS` on the field `reason`.
    pub async fn reject(
        &self,
        actor: &Actor,
        target: PluginRef,
        reason: &str,
        content_hash: Option<&str>,
    ) -> Result<Plugin> {
        let mut problems = Problems::default();
        problems.check(!reason.trim().is_empty(), "reason", "must not be blank");
        text::check_body(&mut problems, "reason", reason, MAX_REASON);
        problems.finish()?;
        self.review(actor, target, Verdict::Refuse(reason.trim().to_owned()), content_hash).await
    }

    async fn review(
        &self,
        actor: &Actor,
        target: PluginRef,
        verdict: Verdict,
        content_hash: Option<&str>,
    ) -> Result<Plugin> {
        actor.admin()?;
        let (scope, by, now) = (actor.reviewing_scope()?, actor.principal(), self.ctx.store.now());
        let entry = self.ctx.audit(actor, Action::PluginApproved);
        let expected = content_hash.map(str::to_owned);
        let (plugin, bots, reviewed) = self
            .ctx
            .store
            .write(move |tx| {
                async move {
                    let row = meant(tx, scope, target).await?;
                    if expected.is_some_and(|hash| !hash.eq_ignore_ascii_case(&row.version.content_hash)) {
                        return Err(Error::conflict("the source is not the one that was reviewed")
                            .with_hint("look at the pending version again"));
                    }
                    let from = row.version.state;
                    let (to, action, reason) = verdict.on(from)?;
                    let change = Change { from, to, action, reason, by, now };
                    let bots = change.make(tx, &row, entry).await?;
                    let plugin = super::found(tx.plugins().find(scope, row.plugin_id).await?)?;
                    // The name belongs to the author, who may be gone.
                    Ok((plugin, bots, (owner(tx, &row.name).await?, to)))
                }
                .boxed()
            })
            .await?;
        self.notify(bots);
        if let (Some(author), state) = reviewed {
            self.notify_review(author, plugin.id, state);
        }
        Ok(plugin)
    }

    /// Deletes a plugin and takes it out of every channel, or withdraws one version of it, which then runs
    /// nowhere any more.
    ///
    /// # Errors
    /// `NOT_FOUND` for a plugin of another user, unless the caller is an administrator; `CONFLICT` while it is
    /// installed in channels of others, unless the caller is an administrator, or when the version is over.
    pub async fn delete(&self, actor: &Actor, target: PluginRef) -> Result<()> {
        let scope = actor.reviewing_scope()?;
        let (by, now) = (actor.principal(), self.ctx.store.now());
        let entry = self.ctx.audit(actor, Action::PluginDeleted);
        let user = actor.user().ok().filter(|_| actor.admin().is_err()).map(|user| user.user_id);
        let (id, version) = match target {
            PluginRef::Plugin(id) => (id, None),
            PluginRef::Version(version) => {
                let row = found(self.ctx.store.read().await?.plugins().source(scope, version).await?)?;
                (row.plugin_id, Some(version))
            }
        };
        self.own(actor, id).await?;
        let bots = self
            .ctx
            .store
            .write(move |tx| {
                async move {
                    if let Some(user) = user
                        && tx.channel_plugins().installed_elsewhere(user, id, version).await? > 0
                    {
                        return Err(Error::conflict("it is installed in channels of other people"));
                    }
                    let Some(version) = version else {
                        let plugin = super::found(tx.plugins().find(scope, id).await?)?;
                        return remove(tx, plugin, entry).await;
                    };
                    let row = found(tx.plugins().source(scope, version).await?)?;
                    let from = row.version.state;
                    if !from.runs() {
                        return Err(over(from));
                    }
                    let reason = Some("withdrawn by its author".to_owned()).filter(|_| user.is_some());
                    let (to, action) = (VersionState::Withdrawn, Action::PluginWithdrawn);
                    Change { from, to, action, reason, by, now }.make(tx, &row, entry).await
                }
                .boxed()
            })
            .await?;
        self.notify(bots);
        Ok(())
    }

    /// Notifies the clients of the author, and of administrators, that a version waits or was reviewed.
    pub(super) fn notify_review(self, owner_id: UserId, plugin_id: PluginId, state: VersionState) {
        self.ctx.node.events.notify(Event::PluginReview { owner_id, plugin_id, state });
    }

    /// Tells the workers that rules have changed.
    pub(super) fn notify(self, bots: Vec<BotId>) {
        for bot in bots {
            self.ctx.node.wake.hint(Hint::Bot(bot));
        }
    }
}

impl Verdict {
    /// Effect on a version in this state.
    fn on(self, from: VersionState) -> Result<(VersionState, Action, Option<String>)> {
        match (from, self) {
            (VersionState::Pending, Self::Approve) => {
                Ok((VersionState::Approved, Action::PluginApproved, None))
            }
            (VersionState::Pending, Self::Refuse(reason)) => {
                Ok((VersionState::Rejected, Action::PluginRejected, Some(reason)))
            }
            (VersionState::Approved, Self::Refuse(reason)) => {
                Ok((VersionState::Withdrawn, Action::PluginWithdrawn, Some(reason)))
            }
            (state, _) => Err(over(state)),
        }
    }
}

/// A change of a version's state, and its audit entry.
struct Change {
    from: VersionState,
    to: VersionState,
    action: Action,
    reason: Option<String>,
    by: String,
    now: Timestamp,
}

impl Change {
    /// Makes it, and says which bots run the version.
    async fn make(self, tx: &mut Tx, row: &SourceRow, entry: NewEntry) -> Result<Vec<BotId>> {
        let Self { from, to, action, reason, by, now } = self;
        let detail = json!({
            "version": row.version.version,
            "version_id": row.version.id,
            "content_hash": row.version.content_hash,
            "reason": reason,
        });
        let id = row.version.id;
        let change = StateChange { id, from, to, reason, by, now };
        if !tx.plugins().change_state(&change).await? {
            return Err(Error::conflict("the version was reviewed by another administrator just now"));
        }
        let entry = NewEntry { action, ..entry.target(row.plugin_id, &row.name).detail(detail) };
        tx.audit().add(&entry).await?;
        tx.channel_plugins().touch_bots(row.plugin_id, Some(id)).await
    }
}

/// The version that a reviewer means: of a plugin the one that waits.
async fn meant(tx: &mut Tx, scope: Scope, target: PluginRef) -> Result<SourceRow> {
    let id = match target {
        PluginRef::Version(id) => id,
        PluginRef::Plugin(id) => {
            let versions = tx.plugins().versions(scope, id).await?;
            if versions.is_empty() {
                return Err(Error::not_found("plugin"));
            }
            let waits = versions.iter().find(|row| row.state == VersionState::Pending);
            waits.ok_or_else(|| Error::conflict("no version of this plugin waits for a review"))?.id
        }
    };
    found(tx.plugins().source(scope, id).await?)
}

/// Deletes a plugin, and says which bots ran it.
async fn remove(tx: &mut Tx, plugin: Plugin, entry: NewEntry) -> Result<Vec<BotId>> {
    let id = plugin.id;
    let bots = tx.channel_plugins().touch_bots(id, None).await?;
    tx.audit().add(&entry.target(id, plugin.name)).await?;
    if tx.plugins().delete(id).await? { Ok(bots) } else { Err(Error::not_found("plugin")) }
}

fn over(state: VersionState) -> Error {
    Error::conflict(format!("the version is {} already", state.as_str()))
}

fn found(row: Option<SourceRow>) -> Result<SourceRow> {
    row.ok_or_else(|| Error::not_found("plugin version"))
}
