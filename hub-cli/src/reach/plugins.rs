//! The marketplace of a hub: reading it, submitting to it, reviewing it.

use hub_core::{
    Hub,
    access::{Actor, Role, UserActor},
    page::PageRequest,
    plugins::{
        Manifest, PendingVersion, Permissions, Plugin, PluginDetail, PluginRef, Plugins, Submission, Version,
    },
};
use serde_json::{Value, json};

use super::{Reach, expect_user, page_document};
use crate::{args::PageArgs, exit::Failure, remote::Remote};

/// Whose plugins are listed.
#[derive(Debug, Clone, Copy)]
pub enum Whose<'a> {
    /// What everybody may install.
    Everybody,
    /// All of one author, by user name: on a server, those of the signed-in user.
    Author(&'a str),
    /// All of whom the key belongs to: a server only.
    Mine,
}

/// What a reviewer decides.
#[derive(Debug, Clone, Copy)]
pub enum Verdict<'a> {
    /// It may be installed by everybody.
    Approve,
    /// It may not, or no longer; what its author is told.
    Reject(&'a str),
}

impl Reach {
    /// A page of plugins.
    pub async fn plugins(&self, whose: Whose<'_>, page: &PageArgs) -> Result<Value, Failure> {
        let cursor = page.cursor.as_deref();
        match (self, whose) {
            (Self::Local(hub), Whose::Everybody) => {
                let page = PageRequest::parse(Plugins::MARKETPLACE, Some(page.limit), cursor)?;
                let page = hub.plugins().list(&Actor::Operator, &page).await?;
                Ok(page_document(&page, document))
            }
            (Self::Local(hub), Whose::Author(name)) => {
                let author = user(hub, name).await?;
                let page = PageRequest::parse(&Plugins::own_list(&author), Some(page.limit), cursor)?;
                Ok(page_document(&hub.plugins().list_own(&author, &page).await?, document))
            }
            (Self::Local(_), Whose::Mine) => {
                Err(Failure::usage("--mine asks a server")
                    .with_hint("on files, name the author: --author NAME"))
            }
            (Self::Remote(remote), whose) => {
                if let Whose::Author(name) = whose {
                    expect_user(remote, "--author", Some(name)).await?;
                }
                let mine = (!matches!(whose, Whose::Everybody)).then(|| "true".to_owned());
                let query = [
                    ("mine", mine),
                    ("limit", Some(page.limit.to_string())),
                    ("cursor", page.cursor.clone()),
                ];
                remote.call("GET", "/api/plugins", &query, &Value::Null).await
            }
        }
    }

    /// A page of the versions that wait for a review.
    pub async fn pending_plugins(&self, page: &PageArgs) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                let request =
                    PageRequest::parse(Plugins::PENDING_LIST, Some(page.limit), page.cursor.as_deref())?;
                let page = hub.plugins().pending(&Actor::Operator, &request).await?;
                Ok(page_document(&page, pending_document))
            }
            Self::Remote(remote) => {
                let query = [("limit", Some(page.limit.to_string())), ("cursor", page.cursor.clone())];
                remote.call("GET", "/api/admin/plugins/pending", &query, &Value::Null).await
            }
        }
    }

    /// A plugin by name or id, with its versions and the source of the newest; by a version's id with that
    /// version's source.
    pub async fn plugin(&self, wanted: &str) -> Result<Value, Failure> {
        let target = self.plugin_target(wanted).await?;
        match self {
            Self::Local(hub) => {
                Ok(detail_document(&hub.plugins().get(&Actor::Operator, parsed(&target)?).await?))
            }
            Self::Remote(remote) => {
                remote.call("GET", &format!("/api/plugins/{target}"), &[], &Value::Null).await
            }
        }
    }

    /// Submits a source: a new plugin, or another version of one that the author has. On files `author` is who
    /// submits, on a server the owner of the key.
    pub async fn submit_plugin(&self, script: String, author: Option<&str>) -> Result<Value, Failure> {
        let name = Manifest::parse(&script)?.name;
        match self {
            Self::Local(hub) => {
                let author = author.ok_or_else(|| Failure::usage("whose is it? add --author NAME"))?;
                submit(hub, &user(hub, author).await?, name, script).await
            }
            Self::Remote(remote) => {
                expect_user(remote, "--author", author).await?;
                let known = match &name {
                    Some(name) => named(remote, name, true).await?,
                    None => None,
                };
                let body = json!({ "script": script });
                match known.as_ref().and_then(|plugin| plugin["id"].as_str()) {
                    Some(id) => remote.call("PUT", &format!("/api/plugins/{id}"), &[], &body).await,
                    None => remote.call("POST", "/api/plugins", &[], &body).await,
                }
            }
        }
    }

    /// Decides on a plugin's version that waits, or on a version; with a hash only if its source has that.
    pub async fn review_plugin(
        &self,
        wanted: &str,
        verdict: Verdict<'_>,
        content_hash: Option<&str>,
    ) -> Result<Value, Failure> {
        let target = self.plugin_target(wanted).await?;
        match self {
            Self::Local(hub) => {
                let (plugins, target) = (hub.plugins(), parsed(&target)?);
                let reviewed = match verdict {
                    Verdict::Approve => plugins.approve(&Actor::Operator, target, content_hash).await,
                    Verdict::Reject(reason) => {
                        plugins.reject(&Actor::Operator, target, reason, content_hash).await
                    }
                };
                Ok(document(&reviewed?))
            }
            Self::Remote(remote) => {
                let (verb, mut body) = match verdict {
                    Verdict::Approve => ("approve", json!({})),
                    Verdict::Reject(reason) => ("reject", json!({ "reason": reason })),
                };
                if let Some(hash) = content_hash {
                    body["content_hash"] = json!(hash);
                }
                remote.call("POST", &format!("/api/admin/plugins/{target}/{verb}"), &[], &body).await
            }
        }
    }

    /// Deletes a plugin, or takes back a version.
    pub async fn delete_plugin(&self, wanted: &str) -> Result<(), Failure> {
        let target = self.plugin_target(wanted).await?;
        match self {
            Self::Local(hub) => Ok(hub.plugins().delete(&Actor::Operator, parsed(&target)?).await?),
            Self::Remote(remote) => {
                let path = format!("/api/plugins/{target}");
                remote.call("DELETE", &path, &[], &Value::Null).await.map(|_| ())
            }
        }
    }

    /// The id of a plugin by name or id, or of a version by id.
    async fn plugin_target(&self, wanted: &str) -> Result<String, Failure> {
        if wanted.parse::<PluginRef>().is_ok() {
            return Ok(wanted.to_owned());
        }
        let missing = || {
            Failure::not_found(format!("there is no plugin called {wanted}"))
                .with_hint("hub-cli plugins list, hub-cli plugins pending")
        };
        match self {
            Self::Local(hub) => match hub.plugins().named(&Actor::Operator, wanted).await {
                Ok(plugin) => Ok(plugin.id.to_string()),
                Err(error) if error.code() == hub_core::ErrorCode::NotFound => Err(missing()),
                Err(error) => Err(error.into()),
            },
            Self::Remote(remote) => {
                let found = named(remote, wanted, false).await?.ok_or_else(missing)?;
                found["id"].as_str().map(str::to_owned).ok_or_else(missing)
            }
        }
    }
}

