//! Deliveries: the backlog, claims, outcomes (`Store::finish`) and replays.

use std::{cell::Cell, sync::Arc, time::Duration};

use hub_core::{
    ErrorCode,
    channels::sinks::{SinkId, SinkKey},
    id::{DeliveryId, TraceId},
    store::{
        deliveries::{DeliveryState, Finished, HealthReport, JobRow, Replay, SinkHealth},
        traces::TraceUpdate,
    },
    traces::TraceStatus,
};

use super::scene::{
    Stage, accept_one, add_channel, batch, just_before, message, outbound, stage, stamp, step_reasons, taken,
    trace, update, with_ai,
};
use crate::support::database::{Db, START};

contract!("deliveries": {
    the_backlog_lists_unclaimed_deliveries_oldest_first => [backlog, claim],
    claims_of_an_unheard_commit_are_returned => [disclaim, claim],
    parked_deliveries_come_back_when_they_are_due => [backlog],
    an_outcome_is_state_trace_and_replies_at_once => [find_by_trace, of_trace],
    an_outcome_under_an_old_fence_leaves_no_mark => [],
    an_outcome_that_comes_again_counts_once => [claim],
    a_second_run_adds_no_reply => [],
    two_outcomes_of_one_trace_in_one_commit_are_both_kept => [],
    a_trace_ends_with_its_last_sink_and_has_the_worst_outcome => [find_by_trace],
    a_webhook_that_fails_for_days_is_switched_off => [],
    a_delivery_that_cannot_be_concluded_is_abandoned_by_its_holder => [abandon],
    a_parked_delivery_is_attempted_at_once => [attempt_parked],
    a_replay_has_a_lane_and_a_trace_of_its_own => [insert_replay, backlog, find_by_trace],
});

pub const ON_STORE: super::Covered = ("mod", &[&["finish"]]);

const MINUTE: Duration = Duration::from_secs(60);

async fn backlog(db: &Db, on: &Stage, fence: i64, full: &[SinkKey], after: Duration) -> Vec<JobRow> {
    let mut read = db.store.read().await.unwrap();
    let rows = read.deliveries().backlog(on.bot, fence, full, START + after, 100).await.unwrap();
    rows.into_iter().map(Result::unwrap).collect()
}

fn ids(rows: &[JobRow]) -> Vec<DeliveryId> {
    rows.iter().map(|row| row.id).collect()
}

/// The outcome of a first attempt.
pub fn finished(on: &Stage, id: DeliveryId, trace: TraceId, state: DeliveryState) -> Finished {
    Finished {
        id,
        channel: on.channel,
        fence: on.lease.fence,
        state,
        attempts: 1,
        due_at: START + MINUTE,
        first_attempt_at: START,
        keep: false,
        last_error: (state != DeliveryState::Done).then(|| "500".to_owned()),
        stamp: stamp(),
        is_followed: false,
        trace: update(trace, "request"),
        replies: Vec::new(),
        send_at_once: None,
        health: None,
        usage: None,
    }
}

async fn find(db: &Db, trace: TraceId) -> Vec<(DeliveryState, i64, Option<String>)> {
    db.store.read().await.unwrap().deliveries().find_by_trace(trace).await.unwrap()
}

async fn state(db: &Db, trace: TraceId) -> (DeliveryState, i64, Option<String>) {
    find(db, trace).await.remove(0)
}

/// Numbers of successful deliveries, in the order of the channels' ids.
async fn successes(db: &Db) -> Vec<String> {
    db.texts("SELECT CAST(count AS TEXT) FROM successes ORDER BY channel_id").await
}

