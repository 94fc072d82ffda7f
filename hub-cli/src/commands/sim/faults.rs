//! `sim outage` and `sim expire-session`: faults of a chat network.

use std::time::Duration;

use hub_core::time::Clock;
use serde_json::{Value, json};

use super::say::account;
use crate::{
    args::{SimBot, SimOutageArgs},
    document::cell,
    exit::Failure,
    printer::Printer,
    signals::stopped,
    sim_client::SimClient,
};

/// Maximum length of an outage.
const MAX_OUTAGE: Duration = Duration::from_secs(3_600);

pub async fn outage(args: SimOutageArgs, printer: &Printer) -> Result<(), Failure> {
    let simulator = SimClient::new(&args.target.sim)?;
    let wx_id = match &args.bot {
        Some(_) => {
            let bot = SimBot { bot: args.bot, target: args.target, local: args.local };
            Some(cell(&account(&simulator, &bot).await?, "wx_id"))
        }
        None => None,
    };
    cut_for(&simulator, args.time, wx_id.as_deref()).await?;
    let seconds = args.time.as_secs();
    printer.note("the network is reachable again");
    printer.one(json!({ "seconds": seconds, "wx_id": wx_id }), &seconds.to_string())
}

/// Rejects every request of a bot, or of all, for this time; the network is restored also after a signal.
///
/// # Errors
/// Errors of the simulator; a usage failure for more than an hour; the interruption.
pub async fn cut_for(simulator: &SimClient, time: Duration, wx_id: Option<&str>) -> Result<(), Failure> {
    if time > MAX_OUTAGE {
        return Err(Failure::usage("an outage can last at most an hour"));
    }
    let mut fault = json!({ "count": null, "action": { "type": "cut" } });
    if let Some(wx_id) = wx_id {
        fault["wx_id"] = wx_id.into();
    }
    let made = simulator.post("/_sim/faults", &fault).await?;
    let clock = Clock::system();
    let is_over = tokio::select! {
        () = clock.sleep(time) => true,
        () = stopped() => false,
    };
    for id in made["ids"].as_array().into_iter().flatten().filter_map(Value::as_u64) {
        simulator.delete(&format!("/_sim/faults?id={id}")).await?;
    }
    if is_over { Ok(()) } else { Err(Failure::interrupted()) }
}

pub async fn expire_session(bot: SimBot, printer: &Printer) -> Result<(), Failure> {
    let simulator = SimClient::new(&bot.target.sim)?;
    let account = account(&simulator, &bot).await?;
    expire(&simulator, &account).await?;
    let wx_id = cell(&account, "wx_id");
    printer.note(&format!("the login of {wx_id} has expired"));
    printer.one(json!({ "wx_id": wx_id }), &wx_id)
}

/// Expires the login of a bot.
pub async fn expire(simulator: &SimClient, account: &Value) -> Result<(), Failure> {
    simulator.post("/_sim/expire", &json!({ "wx_id": account["wx_id"] })).await.map(|_| ())
}
