//! Submitting plugins and versions of them.

use data_encoding::HEXLOWER;
use futures_util::FutureExt;
use serde::Serialize;
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

use super::{
    Plugin, Plugins, VersionState,
    manifest::{self, MAX_SOURCE, Manifest},
    permission::Permissions,
};
use crate::{
    access::Actor,
    context::Context,
    error::{Error, Problems, Result},
    id::{PluginId, UserId},
    idempotency::{self, Idempotent},
    model::audit::{Action, NewEntry},
    sandbox::Source,
    store::{
        Tx,
        fault::is_constraint,
        plugins::{NewPlugin, NewVersion},
    },
};

/// Plugins one user may have.
pub const MAX_PLUGINS: u32 = 100;
/// Versions of a plugin that are over and run nowhere: as many are remembered.
const MAX_OBSOLETE: u32 = 20;

/// A source and its description. Name, description and version default to the metadata block and must not contradict
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, hub_macros::Api)]
#[api(name = "SubmitPlugin", input, checked, example = {
    "script": "// ==UserScript==\n// @name tagger\n// @version 1.2.0\n// @match text\n\
               // ==/UserScript==\nfunction onRequest(ctx) { ctx.req.headers['X-Kind'] = 'order'; }\n",
})]
pub struct Submission {
    /// Name; it belongs to its first author.
    #[api(line = 1..=64)]
    pub name: Option<String>,
    /// Description.
    #[api(line = 0..=500)]
    pub description: Option<String>,
    /// Version.
    #[api(line = 1..=64)]
    pub version: Option<String>,
    /// The source, at most 256 KiB, beginning with its metadata block.
    #[api(length = 0..=MAX_SOURCE)]
    pub script: String,
}

/// A submission that may be stored.
#[derive(Debug)]
pub(super) struct Checked {
    name: String,
    version: Option<String>,
    description: String,
    manifest: Manifest,
    script: String,
}

impl Submission {
    /// Checks everything that can be known without running the source. Takes milliseconds.
    pub(super) fn check(self) -> Result<Checked> {
        let manifest = Manifest::parse(&self.script)?;
        let mut problems = Problems::default();
        problems.check(
            manifest.dialect.is_some(),
            "script",
            "must begin with a metadata block: // ==UserScript==, // @name …, // ==/UserScript==",
        );
        self.check_bounds(&mut problems);
        let mut said = |field: &'static str, form: Option<String>, block: Option<&String>| {
            if let (Some(form), Some(block)) = (&form, block)
                && form != block
            {
                problems.add(field, format!("must not contradict @{field} of the script: {block}"));
            }
            form.or_else(|| block.cloned())
        };
        let name = said("name", self.name, manifest.name.as_ref());
        let version = said("version", self.version, manifest.version.as_ref());
        let description = said("description", self.description, manifest.description.as_ref());
        if manifest.dialect.is_some() {
            problems.check(name.is_some(), "script", "has no @name");
        }
        problems.finish()?;
        Ok(Checked {
            name: name.unwrap_or_default(),
            version,
            description: description.unwrap_or_default(),
            manifest,
            script: self.script,
        })
    }
}

impl Checked {
    fn version_row(&self, ctx: &Context, plugin_id: PluginId) -> NewVersion {
        let permissions = Permissions::from(&self.manifest);
        NewVersion {
            id: ctx.ids.next(),
            plugin_id,
            version: self.version.clone().unwrap_or_else(|| "0.0.0".to_owned()),
            description: self.description.clone(),
            content_hash: content_hash(&self.script),
            script: self.script.clone(),
            matches: permissions.matches,
            connects: permissions.connects,
            timeout_ms: permissions.timeout_ms,
            now: ctx.store.now(),
        }
    }
}

