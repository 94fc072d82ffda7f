//! Deliveries of events to apps: the rows that the backlog scan loads, and their outcomes. A delivery to an app exists as
//! long as it is open; the event keeps what became of it.

use super::{
    super::{
        app_events::{AppEvents, EventAttempt},
        apps::Apps,
        due::{Due, Reading, Stamp, Step},
        outbox::{NewOutbound, Outbox},
        traces::{self, TraceUpdate},
    },
    Deliveries,
};
use crate::{
    error::Result,
    id::{AppEventId, AppId, BotId, DeliveryId, InstallationId, TraceId},
    model::{sinks::SinkKey, trace::DeliveryState},
    store::{conn::sql, due::LONGEST_WAIT},
    text::json,
    time::Timestamp,
};

/// The delivery of an event, as the backlog scan loads it. The event is read when it is sent.
#[derive(Debug, Clone, hub_macros::FromRow)]
#[row(table = "deliveries")]
pub struct EventJobRow {
    /// Id of the delivery.
    pub id: DeliveryId,
    /// The trace of the event's cause.
    pub trace_id: Option<TraceId>,
    /// The event to deliver.
    pub event_id: AppEventId,
    /// The installation that gets it.
    pub installation_id: InstallationId,
    /// Ordering key: deliveries to an installation with the same key keep their order.
    pub lane: String,
    /// State: `pending` or `parked`.
    pub state: DeliveryState,
    /// Attempts made, including those that ended without a request.
    pub attempts: i64,
    /// Time from which it may be attempted.
    pub due_at: Timestamp,
    /// Time of the first attempt.
    pub first_attempt_at: Option<Timestamp>,
}

/// The outcome of one attempt to deliver an event, to be stored together with everything that follows from it.
#[derive(Debug, Clone)]
pub struct FinishedEvent {
    /// Id of the delivery.
    pub id: DeliveryId,
    /// The lease under which it was attempted; nothing is stored when another node holds the bot.
    pub fence: i64,
    /// State after the attempt.
    pub state: DeliveryState,
    /// Attempts made, this one included.
    pub attempts: i64,
    /// Time of the next attempt.
    pub due_at: Timestamp,
    /// Time of the first attempt.
    pub first_attempt_at: Timestamp,
    /// Whether this node keeps it in memory.
    pub keep: bool,
    /// Error of the attempt.
    pub last_error: Option<String>,
    /// Time of the outcome, and the clock that determined its times.
    pub stamp: Stamp,
    /// Outcome for the log of events; `None` if the event still waits for a receiver.
    pub attempt: Option<EventAttempt>,
    /// Change of the trace, if the event has one.
    pub trace: Option<TraceUpdate>,
    /// Replies to the person of the event.
    pub replies: Vec<NewOutbound>,
    /// The app whose webhook asked for no further events, and the URL of that webhook.
    pub gone: Option<(AppId, String)>,
}

impl FinishedEvent {
    /// Moves its times along with a step of the clock by which they were determined.
    pub(crate) fn follow(&mut self, step: Step) {
        let follow = |at: &mut Timestamp| *at = step.moved(*at);
        follow(&mut self.due_at);
        follow(&mut self.first_attempt_at);
        follow(&mut self.stamp.read.wall);
        for reply in &mut self.replies {
            follow(&mut reply.now);
            follow(&mut reply.expires_at);
        }
    }

    fn is_over(&self) -> bool {
        !matches!(self.state, DeliveryState::Pending | DeliveryState::Parked)
    }
}

/// The statement of [`Deliveries::event_backlog`], with the list of the sinks in `$4`.
macro_rules! event_backlog {
    ($full:literal) => {
        concat!(
            "SELECT d.id, d.trace_id, d.event_id, e.installation_id, d.lane, d.state, d.attempts, d.due_at,
                d.first_attempt_at
             FROM deliveries d JOIN app_events e ON e.id = d.event_id
             WHERE d.bot_id = $1 AND d.claim <> $2 AND d.event_id IS NOT NULL AND (d.state = 'pending' OR d.due_at <= $3 OR d.due_at > $6)
                AND e.installation_id NOT IN (",
            $full,
            ") ORDER BY d.id LIMIT $5"
        )
    };
}

impl Deliveries<'_> {
    /// As [`Deliveries::backlog`], the open deliveries of events to apps.
    pub async fn event_backlog(
        &mut self,
        bot_id: BotId,
        fence: i64,
        full: &[SinkKey],
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<EventJobRow>> {
        sql!(self.0, all:
            event_backlog!("SELECT value FROM json_each($4)"),
            event_backlog!("SELECT json_array_elements_text($4::json)");
            bot_id, fence, now, json(full), i64::from(limit), now + LONGEST_WAIT
        )
    }

    /// Stores the outcome of an attempt to deliver an event, and what follows from it. Returns `false`, and stores
    /// nothing, if the delivery was attempted again meanwhile, has ended, or belongs to another node.
    pub async fn finish_event(&mut self, outcome: &FinishedEvent, now: Reading) -> Result<bool> {
        let mut outcome = outcome.clone();
        if !outcome.stamp.is_current(now)
            && let Some(noted) = Due(self.0.lend()).noted().await?
            && let Some(step) = noted.step_for(outcome.stamp, now)
        {
            outcome.follow(step);
        }
        if !self.advance_event(&outcome).await? {
            return Ok(false);
        }
        let at = outcome.stamp.read.wall;
        if let Some(attempt) = &outcome.attempt {
            AppEvents(self.0.lend()).settle(attempt, at).await?;
        }
        if let Some((app, url)) = &outcome.gone {
            let mut apps = Apps(self.0.lend());
            apps.set_verified(*app, url, false).await?;
            apps.begin_change(*app).await?;
        }
        if let Some(trace) = &outcome.trace {
            traces::update(&mut self.0, &[trace]).await?;
        }
        Outbox(self.0.lend()).enqueue(&outcome.replies).await?;
        Ok(true)
    }

    /// Stores the state of a delivery, or deletes it if it is over; `false` if it is not as the attempt found it.
    async fn advance_event(&mut self, outcome: &FinishedEvent) -> Result<bool> {
        let rows = if outcome.is_over() {
            sql!(self.0, execute:
                "DELETE FROM deliveries WHERE id = $1 AND attempts = $2 - 1
                AND (SELECT lease_fence FROM bots WHERE bots.id = deliveries.bot_id) = $3";
                outcome.id, outcome.attempts, outcome.fence
            )?
        } else {
            let claim = if outcome.keep { outcome.fence } else { 0 };
            sql!(self.0, execute:
                "UPDATE deliveries SET state = $4, attempts = $2, due_at = $5, first_attempt_at = $6, claim = $7,
                    last_error = $8
                WHERE id = $1 AND attempts = $2 - 1
                AND (SELECT lease_fence FROM bots WHERE bots.id = deliveries.bot_id) = $3";
                outcome.id, outcome.attempts, outcome.fence, outcome.state, outcome.due_at,
                outcome.first_attempt_at, claim, &outcome.last_error
            )?
        };
        Ok(rows > 0)
    }
}