async fn the_backlog_lists_unclaimed_deliveries_oldest_first(db: &Db) {
    let on = stage(db).await;
    let (message, first, _) = accept_one(db, &on, "ann", "1", 0).await;
    let (_, second, _) = accept_one(db, &on, "bob", "2", 0).await;
    accept_one(db, &on, "ann", "held", on.lease.fence).await;
    let fence = on.lease.fence;
    let rows = backlog(db, &on, fence, &[], Duration::ZERO).await;
    assert_eq!(ids(&rows), [first, second]);
    let row = &rows[0];
    assert_eq!((row.lane.as_str(), row.seq, row.state.as_str(), row.attempts), ("ann", 1, "pending", 0));
    assert_eq!(row.channel_id, on.channel);
    assert_eq!(row.message.message_id, message);
    assert_eq!((row.message.content.as_str(), row.message.peer.as_str()), ("1", "ann"));
    assert_eq!(row.message.sent_at, START);
    assert_eq!(
        (row.first_attempt_at, row.target_url.as_deref(), row.channel_content.as_deref()),
        (None, None, None)
    );
    let key = SinkKey::Channel;
    let full = [key(on.channel, SinkId::Webhook)];
    assert!(backlog(db, &on, fence, &full, Duration::ZERO).await.is_empty(), "its memory is used up");
    let other = add_channel(db, on.bot, "other").await;
    let full = [key(other, SinkId::Webhook), key(on.channel, SinkId::Ai)];
    assert_eq!(
        backlog(db, &on, fence, &full, Duration::ZERO).await.len(),
        2,
        "others' memory does not matter"
    );
    let slept = commit!(db, |tx| tx.deliveries().claim(&[first], fence - 1).await).unwrap();
    assert!(slept.is_empty(), "an old lease claims nothing");
    assert_eq!(backlog(db, &on, fence, &[], Duration::ZERO).await.len(), 2);
    let gone = db.ids.next();
    let claimed = commit!(db, |tx| tx.deliveries().claim(&[first, gone], fence).await).unwrap();
    assert_eq!(claimed, [first].into(), "what is gone is no one's");
    assert_eq!(ids(&backlog(db, &on, fence, &[], Duration::ZERO).await), [second]);
    assert_eq!(
        backlog(db, &on, fence + 1, &[], Duration::ZERO).await.len(),
        3,
        "a new holder finds everything"
    );
}

async fn claims_of_an_unheard_commit_are_returned(db: &Db) {
    let on = stage(db).await;
    let fence = on.lease.fence;
    let (_, mine, _) = accept_one(db, &on, "ann", "1", fence).await;
    let (_, other, _) = accept_one(db, &on, "bob", "2", fence).await;
    let ids_of = [mine, db.ids.next()];
    commit!(db, |tx| tx.deliveries().disclaim(&ids_of, fence + 1).await).unwrap();
    assert!(backlog(db, &on, fence, &[], Duration::ZERO).await.is_empty(), "another holder's claim stays");
    commit!(db, |tx| tx.deliveries().disclaim(&ids_of, fence).await).unwrap();
    assert_eq!(ids(&backlog(db, &on, fence, &[], Duration::ZERO).await), [mine]);
    commit!(db, |tx| tx.deliveries().claim(&[mine], fence).await).unwrap();
    assert!(backlog(db, &on, fence, &[], Duration::ZERO).await.is_empty(), "{other} was never given back");
}

async fn parked_deliveries_come_back_when_they_are_due(db: &Db) {
    let on = stage(db).await;
    let (_, id, trace) = accept_one(db, &on, "ann", "1", on.lease.fence).await;
    db.store.finish(Arc::new(finished(&on, id, trace, DeliveryState::Parked))).await.unwrap();
    let fence = on.lease.fence;
    assert!(backlog(db, &on, fence, &[], just_before(MINUTE)).await.is_empty());
    let rows = backlog(db, &on, fence, &[], MINUTE).await;
    assert_eq!(ids(&rows), [id]);
    assert_eq!((rows[0].attempts, rows[0].state.as_str()), (1, "parked"));
    assert_eq!(rows[0].first_attempt_at, Some(START));
    assert_eq!(state(db, trace).await, (DeliveryState::Parked, 1, Some("500".into())));
}

async fn an_outcome_is_state_trace_and_replies_at_once(db: &Db) {
    let on = stage(db).await;
    let (message, id, trace) = accept_one(db, &on, "ann", "1", on.lease.fence).await;
    let facts = async || db.store.read().await.unwrap().deliveries().of_trace(message, trace).await.unwrap();
    let before = facts().await;
    assert_eq!((before.len(), before[0].state, before[0].due_at), (1, DeliveryState::Pending, START));
    let mut done = finished(&on, id, trace, DeliveryState::Done);
    done.replies = vec![outbound(db, on.bot, "ann", "reply:0", &["a", "b"])];
    db.store.finish(Arc::new(done)).await.unwrap();
    assert_eq!(facts().await, [], "what ended well has no row");
    assert_eq!(successes(db).await, ["1"]);
    assert_eq!(db.count("outbox").await, 2);
    assert_eq!(step_reasons(db, trace).await, ["received", "request"]);
    let ended = db.number("SELECT CAST(last_at AS BIGINT) FROM successes").await;
    assert_eq!(ended, START.as_millis());
    assert!(backlog(db, &on, 99, &[], MINUTE * 99).await.is_empty(), "what is done is not found again");
}

