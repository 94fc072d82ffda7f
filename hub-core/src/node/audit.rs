//! The audit log: every act of an administrator, every act on a credential, and every act that changes where people's
//! messages go. Entries are only ever added, and forgotten when they are old; they hold no secret, and outlive what they
//! name. Of a URL they hold the origin: path and query may be secret.
//!
//! An entry is written by the transaction of the act itself:
//! `let entry = ctx.audit(actor, Action::KeyCreated).target(id, name);` before it, and
//! `tx.audit().add(&entry).await?` in it, before whatever deletes the target.

use serde_json::Value;
use url::Url;

use crate::{access::Actor, context::Context, id::UserId, model::session::ClientInfo};

pub use crate::model::audit::{Action, AuditEntry, NewEntry};

/// The origin of a URL, which may be logged; `None` for a text that is not a URL.
pub(crate) fn origin(url: &str) -> Option<String> {
    Some(Url::parse(url).ok()?.origin().ascii_serialization())
}

impl Context {
    /// An entry about something that an actor does now.
    pub fn audit(&self, actor: &Actor, action: Action) -> NewEntry {
        let (who, credential) = match actor {
            Actor::User(user) => {
                let session = user.session_id.map(|id| id.to_string());
                (user.user_id.to_string(), session.or_else(|| user.key_id.map(|id| id.to_string())))
            }
            Actor::Channel(_) | Actor::App(_) | Actor::Operator => (actor.principal(), None),
        };
        NewEntry { credential: credential.unwrap_or_default(), ..self.audit_of(who, action) }
    }

    /// An entry about a sign-in or registration, or an attempt; without a user if the name is unknown.
    pub fn audit_sign_in(&self, user: Option<UserId>, action: Action, client: &ClientInfo) -> NewEntry {
        let who = user.map(|id| id.to_string()).unwrap_or_default();
        NewEntry { ip: client.ip_text(), ..self.audit_of(who, action) }
    }

    fn audit_of(&self, actor: String, action: Action) -> NewEntry {
        NewEntry {
            id: self.ids.next(),
            at: self.store.now(),
            actor,
            credential: String::new(),
            action,
            target: String::new(),
            target_name: String::new(),
            detail: Value::Object(serde_json::Map::new()),
            ip: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_action_has_a_distinct_word() {
        let words: HashSet<_> = Action::ALL.iter().map(|action| action.as_str()).collect();
        assert_eq!(words.len(), Action::ALL.len());
        assert!(words.iter().all(|word| {
            word.split_once('.').is_some_and(|(noun, verb)| !noun.is_empty() && !verb.is_empty())
        }));
    }
}
