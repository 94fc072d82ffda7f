//! A hub to administer: the one in a data folder, or a server. Both answer in the documents of the API.

use hub_core::{
    Hub,
    access::Actor,
    admin::{AdminUser, Invite, Stats, UserPatch, UserQuery},
    audit::AuditEntry,
    id::UserId,
    page::{Page, PageRequest},
    secret::Secret,
    store::audit::AuditFilter,
};
use serde_json::{Map, Value, json};

mod plugins;

pub use plugins::{Verdict, Whose, permissions_document};

use crate::{
    args::{HubArgs, PageArgs},
    exit::{Exit, Failure},
    local::{self, Open},
    remote::Remote,
};

/// A hub to administer.
#[derive(Debug)]
pub enum Reach {
    /// The files of one on this machine; a server that works on them hears of changes within a second.
    Local(Box<Hub>),
    /// A server.
    Remote(Remote),
}

impl Reach {
    /// The hub of these arguments: a server when one is named and `--local` is not, else the data folder.
    ///
    /// # Errors
    /// A usage failure when a server is named and no key; what opening the folder says.
    pub async fn open(args: &HubArgs, local: bool) -> Result<Self, Failure> {
        match server(args, local)? {
            Some(remote) => Ok(Self::Remote(remote)),
            None => Ok(Self::Local(Box::new(local::open(&args.local, Open::Existing).await?))),
        }
    }

    /// Closes the files.
    pub async fn close(self) {
        if let Self::Local(hub) = self {
            hub.shutdown().await;
        }
    }

    /// A page of everybody.
    pub async fn users(&self, query: &UserQuery, page: &PageArgs) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                let request =
                    PageRequest::parse(&query.list_name(), Some(page.limit), page.cursor.as_deref())?;
                let users = hub.admin().users(&Actor::Operator, query, &request).await?;
                Ok(page_document(&users, user_document))
            }
            Self::Remote(remote) => {
                let query = [
                    ("role", query.role.map(|role| role.as_str().to_owned())),
                    ("status", query.status.map(|status| status.as_str().to_owned())),
                    ("q", query.q.clone()),
                    ("limit", Some(page.limit.to_string())),
                    ("cursor", page.cursor.clone()),
                ];
                remote.call("GET", "/api/admin/users", &query, &Value::Null).await
            }
        }
    }

    /// One user by id or name.
    pub async fn user(&self, id_or_name: &str) -> Result<Value, Failure> {
        let id: Option<UserId> = id_or_name.parse().ok();
        match (self, id) {
            (Self::Local(hub), Some(id)) => Ok(user_document(&hub.admin().user(&Actor::Operator, id).await?)),
            (Self::Local(hub), None) => {
                let found = hub.admin().user_by_name(&Actor::Operator, id_or_name).await;
                found.map(|user| user_document(&user)).map_err(|error| named(error.into(), id_or_name))
            }
            (Self::Remote(remote), Some(id)) => {
                remote.call("GET", &format!("/api/admin/users/{id}"), &[], &Value::Null).await
            }
            (Self::Remote(remote), None) => {
                let query = [("q", Some(id_or_name.to_owned())), ("limit", Some("200".to_owned()))];
                let mut found = remote.call("GET", "/api/admin/users", &query, &Value::Null).await?;
                let items = found["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
                let is_it = |user: &Value| user["username"] == id_or_name.to_lowercase();
                let missing = || named(Failure::not_found("user not found"), id_or_name);
                items.into_iter().find(is_it).ok_or_else(missing)
            }
        }
    }

    /// Changes a user.
    pub async fn update_user(&self, id_or_name: &str, patch: UserPatch) -> Result<Value, Failure> {
        let id = id_of(&self.user(id_or_name).await?)?;
        match self {
            Self::Local(hub) => {
                Ok(user_document(&hub.admin().update_user(&Actor::Operator, id, patch).await?))
            }
            Self::Remote(remote) => {
                let mut body = Map::new();
                let given = [
                    ("role", patch.role.map(|role| role.as_str().to_owned())),
                    ("status", patch.status.map(|status| status.as_str().to_owned())),
                    ("display_name", patch.display_name),
                ];
                for (name, value) in given {
                    if let Some(value) = value {
                        body.insert(name.to_owned(), value.into());
                    }
                }
                remote.call("PUT", &format!("/api/admin/users/{id}"), &[], &Value::Object(body)).await
            }
        }
    }

    /// Deletes a user.
    pub async fn delete_user(&self, id: &Value) -> Result<(), Failure> {
        let id = id_of(id)?;
        match self {
            Self::Local(hub) => Ok(hub.admin().delete_user(&Actor::Operator, id).await?),
            Self::Remote(remote) => {
                let path = format!("/api/admin/users/{id}");
                remote.call("DELETE", &path, &[], &Value::Null).await.map(|_| ())
            }
        }
    }

    /// Makes an invitation.
    pub async fn invite(&self, days: u32) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                let Invite { invite, expires_at } =
                    hub.admin().create_invite(&Actor::Operator, Some(days)).await?;
                Ok(json!({ "invite": invite.expose(), "expires_at": expires_at }))
            }
            Self::Remote(remote) => {
                let body = json!({ "expires_in_days": days });
                remote.call("POST", "/api/admin/invites", &[], &body).await
            }
        }
    }

    /// The statistics.
    pub async fn stats(&self) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => Ok(stats_document(&hub.admin().stats(&Actor::Operator).await?)),
            Self::Remote(remote) => remote.call("GET", "/api/admin/stats", &[], &Value::Null).await,
        }
    }

    /// A page of the audit log.
    pub async fn audit(&self, filter: &AuditFilter, page: &PageArgs) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                let request =
                    PageRequest::parse(&filter.list_name(), Some(page.limit), page.cursor.as_deref())?;
                let log = hub.admin().audit(&Actor::Operator, filter, &request).await?;
                Ok(page_document(&log, audit_document))
            }
            Self::Remote(remote) => {
                let query = [
                    ("actor", filter.actor.clone()),
                    ("action", filter.action.clone()),
                    ("target", filter.target.clone()),
                    ("limit", Some(page.limit.to_string())),
                    ("cursor", page.cursor.clone()),
                ];
                remote.call("GET", "/api/admin/audit", &query, &Value::Null).await
            }
        }
    }
}

