//! A hub to administer: the one in a data folder, or a server. Both answer in the documents of the API.

use hub_core::{
    Hub,
    access::Actor,
    admin::Stats,
    audit::AuditEntry,
    page::{Page, PageRequest},
    store::audit::AuditFilter,
};
use serde_json::{Map, Value, json};

mod ai_config;
mod apps;
mod as_app;
mod bots;
mod channels;
mod plugins;
mod target;
mod traces;
mod users;

pub use apps::{AppLog, AppPlace, id_of};
pub use bots::Binding;
pub use channels::{ChannelPlace, Part};
pub use plugins::{Verdict, Whose, permissions_document};
use target::Target;
pub use target::address;

use crate::{
    args::{HubArgs, PageArgs},
    exit::Failure,
    local::{self, Open},
    remote::Remote,
    screen,
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
    /// The hub of these arguments. A server, when one or a profile is named; the files, when they are; else the
    /// server of the profile in use, and without one the files of this machine.
    ///
    /// # Errors
    /// When a server is named and nobody is signed in there; what opening the files says.
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

    /// Sees that what is stored will be taken up. A server does that; on files somebody has to work on them.
    ///
    /// # Errors
    /// `UNAVAILABLE` when nobody does.
    pub async fn expect_work(&self) -> Result<(), Failure> {
        match self {
            Self::Local(hub) if !hub.is_at_work().await? => {
                Err(Failure::unreachable("no server works on these files, so nothing would be sent")
                    .with_hint("start hub-server first"))
            }
            Self::Local(_) | Self::Remote(_) => Ok(()),
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

/// The server of these arguments, as [`Reach::open`] chooses it; `None` for files.
///
/// # Errors
/// When a server is named and nobody is signed in there.
pub fn server(args: &HubArgs, local: bool) -> Result<Option<Remote>, Failure> {
    let target = target::choose(args, local)?;
    let open = |Target { server, key, name }: Target| {
        let remote = Remote::new(&server, key)?;
        Ok(match name {
            Some(name) => remote.named(name),
            None => remote,
        })
    };
    target.map(open).transpose()
}

/// Accepts the user that a flag for files names, when the key of the server is that user's: the same line then works
/// on files and on a server.
async fn expect_user(remote: &Remote, flag: &str, name: Option<&str>) -> Result<(), Failure> {
    let Some(name) = name else { return Ok(()) };
    let me = remote.call("GET", "/api/auth/me", &[], &Value::Null).await?;
    let username = me["username"].as_str().unwrap_or_default();
    if username.eq_ignore_ascii_case(name) {
        return Ok(());
    }
    let username = screen::clean(username);
    Err(Failure::usage(format!("{flag} {name}: you are signed in as {username}"))
        .with_hint(format!("leave {flag} out, sign in as {name}, or add --local to work on the files")))
}

fn page_document<T>(page: &Page<T>, document: impl Fn(&T) -> Value) -> Value {
    let items: Vec<Value> = page.items.iter().map(document).collect();
    json!({ "items": items, "next_cursor": page.next_cursor })
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
