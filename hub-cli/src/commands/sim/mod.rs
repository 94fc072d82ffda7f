//! `sim …`: the simulated chat network, and the receiver next to it.

mod app;
mod faults;
mod receiver;
mod replies;
mod say;
mod script;
mod serve;

use hub_core::demo::person_id;
use serde_json::{Value, json};

use crate::{
    args::{SimBot, SimCommand, SimScanArgs, SimTarget},
    document::{cell, cells},
    exit::Failure,
    printer::{List, Printer},
    sim_client::SimClient,
};

pub async fn run(command: SimCommand, printer: &Printer) -> Result<(), Failure> {
    match command {
        SimCommand::Say(args) => say::run(args, printer).await,
        SimCommand::Script(args) => script::run(args, printer).await,
        SimCommand::Accounts { target } => accounts(&target, printer).await,
        SimCommand::Contacts(bot) => contacts(&bot, printer).await,
        SimCommand::Scan(args) => scan(args, printer).await,
        SimCommand::Outage(args) => faults::outage(args, printer).await,
        SimCommand::ExpireSession(bot) => faults::expire_session(bot, printer).await,
        SimCommand::Receiver(command) => receiver::run(command, printer).await,
        SimCommand::Serve { listen } => serve::run(listen, printer).await,
        SimCommand::App(args) => app::run(args, printer).await,
        SimCommand::Reset { target } => reset(&target, printer).await,
    }
}

async fn contacts(bot: &SimBot, printer: &Printer) -> Result<(), Failure> {
    let simulator = SimClient::new(&bot.target.sim)?;
    let wx_id = cell(&say::account(&simulator, bot).await?, "wx_id");
    let contacts = simulator.get(&format!("/_sim/contacts?wx_id={wx_id}")).await?;
    let row = |contact: &Value| {
        let [id, left, last] = cells(contact, ["user_id", "sends_left", "last_message_at"]);
        let owner = if contact["owner"] == true { "owner" } else { "" };
        vec![id, owner.to_owned(), left, last]
    };
    let columns = &["USER ID", "", "SENDS LEFT", "LAST MESSAGE"];
    printer.list(List::of(contacts, columns, row, "this bot has no contacts yet"))
}

async fn accounts(target: &SimTarget, printer: &Printer) -> Result<(), Failure> {
    let accounts = SimClient::new(&target.sim)?.get("/_sim/accounts").await?;
    let row = |account: &Value| {
        let state = match account {
            account if account["expired"] == true => "expired",
            account if account["started"] == true => "started",
            _ => "idle",
        };
        let [id, owner, pending] = cells(account, ["wx_id", "owner_user_id", "pending"]);
        vec![id, owner, state.to_owned(), pending]
    };
    let columns = &["NETWORK ID", "OWNER ID", "STATE", "PENDING"];
    printer.list(List::of(accounts, columns, row, "the simulator has no bots"))
}

/// Scans a code as a phone would.
async fn scan(args: SimScanArgs, printer: &Printer) -> Result<(), Failure> {
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

async fn reset(target: &SimTarget, printer: &Printer) -> Result<(), Failure> {
    SimClient::new(&target.sim)?.post("/_sim/reset", &json!({})).await?;
    printer.note("the simulator was reset; its bots need a new login");
    printer.one(json!({ "sim": target.sim }), target.sim.as_str())
}
