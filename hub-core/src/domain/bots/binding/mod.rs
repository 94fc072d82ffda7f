//! The bind flow: an account is logged in by scanning a code (`docs/ilink.md#login`).
//!
//! Nothing runs in the background: each confirm asks the network for the next step, and the row contains the status
//! of the login, so that any node can continue. Every change compares the row's revision; of two concurrent confirms
//! one decides, and the other returns that decision.

use std::time::Duration;

use crate::{
    access::Actor,
    bots::{Bot, Bots, MAX_NAME, credentials},
    error::{Error, ErrorCode, Problems, Result},
    id::{BindId, BotId, UserId},
    model::bot::{BindStatus, StoredBind},
    network::{LoginPrompt, NetworkError},
    qr,
    secret::Secret,
    time::Timestamp,
};

mod notes;
mod settle;
mod step;
#[cfg(test)]
mod tests;

use notes::Notes;

/// Lifetime of a login in progress.
const LIFETIME: Duration = Duration::from_secs(480);
/// Codes per login: the first and two refreshes.
const MAX_CODES: u32 = 3;
/// Longest wait of one confirm.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Maximum number of logins in progress per user; the oldest is dropped beyond that.
const MAX_OPEN: u32 = 10;
/// Time for which the status of an ended login stays available.
const RETENTION: Duration = Duration::from_secs(3600);
/// Maximum number of tokens sent to the network at the start.
const MAX_KNOWN: u32 = 10;
/// Network that is used when there are several and none is named.
const DEFAULT_NETWORK: &str = "ilink";

/// An account to bind.
#[derive(Debug, Clone, Default, hub_macros::Api)]
#[api(name = "StartBind", input, checked, example = { "name": "Shop" })]
pub struct NewBind {
    /// Chat network, for example `ilink` or `sim`; the default network if absent.
    #[api(length = 1..=64, pattern("^(ilink|sim)$", "ilink"))]
    pub network: Option<String>,
    /// Name of the bot. If absent, a new bot gets a generated name and a known one keeps its name.
    #[api(line = 1..=MAX_NAME)]
    pub name: Option<String>,
    /// The bot that is logged in again: another account is refused.
    #[api(skip)]
    pub for_bot: Option<BotId>,
}

/// A started bind.
#[derive(Debug, Clone, hub_macros::Api)]
#[api(name = "StartedBind")]
pub struct BindView {
    /// Id of the bind, for every confirm.
    pub bind_id: BindId,
    /// Text to show as a QR code.
    #[api(with(String, |text: &Secret| text.expose().to_owned()))]
    pub qr_text: Secret,
    /// The code as an SVG document.
    #[api(with(String, |svg: &Secret| svg.expose().to_owned()))]
    pub qr_svg: Secret,
    /// When the bind expires; a code that expires earlier is replaced.
    pub expires_at: Timestamp,
}

/// Status of a bind.
#[derive(Debug, Clone, hub_macros::Api)]
pub struct BindStep {
    /// Chat network of the account.
    pub network: String,
    /// The status.
    pub status: BindStatus,
    /// The current code, while it waits to be scanned.
    #[api(with(Option<String>, crate::openapi::exposed))]
    pub qr_text: Option<Secret>,
    /// The code as an SVG document, if it differs from the first one.
    #[api(with(Option<String>, crate::openapi::exposed))]
    pub qr_svg: Option<Secret>,
    /// Reason for the status, if known.
    #[api(cause)]
    pub reason: Option<String>,
    /// The bot, after a successful bind.
    pub bot: Option<Bot>,
}

