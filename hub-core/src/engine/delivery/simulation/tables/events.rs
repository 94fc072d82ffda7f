//! Events for apps: their deliveries, and the outcomes of these.

use super::{Delivery, Stored, Tables};
use crate::{
    apps::AppRuntime,
    id::{AppEventId, DeliveryId},
    model::{app_event::AppEventState, sinks::SinkKey, trace::DeliveryState},
    secret::Sealed,
    store::{
        app_events::{DueEvent, QueuedEvent},
        deliveries::{EventJobRow, FinishedEvent},
        due::Reading,
        inbox::{Accept, AcceptMessage},
    },
    time::Timestamp,
};

/// An app on a bot.
#[derive(Debug)]
pub struct InstalledApp {
    pub runtime: AppRuntime,
    pub webhook_url: String,
    pub webhook_secret: Sealed,
}

impl Tables {
    pub(super) fn app_delivery(
        &self,
        queued: &QueuedEvent,
        batch: &Accept,
        message: &AcceptMessage,
    ) -> Delivery {
        let (event, app) = (&queued.event, &self.apps[&queued.event.installation_id]);
        let row = EventJobRow {
            id: queued.delivery.expect("its app has a webhook"),
            trace_id: event.trace_id,
            event_id: event.id,
            installation_id: event.installation_id,
            lane: queued.lane().into_owned(),
            state: DeliveryState::Pending,
            attempts: 0,
            due_at: batch.now,
            first_attempt_at: None,
        };
        let due = DueEvent {
            id: event.id,
            app_id: event.app_id,
            bot_id: event.bot_id,
            owner_id: app.runtime.app.owner_id,
            installation_id: event.installation_id,
            scopes: Some(app.runtime.app.scopes),
            kind: event.kind.clone(),
            trace_id: event.trace_id,
            peer: event.peer.clone(),
            event: event.event.clone(),
            state: AppEventState::Pending,
            attempts: 0,
            webhook_url: Some(app.webhook_url.clone()),
            webhook_secret: app.webhook_secret.clone(),
            created_at: event.now,
        };
        let stored = Stored::Event(Box::new(row), Box::new(due));
        Delivery::new(SinkKey::App(event.installation_id), batch, message, stored, queued.claim)
    }

    pub fn event(&self, id: AppEventId) -> Option<DueEvent> {
        self.deliveries.values().find_map(|delivery| match &delivery.stored {
            Stored::Event(_, event) if event.id == id => Some((**event).clone()),
            _ => None,
        })
    }

    /// The delivery of an event.
    pub fn delivery_of(&self, event: AppEventId) -> Option<DeliveryId> {
        let mut found = self.deliveries.iter();
        let found = found.find(|(_, one)| matches!(&one.stored, Stored::Event(_, due) if due.id == event));
        found.map(|(id, _)| *id)
    }

    /// Makes parked events due.
    pub fn hasten_events(&mut self, now: Timestamp) {
        let events = self.deliveries.values_mut().filter(|one| matches!(one.stored, Stored::Event(..)));
        for delivery in events.filter(|one| one.state == DeliveryState::Parked) {
            delivery.due_at = delivery.due_at.min(now);
        }
    }

    pub fn finish_event(&mut self, mut finished: FinishedEvent, now: Reading) {
        if let Some(step) = self.step_for(finished.stamp, now) {
            finished.follow(step);
        }
        let Some(delivery) = self.deliveries.get(&finished.id) else { return };
        if self.is_fenced(delivery.bot, finished.fence) {
            return;
        }
        let Some(delivery) = self.deliveries.get_mut(&finished.id) else { return };
        if delivery.is_over() || delivery.attempts != finished.attempts - 1 {
            return;
        }
        // What is over is kept here, for the check at the end.
        delivery.state = finished.state;
        delivery.claim = if finished.keep { finished.fence } else { 0 };
        delivery.attempts = finished.attempts;
        delivery.due_at = finished.due_at;
        delivery.first_attempt_at = Some(finished.first_attempt_at);
        if let (Stored::Event(_, event), Some(attempt)) = (&mut delivery.stored, &finished.attempt) {
            event.attempts += 1;
            event.state = attempt.state;
        }
        for reply in &finished.replies {
            self.enqueue(reply);
        }
    }
}
