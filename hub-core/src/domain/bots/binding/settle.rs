//! The end of a login: the credentials are stored before the user is notified (`docs/ilink.md#credentials`).

use serde_json::json;

use super::Notes;
use crate::{
    access::Actor,
    app_status::{notify_status, status_of},
    bots::{Bots, credentials},
    error::Result,
    id::{BotId, Ids},
    model::{
        audit::{Action, NewEntry},
        bot::{BindStatus, BotStatus, StoredBind},
        cause::Cause,
    },
    network::Credentials,
    secret::Sealer,
    store::{
        Tx,
        binds::BindChange,
        bots::{NewBot, NewLogin},
        fault::is_constraint,
    },
    time::Timestamp,
    wake::Hint,
};

/// Data of one attempt, moved into the write.
#[derive(Debug, Clone)]
struct Settlement {
    bind: StoredBind,
    credentials: Credentials,
    /// Id for a new bot, if one is created.
    new_id: BotId,
    max_bots: u32,
    sealer: Sealer,
    ids: Ids,
    now: Timestamp,
    /// Audit entry of a new bot.
    created: NewEntry,
    /// Audit entry of a bot that gets the new login.
    reused: NewEntry,
}

/// Decision about the account.
enum Decision {
    Create,
    Reuse(BotId),
    Refuse(String),
}

impl Bots<'_> {
    /// Assigns the login to the account's bot, or to a new one. Data of another hub user is never overwritten.
    pub(super) async fn settle(
        &self,
        actor: &Actor,
        bind: &StoredBind,
        credentials: Credentials,
    ) -> Result<()> {
        failpoint!("bind.settle");
        let settlement = Settlement {
            bind: bind.clone(),
            credentials,
            new_id: self.ctx.ids.next(),
            max_bots: self.ctx.config.max_bots_per_user,
            sealer: self.ctx.sealer.clone(),
            ids: self.ctx.ids.clone(),
            now: self.ctx.store.now(),
            created: self.ctx.audit(actor, Action::BotBound),
            reused: self.ctx.audit(actor, Action::BotLoggedIn),
        };
        let (again, new_id) = (settlement.clone(), settlement.new_id);
        let settled = self.ctx.store.write(move |tx| Box::pin(settlement.run(tx))).await;
        let settled = match settled {
            // Another node bound the same account meanwhile, which is visible now.
            Err(error) if is_constraint(&error) => {
                self.ctx.store.write(move |tx| Box::pin(again.run(tx))).await
            }
            other => other,
        };
        if let Some(bot) = settled? {
            // Notify before the hint, after which the bot may be online at once.
            self.notify_bot(bot, if bot == new_id { BotStatus::Pending } else { BotStatus::Connecting });
            self.ctx.node.wake.hint(Hint::Bot(bot));
        }
        Ok(())
    }

    /// Resumes the login of an account that is bound to a token sent to the network. The network does not report
    /// which of several tokens it is, so all inactive bots among them are resumed.
    pub(super) async fn resume(&self, actor: &Actor, bind: &StoredBind, known: Vec<BotId>) -> Result<()> {
        if known.is_empty() {
            return self.end(bind, BindStatus::Refused, &Cause::BoundElsewhere.to_string()).await;
        }
        let (id, rev, codes_shown) = (bind.id, bind.rev, bind.codes_shown);
        let (sealer, ids, now) = (self.ctx.sealer.clone(), self.ctx.ids.clone(), self.ctx.store.now());
        let entry = self.ctx.audit(actor, Action::BotLoggedIn).detail(json!({ "login": "former" }));
        let resumed = self
            .ctx
            .store
            .write(move |tx| {
                Box::pin(async move {
                    let mut resumed = Vec::new();
                    for bot in &known {
                        let before = status_of(tx, *bot).await?;
                        if tx.bots().resume(*bot, now).await? {
                            notify_status(tx, &ids, *bot, before, now).await?;
                            let entry = NewEntry { id: ids.next(), ..entry.clone() };
                            let name = tx.bots().find(None, *bot).await?.map(|bot| bot.name);
                            tx.audit().add(&entry.target(bot, name.unwrap_or_default())).await?;
                            resumed.push(*bot);
                        }
                    }
                    let bot_id = match (known.as_slice(), resumed.as_slice()) {
                        ([only], _) | (_, [only]) => Some(*only),
                        _ => None,
                    };
                    let reason =
                        bot_id.is_none().then(|| "the account is bound to one of your bots".to_owned());
                    let private = Notes::ended(reason).seal(&sealer, id);
                    let change =
                        BindChange { status: BindStatus::AlreadyBound, private, codes_shown, bot_id };
                    tx.binds().advance(id, rev, &change).await?;
                    Ok(resumed)
                })
            })
            .await?;
        for bot in resumed {
            self.notify_bot(bot, BotStatus::Connecting);
            self.ctx.node.wake.hint(Hint::Bot(bot));
        }
        Ok(())
    }
}

