//! `sim reset`.

use serde_json::json;

use crate::{args::SimTarget, exit::Failure, printer::Printer, sim_client::SimClient};

pub async fn run(target: &SimTarget, printer: &Printer) -> Result<(), Failure> {
    SimClient::new(&target.sim)?.post("/_sim/reset", &json!({})).await?;
    printer.note("the simulator was reset; its bots need a new login");
    printer.one(json!({ "sim": target.sim }), target.sim.as_str())
}
