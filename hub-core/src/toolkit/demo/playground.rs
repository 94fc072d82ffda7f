//! The simulated network and the demo's receiver, as the users of a hub reach them: each for their own bots.

use super::{Behaviour, DemoReceiver, NETWORK, Received, person_id};
use crate::{
    access::Actor,
    error::{Error, ErrorCode, Result},
    hub::Hub,
    id::{BindId, BotId},
    network::sim::{Outbound, Simulator},
};

/// Longest text that a person writes, in characters.
pub const MAX_TEXT: usize = 4_000;
/// Messages of a bot that are shown; the newest.
pub const MAX_SHOWN: usize = 100;

/// The simulator and the receiver of this process.
#[derive(Debug, Clone)]
pub struct Playground {
    /// The simulator.
    pub simulator: Simulator,
    /// The receiver.
    pub receiver: DemoReceiver,
}

/// The receiver of the demo.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
#[api(name = "SimReceiver", example = {
    "mode": "answer",
    "requests": [{"at": "2026-11-21T09:30:00.000Z", "attempt": "1", "content": "order 42", "mode": "answer", "reason": "X-Signature, webhook-signature", "reply": "42 is on its way", "verified": true, "webhook_id": "msg_01K9ZC3V5T8QK4X7M2N6P0RSWA"}],
})]
pub struct ReceiverState {
    /// What it does with the next request.
    #[api(name = "mode")]
    pub behaviour: Behaviour,
    /// Number of requests after which it responds normally again.
    #[api(name = "times")]
    pub left: Option<u32>,
    /// The last 50 requests, oldest first.
    #[api(name = "requests")]
    pub received: Vec<Received>,
}

impl Playground {
    /// Writes to a bot as a person of the simulated network: the owner of its account, or another one by id or by name.
    /// Returns the id of the message on the network.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the bot is the caller's and on the simulated network, or when the simulator has forgotten its
    /// account; `INVALID_PARAMS` for a text that is empty or too long; `CONFLICT` when the inbox of the bot is full.
    pub async fn write(
        &self,
        hub: &Hub,
        actor: &Actor,
        bot_id: BotId,
        from: Option<&str>,
        text: &str,
    ) -> Result<String> {
        let wx_id = account(hub, actor, bot_id).await?;
        if text.is_empty() || !crate::text::is_within(text, MAX_TEXT) {
            return Err(Error::invalid("text", format!("must be 1 to {MAX_TEXT} characters")));
        }
        self.simulator.say(&wx_id, from.map(person_id).as_deref(), text).map_err(of_person)
    }

    /// Scans and confirms the code of a login, as the phone of a person does. The person is new unless `from` is
    /// the name or the id of one. The login continues with its next confirm.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the login is the caller's and on the simulated network; `CONFLICT` when it no longer waits for
    /// a scan, or the simulator is full.
    pub async fn scan(&self, hub: &Hub, actor: &Actor, bind: BindId, from: Option<&str>) -> Result<()> {
        let state = hub.bots().bind_state(actor, bind).await?;
        if state.network != NETWORK {
            return Err(Error::new(ErrorCode::NotFound, "the login is not on the simulated network"));
        }
        let code = state.qr_text.ok_or_else(|| Error::conflict("the login no longer waits for a scan"))?;
        self.simulator.confirm(code.expose(), from.map(person_id).as_deref()).map_err(of_person)?;
        Ok(())
    }

    /// Returns the messages that a bot sent on the simulated network, oldest first, at most the newest
    /// [`MAX_SHOWN`].
    ///
    /// # Errors
    /// `NOT_FOUND` unless the bot is the caller's and on the simulated network.
    pub async fn outbound(&self, hub: &Hub, actor: &Actor, bot_id: BotId) -> Result<Vec<Outbound>> {
        let wx_id = account(hub, actor, bot_id).await?;
        let mut sent = self.simulator.outbound(Some(&wx_id), 0);
        Ok(sent.split_off(sent.len().saturating_sub(MAX_SHOWN)))
    }

    /// The receiver of the demo.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the demo's bot is the caller's, or the caller is an administrator.
    pub async fn receiver(&self, hub: &Hub, actor: &Actor) -> Result<ReceiverState> {
        check_receiver(hub, actor).await?;
        let (behaviour, left) = self.receiver.behaviour();
        Ok(ReceiverState { behaviour, left, received: self.receiver.received() })
    }

    /// Makes the receiver behave otherwise, for a number of requests or until the next change.
    ///
    /// # Errors
    /// As [`receiver`](Self::receiver).
    pub async fn behave(
        &self,
        hub: &Hub,
        actor: &Actor,
        behaviour: Behaviour,
        times: Option<u32>,
    ) -> Result<ReceiverState> {
        check_receiver(hub, actor).await?;
        self.receiver.behave(behaviour, times);
        self.receiver(hub, actor).await
    }
}

/// An error of the simulator, with the caller's name of the field for a person.
fn of_person(error: Error) -> Error {
    let detail = error.details().iter().find(|detail| matches!(&*detail.field, "from_user_id" | "user_id"));
    match detail {
        Some(detail) => Error::invalid("from", detail.reason.clone()),
        None => error,
    }
}

