//! Logins of programs: a program shows a QR code, which is a link to a page of the hub, where a signed-in user chooses
//! the channel.
//!
//! A login is stored once a user opens it; before that, its [`Code`] is all there is. The id of a login is a hash of the
//! text that the program polls with, so that a person who sees the code cannot collect the token. The token is derived
//! from the login and the client, so that a response that was lost can be repeated as long as the login is kept, and
//! cannot be repeated after that.

use std::time::Duration;

use futures_util::FutureExt;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    Gateway, Program,
    clients::idle_since,
    code::{self, Code},
    refusal,
};
use crate::{
    access::Actor,
    audit::Action,
    bots::{BotStatus, Bots, login_expired},
    channels::Channels,
    error::{Error, ErrorCode, Result},
    id::{ChannelId, IlinkClientId},
    model::session::ClientInfo,
    network::server::{Answer, Reply},
    secret::{Secret, TokenHash, TokenKind, token_of_bytes},
    store::{
        Tx,
        ilink::{IlinkClient, IlinkLoginRow, IlinkLoginStatus, OpenedLogin},
    },
    time::Timestamp,
};

/// Shortest time for which the token of a confirmed login can be collected.
const COLLECT: Duration = Duration::from_secs(60);
/// Logins that users have opened.
const MAX_LOGINS: u32 = 1_000;
/// Time for which a request for the status is held.
const HOLD: Duration = Duration::from_secs(25);
/// Interval of the reads of the store for a change.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A login of a program that waits for a user.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
#[api(example = {
    "address": "203.0.113.7",
    "expires_at": "2025-11-21T09:32:00.000Z",
    "requested_at": "2025-11-21T09:30:00.000Z",
    "user_agent": "agent-host/1.0",
})]
pub struct IlinkLogin {
    /// Network address of the program; empty if unknown.
    #[api(name = "address")]
    pub ip: String,
    /// Name of the program, at most 40 characters of its `User-Agent`; empty if it sent none.
    pub user_agent: String,
    /// When it began.
    pub requested_at: Timestamp,
    /// Until when it can be confirmed.
    pub expires_at: Timestamp,
}

