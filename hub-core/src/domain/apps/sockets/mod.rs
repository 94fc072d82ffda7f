//! Events for apps over WebSockets: one for an installation, or one for all installations of an app.
//!
//! The store is the queue here too. A socket is a position in it: it pulls the next page when the previous one was
//! written, so that an app that does not read costs only its socket, and no other app waits for it. Commits signal
//! new events; without a signal, a poll once a second finds them.
//!
//! An event goes to the newest socket of its installation, on whichever node that is, else to the newest of its app;
//! further ones are on standby, and take over when that one closes. Events without a socket wait, in order, as long
//! as the schedule of webhooks ([`socket_wait`]). Webhooks are independent of this: an app with both receives events twice.
//!
//! Delivery is at least once. The dialect knows no acknowledgement, so an event that was written to the socket counts
//! as delivered; a hub that is killed between writing and noting that writes it again. An app that wants more
//! certainty requests it when it connects: then an event counts as delivered when the app names its id, and is sent
//! again on the next connection until then.
//!
//! | what | cap | at the cap |
//! |---|---|---|
//! | sockets | [`MAX_SOCKETS_PER_SCOPE`] per installation or app, and those of [`ConnectionSlots`](crate::node::ConnectionSlots) | `RATE_LIMITED` |
//! | a page | [`PAGE`] events, 256 KiB of text | the rest is the next page |
//! | events that a socket has and did not acknowledge | [`WINDOW`] | the rest waits in the store |
//! | waiting in the store | [`socket_wait`], and what is kept of events at all | the event has failed |

use super::{Apps, secret_place};
use crate::{
    access::Actor,
    error::{Error, ErrorCode, Result},
    id::{AppId, InstallationId, UserId},
    node::app_sockets::secret_mark,
    secret::{KeyMark, Sealed, TokenHash, TokenKind, parse_token},
};

mod listener;
#[cfg(test)]
mod tests;
mod watch;

pub use crate::{
    model::{app::SocketScope, app_event::socket_wait},
    node::app_sockets::{AppSocketState, AppSockets, MAX_SOCKETS_PER_SCOPE},
};
pub use listener::{AppListener, Ended, Given};
pub(crate) use watch::start;

/// Events of a page.
pub const PAGE: usize = 32;
/// Characters of a page's events, after which it takes no further one.
const PAGE_CHARS: i64 = 256 * 1024;
/// Events that an app which acknowledges may have at a time.
pub const WINDOW: usize = 64;

/// An app as a whole, authenticated by its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppHolder {
    /// The app.
    pub app_id: AppId,
    /// Its author.
    pub author_id: UserId,
    /// Mark of the secret it authenticated with; its sockets close when that secret is replaced.
    secret: KeyMark,
}

impl Apps<'_> {
    /// Authenticates an app by its id and webhook secret. Malformed secrets are rejected without a query.
    ///
    /// # Errors
    /// `INVALID_TOKEN` for an app that does not exist and for a wrong secret alike; `FORBIDDEN` when the app's author
    /// is disabled.
    pub async fn authenticate_app(&self, app_id: &str, secret: &str) -> Result<AppHolder> {
        let unknown = || Error::new(ErrorCode::InvalidToken, "the app is unknown, or its secret is another");
        let shown = parse_token(TokenKind::AppWebhook, secret).ok_or_else(unknown)?;
        let app_id: AppId = app_id.parse().map_err(|_| unknown())?;
        let rows = self.ctx.store.read().await?.app_sockets().apps(&[app_id]).await?;
        let row = rows.into_iter().next().ok_or_else(unknown)?;
        let known = self.ctx.sealer.open(&secret_place(app_id), &Sealed::from(row.credential.clone()))?;
        // Compares hashes: the time that this takes reveals nothing about the secrets.
        if TokenHash::of(known.expose()) != shown {
            return Err(unknown());
        }
        if !row.open {
            return Err(Error::new(ErrorCode::Forbidden, "the app's author is switched off"));
        }
        Ok(AppHolder { app_id, author_id: row.author_id, secret: secret_mark(&row.credential) })
    }

    /// An app on one of the bots that have it, as the app itself.
    ///
    /// # Errors
    /// `NOT_FOUND` for an installation of another app; `FORBIDDEN` for one that is switched off, or whose bot's owner is.
    pub async fn acting_on(&self, app: &AppHolder, installation_id: InstallationId) -> Result<Actor> {
        let mut read = self.ctx.store.read().await?;
        match read.installations().find_of_app(app.app_id, installation_id).await? {
            None => Err(Error::not_found("installation of this app")),
            Some((_, false)) => Err(Error::new(ErrorCode::Forbidden, "the app is switched off on this bot")),
            Some((actor, true)) => Ok(Actor::App(actor)),
        }
    }

    /// Opens a position in the events of an installation. With `acknowledges` an event counts as delivered when the
    /// app has named its id, otherwise when it was written.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an app; `RATE_LIMITED` when there are too many sockets; `INVALID_TOKEN` and
    /// `FORBIDDEN` when the token was revoked meanwhile; `UNAVAILABLE` when the store cannot be written.
    pub async fn listen(&self, actor: &Actor, acknowledges: bool) -> Result<AppListener> {
        let app = actor.app()?;
        let scope = SocketScope::Installation(app.installation_id);
        AppListener::attach(self.ctx, scope, app.token, (app.app_id, app.owner_id), acknowledges).await
    }

    /// Opens a position in the events of all installations of an app.
    ///
    /// # Errors
    /// As [`Apps::listen`].
    pub async fn listen_for_all(&self, app: &AppHolder, acknowledges: bool) -> Result<AppListener> {
        let scope = SocketScope::App(app.app_id);
        AppListener::attach(self.ctx, scope, app.secret, (app.app_id, app.author_id), acknowledges).await
    }
}