/// The server of these arguments; `None` when none is named, or `local` is asked for.
///
/// # Errors
/// When there is no key for it.
pub fn server(args: &HubArgs, local: bool) -> Result<Option<Remote>, Failure> {
    let Some(server) = args.server.as_ref().filter(|_| !local) else { return Ok(None) };
    // From the environment alone: arguments can be read by everybody on the machine.
    let token = std::env::var("HUB_TOKEN").ok().filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| {
        Failure::new(Exit::Denied, "UNAUTHORIZED", "no API key for the server")
            .with_hint("put the key of an administrator into HUB_TOKEN")
    })?;
    Remote::new(server, Secret::new(token)).map(Some)
}

fn named(failure: Failure, name: &str) -> Failure {
    if failure.code == "NOT_FOUND" {
        return Failure::not_found(format!("there is no user called {name}")).with_hint("hub-cli users list");
    }
    failure
}

fn id_of(user: &Value) -> Result<UserId, Failure> {
    let id = user["id"].as_str().and_then(|id| id.parse().ok());
    id.ok_or_else(|| Failure::unreachable("the server's answer names no user"))
}

fn page_document<T>(page: &Page<T>, document: impl Fn(&T) -> Value) -> Value {
    let items: Vec<Value> = page.items.iter().map(document).collect();
    json!({ "items": items, "next_cursor": page.next_cursor })
}

fn user_document(found: &AdminUser) -> Value {
    let user = &found.user;
    json!({
        "id": user.id,
        "username": user.username,
        "display_name": user.display_name,
        "email": user.email,
        "role": user.role.as_str(),
        "status": user.status.as_str(),
        "has_password": found.has_password,
        "bots": found.bots,
        "sessions": found.sessions,
        "api_keys": found.api_keys,
        "last_seen_at": found.last_seen_at,
        "created_at": user.created_at,
    })
}

fn audit_document(entry: &AuditEntry) -> Value {
    json!({
        "id": entry.id,
        "at": entry.at,
        "actor": entry.actor,
        "actor_name": entry.actor_name,
        "credential": entry.credential,
        "action": entry.action,
        "target": entry.target,
        "target_name": entry.target_name,
        "detail": entry.detail,
        "ip": entry.ip,
    })
}

fn stats_document(stats: &Stats) -> Value {
    let by_status =
        stats.bots.by_status.iter().map(|(status, count)| (status.as_str().to_owned(), json!(count)));
    let series = stats.series.iter().map(|minute| {
        json!({
            "at": minute.at,
            "messages_in": minute.counts.messages_in,
            "messages_out": minute.counts.messages_out,
            "delivered": minute.counts.delivered,
            "failed": minute.counts.failed,
            "plugin_runs": minute.counts.plugin_runs,
        })
    });
    json!({
        "users": {
            "total": stats.users.total,
            "active": stats.users.active,
            "disabled": stats.users.disabled,
            "admins": stats.users.admins,
        },
        "bots": { "total": stats.bots.total, "by_status": by_status.collect::<Map<_, _>>() },
        "channels": stats.channels,
        "messages": { "in": stats.totals.messages_in, "out": stats.totals.messages_out },
        "deliveries": {
            "pending": stats.deliveries.pending,
            "parked": stats.deliveries.parked,
            "done": stats.totals.delivered,
            "dead": stats.totals.failed,
        },
        "oldest_pending_at": stats.oldest_pending_at,
        "plugin_runs": stats.totals.plugin_runs,
        "series": series.collect::<Vec<_>>(),
    })
}
