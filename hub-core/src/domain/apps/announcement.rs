//! Notifies an app's server of an installation. Published apps get their token this way when a bot's owner installs
//! them directly.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, header};
use serde_json::{Value, json};

use super::{App, Apps, InstalledApp, everybody, secret_place, updated};
use crate::{access::Actor, egress::Call, error::Result, model::audit::Action, secret::Secret};

/// Timeout of the request.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest response, in bytes.
const MAX_ANSWER: usize = 16 * 1024;

impl Apps<'_> {
    /// Posts to the first registered redirect URI of an app what it needs to work on the bot. An app without a URL
    /// for events may return one. The installation is valid whatever the outcome: its owner was shown the token.
    pub(super) async fn announce(&self, actor: &Actor, app: &App, installed: &InstalledApp) {
        let Some(uri) = app.redirect_uris.first() else { return };
        match self.notify(app, installed, uri).await {
            Ok(Some(url)) if app.webhook_url.is_none() => {
                if let Err(error) = self.take_url(actor, app, url).await {
                    tracing::debug!(app = %app.id, %error, "the URL for events that the app named is not used");
                }
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(app = %app.id, %error, "the app could not be notified of its installation");
            }
        }
    }

    /// Notifies the app, and returns the webhook URL that its response names.
    async fn notify(&self, app: &App, installed: &InstalledApp, uri: &str) -> Result<Option<String>> {
        let url = self.ctx.egress.check_url(uri)?;
        let installation = &installed.installation;
        let body = json!({
            "installation_id": installation.id,
            "app_token": installed.app_token.expose(),
            "webhook_secret": self.webhook_secret(app).await?.expose(),
            "bot_id": installation.bot_id,
            "handle": installation.handle,
            "hub_url": self.ctx.config.public_url.as_str().trim_end_matches('/'),
        });
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        let body = Bytes::from(body.to_string());
        let call =
            Call { method: Method::POST, url, headers, body, deadline: CALL_TIMEOUT, max_answer: MAX_ANSWER };
        let answer = self.ctx.egress.send(call).await.map_err(crate::Error::internal)?;
        if !answer.status.is_success() {
            return Ok(None);
        }
        let json = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
        Ok(json["webhook_url"].as_str().filter(|url| !url.is_empty()).map(str::to_owned))
    }

    /// The secret with which an app's events are signed.
    pub(super) async fn webhook_secret(&self, app: &App) -> Result<Secret> {
        let secrets = self.ctx.store.read().await?.apps().secrets(app.id).await?;
        let secrets = secrets.ok_or_else(super::not_found)?;
        self.ctx.sealer.open(&secret_place(app.id), &secrets.webhook_secret)
    }

    /// Sets the app's webhook URL unless one is set, and verifies it.
    async fn take_url(&self, actor: &Actor, app: &App, url: String) -> Result<()> {
        self.ctx.egress.check_url(&url)?;
        let (id, entry) = (app.id, self.ctx.audit(actor, Action::AppUpdated));
        let write = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                let mut app = tx.apps().find_own(everybody()?, id).await?.ok_or_else(super::not_found)?;
                if app.webhook_url.is_none() {
                    app.webhook_url = Some(url);
                    tx.apps().update(&app).await?;
                    tx.audit().add(&updated(entry, &app)).await?;
                }
                Ok(app)
            })
        });
        self.challenge(&write.await?, None).await
    }
}
