//! Logins of programs: a program shows a QR code, which is a link to a page of the hub, where a signed-in user chooses
//! the channel.
//!
//! The id in the link is a hash of the text that the program polls with, so that a person who sees the code cannot
//! collect the token. The token is derived from the login and the client, so that a response that was lost can be
//! repeated as long as the login is kept, and cannot be repeated after that.

use std::time::Duration;

use data_encoding::HEXLOWER;
use futures_util::FutureExt;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Gateway, Program, clients::idle_since, refusal};
use crate::{
    access::Actor,
    audit::Action,
    channels::Channels,
    error::{Error, Result},
    id::{ChannelId, IlinkClientId},
    model::session::ClientInfo,
    network::server::{Answer, Reply},
    secret::{Secret, TokenHash, TokenKind, token_of_bytes},
    store::ilink::{IlinkClient, IlinkLoginRow, IlinkLoginStatus},
    time::Timestamp,
};

/// How long a code can be confirmed.
const LIFETIME: Duration = Duration::from_secs(2 * 60);
/// How long the token of a confirmed login can be collected.
const COLLECT: Duration = Duration::from_secs(60);
/// Logins in progress.
const MAX_LOGINS: u32 = 1_000;
/// How long a request for the status is held.
const HOLD: Duration = Duration::from_secs(25);
/// How often the store is read for a change.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A login as the user sees who is to confirm it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IlinkLogin {
    /// Network address of the program; empty if unknown.
    pub ip: String,
    /// What the program calls itself; may be empty.
    pub user_agent: String,
    /// When it began.
    pub requested_at: Timestamp,
    /// Until when it can be confirmed.
    pub expires_at: Timestamp,
}

