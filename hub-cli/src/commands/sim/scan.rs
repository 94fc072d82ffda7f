//! `sim scan`: scans a code as a phone would.

use hub_core::demo::person_id;
use serde_json::json;

use crate::{args::SimScanArgs, document::cell, exit::Failure, printer::Printer, sim_client::SimClient};

pub async fn run(args: SimScanArgs, printer: &Printer) -> Result<(), Failure> {
    let simulator = SimClient::new(&args.target.sim)?;
    simulator.post("/_sim/scan", &json!({ "qr_text": args.link })).await?;
    if args.no_confirm {
        return printer.one(json!({ "status": "scanned" }), "scanned");
    }
    let person = args.person.as_deref().map(person_id);
    let mut account =
        simulator.post("/_sim/confirm", &json!({ "qr_text": args.link, "user_id": person })).await?;
    account["status"] = "confirmed".into();
    let text = format!("{}\t{}", cell(&account, "wx_id"), cell(&account, "owner_user_id"));
    printer.one(account, &text)
}
