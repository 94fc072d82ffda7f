//! Verification of an app's URL: the server there has to return a challenge.

use std::time::Duration;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use http::{HeaderMap, Method, StatusCode, header};
use serde_json::{Value, json};

use super::{App, Apps, CreatedApp, not_found};
use crate::{
    access::Actor,
    audit::origin,
    egress::Call,
    error::{Error, ErrorCode, Result},
    id::AppId,
    model::{
        app::SocketScope,
        audit::{Action, NewEntry},
    },
    wake::Hint,
};

/// Timeout of the challenge.
const CHALLENGE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest response, in bytes.
const MAX_ANSWER: usize = 16 * 1024;

impl Apps<'_> {
    /// Verifies an app's webhook URL again.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the app is the caller's, `FORBIDDEN` for another user's app that the caller can see,
    /// `CONFLICT` when it has no URL, `UPSTREAM_ERROR` with the reason when the challenge did not come back.
    pub async fn verify_url(&self, actor: &Actor, id: AppId) -> Result<App> {
        self.check_own(actor, id).await?;
        let app = self.ctx.store.read().await?.apps().find_own(actor.scope()?, id).await?;
        let app = app.ok_or_else(not_found)?;
        let detail =
            json!({ "webhook_origin": app.webhook_url.as_deref().and_then(origin), "verified": true });
        let entry = self.ctx.audit(actor, Action::AppUpdated).target(id, &*app.name).detail(detail);
        self.challenge(&app, Some(entry)).await?;
        Ok(App { webhook_verified: true, ..app })
    }

    /// Verifies the URL of an app that was just created. The result is in the response; the app need not listen yet.
    pub(super) async fn try_url(&self, created: CreatedApp) -> Result<CreatedApp> {
        if created.app.webhook_url.is_none() || created.app.webhook_verified {
            return Ok(created);
        }
        let webhook_verified = self.challenge(&created.app, None).await.is_ok();
        Ok(CreatedApp { app: App { webhook_verified, ..created.app }, ..created })
    }

    /// Sends a challenge and stores whether the URL returned it. Adds the audit entry only if it did.
    pub(super) async fn challenge(&self, app: &App, entry: Option<NewEntry>) -> Result<()> {
        let Some(url) = app.webhook_url.clone() else {
            return Err(Error::conflict("the app has no URL for events"));
        };
        let outcome = self.send_challenge(app.id, &url).await;
        let (id, verified, now) = (app.id, outcome.is_ok(), self.ctx.store.now());
        let noted = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                let same = tx.apps().set_verified(id, &url, verified).await?;
                if same && verified {
                    tx.app_events().hasten(SocketScope::App(id), now).await?;
                    if let Some(entry) = entry {
                        tx.audit().add(&entry).await?;
                    }
                }
                // From now on, bots that have the app send it events, or stop sending them.
                Ok((same, tx.apps().begin_change(id).await?))
            })
        });
        let (same, bots) = noted.await?;
        for bot_id in bots {
            self.ctx.node.wake.hint(Hint::Bot(bot_id));
            self.ctx.node.wake.hint(Hint::Delivery(bot_id));
        }
        self.ctx.node.wake.hint(Hint::AppEvents);
        if !same {
            return Err(Error::conflict("the app's URL was changed meanwhile"));
        }
        outcome
    }

    async fn send_challenge(&self, id: AppId, url: &str) -> Result<()> {
        let refused = |why: String| {
            Error::new(ErrorCode::UpstreamError, format!("the app's URL did not echo the challenge: {why}"))
        };
        let challenge = HEXLOWER.encode(&self.ctx.random.bytes::<16>());
        let body = json!({ "v": 1, "type": "url_verification", "challenge": challenge });
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        headers.insert("x-app-id", id.to_string().parse().map_err(Error::internal)?);
        let call = Call {
            method: Method::POST,
            url: self.ctx.egress.check_url(url)?,
            headers,
            body: Bytes::from(body.to_string()),
            deadline: CHALLENGE_TIMEOUT,
            max_answer: MAX_ANSWER,
        };
        let answer = self.ctx.egress.send(call).await.map_err(|error| refused(error.to_string()))?;
        if answer.status != StatusCode::OK {
            return Err(refused(format!("status {}", answer.status.as_u16())));
        }
        let answer: Value =
            serde_json::from_slice(&answer.body).map_err(|_| refused("no JSON".to_owned()))?;
        if answer["challenge"] == challenge { Ok(()) } else { Err(refused("another text".to_owned())) }
    }
}
