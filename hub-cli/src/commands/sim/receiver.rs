//! `sim receiver …`: the requests and the behaviour of the demo's receiver.

use hub_core::demo::Behaviour;
use serde_json::{Value, json};

use crate::{
    args::{ReceiverArgs, ReceiverCommand, SimTarget},
    document::{cell, cells},
    exit::Failure,
    printer::{List, Printer},
    sim_client::SimClient,
};

pub async fn run(command: ReceiverCommand, printer: &Printer) -> Result<(), Failure> {
    let (args, behaviour) = match command {
        ReceiverCommand::Show { target } => return show(&target, printer).await,
        ReceiverCommand::Answer(args) => (args, Behaviour::Answer),
        ReceiverCommand::Fail(args) => (args, Behaviour::Fail),
        ReceiverCommand::Slow(args) => (args, Behaviour::Hang),
        ReceiverCommand::Cut(args) => (args, Behaviour::Cut),
    };
    let ReceiverArgs { times, target } = args;
    let set = behave(&SimClient::new(&target.sim)?, behaviour, times).await?;
    let text = cell(&set, "mode");
    printer.one(set, &text)
}

/// Sets the behaviour of the receiver, for a number of requests or until the next change.
pub async fn behave(
    simulator: &SimClient,
    behaviour: Behaviour,
    times: Option<u32>,
) -> Result<Value, Failure> {
    simulator.post("/receiver/behaviour", &json!({ "mode": behaviour, "times": times })).await
}

async fn show(target: &SimTarget, printer: &Printer) -> Result<(), Failure> {
    let requests = SimClient::new(&target.sim)?.get("/receiver/requests").await?;
    let row = |request: &Value| {
        let verified = if request["verified"] == true { "verified" } else { "not verified" };
        let [at, attempt, behaviour, content] = cells(request, ["at", "attempt", "behaviour", "content"]);
        vec![at, attempt, verified.to_owned(), behaviour, content]
    };
    let columns = &["AT", "ATTEMPT", "SIGNATURE", "DID", "TEXT"];
    printer.list(List::of(requests, columns, row, "the receiver has no requests yet"))
}
