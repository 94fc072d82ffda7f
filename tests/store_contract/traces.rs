use std::time::Duration;

use hub_core::{
    id::{ChannelId, MessageId, PluginId, ReplayId, TraceId},
    page::PageRequest,
    store::{
        DeletedBatch,
        inbox::AcceptRoute,
        traces::{NewTrace, TraceUpdate},
    },
    traces::{PackedSteps, Step, StepDetail, StepKind, StepName, TraceQuery, TraceSearch, TraceStatus},
};

use super::scene::{
    Stage, accept_one, add_channel, batch, everything, lease, message, scope, stage, taken, trace, update,
};
use crate::support::database::{Db, START};

contract!("traces": {
    steps_are_appended_in_order_also_twice_in_one_batch => [insert, update, find],
    an_update_without_news_keeps_what_is_there => [update],
    traces_are_listed_for_their_owner_newest_first_and_by_filter => [list],
    a_trace_is_found_within_its_bot_and_scope => [find],
    a_trace_names_its_channel_person_and_text => [list, find, steps_of],
    old_traces_go_and_unfinished_ones_stay => [delete_before],
    the_outcome_of_a_message_is_the_newest_trace_of_each_channel => [outcomes],
    a_search_covers_the_traces_of_all_bots_of_the_owner => [search, listed],
});

async fn a_search_covers_the_traces_of_all_bots_of_the_owner(db: &Db) {
    let on = stage(db).await;
    let other_bot = db.bot(on.owner).await;
    let foreign = db.bot(db.user("bob").await).await;
    let leases = lease(db).await.1;
    let (first_message, _, first) = accept_one(db, &on, "ann", "order 1", 0).await;
    let (_, _, second) = accept_one(db, &on, "ann", "order 2", 0).await;
    let mut elsewhere = message(db, other_bot, "ben", "3", "50%");
    let mut skipped = trace(db, other_bot, elsewhere.row.id, None, "filter");
    skipped.status = TraceStatus::Skipped;
    let third = skipped.id;
    elsewhere.routes.push(AcceptRoute { channel_id: ChannelId::from_u128(0), trace: skipped, taken: None });
    db.store.accept(batch(&leases[&other_bot], None, vec![elsewhere])).await.unwrap();
    let theirs = message(db, foreign, "ann", "4", "order 4");
    let their_trace = trace(db, foreign, theirs.row.id, None, "x");
    db.store.accept(batch(&leases[&foreign], None, vec![theirs])).await.unwrap();
    let theirs = insert(db, their_trace).await;
    let replay =
        NewTrace { replay_of: Some(first), ..trace(db, on.bot, first_message, Some(on.channel), "r") };
    let replay = insert(db, replay).await;
    let plugin: PluginId = db.ids.next();
    let step = |name, status, detail| Step::new(name, StepKind::Webhook, status, START, START, detail);
    let ran = step(
        StepName::PluginOnRequest,
        TraceStatus::Ok,
        StepDetail { plugin_id: Some(plugin), ..StepDetail::default() },
    );
    let responded = step(
        StepName::Response,
        TraceStatus::Error,
        StepDetail { status: Some(503), body: Some("\\ \"".to_owned()), ..StepDetail::default() },
    );
    let failed = TraceUpdate {
        status: Some(TraceStatus::Error),
        steps: PackedSteps::new(second, &[ran, responded]),
        ..update(second, "")
    };
    commit!(db, |tx| tx.traces().update(&[&failed]).await).unwrap();

    let many: ReplayId = db.ids.next();
    db.sql(format!(
        "INSERT INTO replays (id, owner_id, refused, created_at) VALUES ('{many}', '{}', '[]', 0)",
        on.owner
    ))
    .await;
    for replayed in [replay, theirs] {
        db.sql(format!("INSERT INTO replay_traces (replay_id, trace_id) VALUES ('{many}', '{replayed}')"))
            .await;
    }

    let all = TraceSearch::default;
    let q = |q: &str| TraceSearch { q: Some(q.to_owned()), ..all() };
    let hour = Duration::from_secs(3600);
    for (search, expected) in [
        (all(), &[replay, third, second, first][..]),
        (TraceSearch { bot_id: Some(other_bot), ..all() }, &[third]),
        (TraceSearch { bot_id: Some(foreign), ..all() }, &[]),
        (
            TraceSearch { channel_id: Some(on.channel), bot_id: Some(on.bot), ..all() },
            &[replay, second, first],
        ),
        (TraceSearch { status: Some(TraceStatus::Error), ..all() }, &[second]),
        (TraceSearch { status: Some(TraceStatus::Skipped), ..all() }, &[third]),
        (TraceSearch { status: Some(TraceStatus::Pending), ..all() }, &[replay, first]),
        (TraceSearch { status: Some(TraceStatus::Error), bot_id: Some(other_bot), ..all() }, &[]),
        (TraceSearch { message_id: Some(first_message), ..all() }, &[replay, first]),
        (TraceSearch { replay_of: Some(first), ..all() }, &[replay]),
        (TraceSearch { replay_id: Some(many), ..all() }, &[replay]),
        (TraceSearch { replay_id: Some(many), status: Some(TraceStatus::Error), ..all() }, &[]),
        (TraceSearch { replay_id: Some(many), replay_of: Some(first), ..all() }, &[replay]),
        (TraceSearch { replay_id: Some(ReplayId::MAX), ..all() }, &[]),
        (TraceSearch { since: Some(START + hour), ..all() }, &[]),
        (TraceSearch { until: Some(START + hour), ..all() }, &[replay, third, second, first]),
        (TraceSearch { failed_step: Some(StepName::Response), ..all() }, &[second]),
        (TraceSearch { failed_step: Some(StepName::Request), ..all() }, &[]),
        (TraceSearch { http_status: Some(503), ..all() }, &[second]),
        (TraceSearch { http_status: Some(50), ..all() }, &[]),
        (TraceSearch { plugin_id: Some(plugin), ..all() }, &[second]),
        (TraceSearch { plugin_id: Some(PluginId::MAX), ..all() }, &[]),
        (q("ORDER"), &[replay, second, first]),
        (q("0%"), &[third]),
        (q(&first.to_string()), &[first]),
        (q(&first_message.to_string()), &[replay, first]),
        (q(&theirs.to_string()), &[]),
    ] {
        let mut read = db.store.read().await.unwrap();
        let page = PageRequest::default();
        let (_, ids) = read.traces().search(Some(on.owner), &search, &page, 100).await.unwrap();
        assert_eq!(ids, expected, "{search:?}");
        let listed = read.traces().listed(&ids).await.unwrap();
        assert_eq!(listed.iter().map(|row| row.id).collect::<Vec<_>>(), ids);
        assert!(listed.iter().all(|row| row.steps.0.is_empty()));
    }
}