impl Gateway<'_> {
    /// Begins a login of a program.
    pub(super) fn begin_login(self, client: &ClientInfo) -> Reply {
        let (sealer, now) = (&self.ctx.sealer, self.ctx.store.now());
        let (code, qrcode) = Code::new(sealer, &self.ctx.random, client, now);
        let mut url = self.ctx.config.address("/ilink/login");
        url.query_pairs_mut().append_pair("login", &code.link_id(sealer));
        Reply::json(&json!({"ret": 0, "qrcode": qrcode, "qrcode_img_content": url.as_str()}))
    }

    /// Waits until the status of a login changes, at most 25 seconds.
    pub(super) async fn login_status(&self, base: &str, qrcode: &str, stop: &CancellationToken) -> Answer {
        let Some((id, until)) = code::polled(&self.ctx.sealer, qrcode) else { return Ok(status("expired")) };
        let held_until = self.ctx.clock.instant() + HOLD;
        let mut first = None;
        loop {
            let row = self.find_login(&id).await.map_err(|error| refusal(&error))?;
            let is_scanned = match row.map(|row| (row.status, row.client_id)) {
                Some((IlinkLoginStatus::Confirmed, Some(client))) => {
                    return self.confirmed(base, &id, client).await.map_err(|error| refusal(&error));
                }
                Some((IlinkLoginStatus::Confirmed | IlinkLoginStatus::Rejected, _)) => {
                    return Ok(status("expired"));
                }
                _ if until <= self.ctx.store.now() => return Ok(status("expired")),
                Some((IlinkLoginStatus::Scanned, _)) => true,
                None => false,
            };
            // The program may not know yet that the code was opened: it gets that after one interval.
            let is_over = self.ctx.clock.instant() >= held_until || stop.is_cancelled();
            let is_told = is_scanned && first.is_some();
            if is_over || is_told || first.is_some_and(|first| first != is_scanned) {
                return Ok(status(if is_scanned { "scaned" } else { "wait" }));
            }
            first = Some(is_scanned);
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

    /// The login behind the id in a link, unless its time is over.
    fn code(self, link_id: &str) -> Result<Code> {
        let code = Code::of_link(&self.ctx.sealer, link_id);
        code.filter(|code| self.ctx.store.now() < code.expires_at()).ok_or_else(unknown)
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

    /// Opens a login as a signed-in user, and returns the program that requests it. The program sees that its code
    /// was opened.
    ///
    /// # Errors
    /// `NOT_FOUND` for a login that is unknown, over or confirmed; `FORBIDDEN` unless the caller is a user;
    /// `RATE_LIMITED` when 1,000 logins are open.
    pub async fn open_login(&self, actor: &Actor, link_id: &str) -> Result<IlinkLogin> {
        actor.scope()?;
        let code = self.code(link_id)?;
        let (expires_at, now) = (code.expires_at(), self.ctx.store.now());
        let open = self.ctx.store.write(move |tx| {
            async move {
                open(tx, &code, now).await?;
                Ok(code)
            }
            .boxed()
        });
        let Code { ip, user_agent, requested_at, .. } = open.await?;
        Ok(IlinkLogin { ip, user_agent, requested_at, expires_at })
    }

    /// Confirms a login for a channel: the program becomes a client of the channel, and receives what the channel
    /// receives from then on.
    ///
    /// # Errors
    /// As [`open_login`](Self::open_login); `NOT_FOUND` unless the channel is the actor's; `CONFLICT` when the channel or
    /// its iLink sink is switched off, or has as many clients as it admits, or when the bot needs a new login.
    pub async fn confirm_login(
        &self,
        actor: &Actor,
        link_id: &str,
        channel_id: ChannelId,
    ) -> Result<IlinkClient> {
        let bot_id = self.ctx.store.read().await?.channels().bot_of(actor.scope()?, channel_id).await?;
        let bot_id = bot_id.ok_or_else(|| Error::not_found("channel"))?;
        let channel = Channels::new(self.ctx).get(actor, bot_id, channel_id).await?;
        if !(channel.enabled && channel.ilink.enabled) {
            return Err(Error::conflict("the channel admits no iLink clients")
                .with_hint("switch on the channel and its iLink sink, then confirm again"));
        }
        if Bots::new(self.ctx).get(actor, bot_id).await?.status == BotStatus::Expired {
            // The program would be refused at its first call.
            return Err(login_expired());
        }
        let code = self.code(link_id)?;
        let (now, settings) = (self.ctx.store.now(), channel.ilink);
        let client: IlinkClientId = self.ctx.ids.next();
        let token = TokenHash::of(self.token(&code.id, client).expose());
        let noted = self.ctx.audit(actor, Action::IlinkClientAdded).target(client, &*channel.name);
        let confirm = self.ctx.store.write(move |tx| {
            async move {
                open(tx, &code, now).await?;
                tx.ilink().delete_idle(channel_id, idle_since(&settings, now)).await?;
                let there = tx.ilink().clients(channel_id).await?.len();
                if there >= settings.max_clients as usize {
                    let message = format!("the channel admits {} iLink clients", settings.max_clients);
                    return Err(Error::conflict(message).with_hint("log out another client of the channel"));
                }
                let described = (code.ip.as_str(), code.user_agent.as_str());
                tx.ilink().insert_client(client, channel_id, &token, described, now).await?;
                if !tx.ilink().confirm_login(&code.id, client, now, now + COLLECT).await? {
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
    /// As [`open_login`](Self::open_login).
    pub async fn reject_login(&self, actor: &Actor, link_id: &str) -> Result<()> {
        actor.scope()?;
        let (code, now) = (self.code(link_id)?, self.ctx.store.now());
        let reject = self.ctx.store.write(move |tx| {
            async move {
                open(tx, &code, now).await?;
                tx.ilink().reject_login(&code.id, now).await
            }
            .boxed()
        });
        if reject.await? { Ok(()) } else { Err(unknown()) }
    }
}

/// Notes that a user has opened a login; fails unless it is open.
async fn open(tx: &mut Tx, code: &Code, now: Timestamp) -> Result<()> {
    let login = OpenedLogin {
        id: &code.id,
        ip: &code.ip,
        user_agent: &code.user_agent,
        created_at: code.requested_at,
        expires_at: code.expires_at(),
    };
    match tx.ilink().open_login(&login, now, MAX_LOGINS).await? {
        Some(IlinkLoginStatus::Scanned) => Ok(()),
        Some(IlinkLoginStatus::Confirmed | IlinkLoginStatus::Rejected) => Err(unknown()),
        None => Err(Error::new(ErrorCode::RateLimited, "too many logins of programs are open")
            .with_retry_after(code::LIFETIME)),
    }
}

fn status(word: &str) -> Reply {
    Reply::json(&json!({"ret": 0, "status": word}))
}

fn unknown() -> Error {
    Error::not_found("login").with_hint("the code lives for 2 minutes: let the program show a new one")
}