async fn a_parked_delivery_is_attempted_at_once(db: &Db) {
    let on = stage(db).await;
    let (message, id, trace) = accept_one(db, &on, "ann", "1", 0).await;
    let attempt =
        async || commit!(db, |tx| tx.deliveries().attempt_parked(message, trace, START).await).unwrap();
    assert_eq!(attempt().await, 0, "it is in its lane");
    let later = (START + MINUTE * 9).as_millis();
    db.sql(format!("UPDATE deliveries SET state = 'parked', due_at = {later}")).await;
    assert!(backlog(db, &on, 99, &[], Duration::ZERO).await.is_empty());
    assert_eq!(attempt().await, 1);
    assert_eq!(ids(&backlog(db, &on, 99, &[], Duration::ZERO).await), [id]);
}

async fn an_outcome_under_an_old_fence_leaves_no_mark(db: &Db) {
    let on = stage(db).await;
    let (_, id, trace) = accept_one(db, &on, "ann", "1", on.lease.fence).await;
    let (_, other, other_trace) = accept_one(db, &on, "bob", "2", on.lease.fence).await;
    let mut late = finished(&on, id, trace, DeliveryState::Done);
    late.fence -= 1;
    late.replies = vec![outbound(db, on.bot, "ann", "reply:0", &["late"])];
    late.health = Some(SinkHealth { channel: on.channel, report: HealthReport::Gone });
    let fine = finished(&on, other, other_trace, DeliveryState::Done);
    let (late, fine) = futures_util::join!(db.store.finish(Arc::new(late)), db.store.finish(Arc::new(fine)));
    late.unwrap();
    fine.unwrap();
    assert_eq!(state(db, trace).await, (DeliveryState::Pending, 0, None));
    assert_eq!((find(db, other_trace).await, successes(db).await), (vec![], vec!["1".to_owned()]));
    assert_eq!((db.count("outbox").await, db.text("SELECT webhook_disabled FROM channels").await), (0, None));
    assert_eq!(step_reasons(db, trace).await, ["received"]);
}

/// The commit went unheard, and what it parked was claimed again before the outcome was stored once more.
async fn an_outcome_that_comes_again_counts_once(db: &Db) {
    let on = stage(db).await;
    let (_, id, trace) = accept_one(db, &on, "ann", "1", on.lease.fence).await;
    let parked = || Arc::new(finished(&on, id, trace, DeliveryState::Parked));
    db.store.finish(parked()).await.unwrap();
    let claimed = commit!(db, |tx| tx.deliveries().claim(&[id], on.lease.fence).await).unwrap();
    assert_eq!(claimed, [id].into());
    db.store.finish(parked()).await.unwrap();
    assert!(backlog(db, &on, on.lease.fence, &[], MINUTE).await.is_empty(), "it is held, and stays so");
    assert_eq!(step_reasons(db, trace).await, ["received", "request"]);
}

async fn a_second_run_adds_no_reply(db: &Db) {
    let on = stage(db).await;
    let (_, id, trace) = accept_one(db, &on, "ann", "1", on.lease.fence).await;
    for (attempts, text) in [(1, "first"), (2, "second run")] {
        let mut done = finished(&on, id, trace, DeliveryState::Done);
        done.attempts = attempts;
        done.replies = vec![outbound(db, on.bot, "ann", &format!("{id}:0"), &[text])];
        db.store.finish(Arc::new(done)).await.unwrap();
    }
    assert_eq!(db.texts("SELECT text FROM outbox").await, ["first"]);
    assert_eq!(successes(db).await, ["1"]);
    assert_eq!(db.number("SELECT count(*) FROM messages WHERE direction = 'outbound'").await, 1);
}