impl Bots<'_> {
    /// Starts a login. A user may bind any account; a channel client only renews the login of its own bot.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on a bad name or an unknown network; `NOT_FOUND` when `for_bot` is not the actor's;
    /// `UPSTREAM_ERROR` when the network gives no code.
    pub async fn start_bind(&self, actor: &Actor, new: NewBind) -> Result<BindView> {
        let owner_id = starter(actor)?;
        let mut problems = Problems::default();
        new.check_bounds(&mut problems);
        problems.finish()?;
        let for_bot = for_bot(actor, new.for_bot)?;
        let network = self.network_of(owner_id, new.network, for_bot).await?;
        let (prompt, known) = self.new_code(owner_id, &network, for_bot).await?;
        let now = self.ctx.store.now();
        let id = self.ctx.ids.next();
        let notes = Notes::new(&prompt, known);
        let bind = StoredBind {
            id,
            owner_id,
            for_bot,
            network,
            name: new.name.map(|name| name.trim().to_owned()).unwrap_or_default(),
            status: BindStatus::Waiting,
            private: notes.seal(&self.ctx.sealer, id),
            codes_shown: 1,
            rev: 1,
            bot_id: None,
            expires_at: now + LIFETIME,
        };
        let expires_at = bind.expires_at;
        let qr_svg = Secret::new(qr::qr_svg(prompt.qr_text.expose())?);
        self.ctx
            .store
            .write(move |tx| {
                Box::pin(async move { tx.binds().insert(&bind, now, now - RETENTION, MAX_OPEN).await })
            })
            .await?;
        Ok(BindView { bind_id: id, qr_text: prompt.qr_text, qr_svg, expires_at })
    }

    /// Waits up to `wait` for the next change of a login and returns its status. `verify_code` is the number that the
    /// phone shows. After the end, the final status is returned again.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the actor started it; `INVALID_PARAMS` on an invalid number or a wait beyond 30 s;
    /// `UPSTREAM_ERROR` when the network did not return a required new code (the login continues).
    pub async fn confirm_bind(
        &self,
        actor: &Actor,
        id: BindId,
        verify_code: Option<&str>,
        wait: Duration,
    ) -> Result<BindStep> {
        starter(actor)?;
        let mut problems = Problems::default();
        let code = verify_code.map(str::trim);
        let is_code = |code: &str| (1..=16).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_digit());
        problems.check(code.is_none_or(is_code), "verify_code", "must be 1 to 16 digits");
        problems.check(wait <= MAX_WAIT, "wait_ms", "must be at most 30000");
        problems.finish()?;
        let bind = self.wait_for_change(actor, id, code, wait).await?;
        self.answer(&bind).await
    }

    /// Returns the stored status of a login, without a request to the network.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the actor started it.
    pub async fn bind_state(&self, actor: &Actor, id: BindId) -> Result<BindStep> {
        let bind = self.find_bind(actor, id).await?;
        self.answer(&bind).await
    }

    async fn answer(&self, bind: &StoredBind) -> Result<BindStep> {
        let notes = Notes::open(&self.ctx.sealer, bind)?;
        let waiting = bind.status == BindStatus::Waiting;
        let bot = match bind.bot_id {
            Some(id) => self.ctx.store.read().await?.bots().find(Some(bind.owner_id), id).await?,
            None => None,
        };
        Ok(BindStep {
            network: bind.network.clone(),
            status: bind.status,
            qr_svg: (waiting && bind.codes_shown > 1)
                .then(|| qr::qr_svg(notes.qr_text.expose()).map(Secret::new))
                .transpose()?,
            qr_text: waiting.then_some(notes.qr_text),
            reason: notes.reason,
            bot: bot.map(|bot| self.view(bot)),
        })
    }

    /// Returns a login of the actor. A channel client sees only those of its own bot.
    async fn find_bind(&self, actor: &Actor, id: BindId) -> Result<StoredBind> {
        let owner = starter(actor)?;
        let bind = self.ctx.store.read().await?.binds().find(owner, id).await?;
        let visible = bind.filter(|bind| match actor {
            Actor::Channel(channel) => bind.for_bot == Some(channel.bot_id),
            Actor::User(_) | Actor::App(_) | Actor::Operator => true,
        });
        visible.ok_or_else(|| Error::not_found("bind"))
    }

    async fn network_of(
        &self,
        owner: UserId,
        wanted: Option<String>,
        for_bot: Option<BotId>,
    ) -> Result<String> {
        let given = wanted.is_some();
        let mut name = wanted;
        if let Some(bot) = for_bot {
            let bot = self.ctx.store.read().await?.bots().find(Some(owner), bot).await?;
            let network = bot.ok_or_else(|| Error::not_found("bot"))?.network;
            if given && name.as_ref() != Some(&network) {
                return Err(Error::invalid("network", format!("must be that of the bot: {network}")));
            }
            name = Some(network);
        }
        let networks = &self.ctx.networks;
        let name = name.unwrap_or_else(|| match networks.keys().next() {
            Some(only) if networks.len() == 1 => only.clone(),
            _ => DEFAULT_NETWORK.to_owned(),
        });
        self.ctx.network(&name).map(|_| name)
    }

    /// Requests a new code. Returns it with the bots whose tokens were sent to the network.
    async fn new_code(
        &self,
        owner: UserId,
        network: &str,
        for_bot: Option<BotId>,
    ) -> Result<(LoginPrompt, Vec<BotId>)> {
        let mut read = self.ctx.store.read().await?;
        let logins = read.bots().logins_of(owner, network, for_bot, MAX_KNOWN).await?;
        drop(read);
        let (mut known, mut tokens) = (Vec::new(), Vec::new());
        for (bot, sealed) in logins {
            // A login that cannot be decrypted is left out, so that it can still be renewed.
            match credentials::open(&self.ctx.sealer, bot, &sealed) {
                Ok(login) => {
                    known.push(bot);
                    tokens.push(login.token);
                }
                Err(error) => tracing::warn!(%bot, %error, "stored credentials cannot be decrypted"),
            }
        }
        let prompt = self.ctx.network(network)?.begin_login(&tokens).await.map_err(upstream)?;
        Ok((prompt, known))
    }
}

/// Returns the hub user of a login.
fn starter(actor: &Actor) -> Result<UserId> {
    match actor {
        Actor::Channel(channel) => Ok(channel.owner_id),
        Actor::User(_) | Actor::App(_) | Actor::Operator => actor.user().map(|user| user.user_id),
    }
}

/// Returns the bot to which a login is restricted: any or none for a user, always its own for a channel client.
fn for_bot(actor: &Actor, wanted: Option<BotId>) -> Result<Option<BotId>> {
    match actor {
        Actor::Channel(channel) if wanted.is_none_or(|bot| bot == channel.bot_id) => Ok(Some(channel.bot_id)),
        Actor::Channel(_) => Err(Error::not_found("bot")),
        Actor::User(_) | Actor::App(_) | Actor::Operator => Ok(wanted),
    }
}

fn upstream(error: NetworkError) -> Error {
    let reported = Error::new(ErrorCode::UpstreamError, "the chat network returned no code to scan");
    let reported = match error {
        NetworkError::Throttled { retry_after: Some(after), .. } => reported.with_retry_after(after),
        _ => reported,
    };
    reported.with_source(error)
}
