//! The suites accept a correct implementation and report a faulty one: each fault of these wrappers breaks one
//! rule.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::*;
use crate::{
    ai::{Tool, ToolCall, ToolScope, Tools},
    demo::connector,
    id::Ids,
    network::{
        Batch, Connection, Credentials, LoginProgress, LoginPrompt, LoginState, LoginStep, Network,
        NetworkError, Outgoing, SendOutcome, TextFormat, WindowRules,
        sim::{SimConfig, Simulator},
    },
    random::Random,
    secret::Secret,
    time::Clock,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    Shouts,
    LosesTheMiddleOfTexts,
    OneCodeForAll,
    ConfirmsAnybody,
    OneKeyForAll,
    ForgetsTheCursor,
    Deaf,
    SendsTwice,
    ForgetsIds,
    PrintsTokens,
}

/// The connector, in front of the simulator, with a fault.
#[derive(Debug, Clone)]
struct Faulty {
    inner: Arc<dyn Network>,
    fault: Fault,
}

struct Line {
    inner: Arc<dyn Connection>,
    fault: Fault,
    token: Secret,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = if self.fault == Fault::PrintsTokens { self.token.expose() } else { "hidden" };
        f.debug_struct("Line").field("fault", &self.fault).field("token", &token).finish_non_exhaustive()
    }
}

#[async_trait]
impl Network for Faulty {
    fn name(&self) -> &str {
        if self.fault == Fault::Shouts { "SIM!" } else { self.inner.name() }
    }

    async fn begin_login(&self, known: &[Secret]) -> Result<LoginPrompt, NetworkError> {
        let prompt = self.inner.begin_login(known).await?;
        let qr_text = if self.fault == Fault::OneCodeForAll { "one".into() } else { prompt.qr_text };
        Ok(LoginPrompt { qr_text, ..prompt })
    }

    async fn login_step(
        &self,
        state: &LoginState,
        code: Option<&str>,
        wait: Duration,
    ) -> Result<LoginProgress, NetworkError> {
        if self.fault == Fault::ConfirmsAnybody {
            let step = LoginStep::Confirmed(Credentials::new("token", "account", "owner"));
            return Ok(LoginProgress { step, state: state.clone() });
        }
        self.inner.login_step(state, code, wait).await
    }

    fn connect(&self, credentials: &Credentials) -> Arc<dyn Connection> {
        let (inner, token) = (self.inner.connect(credentials), credentials.token.clone());
        Arc::new(Line { inner, fault: self.fault, token })
    }

    fn window_rules(&self) -> WindowRules {
        self.inner.window_rules()
    }

    fn split_text(&self, text: &str, format: TextFormat) -> Vec<String> {
        let mut parts = self.inner.split_text(text, format);
        if self.fault == Fault::LosesTheMiddleOfTexts && parts.len() > 2 {
            parts.remove(1);
        }
        parts
    }
}

#[async_trait]
impl Connection for Line {
    async fn start(&self) -> Result<(), NetworkError> {
        self.inner.start().await
    }

    async fn receive(&self, cursor: &str) -> Result<Batch, NetworkError> {
        let from = if self.fault == Fault::ForgetsTheCursor { "" } else { cursor };
        let mut batch = self.inner.receive(from).await?;
        match self.fault {
            Fault::OneKeyForAll => {
                batch.messages.iter_mut().for_each(|message| "one".clone_into(&mut message.dedupe_key));
            }
            Fault::Deaf => batch.messages.clear(),
            _ => {}
        }
        Ok(batch)
    }

    async fn send(&self, outgoing: &Outgoing) -> SendOutcome {
        if self.fault == Fault::SendsTwice {
            let again = Outgoing { client_id: "another".to_owned(), ..outgoing.clone() };
            self.inner.send(&again).await;
        }
        let outcome = self.inner.send(outgoing).await;
        if self.fault == Fault::ForgetsIds && matches!(outcome, SendOutcome::Sent { .. }) {
            return SendOutcome::Sent { network_id: String::new() };
        }
        outcome
    }

    async fn stop(&self) {
        self.inner.stop().await;
    }
}

/// The simulator's people, and the connector in front of it.
struct People {
    sim: Simulator,
    network: Faulty,
}

impl People {
    fn of(fault: Fault) -> Self {
        let hold = Duration::from_millis(50);
        let config = SimConfig { hold, qr_hold: hold, ..SimConfig::default() };
        let sim = Simulator::new(config, Clock::system(), Random::seeded(1));
        let inner = Arc::new(connector(&sim, Clock::system(), Random::seeded(2)).unwrap());
        Self { sim, network: Faulty { inner, fault } }
    }
}

