//! Programs that are logged in to a channel: their tokens, and the list for their owner.

use std::time::Duration;

use sha2::{Digest, Sha256};

use super::Gateway;
use crate::{
    access::{Actor, ChannelActor},
    audit::Action,
    channels::Channels,
    error::{Error, Result},
    id::{BotId, ChannelId, IlinkClientId},
    model::{bot::BotStatus, channel::decode, revocation::Revoked, sinks::IlinkSettings, user::UserStatus},
    network::server::stamp,
    secret::{KeyMark, TokenKind, parse_token},
    store::ilink::{IlinkClient, IlinkClientRow},
    time::Timestamp,
};

/// Precision of the stored time of a client's last request.
const TOUCH_INTERVAL: Duration = Duration::from_secs(60);

/// A program that is logged in.
#[derive(Clone)]
pub struct Program {
    /// Actor of its requests.
    pub(super) client: ChannelActor,
    pub(super) id: IlinkClientId,
    /// Number in the channel's log up to which it acknowledged.
    pub(super) acked: i64,
    /// Number in the channel's log up to which messages were given to it.
    pub(super) given: i64,
    /// The bot's account on its network.
    pub(super) wx_id: String,
    /// The person to whom the account belongs.
    pub(super) owner_user_id: String,
    /// Whether the bot needs a new login: the network refuses each of its calls, and so does the gateway.
    pub(super) is_bot_expired: bool,
    /// Signs cursors, context tokens and the like for this program alone.
    pub(super) key: stamp::Key,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Program({})", self.id)
    }
}

impl Program {
    pub(super) fn new(row: &IlinkClientRow) -> Self {
        let key = KeyMark::of(row.token_hash.as_str());
        let (channel_id, bot_id, owner_id) = (row.channel_id, row.bot_id, row.owner_id);
        Self {
            client: ChannelActor { channel_id, bot_id, owner_id, key, ilink: Some(row.client.id) },
            id: row.client.id,
            acked: row.client.acked_seq,
            given: row.client.given_seq,
            wx_id: row.wx_id.clone(),
            owner_user_id: row.owner_user_id.clone(),
            is_bot_expired: row.bot_status == BotStatus::Expired,
            // Of the hash and not of the hub's key, which may be replaced while programs keep their cursors.
            key: Sha256::new()
                .chain_update("ilink client\n")
                .chain_update(row.token_hash.as_str())
                .finalize()
                .into(),
        }
    }
}

impl Gateway<'_> {
    /// The program with a token, if its login is valid.
    pub(super) async fn program_with(&self, token: &str) -> Result<Option<Program>> {
        let Some(hash) = parse_token(TokenKind::IlinkClient, token) else { return Ok(None) };
        let found = self.ctx.store.read().await?.ilink().client_with(&hash).await?;
        let now = self.ctx.store.now();
        let Some(row) = found.filter(|row| is_open(row, now)) else { return Ok(None) };
        if now.since(row.client.last_used_at) >= TOUCH_INTERVAL {
            let id = row.client.id;
            let touch =
                self.ctx.store.write(move |tx| Box::pin(async move { tx.ilink().touch(id, now).await }));
            touch.await?;
        }
        Ok(Some(Program::new(&row)))
    }

    /// The clients that are logged in to a channel, oldest first.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the channel is the actor's.
    pub async fn clients(&self, actor: &Actor, bot_id: BotId, id: ChannelId) -> Result<Vec<IlinkClient>> {
        Channels::new(self.ctx).get(actor, bot_id, id).await?;
        self.ctx.store.read().await?.ilink().clients(id).await
    }

    /// Logs a client out: its token ends, also in the middle of a poll.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the channel is the actor's and the client the channel's.
    pub async fn revoke(
        &self,
        actor: &Actor,
        bot_id: BotId,
        id: ChannelId,
        client: IlinkClientId,
    ) -> Result<()> {
        Channels::new(self.ctx).get(actor, bot_id, id).await?;
        let noted = self.ctx.audit(actor, Action::IlinkClientRevoked).target(client, "");
        let revocation = self.ctx.revocation(Revoked::IlinkClient(client));
        let delete = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                if !tx.ilink().delete_client(id, client).await? {
                    return Err(Error::not_found("client"));
                }
                tx.audit().add(&noted).await?;
                tx.revocations().add(&revocation).await
            })
        });
        delete.await?;
        self.ctx.notify_revoked(revocation.revoked);
        self.ctx.node.channel_listeners.refresh(id);
        Ok(())
    }
}

/// Whether a client may make requests.
pub(super) fn is_open(row: &IlinkClientRow, now: Timestamp) -> bool {
    let settings: IlinkSettings = decode(&row.ilink).unwrap_or_default();
    row.enabled
        && row.owner_status == UserStatus::Active
        && settings.enabled
        && idle_since(&settings, now) <= row.client.last_used_at
}

/// A client that made its last request before this time is logged out.
pub(super) fn idle_since(settings: &IlinkSettings, now: Timestamp) -> Timestamp {
    now - Duration::from_secs(u64::from(settings.idle_days) * 24 * 60 * 60)
}