fn parsed(target: &str) -> Result<PluginRef, Failure> {
    Ok(target.parse()?)
}

/// The plugin of a server that has a name; only one of the key's owner, when asked so.
async fn named(remote: &Remote, name: &str, mine: bool) -> Result<Option<Value>, Failure> {
    let query = [("name", Some(name.to_owned())), ("mine", mine.then(|| "true".to_owned()))];
    let mut found = remote.call("GET", "/api/plugins", &query, &Value::Null).await?;
    Ok(found["items"].get_mut(0).map(Value::take))
}

async fn submit(hub: &Hub, author: &Actor, name: Option<String>, script: String) -> Result<Value, Failure> {
    let mine = match &name {
        Some(name) => hub.plugins().named(author, name).await.ok(),
        None => None,
    };
    let submission = Submission { script, ..Submission::default() };
    // A name that is the author's gets a new version; a name of somebody else is refused either way.
    let submitted = match mine {
        Some(plugin) => match hub.plugins().update(author, plugin.id, submission.clone()).await {
            Err(error) if error.code() == hub_core::ErrorCode::NotFound => {
                hub.plugins().submit(author, submission, None).await
            }
            done => done,
        },
        None => hub.plugins().submit(author, submission, None).await,
    };
    Ok(document(&submitted?))
}

/// A user by name, to act for.
pub(super) async fn user(hub: &Hub, name: &str) -> Result<Actor, Failure> {
    let mut read = hub.context().store.read().await?;
    let found = read.accounts().find_user_by_name(&name.to_lowercase()).await?;
    let (user, _) = found.ok_or_else(|| Failure::not_found(format!("there is no user called {name}")))?;
    Ok(Actor::User(UserActor::embedded(user.id, Role::Member)))
}

fn document(plugin: &Plugin) -> Value {
    let latest = &plugin.latest;
    let (approved_id, approved) = plugin.approved.as_ref().map(|(id, name)| (*id, name.as_str())).unzip();
    let waits = latest.state == hub_core::plugins::VersionState::Pending;
    json!({
        "id": plugin.id,
        "name": plugin.name,
        "description": latest.description,
        "version": latest.version,
        "version_id": latest.id,
        "content_hash": latest.content_hash,
        "author": plugin.author,
        "status": latest.state,
        "reason": latest.reason,
        "latest_version": latest.version,
        "approved_version": approved,
        "approved_version_id": approved_id,
        "pending_version": waits.then(|| version_document(latest)),
        "matches": latest.matches,
        "connects": latest.connects,
        "timeout_ms": latest.timeout_ms,
        "installs": plugin.installs,
        "created_at": plugin.created_at,
    })
}

fn detail_document(detail: &PluginDetail) -> Value {
    let mut document = document(&detail.plugin);
    document["permissions"] = permissions_document(&detail.permissions);
    document["versions"] = detail.versions.iter().map(version_document).collect();
    document["script"] = json!(detail.script);
    document
}

fn version_document(version: &Version) -> Value {
    json!({
        "id": version.id,
        "version": version.version,
        "description": version.description,
        "content_hash": version.content_hash,
        "status": version.state,
        "reason": version.reason,
        "reviewed_at": version.reviewed_at,
        "created_at": version.created_at,
    })
}

fn pending_document(pending: &PendingVersion) -> Value {
    json!({
        "id": pending.plugin_id,
        "name": pending.name,
        "author": pending.author,
        "version": pending.version.version,
        "version_id": pending.version.id,
        "description": pending.version.description,
        "content_hash": pending.version.content_hash,
        "status": pending.version.state,
        "replaces": pending.replaces,
        "permissions": permissions_document(&pending.permissions),
        "diff": pending.diff,
        "script": pending.script,
        "created_at": pending.version.created_at,
    })
}

/// What a plugin may do.
pub fn permissions_document(permissions: &Permissions) -> Value {
    json!({
        "grants": permissions.grants,
        "matches": permissions.matches,
        "connects": permissions.connects,
        "timeout_ms": permissions.timeout_ms,
        "words": permissions.words,
    })
}