#[async_trait]
impl NetworkHarness for People {
    fn network(&self) -> Arc<dyn Network> {
        Arc::new(self.network.clone())
    }

    async fn confirm(&self, qr_text: &Secret) {
        // A code that is no one's is what one of the faults shows.
        drop(self.sim.confirm(qr_text.expose(), None));
    }

    async fn say(&self, account: &Credentials, text: &str) {
        self.sim.say(&account.account_id, None, text).unwrap();
    }

    async fn heard(&self, account: &Credentials) -> Vec<String> {
        self.sim.outbound(Some(&account.account_id), 0).into_iter().map(|sent| sent.text).collect()
    }
}

#[tokio::test]
async fn the_connector_does_what_a_network_has_to_do() {
    assert_eq!(check_network(&People::of(Fault::Nothing)).await, Ok(()));
}

#[tokio::test]
async fn every_fault_of_a_network_is_named() {
    for (fault, rule) in [
        (Fault::Shouts, "a name has 1 to 32"),
        (Fault::LosesTheMiddleOfTexts, "keeps all of its letters"),
        (Fault::OneCodeForAll, "every login has a code of its own"),
        (Fault::ConfirmsAnybody, "a login that no one scanned is waiting"),
        (Fault::OneKeyForAll, "every message has a key of its own"),
        (Fault::ForgetsTheCursor, "behind a cursor comes what is new"),
        (Fault::Deaf, "what people write comes"),
        (Fault::SendsTwice, "what is sent is heard once"),
        (Fault::ForgetsIds, "is sent, under an id"),
        (Fault::PrintsTokens, "prints its token"),
    ] {
        let broken = check_network(&People::of(fault)).await.unwrap_err();
        assert!(broken.iter().any(|broken| broken.rule.contains(rule)), "{fault:?}: {broken:?}");
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolFault {
    Nothing,
    TwoOfOneName,
    OddName,
    NoSchema,
    AnswersAnything,
    SaysNothing,
}

#[derive(Debug)]
struct Adder(ToolFault);

#[async_trait]
impl Tools for Adder {
    async fn offered(&self, _: &ToolScope) -> crate::Result<Vec<Tool>> {
        let object = serde_json::json!({"type": "object"});
        let parameters = if self.0 == ToolFault::NoSchema { "x".into() } else { object };
        let name = if self.0 == ToolFault::OddName { "add up" } else { "add" };
        let tool = Tool::Function { name: name.to_owned(), description: "Adds.".to_owned(), parameters };
        Ok(vec![tool; if self.0 == ToolFault::TwoOfOneName { 2 } else { 1 }])
    }

    async fn call(&self, _: &ToolScope, call: &ToolCall) -> Result<String, String> {
        match self.0 {
            ToolFault::AnswersAnything => return Ok("3".to_owned()),
            ToolFault::SaysNothing => return Ok(String::new()),
            _ => {}
        }
        if !call.name.starts_with("add") {
            return Err("there is no such tool".to_owned());
        }
        let numbers: Vec<i64> = serde_json::from_str(&call.arguments).map_err(|error| error.to_string())?;
        Ok(numbers.iter().sum::<i64>().to_string())
    }
}

async fn checked(fault: ToolFault) -> Result<(), Vec<Broken>> {
    let ids = Ids::new(Clock::system(), Random::seeded(1));
    let scope = ToolScope {
        bot_id: ids.next(),
        channel_id: ids.next(),
        message_id: ids.next(),
        delivery_id: ids.next(),
        place: 0,
        trace_id: ids.next(),
        user_id: "ada".to_owned(),
        peer: "ada".to_owned(),
        session_id: String::new(),
    };
    let name = if fault == ToolFault::OddName { "add up" } else { "add" };
    let known = ToolCall {
        id: "1".to_owned(),
        name: name.to_owned(),
        arguments: "[1,2]".to_owned(),
        ..ToolCall::default()
    };
    check_tools(&Adder(fault), &scope, &known).await
}

#[tokio::test]
async fn every_fault_of_tools_is_named() {
    assert_eq!(checked(ToolFault::Nothing).await, Ok(()));
    for (fault, rule) in [
        (ToolFault::TwoOfOneName, "names are unique"),
        (ToolFault::OddName, "a name has 1 to 64"),
        (ToolFault::NoSchema, "a JSON schema of an object"),
        (ToolFault::AnswersAnything, "refused in words"),
        (ToolFault::SaysNothing, "an answer has 1 byte"),
    ] {
        let broken = checked(fault).await.unwrap_err();
        assert!(broken.iter().any(|broken| broken.rule.contains(rule)), "{fault:?}: {broken:?}");
    }
}