impl Gateway<'_> {
    /// Begins a login of a program.
    pub(super) async fn begin_login(&self, client: &ClientInfo) -> Answer {
        let qrcode = HEXLOWER.encode(&self.ctx.random.bytes::<16>());
        let id = login_id(&qrcode);
        let mut url = self.ctx.config.address("/ilink/login");
        url.query_pairs_mut().append_pair("login", &id);
        let (client, now) = (client.cleaned(), self.ctx.store.now());
        let insert = self.ctx.store.write(move |tx| {
            async move { tx.ilink().insert_login(&id, &client, now, now + LIFETIME, MAX_LOGINS).await }
                .boxed()
        });
        if !insert.await.map_err(|error| refusal(&error))? {
            return Err(Reply::refuse(-1, "too many logins are in progress"));
        }
        Ok(Reply::json(&json!({"ret": 0, "qrcode": qrcode, "qrcode_img_content": url.as_str()})))
    }

    /// Waits until the status of a login changes, at most 25 seconds.
    pub(super) async fn login_status(&self, base: &str, qrcode: &str, stop: &CancellationToken) -> Answer {
        let id = login_id(qrcode);
        let until = self.ctx.clock.instant() + HOLD;
        let mut first = None;
        loop {
            let found = self.find_login(&id).await.map_err(|error| refusal(&error))?;
            let Some(row) = found else { return Ok(status("expired")) };
            if let (IlinkLoginStatus::Confirmed, Some(client)) = (row.status, row.client_id) {
                return self.confirmed(base, &id, client).await.map_err(|error| refusal(&error));
            }
            // The program may not know yet that the code was opened: it gets that after one interval.
            let is_over = self.ctx.clock.instant() >= until || stop.is_cancelled();
            let is_told = row.status == IlinkLoginStatus::Scanned && first.is_some();
            if is_over || is_told || first.is_some_and(|first| first != row.status) {
                return Ok(status(if row.status == IlinkLoginStatus::Scanned { "scaned" } else { "wait" }));
            }
            first = Some(row.status);
            tokio::select! {
                () = self.ctx.clock.sleep(POLL_INTERVAL) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    async fn find_login(&self, id: &str) -> Result<Option<IlinkLoginRow>> {
        let now = self.ctx.store.now();
        self.ctx.store.read().await?.ilink().login(id, now).await
    }

    async fn confirmed(&self, base: &str, id: &str, client: IlinkClientId) -> Result<Reply> {
        let found = self.ctx.store.read().await?.ilink().client(client).await?;
        let Some(program) = found.as_ref().map(Program::new) else { return Ok(status("expired")) };
        Ok(Reply::json(&json!({
            "ret": 0,
            "status": "confirmed",
            "bot_token": self.token(id, client).expose(),
            "ilink_bot_id": program.wx_id,
            "ilink_user_id": program.owner_user_id,
            "baseurl": base,
        })))
    }

    fn token(self, login: &str, client: IlinkClientId) -> Secret {
        let bytes = self.ctx.sealer.derive("token of an iLink client", &format!("{login}\n{client}"));
        token_of_bytes(TokenKind::IlinkClient, bytes)
    }

    /// Opens a login as a signed-in user: which program asks. The program sees that its code was opened.
    ///
    /// # Errors
    /// `NOT_FOUND` for a login that is unknown, over or confirmed; `FORBIDDEN` unless the caller is a user.
    pub async fn open_login(&self, actor: &Actor, id: &str) -> Result<IlinkLogin> {
        actor.scope()?;
        let row = self.find_login(id).await?.filter(|row| row.status != IlinkLoginStatus::Confirmed);
        let row = row.ok_or_else(unknown)?;
        if row.status == IlinkLoginStatus::Waiting {
            let (id, now) = (id.to_owned(), self.ctx.store.now());
            self.ctx
                .store
                .write(move |tx| async move { tx.ilink().open_login(&id, now).await }.boxed())
                .await?;
        }
        Ok(IlinkLogin {
            ip: row.ip,
            user_agent: row.user_agent,
            requested_at: row.created_at,
            expires_at: row.expires_at,
        })
    }

    /// Confirms a login for a channel: the program becomes a client of the channel, and receives what the channel
    /// receives from then on.
    ///
    /// # Errors
    /// `NOT_FOUND` for a login that is unknown, over or confirmed, and unless the channel is the actor's; `CONFLICT` when
    /// the channel or its iLink sink is switched off, or has as many clients as it admits.
    pub async fn confirm_login(&self, actor: &Actor, id: &str, channel_id: ChannelId) -> Result<IlinkClient> {
        let bot_id = self.ctx.store.read().await?.channels().bot_of(actor.scope()?, channel_id).await?;
        let bot_id = bot_id.ok_or_else(|| Error::not_found("channel"))?;
        let channel = Channels::new(self.ctx).get(actor, bot_id, channel_id).await?;
        if !(channel.enabled && channel.ilink.enabled) {
            return Err(Error::conflict("the channel admits no iLink clients")
                .with_hint("switch on the channel and its iLink sink, then confirm again"));
        }
        let login = self.find_login(id).await?.ok_or_else(unknown)?;
        let (now, settings) = (self.ctx.store.now(), channel.ilink);
        let client: IlinkClientId = self.ctx.ids.next();
        let token = TokenHash::of(self.token(id, client).expose());
        let noted = self.ctx.audit(actor, Action::IlinkClientAdded).target(client, &*channel.name);
        let (id, described) = (id.to_owned(), (login.ip.clone(), login.user_agent.clone()));
        let confirm = self.ctx.store.write(move |tx| {
            async move {
                tx.ilink().delete_idle(channel_id, idle_since(&settings, now)).await?;
                let there = tx.ilink().clients(channel_id).await?.len();
                if there >= settings.max_clients as usize {
                    let message = format!("the channel admits {} iLink clients", settings.max_clients);
                    return Err(Error::conflict(message).with_hint("log out another client of the channel"));
                }
                let described = (described.0.as_str(), described.1.as_str());
                tx.ilink().insert_client(client, channel_id, &token, described, now).await?;
                if !tx.ilink().confirm_login(&id, client, now, now + COLLECT).await? {
                    return Err(unknown());
                }
                tx.audit().add(&noted).await?;
                let clients = tx.ilink().clients(channel_id).await?;
                clients
                    .into_iter()
                    .find(|added| added.id == client)
                    .ok_or_else(|| Error::not_found("channel"))
            }
            .boxed()
        });
        confirm.await
    }

    /// Rejects a login: the program sees that its code has expired.
    ///
    /// # Errors
    /// `NOT_FOUND` for a login that is unknown, over or confirmed; `FORBIDDEN` unless the caller is a user.
    pub async fn reject_login(&self, actor: &Actor, id: &str) -> Result<()> {
        actor.scope()?;
        let (id, now) = (id.to_owned(), self.ctx.store.now());
        let refuse =
            self.ctx.store.write(move |tx| async move { tx.ilink().reject_login(&id, now).await }.boxed());
        if refuse.await? { Ok(()) } else { Err(unknown()) }
    }
}

/// The public id of the login that a program polls with this text.
fn login_id(qrcode: &str) -> String {
    TokenHash::of(&format!("ilink login {qrcode}")).as_str()[..32].to_owned()
}

fn status(word: &str) -> Reply {
    Reply::json(&json!({"ret": 0, "status": word}))
}

fn unknown() -> Error {
    Error::not_found("login").with_hint("the code lives for 2 minutes: let the program show a new one")
}
