//! Requests that wait longer than a moment: they end with the credential they were made with, here or on another
//! node, within a second, and with the connection of their client.

use std::pin::pin;

use hub_core::{Hub, access::Actor, revocation::Revoked, secret::Secret};
use poem::{Request, http::Method};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::{ChannelClient, Presented, User, authenticate_presented, authenticate_user, in_process_caller};
use crate::{AppSettings, envelope::ApiError, serve::ClientGone};

impl User {
    /// Does something that may take a while, unless the credential of the request ends or its client disconnects
    /// meanwhile.
    ///
    /// # Errors
    /// Those of the work; `UNAUTHORIZED` or `INVALID_TOKEN` when the credential has ended; as
    /// [`ClientGone::while_connected`].
    pub(crate) async fn while_valid<T>(
        &self,
        hub: &Hub,
        settings: &AppSettings,
        request: &Request,
        work: impl Future<Output = hub_core::Result<T>>,
    ) -> Result<T, ApiError> {
        let presented = Presented::of(request.headers(), settings.is_https());
        let shown = RequestCredential::ByUser { settings, presented, request };
        ClientGone::of(request).while_connected(while_valid(hub, &self.0, shown, work)).await
    }
}

impl ChannelClient {
    pub(crate) async fn while_valid<T>(
        &self,
        hub: &Hub,
        request: &Request,
        work: impl Future<Output = hub_core::Result<T>>,
    ) -> Result<T, ApiError> {
        let key = Self::presented(request).explicit.unwrap_or_else(|| "".into());
        let work = while_valid(hub, &self.0, RequestCredential::ByChannel(key), work);
        ClientGone::of(request).while_connected(work).await
    }

    /// The key of a request: on GET also that of the query.
    pub(super) fn presented(request: &Request) -> Presented {
        let presented = Presented::of(request.headers(), true);
        if request.method() == Method::GET { presented.with_query(request.uri().query()) } else { presented }
    }
}

/// The credential of a request whose response outlives its handler.
#[derive(Debug)]
pub(crate) struct Held {
    hub: Hub,
    /// Of the caller; `None` for a program of the same process, whose credential does not end.
    presented: Option<Presented>,
    actor: Actor,
    revocations: Receiver<Revoked>,
    /// Whether it has to be checked. Survives a wait that is cancelled during the check.
    is_doubtful: bool,
}

impl Held {
    /// Begins to listen for the end of the credential of a request.
    pub(crate) fn begin(hub: &Hub, settings: &AppSettings, user: &User, request: &Request) -> Self {
        let is_remote = in_process_caller(request).is_none();
        let presented = is_remote.then(|| Presented::of(request.headers(), settings.is_https()));
        // It may have ended before this began to listen.
        let is_doubtful = true;
        Self { hub: hub.clone(), presented, actor: user.0, revocations: hub.revocations(), is_doubtful }
    }

    /// Returns when the credential has ended, cannot be checked, or its user has another role. May be cancelled.
    pub(crate) async fn ended(&mut self) {
        let Some(presented) = &self.presented else { return std::future::pending().await };
        loop {
            if self.is_doubtful {
                let found = authenticate_presented(&self.hub, presented).await;
                if found.ok().map(|(actor, _)| actor) != Some(self.actor) {
                    return;
                }
                self.is_doubtful = false;
            }
            match self.revocations.recv().await {
                Ok(revoked) => self.is_doubtful = revoked.concerns(&self.actor),
                Err(RecvError::Lagged(_)) => self.is_doubtful = true,
                Err(RecvError::Closed) => return,
            }
        }
    }
}

/// The credential of a request, to be looked at again.
enum RequestCredential<'r> {
    ByUser { settings: &'r AppSettings, presented: Presented, request: &'r Request },
    ByChannel(Secret),
}

impl RequestCredential<'_> {
    async fn check(&self, hub: &Hub) -> Result<(), ApiError> {
        match self {
            Self::ByUser { settings, presented, request } => {
                authenticate_user(hub, settings, presented, request).await?;
            }
            Self::ByChannel(key) => {
                hub.channels().authenticate_key(key.expose()).await?;
            }
        }
        Ok(())
    }
}

async fn while_valid<T>(
    hub: &Hub,
    actor: &Actor,
    shown: RequestCredential<'_>,
    work: impl Future<Output = hub_core::Result<T>>,
) -> Result<T, ApiError> {
    let mut revocations = hub.revocations();
    // What ended before this began to listen.
    shown.check(hub).await?;
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Ok(done?),
            received = revocations.recv() => match received {
                Ok(revoked) if !revoked.concerns(actor) => {}
                Err(RecvError::Closed) => return Ok(work.await?),
                Ok(_) | Err(RecvError::Lagged(_)) => shown.check(hub).await?,
            }
        }
    }
}