async fn two_outcomes_of_one_trace_in_one_commit_are_both_kept(db: &Db) {
    let on = stage(db).await;
    let (_, id, trace) = accept_one(db, &on, "ann", "1", on.lease.fence).await;
    let (_, other, _) = accept_one(db, &on, "ann", "2", on.lease.fence).await;
    let mut first = finished(&on, id, trace, DeliveryState::Done);
    first.trace = update(trace, "first");
    let mut second = finished(&on, other, trace, DeliveryState::Done);
    second.trace = update(trace, "second");
    let (a, b) = futures_util::join!(db.store.finish(Arc::new(first)), db.store.finish(Arc::new(second)));
    a.and(b).unwrap();
    assert_eq!(step_reasons(db, trace).await, ["received", "first", "second"]);
}

async fn a_trace_ends_with_its_last_sink_and_has_the_worst_outcome(db: &Db) {
    use DeliveryState::{Dead, Done, Skipped};
    let on = stage(db).await;
    let status = |state| match state {
        Dead => TraceStatus::Error,
        Done => TraceStatus::Ok,
        Skipped => TraceStatus::Skipped,
        _ => TraceStatus::Pending,
    };
    let cases = [
        (Done, Done, "ok", "second"),
        (Done, Dead, "error", "second"),
        (Dead, Done, "error", "first"),
        (Skipped, Done, "ok", "second"),
        (Done, Skipped, "ok", "first"),
        (Skipped, Skipped, "skipped", "second"),
    ];
    for (n, (first, second, end, summary)) in cases.into_iter().enumerate() {
        for together in [false, true] {
            let key = format!("{n} {together}");
            let (message, webhook) = taken(db, message(db, on.bot, "ann", &key, "hi"), on.channel, 0);
            let (message, ai) = with_ai(db, message);
            let trace = message.routes[0].trace.id;
            db.store.accept(batch(&on.lease, None, vec![message])).await.unwrap();
            let outcome = |id, state, summary: &str, attempts| {
                let mut outcome = finished(&on, id, trace, state);
                outcome.trace = TraceUpdate {
                    status: Some(status(state)),
                    attempts: Some(attempts),
                    ..update(trace, summary)
                };
                Arc::new(outcome)
            };
            let told = async || {
                let sql = format!(
                    "SELECT status || ' ' || summary || ' ' || attempts FROM traces WHERE id = '{trace}'"
                );
                db.text(sql).await.unwrap()
            };
            let (one, other) = (outcome(webhook, first, "first", 3), outcome(ai, second, "second", 1));
            if together {
                let (one, other) = futures_util::join!(db.store.finish(one), db.store.finish(other));
                one.and(other).unwrap();
            } else {
                db.store.finish(one).await.unwrap();
                assert_eq!(told().await, "pending first 3", "{key}: the other sink works");
                // An attempt that fails ends nothing.
                let mut again = finished(&on, ai, trace, DeliveryState::Parked);
                again.trace = TraceUpdate {
                    status: Some(TraceStatus::Pending),
                    ended: 0,
                    summary: None,
                    ..update(trace, "again")
                };
                db.store.finish(Arc::new(again)).await.unwrap();
                assert!(told().await.starts_with("pending "), "{key}");
                let mut last = finished(&on, ai, trace, second);
                last.attempts = 2;
                last.trace = TraceUpdate { status: Some(status(second)), ..update(trace, "second") };
                db.store.finish(Arc::new(last)).await.unwrap();
            }
            assert_eq!(told().await, format!("{end} {summary} 3"), "{key}");
            let kept = [first, second].into_iter().filter(|state| *state != Done).count();
            assert_eq!(find(db, trace).await.len(), kept, "{key}");
        }
    }
}

async fn a_webhook_that_fails_for_days_is_switched_off(db: &Db) {
    let on = stage(db).await;
    let (_, id, trace) = accept_one(db, &on, "ann", "1", on.lease.fence).await;
    let attempts = Cell::new(0);
    let tell = async |report: HealthReport| {
        let mut told = finished(&on, id, trace, DeliveryState::Parked);
        attempts.set(attempts.get() + 1);
        told.attempts = attempts.get();
        told.health = Some(SinkHealth { channel: on.channel, report });
        db.store.finish(Arc::new(told)).await.unwrap();
        let disabled = db.text("SELECT webhook_disabled FROM channels").await;
        let rev = db.number("SELECT CAST(config_rev AS BIGINT) FROM bots").await;
        (disabled.is_some(), rev)
    };
    let fails = |minutes: u32| HealthReport::Fails {
        now: START + MINUTE * minutes,
        give_up_before: START + MINUTE * minutes - MINUTE * 10,
    };
    assert_eq!(tell(fails(0)).await, (false, 0));
    assert_eq!(tell(fails(9)).await, (false, 0));
    assert_eq!(tell(HealthReport::Works).await, (false, 0));
    assert_eq!(tell(fails(10)).await, (false, 0), "it worked since");
    assert_eq!(tell(fails(20)).await, (true, 1), "the rules change with it");
    assert_eq!(tell(fails(21)).await, (true, 1), "and change once");
    db.sql("UPDATE channels SET webhook_disabled = NULL").await;
    assert_eq!(tell(HealthReport::Gone).await, (true, 2));
}