async fn the_outcome_of_a_message_is_the_newest_trace_of_each_channel(db: &Db) {
    let on = stage(db).await;
    let (message, delivery, first) = accept_one(db, &on, "ann", "1", 0).await;
    let (other, ..) = accept_one(db, &on, "ann", "2", 0).await;
    let due = (START + Duration::from_secs(60)).as_millis();
    db.sql(format!("UPDATE deliveries SET state = 'parked', due_at = {due} WHERE id = '{delivery}'")).await;
    let outcomes =
        async |ids: &[MessageId]| db.store.read().await.unwrap().traces().outcomes(ids).await.unwrap();
    let found = outcomes(&[message]).await;
    assert_eq!(found.len(), 1);
    let outcome = &found[0];
    assert_eq!(
        (outcome.message_id, outcome.trace_id, outcome.channel_id),
        (message, first, Some(on.channel))
    );
    assert_eq!((outcome.channel_name.as_deref(), outcome.status), (Some("channel"), TraceStatus::Pending));
    assert_eq!((outcome.attempts, outcome.reason.as_deref()), (0, Some("received")));
    assert_eq!(outcome.next_attempt_at, Some(START + Duration::from_secs(60)));

    let done = update(first, "status 200");
    commit!(db, |tx| tx.traces().update(&[&done]).await).unwrap();
    let found = outcomes(&[message, other]).await;
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].status, found[0].attempts, &found[0].reason), (TraceStatus::Ok, 1, &None));
    let replay =
        NewTrace { replay_of: Some(first), ..trace(db, on.bot, message, Some(on.channel), "replay") };
    let replay = insert(db, replay).await;
    let of_app = insert(db, trace(db, on.bot, message, None, "app")).await;
    let found = outcomes(&[message]).await;
    assert_eq!(found.iter().map(|outcome| outcome.trace_id).collect::<Vec<_>>(), [replay, of_app]);
}

async fn insert(db: &Db, new: NewTrace) -> TraceId {
    let id = new.id;
    commit!(db, |tx| tx.traces().insert(&[&new]).await).unwrap();
    id
}

async fn steps(db: &Db, id: TraceId) -> Vec<String> {
    let row = db.store.read().await.unwrap().traces().find(everything(), None, id).await.unwrap().unwrap();
    row.steps.0.into_iter().filter_map(|step| step.detail.reason).collect()
}

