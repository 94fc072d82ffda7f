//! API keys: credentials for a user's programs, in place of a session.
//!
//! A key has the permissions of its user, except for actions that
//! [`Actor::in_person`](crate::access::Actor::in_person) denies: it cannot create keys or change the password.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    access::{Actor, UserActor},
    accounts::Accounts,
    audit::Action,
    error::{Error, ErrorCode, Problems, Result},
    id::{KeyId, UserId},
    idempotency::{self, Idempotent},
    model::{audit::NewEntry, revocation::Revoked, user::ApiKey},
    page::{Page, PageRequest},
    secret::{ShownOnce, TokenHash, TokenKind, new_token, parse_token},
    store::Tx,
};

/// Maximum number of keys of one user, expired ones included.
pub const MAX_KEYS: u32 = 50;
/// Longest lifetime of a key in days. A key without one is valid until it is deleted.
pub const MAX_KEY_DAYS: u32 = 3650;
/// Interval at which a key's last use is recorded at most.
const NOTE_EVERY: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A request for an API key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, hub_macros::Api)]
#[api(name = "CreateApiKey", input, checked, example = { "expires_in_days": 90, "name": "nightly backup" })]
pub struct NewApiKey {
    /// Name of the key.
    #[api(line = 1..=64)]
    pub name: String,
    /// Lifetime in days; if absent, the key does not expire.
    #[api(range = 1..=MAX_KEY_DAYS)]
    pub expires_in_days: Option<u32>,
}

/// A new API key. The secret is shown only here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[api(example = {
    "created_at": "2026-11-21T09:30:00.000Z",
    "id": "key_01KAJJS8P00000000000000003",
    "key": "hubu_…",
    "name": "nightly backup",
    "prefix": "hubu_…x7qa",
})]
pub struct CreatedApiKey {
    /// The key.
    #[api(flatten)]
    pub key: ApiKey,
    /// The key, for `Authorization: Bearer` or `X-API-Key`. It is not shown again.
    #[api(name = "key")]
    pub secret: ShownOnce,
}

impl CreatedApiKey {
    /// Adds the key to a user within a transaction.
    ///
    /// # Errors
    /// `CONFLICT` when the user has [`MAX_KEYS`] keys or is not active any more.
    pub(super) async fn open(&self, tx: &mut Tx, user_id: UserId, entry: &NewEntry) -> Result<()> {
        let hash = TokenHash::of(self.secret.expose());
        if !tx.user_keys().insert(user_id, &self.key, &hash, MAX_KEYS).await? {
            return Err(Error::conflict(format!("a user may have at most {MAX_KEYS} API keys"))
                .with_hint("end one that is not used any more"));
        }
        tx.audit().add(entry).await
    }
}

impl Accounts<'_> {
    /// Creates an API key. `idempotency_key` is the caller's `Idempotency-Key`: the same key with the same input
    /// returns the first response, secret included.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every invalid field; `FORBIDDEN` for an API key, and unless the caller is a user;
    /// `CONFLICT` when the user has [`MAX_KEYS`], or the idempotency key was used for something else.
    pub async fn create_api_key(
        &self,
        actor: &Actor,
        new: NewApiKey,
        idempotency_key: Option<&str>,
    ) -> Result<CreatedApiKey> {
        let user_id = actor.in_person()?.user_id;
        let once = Idempotent::read(self.ctx, actor, "api_key.create", &new, idempotency_key)?;
        let created = self.fresh_api_key(new)?;
        let entry = self.ctx.audit(actor, Action::KeyCreated).target(created.key.id, &*created.key.name);
        let create = idempotency::write_once(&self.ctx.store, once, move |tx| {
            Box::pin(async move {
                created.open(tx, user_id, &entry).await?;
                Ok(created)
            })
        });
        create.await
    }

    /// Generates a key without storing it.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every invalid field.
    pub(super) fn fresh_api_key(self, new: NewApiKey) -> Result<CreatedApiKey> {
        let mut problems = Problems::default();
        new.check_bounds(&mut problems);
        problems.finish()?;
        let now = self.ctx.store.now();
        let secret = new_token(TokenKind::UserKey, &self.ctx.random);
        let key = ApiKey {
            id: self.ctx.ids.next(),
            name: new.name,
            last4: secret.last4(),
            created_at: now,
            expires_at: new.expires_in_days.map(|days| now + DAY * days),
            last_used_at: None,
        };
        Ok(CreatedApiKey { key, secret: secret.into() })
    }

    /// Lists the user's API keys, newest first, including expired ones. Cursors belong to the list
    /// [`Accounts::api_key_list`] names.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is a user.
    pub async fn api_keys(&self, actor: &Actor, page: &PageRequest) -> Result<Page<ApiKey>> {
        let user_id = actor.user()?.user_id;
        let rows = self.ctx.store.read().await?.user_keys().page(user_id, page).await?;
        Ok(Page::from_rows(&Self::api_key_list(actor), page, rows, |key| key.id.to_string()))
    }

    /// The name of an actor's list of API keys, for [`PageRequest::parse`].
    pub fn api_key_list(actor: &Actor) -> String {
        format!("api_keys:{}", actor.principal())
    }

    /// Deletes one of the user's API keys; a key may delete itself.
    ///
    /// # Errors
    /// `NOT_FOUND` when it is not one of theirs, `FORBIDDEN` unless the caller is a user.
    pub async fn delete_api_key(&self, actor: &Actor, id: KeyId) -> Result<()> {
        let user_id = actor.user()?.user_id;
        let revocation = self.ctx.revocation(Revoked::Key(id));
        let entry = self.ctx.audit(actor, Action::KeyDeleted);
        let end = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                let name = tx.user_keys().delete(user_id, id).await?;
                let name = name.ok_or_else(|| Error::not_found("API key"))?;
                tx.audit().add(&entry.target(id, name)).await?;
                tx.revocations().add(&revocation).await
            })
        });
        end.await?;
        self.ctx.notify_revoked(revocation.revoked);
        Ok(())
    }

    /// Authenticates an API key and returns its user as the actor. A malformed key costs no query. The use is
    /// recorded at most once a minute, after the response.
    ///
    /// # Errors
    /// `INVALID_TOKEN` unless the text is a valid key of an active user.
    pub async fn authenticate_api_key(&self, key: &str) -> Result<Actor> {
        let unknown = || Error::new(ErrorCode::InvalidToken, "the API key is unknown, expired or revoked");
        let hash = parse_token(TokenKind::UserKey, key).ok_or_else(unknown)?;
        let now = self.ctx.store.now();
        let holder = self.ctx.store.read().await?.user_keys().find_holder(&hash, now).await?;
        let holder = holder.ok_or_else(unknown)?;
        let due = now - NOTE_EVERY;
        if holder.last_used_at.is_none_or(|at| at <= due) {
            self.ctx.store.write_later(move |tx| {
                Box::pin(async move { tx.user_keys().touch(holder.key_id, now, due).await })
            });
        }
        Ok(Actor::User(UserActor {
            user_id: holder.user_id,
            role: holder.role,
            session_id: None,
            key_id: Some(holder.key_id),
        }))
    }
}
