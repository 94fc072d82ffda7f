//! `demo`: a hub, a chat network and a receiver in this process, one message through all of them.

use std::{sync::Arc, time::Duration};

use hub_core::{
    Hub,
    access::Actor,
    config::HubConfig,
    demo::{ADA, Demo, DemoReceiver, NAME, RECEIVER_HOST, RECEIVER_URL, Received, connector, seed},
    egress::EgressConfig,
    network::sim::{Outbound, SimConfig, Simulator},
    page::PageRequest,
    random::Random,
    store::StoreConfig,
    time::{Clock, Timestamp},
    traces::{Step, StepName, Trace, TraceQuery, TraceStatus},
};
use serde_json::{Value, json};

use super::waterfall;
use crate::{
    exit::{Exit, Failure},
    poll::within,
    printer::{Printer, Tone},
    screen::clean,
};

const STEP_TIMEOUT: Duration = Duration::from_secs(10);

const POLL_INTERVAL: Duration = Duration::from_millis(5);
const MESSAGE: &str = "order 42";

/// The parts of the demo. The folder is removed when this is dropped.
struct Stage {
    hub: Hub,
    simulator: Simulator,
    receiver: DemoReceiver,
    clock: Clock,
    _folder: tempfile::TempDir,
}

pub async fn run(printer: &Printer) -> Result<(), Failure> {
    let stage = Stage::open().await?;
    let outcome = stage.run().await;
    stage.hub.shutdown().await;
    let outcome = outcome?;
    printer.one(outcome.document(), &outcome.text(printer))?;
    printer
        .note("\nnext: start hub-server, then in a second terminal: hub-cli sim say \"order 43\" --as Ada");
    Ok(())
}

impl Stage {
    async fn open() -> Result<Self, Failure> {
        let folder = tempfile::tempdir().map_err(|error| {
            Failure::new(Exit::Failed, "UNAVAILABLE", format!("no temporary folder: {error}"))
        })?;
        let (clock, random) = (Clock::system(), Random::system());
        let simulator = Simulator::new(SimConfig::default(), clock.clone(), random.clone());
        let receiver = DemoReceiver::new(clock.clone());
        let mut egress = EgressConfig::default();
        egress.in_process.insert(RECEIVER_HOST.to_owned(), Arc::new(receiver.clone()));
        let mut config = HubConfig::default();
        // No one waits for the result of the pending long poll.
        config.poll_grace = Duration::ZERO;
        let hub = Hub::builder()
            .config(config)
            .store(StoreConfig::Sqlite(folder.path().join("hub.db")))
            .secret_key(random.bytes())
            .network(connector(&simulator, clock.clone(), random.clone())?)
            .egress(egress)
            .open()
            .await?;
        Ok(Self { hub, simulator, receiver, clock, _folder: folder })
    }

    async fn run(&self) -> Result<Outcome, Failure> {
        let begun = self.clock.now();
        self.hub.start().await?;
        let demo = seed(&self.hub, &self.simulator, &self.receiver).await?;
        let demo = demo.ok_or_else(|| missing("the demo's bot"))?;
        self.simulator.say(&demo.wx_id, Some(ADA), MESSAGE)?;
        let answers = self.simulator.wait_outbound(Some(&demo.wx_id), 0, STEP_TIMEOUT).await;
        let reply = answers.into_iter().next();
        let received = self.receiver.received().pop();
        let received = received.ok_or_else(|| missing("the webhook's request to the receiver"))?;
        let reply = reply.ok_or_else(|| missing("the reply in the chat"))?;
        let trace = self.trace(&demo).await?.ok_or_else(|| missing("the trace's last step"))?;
        if !received.verdict.verified {
            let what = format!("the receiver rejected the signature: {}", received.verdict.reason);
            return Err(Failure::new(Exit::Failed, "INTERNAL_ERROR", what));
        }
        Ok(Outcome { reply, received, trace, begun, ended: self.clock.now() })
    }

    /// The trace, once the reply is in it.
    async fn trace(&self, demo: &Demo) -> Result<Option<Trace>, Failure> {
        let query = TraceQuery { channel_id: Some(demo.channel_id), ..TraceQuery::default() };
        let page = PageRequest::parse(&query.list_name(demo.bot_id), Some(1), None)?;
        within(POLL_INTERVAL, STEP_TIMEOUT, async || {
            let newest = self.hub.traces().list(&Actor::Operator, demo.bot_id, &query, &page).await?;
            let Some(head) = newest.items.first() else { return Ok(None) };
            let trace = self.hub.traces().get(&Actor::Operator, demo.bot_id, head.trace_id).await?;
            let is_reply = |step: &Step| step.name == StepName::Reply && step.status == TraceStatus::Ok;
            let is_over = trace.status == TraceStatus::Ok && trace.steps.iter().any(is_reply);
            Ok(is_over.then_some(trace))
        })
        .await
    }
}

fn missing(what: &str) -> Failure {
    Failure::new(
        Exit::Failed,
        "INTERNAL_ERROR",
        format!("{what} did not arrive within {} s", STEP_TIMEOUT.as_secs()),
    )
}

/// The outcome of the demo.
struct Outcome {
    reply: Outbound,
    received: Received,
    trace: Trace,
    begun: Timestamp,
    ended: Timestamp,
}

impl Outcome {
    fn document(&self) -> Value {
        let elapsed = u64::try_from(self.ended.since(self.begun).as_millis()).unwrap_or(u64::MAX);
        json!({
            "said": MESSAGE,
            "reply": self.reply.text,
            "verified": self.received.verdict.verified,
            "receiver": self.received,
            "trace_id": self.trace.trace_id,
            "trace": self.trace,
            "elapsed_ms": elapsed,
        })
    }

    fn text(&self, printer: &Printer) -> String {
        let strong = |text: &str| printer.paint(text, Tone::Strong);
        let verdict = printer.paint("verified", Tone::Good);
        format!(
            "{}\n  Ada → {NAME}   {MESSAGE}\n  {NAME} → Ada   {}\n\n{}\n  POST {RECEIVER_URL}  attempt {}\n  \
             signature {verdict} ({})\n\n{}",
            strong("chat"),
            clean(&self.reply.text),
            strong("receiver"),
            clean(&self.received.attempt),
            self.received.verdict.reason,
            waterfall::draw(&self.trace, Clock::system().now(), printer),
        )
    }
}