async fn steps_are_appended_in_order_also_twice_in_one_batch(db: &Db) {
    let on = stage(db).await;
    let (message, _, first) = accept_one(db, &on, "ann", "1", 0).await;
    let empty =
        NewTrace { steps: PackedSteps::default(), ..trace(db, on.bot, message, Some(on.channel), "x") };
    let second = insert(db, empty).await;
    let updates = [
        update(first, "a"),
        update(second, "b"),
        update(first, "c\"'\\ 𠜎"),
        update(db.ids.next(), "nobody's"),
    ];
    commit!(db, |tx| tx.traces().update(&updates.iter().collect::<Vec<_>>()).await).unwrap();
    let late = update(first, "d");
    commit!(db, |tx| tx.traces().update(&[&late]).await).unwrap();
    assert_eq!(steps(db, first).await, ["received", "a", "c\"'\\ 𠜎", "d"]);
    assert_eq!(steps(db, second).await, ["b"]);
    let row = db.store.read().await.unwrap().traces().find(everything(), None, first).await.unwrap().unwrap();
    assert_eq!((row.status.as_str(), row.summary.as_str(), row.attempts), ("ok", "d", 1));
    assert_eq!(row.duration_ms, 3_000);
}

async fn an_update_without_news_keeps_what_is_there(db: &Db) {
    let on = stage(db).await;
    let (.., id) = accept_one(db, &on, "ann", "1", 0).await;
    let first = update(id, "a");
    let mut silent = update(id, "");
    (silent.status, silent.summary, silent.attempts) = (None, None, None);
    silent.steps = PackedSteps::default();
    silent.ended_at = START - Duration::from_secs(5);
    commit!(db, |tx| tx.traces().update(&[&first, &silent]).await).unwrap();
    let silent =
        hub_core::store::traces::TraceUpdate { ended_at: START + Duration::from_secs(1), ..update(id, "") };
    let silent = hub_core::store::traces::TraceUpdate {
        status: None,
        summary: None,
        attempts: None,
        steps: PackedSteps::default(),
        ..silent
    };
    commit!(db, |tx| tx.traces().update(&[&silent]).await).unwrap();
    let row = db.store.read().await.unwrap().traces().find(everything(), None, id).await.unwrap().unwrap();
    assert_eq!((row.status.as_str(), row.summary.as_str(), row.attempts), ("ok", "a", 1));
    assert_eq!(row.duration_ms, 3_000, "a trace does not shrink");
    assert_eq!(steps(db, id).await.len(), 2);
}

async fn list(db: &Db, on: &Stage, filter: TraceQuery, page: PageRequest) -> Vec<TraceId> {
    let mut read = db.store.read().await.unwrap();
    let rows = read.traces().list(scope(on.owner), on.bot, &filter, &page).await.unwrap().rows;
    assert!(rows.iter().all(|row| row.steps.0.is_empty()), "lists come without steps");
    rows.into_iter().map(|row| row.id).collect()
}

async fn traces_are_listed_for_their_owner_newest_first_and_by_filter(db: &Db) {
    let on = stage(db).await;
    let second = add_channel(db, on.bot, "second").await;
    let (message, _, first) = accept_one(db, &on, "ann", "1", 0).await;
    let (other, _, middle) = accept_one(db, &on, "ann", "2", 0).await;
    let elsewhere = insert(db, trace(db, on.bot, other, Some(second), "x")).await;
    let own_send = insert(db, trace(db, on.bot, other, None, "x")).await;
    let done = update(middle, "done");
    commit!(db, |tx| tx.traces().update(&[&done]).await).unwrap();
    let all = || TraceQuery::default();
    let whole = PageRequest::default;
    assert_eq!(list(db, &on, all(), whole()).await, [own_send, elsewhere, middle, first]);
    let only = TraceQuery { channel_id: Some(on.channel), ..all() };
    assert_eq!(list(db, &on, only, whole()).await, [middle, first]);
    let only = TraceQuery { status: Some(TraceStatus::Ok), ..all() };
    assert_eq!(list(db, &on, only, whole()).await, [middle]);
    let only = TraceQuery { message_id: Some(message), ..all() };
    assert_eq!(list(db, &on, only, whole()).await, [first]);
    let only = TraceQuery { ids: vec![first, own_send, TraceId::MAX], ..all() };
    assert_eq!(list(db, &on, only, whole()).await, [own_send, first]);
    let oldest_first = TraceQuery { oldest_first: true, ..all() };
    assert_eq!(list(db, &on, oldest_first.clone(), whole()).await, [first, middle, elsewhere, own_send]);
    let (later, far) = (START + Duration::from_millis(1), Duration::from_secs(86_400));
    for (since, until, count) in [
        (Some(START), None, 4),
        (Some(later), None, 0),
        (None, Some(START), 0),
        (Some(START), Some(later), 4),
        (Some(START - far), Some(START + far), 4),
    ] {
        let within = TraceQuery { since, until, ..all() };
        assert_eq!(list(db, &on, within, whole()).await.len(), count, "{since:?} {until:?}");
    }
    let page = PageRequest::parse("t", Some(1), None).unwrap();
    assert_eq!(list(db, &on, all(), page).await, [own_send, elsewhere]);
    let cursor = hub_core::page::encode("t", &elsewhere.to_string());
    let page = PageRequest::parse("t", Some(1), Some(&cursor)).unwrap();
    assert_eq!(list(db, &on, all(), page.clone()).await, [middle, first]);
    assert_eq!(list(db, &on, oldest_first, page).await, [own_send]);
    let bob = db.user("bob").await;
    let mut read = db.store.read().await.unwrap();
    assert!(read.traces().list(scope(bob), on.bot, &all(), &whole()).await.unwrap().rows.is_empty());
    assert_eq!(read.traces().list(everything(), on.bot, &all(), &whole()).await.unwrap().rows.len(), 4);
}