async fn a_delivery_that_cannot_be_concluded_is_abandoned_by_its_holder(db: &Db) {
    let on = stage(db).await;
    let (_, id, trace) = accept_one(db, &on, "ann", "1", on.lease.fence).await;
    let (_, _, other) = accept_one(db, &on, "ann", "2", on.lease.fence).await;
    let abandon = async |fence| {
        let told = TraceUpdate { status: Some(TraceStatus::Error), ..update(trace, "abandoned") };
        commit!(db, |tx| tx.deliveries().abandon(id, fence, "why", START, &told).await).unwrap()
    };
    let traced = async || {
        let sql = format!(
            "SELECT status || ' ' || summary || ' ' || octet_length(packed_steps) FROM traces WHERE id = '{trace}'"
        );
        db.text(sql).await.unwrap()
    };
    let before = traced().await;
    assert!(!abandon(on.lease.fence - 1).await);
    assert_eq!(state(db, trace).await, (DeliveryState::Pending, 0, None), "only its holder gives it up");
    assert_eq!(traced().await, before);
    db.sql("UPDATE bots SET lease_fence = lease_fence + 1").await;
    assert!(!abandon(on.lease.fence).await, "the bot has changed hands");
    assert_eq!((state(db, trace).await.0, traced().await), (DeliveryState::Pending, before));
    db.sql("UPDATE bots SET lease_fence = lease_fence - 1").await;
    assert!(abandon(on.lease.fence).await);
    assert_eq!(state(db, trace).await, (DeliveryState::Dead, 0, Some("why".into())));
    let told = traced().await;
    assert!(told.starts_with("error abandoned "), "{told}");
    assert_eq!(step_reasons(db, trace).await, ["received", "abandoned"]);
    assert_eq!(state(db, other).await.0, DeliveryState::Pending);
}

async fn a_replay_has_a_lane_and_a_trace_of_its_own(db: &Db) {
    let on = stage(db).await;
    let (message, id, first) = accept_one(db, &on, "ann", "1", on.lease.fence).await;
    db.store.finish(Arc::new(finished(&on, id, first, DeliveryState::Dead))).await.unwrap();
    let replay = |message| Replay {
        id: db.ids.next(),
        message_id: message,
        bot_id: on.bot,
        channel_id: on.channel,
        sink: SinkId::Ai,
        target_url: Some("https://elsewhere.example/".to_owned()),
        now: START,
        trace: trace(db, on.bot, message, Some(on.channel), "replay"),
    };
    let gone = replay(db.ids.next());
    let refused = commit!(db, |tx| tx.deliveries().insert_replay(&gone).await).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::NotFound, "deleted meanwhile");
    let replay = replay(message);
    let (new, new_trace) = (replay.id, replay.trace.id);
    commit!(db, |tx| tx.deliveries().insert_replay(&replay).await).unwrap();
    let rows = backlog(db, &on, on.lease.fence, &[], Duration::ZERO).await;
    assert_eq!(ids(&rows), [new]);
    assert_eq!((rows[0].lane.as_str(), rows[0].seq), (new.to_string().as_str(), 0));
    assert_eq!(
        (rows[0].target_url.as_deref(), rows[0].sink),
        (Some("https://elsewhere.example/"), SinkId::Ai)
    );
    assert_eq!(state(db, new_trace).await, (DeliveryState::Pending, 0, None));
    assert_eq!(state(db, first).await.0, DeliveryState::Dead, "what was given up stays on record");
    let unknown = db.store.read().await.unwrap().deliveries().find_by_trace(db.ids.next()).await.unwrap();
    assert_eq!(unknown, []);
}
