//! The people of the simulated network by the names one types.

use std::time::Duration;

use super::{ADA, BOB, Demo};
use crate::{
    access::Actor,
    error::{ErrorCode, Result},
    hub::Hub,
    network::sim::Simulator,
};

/// The id of a simulated person: `Ada` is `ada@im.wechat`; a name that looks like an id stays as it is.
pub fn person_id(name: &str) -> String {
    if name.contains('@') { name.to_owned() } else { format!("{}@im.wechat", name.trim().to_lowercase()) }
}

/// Sends the first messages of the demo's two people to its bot.
///
/// # Errors
/// `NOT_FOUND` when the simulator does not know the bot.
pub fn greet(simulator: &Simulator, demo: &Demo) -> Result<()> {
    for (person, text) in [(BOB, "hello"), (ADA, "order 42")] {
        simulator.say(&demo.wx_id, Some(person), text)?;
    }
    Ok(())
}

/// Gives the demo's two people their names as soon as the hub knows them, because the network reports none. Waits
/// for their first messages at most ten seconds.
///
/// # Errors
/// Errors of the store.
pub async fn name_contacts(hub: &Hub, demo: &Demo) -> Result<()> {
    let clock = &hub.context().clock;
    let until = clock.instant() + Duration::from_secs(10);
    for (id, name) in [(ADA, "Ada"), (BOB, "Bob")] {
        loop {
            match hub.bots().set_remark(&Actor::Operator, demo.bot_id, id, name).await {
                Err(error) if error.code() == ErrorCode::NotFound && clock.instant() < until => {}
                Err(error) if error.code() == ErrorCode::NotFound => break,
                named => {
                    named?;
                    break;
                }
            }
            clock.sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}