async fn a_trace_is_found_within_its_bot_and_scope(db: &Db) {
    let on = stage(db).await;
    let (.., id) = accept_one(db, &on, "ann", "1", 0).await;
    let (bob, other_bot) = (db.user("bob").await, db.bot(on.owner).await);
    let mut read = db.store.read().await.unwrap();
    let mine = scope(on.owner);
    assert!(read.traces().find(mine, Some(on.bot), id).await.unwrap().is_some());
    assert!(read.traces().find(mine, Some(other_bot), id).await.unwrap().is_none());
    assert!(read.traces().find(scope(bob), Some(on.bot), id).await.unwrap().is_none());
    assert!(read.traces().find(mine, None, db.ids.next()).await.unwrap().is_none());
}

async fn a_trace_names_its_channel_person_and_text(db: &Db) {
    let on = stage(db).await;
    let long = format!("{}end", "é".repeat(119));
    let (message, delivery) = taken(db, message(db, on.bot, "ann", "1", &long), on.channel, 0);
    let id = message.routes[0].trace.id;
    db.store.accept(batch(&on.lease, None, vec![message])).await.unwrap();
    let mut read = db.store.read().await.unwrap();
    let all = TraceQuery::default();
    let listed =
        read.traces().list(scope(on.owner), on.bot, &all, &PageRequest::default()).await.unwrap().rows;
    let found = read.traces().find(everything(), None, id).await.unwrap().unwrap();
    for row in [&listed[0], &found] {
        assert_eq!((row.channel_name.as_deref(), row.user_id.as_str()), (Some("channel"), "ann"));
        assert_eq!((row.user_name.as_str(), row.preview.chars().count()), ("Name of ann", 120));
        assert!(row.preview.ends_with("ée"), "{}", row.preview);
        // Bytes: the text, the items and the steps.
        let bytes = long.len() + 2 + PackedSteps::new(id, &found.steps.0).as_bytes().len();
        assert_eq!(row.size, i64::try_from(bytes).unwrap());
    }
    assert_eq!((listed[0].next_attempt_at, listed[0].webhook.as_deref()), (None, None), "not in lists");
    assert_eq!(found.next_attempt_at, Some(START));
    assert_eq!(found.webhook.as_deref(), Some("{}"));
    let steps = read.traces().steps_of(&[id, TraceId::MAX]).await.unwrap();
    assert_eq!(steps.into_iter().collect::<Vec<_>>(), [(id, found.steps.0)]);
    drop(read);
    db.sql(format!("UPDATE deliveries SET state = 'done' WHERE id = '{delivery}'")).await;
    let mut read = db.store.read().await.unwrap();
    let found = read.traces().find(everything(), None, id).await.unwrap().unwrap();
    assert_eq!((found.next_attempt_at, found.webhook), (None, None));
}

async fn old_traces_go_and_unfinished_ones_stay(db: &Db) {
    let on = stage(db).await;
    let mut ids = Vec::new();
    for key in ["1", "2", "3"] {
        ids.push(accept_one(db, &on, "ann", key, 0).await.2);
    }
    for id in &ids[..2] {
        let done = update(*id, "done");
        commit!(db, |tx| tx.traces().update(&[&done]).await).unwrap();
    }
    let delete = async |after: &str, before, limit| {
        let after = after.to_owned();
        commit!(db, |tx| tx.traces().delete_before(&after, before, limit).await).unwrap()
    };
    let none = DeletedBatch::default();
    assert_eq!(delete("", START, 10).await, none, "begun at that very moment");
    let later = START + Duration::from_millis(1);
    let piece = delete("", later, 1).await;
    assert_eq!(piece, DeletedBatch { deleted: 1, last: Some(ids[0].to_string()) });
    let piece = delete(&ids[0].to_string(), later, 10).await;
    assert_eq!(
        piece,
        DeletedBatch { deleted: 1, last: Some(ids[2].to_string()) },
        "the unfinished one was visited"
    );
    assert_eq!(delete(&ids[2].to_string(), later, 10).await, none);
    assert_eq!(db.texts("SELECT id FROM traces").await, [ids[2].to_string()]);
}