/// The account of a bot on the simulated network.
async fn account(hub: &Hub, actor: &Actor, bot_id: BotId) -> Result<String> {
    let bot = hub.bots().get(actor, bot_id).await?;
    if bot.network != NETWORK {
        return Err(Error::new(ErrorCode::NotFound, "the bot is not on the simulated network"));
    }
    Ok(bot.wx_id)
}

async fn check_receiver(hub: &Hub, actor: &Actor) -> Result<()> {
    if actor.admin().is_ok() {
        return Ok(());
    }
    actor.user()?;
    let demo = hub.context().store.read().await?.demo().bot().await?;
    let demo = demo.ok_or_else(|| Error::not_found("receiver"))?;
    match hub.bots().get(actor, demo).await {
        Err(error) if error.code() == ErrorCode::NotFound => Err(Error::not_found("receiver")),
        other => other.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{testing::TestHub, time::Clock};

    #[tokio::test]
    async fn an_owner_writes_to_a_simulated_bot_and_sees_what_it_sent() {
        let hub = TestHub::start().await;
        let (_root, ada, eve) =
            (hub.register("root-1").await, hub.register("ada").await, hub.register("eve").await);
        let bot = hub.bind(&ada).await;
        let receiver = DemoReceiver::new(Clock::from(hub.clock().clone()));
        let playground = Playground { simulator: hub.sim().clone(), receiver };
        let write = async |actor, text| playground.write(hub.hub(), actor, bot.id, Some("ann"), text).await;
        write(&ada, "hello").await.unwrap();
        let filter = crate::bots::MessageFilter::default();
        let page = crate::page::PageRequest::default();
        let message = hub
            .until("the message", async || {
                hub.hub().bots().messages(&ada, bot.id, &filter, &page).await.unwrap().items.pop()
            })
            .await;
        assert_eq!((&*message.from_user_id, &*message.content), ("ann@im.wechat", "hello"));
        assert_eq!(write(&eve, "hello").await.unwrap_err().code(), ErrorCode::NotFound);
        assert_eq!(write(&ada, "").await.unwrap_err().details()[0].field, "text");
        let long = "x".repeat(2_000);
        let refused = playground.write(hub.hub(), &ada, bot.id, Some(&long), "hello").await.unwrap_err();
        assert_eq!(refused.details()[0].field, "from");

        let answer = crate::bots::NewSend {
            to_user_id: Some("ann@im.wechat".to_owned()),
            content: "hello, ann".to_owned(),
            ..crate::bots::NewSend::default()
        };
        hub.hub().bots().send(&ada, bot.id, answer, None).await.unwrap();
        hub.sent(&bot, 1).await;
        let sent = playground.outbound(hub.hub(), &ada, bot.id).await.unwrap();
        assert_eq!((sent.len(), &*sent[0].text, &*sent[0].to_user_id), (1, "hello, ann", "ann@im.wechat"));
        let refused = playground.outbound(hub.hub(), &eve, bot.id).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::NotFound);
    }

    #[tokio::test]
    async fn a_person_scans_the_code_of_an_own_login_once() {
        let hub = TestHub::start().await;
        let (_root, ada, eve) =
            (hub.register("root-1").await, hub.register("ada").await, hub.register("eve").await);
        let receiver = DemoReceiver::new(Clock::from(hub.clock().clone()));
        let playground = Playground { simulator: hub.sim().clone(), receiver };
        let bots = hub.hub().bots();
        let bind = bots.start_bind(&ada, crate::bots::NewBind::default()).await.unwrap().bind_id;
        let scan = async |actor| playground.scan(hub.hub(), actor, bind, Some("Cleo")).await;
        assert_eq!(scan(&eve).await.unwrap_err().code(), ErrorCode::NotFound);
        scan(&ada).await.unwrap();
        let before = bots.bind_state(&ada, bind).await.unwrap();
        assert_eq!(before.status, crate::bots::BindStatus::Waiting, "a look changes nothing");
        let step = bots.confirm_bind(&ada, bind, None, std::time::Duration::ZERO).await.unwrap();
        assert_eq!(step.status, crate::bots::BindStatus::Confirmed);
        assert_eq!(bots.bind_state(&ada, bind).await.unwrap().bot.unwrap().id, step.bot.unwrap().id);
        assert_eq!(scan(&ada).await.unwrap_err().code(), ErrorCode::Conflict);
        assert_eq!(bots.bind_state(&eve, bind).await.unwrap_err().code(), ErrorCode::NotFound);
    }

    #[tokio::test]
    async fn the_receiver_is_for_administrators_and_the_owner_of_the_demo() {
        let hub = TestHub::start().await;
        let (root, ada) = (hub.register("root-1").await, hub.register("ada").await);
        let receiver = DemoReceiver::new(Clock::from(hub.clock().clone()));
        let playground = Playground { simulator: hub.sim().clone(), receiver };
        let set = playground.behave(hub.hub(), &root, Behaviour::Fail, Some(2)).await.unwrap();
        assert_eq!((set.behaviour, set.left), (Behaviour::Fail, Some(2)));
        let refused = playground.behave(hub.hub(), &ada, Behaviour::Answer, None).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::NotFound);
        let shown = playground.receiver(hub.hub(), &root).await.unwrap();
        assert_eq!(shown, ReceiverState { behaviour: Behaviour::Fail, left: Some(2), received: Vec::new() });
    }
}