impl Plugins<'_> {
    /// Submits a new plugin; its version waits for a review. `idempotency_key` is the caller's
    /// `Idempotency-Key`: the same key with the same submission gives the first answer again.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with everything that is wrong with the source or the form; `CONFLICT` when the name is
    /// taken or the user has as many plugins as they may have; `FORBIDDEN` unless the caller is a user.
    pub async fn submit(
        &self,
        actor: &Actor,
        new: Submission,
        idempotency_key: Option<&str>,
    ) -> Result<Plugin> {
        let (author_id, scope) = (actor.user()?.user_id, actor.scope()?);
        let wanted = (&new.name, &new.description, &new.version, content_hash(&new.script));
        let once = Idempotent::read(self.ctx, actor, "plugin.submit", &wanted, idempotency_key)?;
        let checked = self.check(actor, new).await?;
        let now = self.ctx.store.now();
        let (name, name_key) = (checked.name.clone(), name_key(&checked.name));
        let plugin = NewPlugin { id: self.ctx.ids.next(), author_id, name, name_key, now };
        let version = checked.version_row(self.ctx, plugin.id);
        let entry = submitted_entry(self.ctx.audit(actor, Action::PluginSubmitted), &plugin.name, &version);
        let submitted = idempotency::write_once(&self.ctx.store, once, move |tx| {
            async move {
                refuse_taken(tx, &plugin).await?;
                if tx.plugins().count_of(author_id).await? >= i64::from(MAX_PLUGINS) {
                    return Err(Error::conflict(format!("a user may have at most {MAX_PLUGINS} plugins")));
                }
                tx.plugins().insert(&plugin).await.map_err(|error| {
                    if is_constraint(&error) { taken(&plugin.name).with_source(error) } else { error }
                })?;
                tx.plugins().insert_version(&version).await?;
                tx.audit().add(&entry).await?;
                super::found(tx.plugins().find(scope, plugin.id).await?)
            }
            .boxed()
        })
        .await?;
        self.notify_review(author_id, submitted.id, VersionState::Pending);
        Ok(submitted)
    }

    /// Submits another version of a plugin. It waits for a review, in the place of whatever of the plugin waited
    /// before; the approved version stays as it is.
    ///
    /// # Errors
    /// As [`Plugins::submit`]; `NOT_FOUND` for another user's plugin that the caller may not see, else `FORBIDDEN`.
    pub async fn update(&self, actor: &Actor, id: PluginId, new: Submission) -> Result<Plugin> {
        let (author_id, scope) = (actor.user()?.user_id, actor.scope()?);
        self.own(actor, id).await?;
        let checked = self.check(actor, new).await?;
        let version = checked.version_row(self.ctx, id);
        let entry = submitted_entry(self.ctx.audit(actor, Action::PluginSubmitted), &checked.name, &version);
        let plugin = self
            .ctx
            .store
            .write(move |tx| {
                async move {
                    let row = super::found(tx.plugins().find(scope, id).await?)?;
                    if name_key(&row.name) != name_key(&checked.name) {
                        let rule = format!("must stay the plugin's: {}", row.name);
                        return Err(Error::invalid("name", rule));
                    }
                    if owner(tx, &row.name).await? != Some(author_id) {
                        return Err(Error::not_found("plugin"));
                    }
                    tx.plugins().insert_version(&version).await?;
                    tx.audit().add(&entry).await?;
                    tx.plugins().trim_versions(id, MAX_OBSOLETE).await?;
                    super::found(tx.plugins().find(scope, id).await?)
                }
                .boxed()
            })
            .await?;
        self.notify_review(author_id, id, VersionState::Pending);
        Ok(plugin)
    }

    /// Checks a submission where computations are made, its syntax included.
    async fn check(&self, actor: &Actor, new: Submission) -> Result<Checked> {
        manifest::check_size(&new.script)?;
        let checked = self.ctx.computations.run(move || new.check()).await??;
        let source = Source::new(checked.script.as_str());
        match self.ctx.sandbox.check(&actor.principal(), &source).await? {
            None => Ok(checked),
            Some(error) => {
                let place = match (error.line, error.column) {
                    (Some(line), Some(column)) => format!("line {line}, column {column}: "),
                    (Some(line), None) => format!("line {line}: "),
                    _ => String::new(),
                };
                Err(Error::invalid("script", format!("{place}{}", error.message)))
            }
        }
    }
}

fn submitted_entry(entry: NewEntry, name: &str, version: &NewVersion) -> NewEntry {
    let detail = serde_json::json!({ "version": version.version, "content_hash": version.content_hash });
    entry.target(version.plugin_id, name).detail(detail)
}

async fn refuse_taken(tx: &mut Tx, plugin: &NewPlugin) -> Result<()> {
    let Some((id, author)) = tx.plugins().find_by_name(&plugin.name_key).await? else { return Ok(()) };
    let own = author == Some(plugin.author_id);
    let error = taken(&plugin.name);
    Err(if own {
        error.with_hint(format!("it is yours: submit a new version with PUT /api/plugins/{id}"))
    } else {
        error
    })
}

pub(super) async fn owner(tx: &mut Tx, name: &str) -> Result<Option<UserId>> {
    let found = tx.plugins().find_by_name(&name_key(name)).await?;
    Ok(found.and_then(|(_, author)| author))
}

fn taken(name: &str) -> Error {
    Error::conflict(format!("the name {name} belongs to another plugin"))
}

/// A name as it is compared: without regard to case and width of letters.
pub(super) fn name_key(name: &str) -> String {
    name.trim().nfkc().flat_map(char::to_lowercase).collect()
}

/// SHA-256 of a source, in hex.
pub fn content_hash(script: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(script.as_bytes()))
}
