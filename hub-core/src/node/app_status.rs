//! Events for apps about the status of their bot, in the transaction of the change.

use serde_json::{Value, json};

use crate::{
    access::AppScope,
    error::Result,
    id::{AppEventId, AppId, BotId, Ids, InstallationId},
    model::{app_event::AppEventKind, bot::BotStatus, cause::Sentence as _},
    store::{
        Tx,
        app_events::{NewAppEvent, QueuedEvent},
    },
    time::Timestamp,
};

/// Status of a bot before a change; `None` if the bot does not exist.
pub(crate) async fn status_of(tx: &mut Tx, bot_id: BotId) -> Result<Option<BotStatus>> {
    Ok(tx.bots().find(None, bot_id).await?.map(|bot| bot.status))
}

/// Notifies the apps on a bot that subscribed to its status, and may read it, of a change; not if only the reason
/// changed. Returns whether there is an event.
pub(crate) async fn notify_status(
    tx: &mut Tx,
    ids: &Ids,
    bot_id: BotId,
    before: Option<BotStatus>,
    now: Timestamp,
) -> Result<bool> {
    let kind = AppEventKind::BotStatus;
    let mut apps = tx.installations().runtimes(bot_id).await?;
    apps.retain(|app| app.events.contains(&kind) && app.app.scopes.has(AppScope::BotRead));
    if apps.is_empty() {
        return Ok(false);
    }
    let Some(bot) = tx.bots().find(None, bot_id).await?.filter(|bot| Some(bot.status) != before) else {
        return Ok(false);
    };
    let data = json!({ "bot_id": bot_id, "status": bot.status.as_str(),
        "previous": before.map(BotStatus::as_str), "reason": bot.status_reason,
        "reason_cause": bot.status_reason.cause() });
    let events: Vec<_> = apps
        .iter()
        .map(|app| {
            let of = (app.app.app_id, bot_id, app.app.installation_id);
            new_event(of, "", app.has_webhook, kind, &data, ids, now, now)
        })
        .collect();
    tx.app_events().insert(&events.iter().collect::<Vec<_>>()).await?;
    Ok(true)
}

/// Creates an event about a person, or about none if `peer` is empty.
#[expect(clippy::too_many_arguments, reason = "the parts of an event, named once")]
pub(crate) fn new_event(
    (app_id, bot_id, installation_id): (AppId, BotId, InstallationId),
    peer: &str,
    has_webhook: bool,
    kind: AppEventKind,
    data: &Value,
    ids: &Ids,
    at: Timestamp,
    now: Timestamp,
) -> QueuedEvent {
    let id: AppEventId = ids.next();
    let event = json!({ "type": kind.as_str(), "id": id, "timestamp": at.as_seconds(), "data": data });
    let event = NewAppEvent {
        id,
        app_id,
        bot_id,
        installation_id,
        message_id: None,
        trace_id: None,
        kind: kind.as_str().to_owned(),
        peer: peer.to_owned(),
        event: event.to_string(),
        now,
    };
    QueuedEvent::new(event, has_webhook.then(|| ids.next()))
}
