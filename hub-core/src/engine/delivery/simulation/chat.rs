//! The chat network of the simulation: it keeps what people wrote until a poll acknowledges it by its cursor, repeats
//! itself, fails, and takes sends without always saying so.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{tables::NETWORK, world::Shared};
use crate::{
    id::BotId,
    network::{
        Batch, Connection, Credentials, InboundMessage, LoginProgress, LoginPrompt, LoginState, Network,
        NetworkError, Outgoing, Quote, SendOutcome, WindowRules,
    },
    secret::Secret,
    time::Clock,
};

/// Time for which a poll without new messages is held.
const POLL_HOLD: Duration = Duration::from_secs(20);
/// Most messages of one response.
const MAX_BATCH: usize = 5;
/// Sending window: time after a person's message, and number of sends.
const WINDOW: WindowRules = WindowRules {
    age: Some(Duration::from_secs(23 * 3600 + 1800)),
    sends: Some(3),
    burst: None,
    gap: Duration::ZERO,
};

/// The network as one node sees it.
#[derive(Debug, Clone)]
pub struct Chat {
    pub world: Shared,
    pub clock: Clock,
}

#[derive(Clone)]
struct Account {
    chat: Chat,
    bot: BotId,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Account({})", self.bot)
    }
}

#[async_trait]
impl Network for Chat {
    fn name(&self) -> &'static str {
        NETWORK
    }

    async fn begin_login(&self, _known: &[Secret]) -> Result<LoginPrompt, NetworkError> {
        Err(NetworkError::Unreachable("no one logs in".to_owned()))
    }

    async fn login_step(
        &self,
        _state: &LoginState,
        _code: Option<&str>,
        _wait: Duration,
    ) -> Result<LoginProgress, NetworkError> {
        Err(NetworkError::Unreachable("no one logs in".to_owned()))
    }

    fn connect(&self, credentials: &Credentials) -> Arc<dyn Connection> {
        let bot = credentials.account_id.parse().expect("an account is named after its bot");
        Arc::new(Account { chat: self.clone(), bot })
    }

    fn window_rules(&self) -> WindowRules {
        WINDOW
    }
}

#[async_trait]
impl Connection for Account {
    async fn receive(&self, cursor: &str) -> Result<Batch, NetworkError> {
        let Chat { world, clock } = &self.chat;
        let cursor: usize = cursor.parse().unwrap_or(0);
        let (new_message, until) = {
            let mut world = world.lock();
            world.poll(self.bot, cursor);
            if world.faults.network && world.chance(6) {
                return Err(NetworkError::Unreachable("no answer".to_owned()));
            }
            (Arc::clone(&world.new_message), clock.instant() + POLL_HOLD)
        };
        loop {
            // Registered before the check, so that no message is missed.
            let written = new_message.notified();
            if let Some(batch) = self.answer(cursor) {
                return Ok(batch);
            }
            tokio::select! {
                biased;
                () = written => {}
                () = clock.sleep_until(until) => {
                    return Ok(Batch { answered: true, ..Batch::default() });
                }
            }
        }
    }

    async fn send(&self, outgoing: &Outgoing) -> SendOutcome {
        let Chat { world, clock } = &self.chat;
        let (taken, refused, delay) = {
            let mut world = world.lock();
            // Now and then so often that the hub takes the window for closed.
            let refused = world.faults.network && world.chance(4);
            let taken = !(refused || world.faults.network && world.chance(6));
            if taken {
                world.send(self.bot, outgoing);
            }
            (taken, refused, Duration::from_millis(world.below(400)))
        };
        clock.sleep(delay).await;
        let world = world.lock();
        if refused {
            return SendOutcome::Throttled { message: "rate limited".to_owned(), retry_after: None };
        }
        if !taken {
            return SendOutcome::NotSent("no connection".to_owned());
        }
        if world.faults.network && world.chance(8) {
            return SendOutcome::Unknown("no answer".to_owned());
        }
        SendOutcome::Sent { network_id: outgoing.client_id.clone() }
    }
}

impl Account {
    /// Messages after the cursor, sometimes from before it, sometimes twice.
    fn answer(&self, cursor: usize) -> Option<Batch> {
        let world = self.chat.world.lock();
        let count = world.messages[&self.bot].len();
        if cursor >= count {
            return None;
        }
        let mut from = cursor;
        if world.faults.repeats && world.chance(4) {
            from = cursor.saturating_sub(usize::try_from(world.below(4)).unwrap_or(0));
        }
        let to = (cursor + 1 + usize::try_from(world.below(MAX_BATCH as u64)).unwrap_or(0)).min(count);
        let mut messages: Vec<InboundMessage> =
            (from..to).map(|at| self.message(&world.messages[&self.bot][at])).collect();
        if world.faults.repeats && world.chance(6) {
            messages.push(messages[0].clone());
        }
        Some(Batch { messages, cursor: Some(to.to_string()), answered: true })
    }

    fn message(&self, written: &super::world::PeerMessage) -> InboundMessage {
        let mut message = InboundMessage::text(
            &written.text,
            &written.peer,
            &self.bot.to_string(),
            &written.text,
            written.at,
        );
        message.context_token = Some(Secret::new("token"));
        // So that the inbox reads a text from the store before it routes the message.
        message.quote = Some(Quote { network_id: Some("earlier".to_owned()), ..Quote::default() });
        message
    }
}