impl Settlement {
    /// Decides and writes in one transaction. Returns the bot that has a new login.
    async fn run(self, tx: &mut Tx) -> Result<Option<BotId>> {
        let decision = self.decide(tx).await?;
        let (status, bot_id, reason) = match decision {
            Decision::Create => (BindStatus::Confirmed, Some(self.new_id), None),
            Decision::Reuse(bot) => (BindStatus::Confirmed, Some(bot), None),
            Decision::Refuse(ref why) => (BindStatus::Refused, None, Some(why.clone())),
        };
        let private = Notes::ended(reason).seal(&self.sealer, self.bind.id);
        let change = BindChange { status, private, codes_shown: self.bind.codes_shown, bot_id };
        if !tx.binds().advance(self.bind.id, self.bind.rev, &change).await? {
            // Another confirm finished it with its own login.
            return Ok(None);
        }
        match decision {
            Decision::Create => self.create(tx).await?,
            Decision::Reuse(bot) => self.reuse(tx, bot).await?,
            Decision::Refuse(_) => {}
        }
        Ok(bot_id)
    }

    async fn decide(&self, tx: &mut Tx) -> Result<Decision> {
        let Credentials { account_id, owner_user_id, .. } = &self.credentials;
        let holders = tx.bots().holders(&self.bind.network, account_id, owner_user_id).await?;
        if holders.iter().any(|holder| holder.owner_id != self.bind.owner_id) {
            return Ok(Decision::Refuse("another user of this hub has bound this account".to_owned()));
        }
        if let Some(wanted) = self.bind.for_bot {
            return Ok(if holders.iter().any(|holder| holder.bot_id == wanted) {
                Decision::Reuse(wanted)
            } else {
                Decision::Refuse("this is another account than the bot's".to_owned())
            });
        }
        if let Some(holder) = holders.first() {
            return Ok(Decision::Reuse(holder.bot_id));
        }
        if tx.bots().count(self.bind.owner_id).await? >= self.max_bots {
            let limit = self.max_bots;
            return Ok(Decision::Refuse(format!(
                "you have {limit} bots, which is the limit; delete one first"
            )));
        }
        Ok(Decision::Create)
    }

    async fn create(&self, tx: &mut Tx) -> Result<()> {
        let name = if self.bind.name.is_empty() {
            let id = self.new_id.to_string();
            format!("{} {}", self.bind.network, id[id.len() - 6..].to_lowercase())
        } else {
            self.bind.name.clone()
        };
        let bot = NewBot {
            id: self.new_id,
            owner_id: self.bind.owner_id,
            name,
            network: self.bind.network.clone(),
            login: self.login(self.new_id),
        };
        tx.bots().insert(&bot, self.now).await?;
        let detail = json!({ "network": bot.network });
        tx.audit().add(&self.created.clone().target(bot.id, bot.name).detail(detail)).await
    }

    /// Replaces the login of a bot. The bot and its channels stay, and its sending windows are closed.
    async fn reuse(&self, tx: &mut Tx, bot: BotId) -> Result<()> {
        let before = status_of(tx, bot).await?;
        tx.bots().replace_login(bot, &self.login(bot), self.now).await?;
        notify_status(tx, &self.ids, bot, before, self.now).await?;
        tx.contacts().close_windows(bot, self.now).await?;
        if !self.bind.name.is_empty() {
            tx.bots().rename(bot, &self.bind.name).await?;
        }
        let name = tx.bots().find(None, bot).await?.map(|bot| bot.name).unwrap_or_default();
        let detail = json!({ "login": "new" });
        tx.audit().add(&self.reused.clone().target(bot, name).detail(detail)).await
    }

    fn login(&self, bot: BotId) -> NewLogin {
        NewLogin {
            wx_id: self.credentials.account_id.clone(),
            owner_user_id: self.credentials.owner_user_id.clone(),
            credentials: credentials::seal(&self.sealer, bot, &self.credentials),
        }
    }
}
