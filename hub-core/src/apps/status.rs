//! Telling apps that their bot's connection stands otherwise: an event in the very transaction of the change.

use serde_json::json;

use super::{AppEventKind, AppScope, plain};
use crate::{
    bots::BotStatus,
    error::Result,
    id::{BotId, Ids},
    store::Tx,
    time::Timestamp,
};

/// How a bot stands before a change; `None` when it is not there.
pub(crate) async fn status_of(tx: &mut Tx, bot_id: BotId) -> Result<Option<BotStatus>> {
    Ok(tx.bots().find(None, bot_id).await?.map(|bot| bot.status))
}

/// Tells the apps on a bot that asked for it, and may read about the bot, how it stands after a change; nothing when it
/// stands as before. Another reason alone is no change. Says whether somebody is told.
pub(crate) async fn tell_status(
    tx: &mut Tx,
    ids: &Ids,
    bot_id: BotId,
    before: Option<BotStatus>,
    now: Timestamp,
) -> Result<bool> {
    let Some(bot) = tx.bots().find(None, bot_id).await?.filter(|bot| Some(bot.status) != before) else {
        return Ok(false);
    };
    let kind = AppEventKind::BotStatus;
    let apps = tx.installations().runtimes(bot_id).await?;
    let data = json!({ "bot_id": bot_id, "status": bot.status.as_str(),
        "previous": before.map(BotStatus::as_str), "reason": bot.status_reason });
    let events: Vec<_> = apps
        .iter()
        .filter(|app| app.events.contains(&kind) && app.app.scopes.has(AppScope::BotRead))
        .map(|app| {
            let of = (app.app.app_id, bot_id, app.app.installation_id);
            plain(of, kind, &data, ids, now, now)
        })
        .collect();
    if !events.is_empty() {
        tx.app_events().insert(&events.iter().collect::<Vec<_>>()).await?;
    }
    Ok(!events.is_empty())
}
