//! Calls that may be repeated: the same `Idempotency-Key` with the same input gives the first answer again, with
//! another input a `CONFLICT`.
//!
//! An operation that may be repeated takes the key as its caller wrote it, and does its effect in
//! [`write_once`] instead of [`Store::write`]; effect and answer are in one commit, so a crash leaves both or
//! neither, and of two calls at the same time one does the effect and both get its answer:
//!
//! ```text
//! pub async fn create(&self, actor: &Actor, new: NewThing, key: Option<&str>) -> Result<Thing> {
//!     new.validate()?;
//!     let key = Idempotent::read(self.ctx, actor, "thing.create", &new, key)?;
//!     // Only when checks follow that depend on state: a repeated call must not trip over its own effect.
//!     if let Some(key) = &key && let Some(first) = key.first_answer(&mut self.ctx.store.read().await?).await? {
//!         return Ok(first);
//!     }
//!     let thing = Thing { id: self.ctx.ids.next(), name: new.name };
//!     idempotency::write_once(&self.ctx.store, key, move |tx| Box::pin(async move {
//!         tx.things().insert(&thing).await?;
//!         Ok(thing)
//!     })).await
//! }
//! ```

use std::fmt;

use data_encoding::HEXLOWER;
use futures_util::future::BoxFuture;
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use crate::{
    access::Actor,
    context::Context,
    error::{Error, Problems, Result},
    secret::{Sealed, Sealer, Secret},
    store::{Read, Store, Tx},
    text,
    time::Timestamp,
};

/// Longest key, in bytes.
pub const MAX_KEY: usize = 255;

/// One call that may be repeated: who calls, and hashes of their key and of what they want.
///
/// Answers are sealed at rest, because the answer of a create holds a secret that is shown once.
#[derive(Clone)]
pub struct Idempotent {
    principal: String,
    key: String,
    body_hash: String,
    now: Timestamp,
    expires_at: Timestamp,
    sealer: Sealer,
}

impl Idempotent {
    /// Reads a caller's key, if there is one. `operation` is the noun and verb, for example `channel.create`; `input` is
    /// everything that decides the effect, ids of the path included: `&(bot_id, &new)`. A [`Secret`] in it is
    /// given as its [`TokenHash`](crate::secret::TokenHash).
    ///
    /// # Errors
    /// `INVALID_PARAMS` on the field `Idempotency-Key` unless it is 1 to 255 visible ASCII characters.
    pub fn read(
        ctx: &Context,
        actor: &Actor,
        operation: &str,
        input: &impl Serialize,
        key: Option<&str>,
    ) -> Result<Option<Self>> {
        let Some(key) = key else { return Ok(None) };
        let mut problems = Problems::default();
        text::check_visible_ascii(&mut problems, "Idempotency-Key", key, MAX_KEY);
        problems.finish()?;
        let input = serde_json::to_vec(input).map_err(Error::internal)?;
        let mut hash = Sha256::new();
        hash.update(operation.as_bytes());
        hash.update([0]);
        hash.update(&input);
        // Only compared, and callers put into a key what they like: it is kept as its hash.
        let key = HEXLOWER.encode(&Sha256::digest(key));
        let now = ctx.store.now();
        Ok(Some(Self {
            principal: actor.principal(),
            key,
            body_hash: HEXLOWER.encode(&hash.finalize()),
            now,
            expires_at: now + ctx.config.idempotency_lifetime,
            sealer: ctx.sealer.clone(),
        }))
    }

    /// The answer of the first call, when there was one.
    ///
    /// # Errors
    /// `CONFLICT` when the first call wanted something else.
    pub async fn first_answer<T: DeserializeOwned>(&self, read: &mut Read) -> Result<Option<T>> {
        self.reopen(read.idempotency().find(&self.principal, &self.key, self.now).await?)
    }

    fn reopen<T: DeserializeOwned>(&self, found: Option<(String, String)>) -> Result<Option<T>> {
        let Some((body_hash, answer)) = found else { return Ok(None) };
        if body_hash != self.body_hash {
            return Err(Error::conflict("this Idempotency-Key was used for another request")
                .with_hint("use a fresh key for each request; repeat a key only to repeat its request"));
        }
        let answer = self.sealer.open(&self.place(), &Sealed::from(answer))?;
        serde_json::from_str(answer.expose()).map(Some).map_err(Error::internal)
    }

    fn seal<T: Serialize>(&self, answer: &T) -> Result<Sealed> {
        let text = serde_json::to_string(answer).map_err(Error::internal)?;
        Ok(self.sealer.seal(&self.place(), &Secret::new(text)))
    }

    fn place(&self) -> String {
        format!("idempotency:{}:{}", self.principal, self.key)
    }
}

impl fmt::Debug for Idempotent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotent")
            .field("principal", &self.principal)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// Runs a write once per key; without a key it is [`Store::write`]. A write that fails leaves the key free.
///
/// The answer is kept as JSON, sealed. A secret in it is a [`ShownOnce`](crate::secret::ShownOnce).
///
/// # Errors
/// Those of the write, and `CONFLICT` when the key was used for another input.
pub async fn write_once<T>(
    store: &Store,
    key: Option<Idempotent>,
    write: impl for<'a> FnOnce(&'a mut Tx) -> BoxFuture<'a, Result<T>> + Send + 'static,
) -> Result<T>
where
    T: Serialize + DeserializeOwned + Send + 'static,
{
    let Some(key) = key else { return store.write(write).await };
    store.write(move |tx| Box::pin(run_once(tx, key, write))).await
}

