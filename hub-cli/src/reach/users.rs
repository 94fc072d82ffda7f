//! People: their accounts and sessions.

use hub_core::{
    access::{Actor, Role},
    accounts::{NewUser, Session},
    admin::{Admin, AdminUser, Invite, ResetLink, UserPatch, UserQuery},
    id::{SessionId, UserId},
    page::PageRequest,
};
use serde_json::{Map, Value, json};

use super::{Reach, apps::given, page_document};
use crate::{args::PageArgs, exit::Failure};

impl Reach {
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

    /// Makes an account. A server has no call for it: it is registered with an invitation of ours, and the session
    /// that registering begins is ended.
    pub async fn create_user(&self, new: NewUser, role: Role) -> Result<Value, Failure> {
        let remote = match self {
            Self::Local(hub) => {
                let user = hub.accounts().create_user(&Actor::Operator, new, role).await?;
                return Ok(user_document(&hub.admin().user(&Actor::Operator, user.id).await?));
            }
            Self::Remote(remote) => remote,
        };
        let invite = self.invite(1).await?;
        let body = given(&json!({
            "username": new.username,
            "password": new.password.expose(),
            "display_name": new.display_name,
            "invite": invite["invite"],
        }));
        let registered = remote.nobody()?.call("POST", "/api/auth/register", &[], &body).await?;
        let name = registered["username"].as_str().unwrap_or(&new.username).to_owned();
        self.end_sessions(&name, None).await?;
        if role == Role::Admin {
            return self.update_user(&name, UserPatch { role: Some(role), ..UserPatch::default() }).await;
        }
        self.user(&name).await
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
                let Invite { invite, url, expires_at } =
                    hub.admin().create_invite(&Actor::Operator, Some(days)).await?;
                let (invite, link) = (invite.expose(), url.expose());
                Ok(json!({ "invite": invite, "invite_link": link, "expires_at": expires_at }))
            }
            Self::Remote(remote) => {
                let body = json!({ "expires_in_days": days });
                remote.call("POST", "/api/admin/invites", &[], &body).await
            }
        }
    }

    /// Makes a link with which a user sets a new password.
    pub async fn reset_link(&self, id_or_name: &str) -> Result<Value, Failure> {
        let id = id_of(&self.user(id_or_name).await?)?;
        match self {
            Self::Local(hub) => {
                let ResetLink { url, expires_at } =
                    hub.admin().create_reset_link(&Actor::Operator, id).await?;
                Ok(json!({ "reset_link": url.expose(), "expires_at": expires_at }))
            }
            Self::Remote(remote) => {
                remote.call("POST", &format!("/api/admin/users/{id}/reset-link"), &[], &Value::Null).await
            }
        }
    }

    /// A page of the sessions of a user.
    pub async fn sessions(&self, id_or_name: &str, page: &PageArgs) -> Result<Value, Failure> {
        let id = id_of(&self.user(id_or_name).await?)?;
        match self {
            Self::Local(hub) => {
                let list = Admin::session_list(id);
                let request = PageRequest::parse(&list, Some(page.limit), page.cursor.as_deref())?;
                let sessions = hub.admin().sessions(&Actor::Operator, id, &request).await?;
                Ok(page_document(&sessions, session_document))
            }
            Self::Remote(remote) => {
                let query = [("limit", Some(page.limit.to_string())), ("cursor", page.cursor.clone())];
                remote.call("GET", &format!("/api/admin/users/{id}/sessions"), &query, &Value::Null).await
            }
        }
    }

    /// Ends a session of a user, or all of them: `{"ended": …}`.
    pub async fn end_sessions(&self, id_or_name: &str, session: Option<SessionId>) -> Result<Value, Failure> {
        let id = id_of(&self.user(id_or_name).await?)?;
        match self {
            Self::Local(hub) => {
                Ok(json!({ "ended": hub.admin().end_sessions(&Actor::Operator, id, session).await? }))
            }
            Self::Remote(remote) => {
                let one = session.map(|session| format!("/{session}")).unwrap_or_default();
                let path = format!("/api/admin/users/{id}/sessions{one}");
                remote.call("DELETE", &path, &[], &Value::Null).await
            }
        }
    }
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

fn session_document(session: &Session) -> Value {
    json!({
        "id": session.id,
        "created_at": session.created_at,
        "last_seen_at": session.last_seen_at,
        "ip": session.ip,
        "user_agent": session.user_agent,
        "current": session.current,
    })
}