async fn run_once<T>(
    tx: &mut Tx,
    key: Idempotent,
    write: impl for<'a> FnOnce(&'a mut Tx) -> BoxFuture<'a, Result<T>> + Send,
) -> Result<T>
where
    T: Serialize + DeserializeOwned + Send,
{
    let Idempotent { principal, key: name, body_hash, now, expires_at, .. } = &key;
    if !tx.idempotency().claim(principal, name, body_hash, *now, *expires_at).await? {
        let first = tx.idempotency().find(principal, name, *now).await?;
        return key.reopen(first)?.ok_or_else(|| Error::internal("an idempotency key was taken and is gone"));
    }
    let answer = write(tx).await?;
    tx.idempotency().answer(principal, name, key.seal(&answer)?.as_str()).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
        time::Duration,
    };

    use serde::Deserialize;

    use super::*;
    use crate::{
        Hub, error::ErrorCode, random::Random, secret::ShownOnce, store::StoreConfig, time::ManualClock,
    };

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Made {
        n: u32,
        key: ShownOnce,
    }

    struct Calls {
        hub: Hub,
        clock: ManualClock,
        effects: Arc<AtomicU32>,
        folder: tempfile::TempDir,
    }

    impl Calls {
        async fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let clock = ManualClock::new(Timestamp::from_millis(1_790_000_000_000));
            let hub = Hub::builder()
                .store(StoreConfig::Sqlite(folder.path().join("hub.db")))
                .secret_key([7; 32])
                .random(Random::seeded(1))
                .clock(clock.clone())
                .open()
                .await
                .unwrap();
            Self { hub, clock, effects: Arc::default(), folder }
        }

        /// A call whose effect is to count up.
        async fn call(&self, key: &str, input: &str, fail: bool) -> Result<Made> {
            let ctx = self.hub.context();
            let key = Idempotent::read(ctx, &Actor::Operator, "thing.create", &input, Some(key))?;
            let effects = Arc::clone(&self.effects);
            write_once(&ctx.store, key, move |_tx| {
                Box::pin(async move {
                    let n = effects.fetch_add(1, Ordering::SeqCst) + 1;
                    if fail {
                        Err(Error::conflict("no"))
                    } else {
                        Ok(Made { n, key: Secret::new("s3cret-value").into() })
                    }
                })
            })
            .await
        }
    }

    #[tokio::test]
    async fn a_repeated_call_gets_the_first_answer_until_the_key_expires() {
        let calls = Calls::new().await;
        assert_eq!(calls.call("k", "a", false).await.unwrap().n, 1);
        assert_eq!(calls.call("k", "a", false).await.unwrap().n, 1);
        let ctx = calls.hub.context();
        let key = Idempotent::read(ctx, &Actor::Operator, "thing.create", &"a", Some("k"));
        let key = key.unwrap().unwrap();
        let first: Option<Made> = key.first_answer(&mut ctx.store.read().await.unwrap()).await.unwrap();
        assert_eq!(first, Some(Made { n: 1, key: Secret::new("s3cret-value").into() }));

        let other = calls.call("k", "b", false).await.unwrap_err();
        assert_eq!(other.code(), ErrorCode::Conflict);
        assert_eq!(calls.call("k2", "b", false).await.unwrap().n, 2);

        calls.clock.advance(Duration::from_hours(24));
        assert_eq!(calls.call("k", "b", false).await.unwrap().n, 3);
        assert_eq!(calls.effects.load(Ordering::SeqCst), 3);

        let now = ctx.store.now();
        let deleted = ctx
            .store
            .write(move |tx| Box::pin(async move { tx.idempotency().delete_expired(now, 10).await }))
            .await;
        assert_eq!(deleted.unwrap(), 1, "k2 has expired, k was renewed");
    }

    #[tokio::test]
    async fn calls_at_the_same_time_have_one_effect_and_one_answer() {
        let calls = Calls::new().await;
        let answers = futures_util::future::join_all((0..20).map(|_| calls.call("k", "a", false))).await;
        assert!(answers.into_iter().all(|answer| answer.unwrap().n == 1));
        assert_eq!(calls.effects.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_failed_call_leaves_the_key_free_and_secrets_are_sealed_at_rest() {
        let calls = Calls::new().await;
        assert!(calls.call("k", "a", true).await.is_err());
        assert_eq!(calls.call("k", "b", false).await.unwrap().n, 2);
        for entry in std::fs::read_dir(calls.folder.path()).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            assert!(!bytes.windows(12).any(|window| window == b"s3cret-value"));
        }
    }

    #[tokio::test]
    async fn keys_are_visible_ascii() {
        let calls = Calls::new().await;
        for bad in ["", "a b", "é", &"x".repeat(256)] {
            let error = calls.call(bad, "a", false).await.unwrap_err();
            assert_eq!(error.details()[0].field, "Idempotency-Key");
        }
        assert!(calls.call(&"x".repeat(255), "a", false).await.is_ok());
    }
}
