use std::time::Duration;

use hub_core::{
    bots::{Direction, MessageFilter, MessageSearch, Outcome},
    id::{MessageId, UserId},
    network::MessageKind,
    page::PageRequest,
    store::{
        inbox::AcceptRoute,
        traces::{NewTrace, TraceUpdate},
    },
    traces::TraceStatus,
};

use super::scene::{
    Stage, accept_one, add_channel, batch, lease, message, outbound, stage, taken, trace, update,
};
use crate::support::database::{Db, START};

contract!("messages": {
    messages_are_listed_newest_first_with_their_channels => [page],
    a_message_is_found_within_its_bot => [exists, find, find_all],
    filters_select_messages => [page],
    patterns_in_a_search_are_plain_text => [page],
    the_newest_secrets_of_a_person_are_found => [recent_private, for_sinks],
    the_newest_received_messages_are_found => [received],
    quoted_messages_are_found_within_the_bot => [quoted],
    a_search_covers_all_bots_of_the_owner_newest_first => [search, listed],
    a_search_by_outcome_finds_the_newest_trace_of_each_channel => [search],
    a_search_reads_a_bounded_part_of_an_index => [search],
});

/// The contents of what a search finds.
async fn found(db: &Db, owner: UserId, search: &MessageSearch) -> Vec<String> {
    let mut read = db.store.read().await.unwrap();
    let page = PageRequest::default();
    let (_, ids) = read.messages().search(Some(owner), search, &page, 100).await.unwrap();
    let listed = read.messages().listed(&ids).await.unwrap();
    assert_eq!(listed.iter().map(|message| message.id).collect::<Vec<_>>(), ids);
    listed.into_iter().map(|message| message.content).collect()
}

async fn a_search_covers_all_bots_of_the_owner_newest_first(db: &Db) {
    let on = stage(db).await;
    let other = db.bot(on.owner).await;
    let bob = db.user("bob").await;
    let foreign = db.bot(bob).await;
    let leases = lease(db).await.1;
    let second = add_channel(db, on.bot, "second").await;
    let one = taken(db, message(db, on.bot, "ann", "1", "one"), on.channel, 0).0;
    let (one_id, one_trace) = (one.row.id, one.routes[0].trace.id);
    db.store.accept(batch(&on.lease, None, vec![one])).await.unwrap();
    let two = message(db, other, "ben", "2", "two 50%");
    db.store.accept(batch(&leases[&other], None, vec![two])).await.unwrap();
    let theirs = message(db, foreign, "ann", "3", "theirs");
    let their_id = theirs.row.id;
    db.store.accept(batch(&leases[&foreign], None, vec![theirs])).await.unwrap();
    let both = taken(db, message(db, on.bot, "ann", "4", "both"), on.channel, 0).0;
    let both = taken(db, both, second, 0).0;
    db.store.accept(batch(&on.lease, None, vec![both])).await.unwrap();

    let all = MessageSearch::default;
    let filtered = |filter| MessageSearch { filter, ..all() };
    let none = MessageFilter::default;
    let q = |q: &str| filtered(MessageFilter { q: Some(q.to_owned()), ..none() });
    let hour = Duration::from_secs(3600);
    for (search, expected) in [
        (all(), &["both", "two 50%", "one"][..]),
        (MessageSearch { bot_id: Some(other), ..all() }, &["two 50%"]),
        (MessageSearch { bot_id: Some(foreign), ..all() }, &[]),
        (MessageSearch { bot_id: Some(on.bot), channel_id: Some(second), ..all() }, &["both"]),
        (MessageSearch { bot_id: Some(on.bot), channel_id: Some(on.channel), ..all() }, &["both", "one"]),
        (filtered(MessageFilter { user_id: Some("ben".into()), ..none() }), &["two 50%"]),
        (filtered(MessageFilter { direction: Some(Direction::Outbound), ..none() }), &[]),
        (filtered(MessageFilter { since: Some(START + hour), ..none() }), &[]),
        (filtered(MessageFilter { until: Some(START), ..none() }), &[]),
        (filtered(MessageFilter { until: Some(START + hour), ..none() }), &["both", "two 50%", "one"]),
        (q("O"), &["both", "two 50%", "one"]),
        (q("0%"), &["two 50%"]),
        (q("_"), &[]),
        (q(&one_id.to_string()), &["one"]),
        (q(&one_trace.to_string()), &["one"]),
        (q(&their_id.to_string()), &[]),
    ] {
        assert_eq!(found(db, on.owner, &search).await, expected, "{search:?}");
    }
    assert_eq!(found(db, bob, &all()).await, ["theirs"]);
}

async fn a_search_by_outcome_finds_the_newest_trace_of_each_channel(db: &Db) {
    let on = stage(db).await;
    let second = add_channel(db, on.bot, "second").await;
    let both = taken(db, message(db, on.bot, "ann", "1", "both"), on.channel, 0).0;
    let both = taken(db, both, second, 0).0;
    let (id, first, other) = (both.row.id, both.routes[0].trace.id, both.routes[1].trace.id);
    let mut skipped = message(db, on.bot, "ann", "2", "skipped");
    let mut trace = trace(db, on.bot, skipped.row.id, Some(on.channel), "filter");
    trace.status = TraceStatus::Skipped;
    skipped.routes.push(AcceptRoute { channel_id: on.channel, trace, taken: None });
    db.store.accept(batch(&on.lease, None, vec![both, skipped])).await.unwrap();
    let send = outbound(db, on.bot, "ann", "out", &["sent"]);
    commit!(db, |tx| tx.outbox().enqueue(&[send]).await).unwrap();

    let with = |outcome, channel_id| MessageSearch {
        outcome: Some(outcome),
        channel_id,
        bot_id: Some(on.bot),
        ..MessageSearch::default()
    };
    let check = async |outcome, channel, expected: &[&str]| {
        assert_eq!(found(db, on.owner, &with(outcome, channel)).await, expected, "{outcome} {channel:?}");
    };
    check(Outcome::InFlight, None, &["both"]).await;
    check(Outcome::Skipped, None, &["skipped"]).await;
    check(Outcome::Failed, None, &[]).await;
    check(Outcome::Delivered, None, &[]).await;

    let end = |trace, status| TraceUpdate { status: Some(status), ..update(trace, "end") };
    let (failed, done) = (end(first, TraceStatus::Error), end(other, TraceStatus::Ok));
    commit!(db, |tx| tx.traces().update(&[&failed, &done]).await).unwrap();
    db.sql(format!("UPDATE deliveries SET state = 'done' WHERE message_id = '{id}'")).await;
    check(Outcome::InFlight, None, &[]).await;
    check(Outcome::Failed, None, &["both"]).await;
    check(Outcome::Failed, Some(on.channel), &["both"]).await;
    check(Outcome::Failed, Some(second), &[]).await;
    check(Outcome::Delivered, Some(second), &["both"]).await;
    check(Outcome::Delivered, Some(on.channel), &[]).await;

    // A replay succeeds: the failure is over.
    let again = NewTrace {
        status: TraceStatus::Ok,
        replay_of: Some(first),
        ..super::scene::trace(db, on.bot, id, Some(on.channel), "replay")
    };
    commit!(db, |tx| tx.traces().insert(&[&again]).await).unwrap();
    check(Outcome::Failed, None, &[]).await;
    check(Outcome::Delivered, Some(on.channel), &["both"]).await;
    assert_eq!(db.count("undelivered").await, 2);
    db.sql("DELETE FROM traces").await;
    assert_eq!(db.count("undelivered").await, 0, "a deleted trace leaves nothing");
}

async fn a_search_reads_a_bounded_part_of_an_index(db: &Db) {
    let on = stage(db).await;
    let texts = ["1 odd", "2", "3 odd", "4", "5 odd"];
    let messages = texts.iter().map(|text| message(db, on.bot, "ann", text, text)).collect();
    db.store.accept(batch(&on.lease, None, messages)).await.unwrap();
    let odd = MessageFilter { q: Some("odd".into()), ..MessageFilter::default() };
    let odd = MessageSearch { filter: odd, ..MessageSearch::default() };
    let mut read = db.store.read().await.unwrap();
    let (mut pages, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let page = PageRequest::parse("m", Some(1), cursor.as_deref()).unwrap();
        let (scan, matching) = read.messages().search(Some(on.owner), &odd, &page, 2).await.unwrap();
        assert!(scan.ids().len() <= 2);
        let page = scan.page("m", matching);
        let listed = read.messages().listed(&page.items).await.unwrap();
        pages.push(listed.into_iter().map(|message| message.content).collect::<Vec<_>>());
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(pages, [vec!["5 odd"], vec!["3 odd"], vec!["1 odd"]]);
}

async fn the_newest_secrets_of_a_person_are_found(db: &Db) {
    let on = stage(db).await;
    let mut of_ann = Vec::new();
    for (key, peer) in [("1", "ann"), ("2", "ben"), ("3", "ann"), ("4", "ann")] {
        let (id, ..) = accept_one(db, &on, peer, key, 0).await;
        if peer == "ann" {
            of_ann.insert(0, id);
        }
    }
    db.sql("UPDATE messages SET private = 'sealed ' || id").await;
    let found = async |since, limit| {
        let mut read = db.store.read().await.unwrap();
        let rows = read.messages().recent_private(on.bot, "ann", since, limit).await.unwrap();
        assert!(rows.iter().all(|(id, _, private)| private.as_str() == format!("sealed {id}")));
        rows.into_iter().map(|(id, _, _)| id).collect::<Vec<_>>()
    };
    assert_eq!(found(START - Duration::from_secs(1), 10).await, of_ann);
    let mut read = db.store.read().await.unwrap();
    let mut for_sinks = read.messages().for_sinks(&[of_ann[2], of_ann[0], MessageId::MAX]).await.unwrap();
    for_sinks.sort_by_key(|message| message.message_id);
    let seen =
        for_sinks.iter().map(|message| (message.message_id, &*message.peer, message.private.is_some()));
    assert_eq!(seen.collect::<Vec<_>>(), [(of_ann[2], "ann", true), (of_ann[0], "ann", true)]);
    drop(read);
    assert_eq!(found(START - Duration::from_secs(1), 2).await, of_ann[..2]);
    assert_eq!(found(START + Duration::from_secs(24 * 3600), 10).await, []);
}

async fn the_newest_received_messages_are_found(db: &Db) {
    let on = stage(db).await;
    let mut ids = Vec::new();
    for key in ["1", "2", "3"] {
        ids.insert(0, accept_one(db, &on, "ann", key, 0).await.0);
    }
    let send = outbound(db, on.bot, "ann", "out", &["sent"]);
    commit!(db, |tx| tx.outbox().enqueue(&[send]).await).unwrap();
    let found = async |bot, limit| {
        let mut read = db.store.read().await.unwrap();
        let rows = read.messages().received(bot, limit).await.unwrap();
        assert!(rows.iter().all(|row| row.from_user_id == "ann" && row.kind.as_str() == "text"));
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(found(on.bot, 10).await, ids, "without what the bot sent");
    assert_eq!(found(on.bot, 2).await, ids[..2]);
    assert_eq!(found(db.ids.next(), 10).await, []);
    db.sql(format!("UPDATE messages SET status = 'recalled' WHERE id = '{}'", ids[0])).await;
    assert_eq!(found(on.bot, 10).await, ids[1..], "without what no channel received");
}

async fn list(db: &Db, on: &Stage, filter: MessageFilter, page: PageRequest) -> Vec<String> {
    let mut read = db.store.read().await.unwrap();
    let rows = read.messages().page(on.bot, &filter, &page).await.unwrap().rows;
    rows.into_iter().map(|row| row.content).collect()
}

async fn messages_are_listed_newest_first_with_their_channels(db: &Db) {
    let on = stage(db).await;
    let second = add_channel(db, on.bot, "second").await;
    let both = taken(db, message(db, on.bot, "ann", "1", "both"), on.channel, 0).0;
    let both = taken(db, both, second, 0).0;
    let one = taken(db, message(db, on.bot, "ann", "2", "one"), second, 0).0;
    let none = message(db, on.bot, "ann", "3", "none");
    db.store.accept(batch(&on.lease, None, vec![both, one, none])).await.unwrap();
    let mut send = outbound(db, on.bot, "ann", "out", &["sent"]);
    send.channel_id = Some(on.channel);
    commit!(db, |tx| tx.outbox().enqueue(&[send]).await).unwrap();
    let filter = MessageFilter::default();
    let mut read = db.store.read().await.unwrap();
    let rows = read.messages().page(on.bot, &filter, &PageRequest::default()).await.unwrap().rows;
    let found: Vec<_> = rows.iter().map(|row| (row.content.as_str(), row.channel_ids.clone())).collect();
    let expected = [
        ("sent", vec![on.channel]),
        ("none", vec![]),
        ("one", vec![second]),
        ("both", vec![on.channel, second]),
    ];
    assert_eq!(found, expected);
    assert_eq!((rows[0].direction, rows[3].direction), (Direction::Outbound, Direction::Inbound));
    assert_eq!((rows[0].to_user_id.as_str(), rows[3].from_user_id.as_str()), ("ann", "ann"));
    let page = PageRequest::parse("m", Some(1), None).unwrap();
    assert_eq!(list(db, &on, MessageFilter::default(), page).await, ["sent", "none"]);
    let cursor = hub_core::page::encode("m", &rows[1].id.to_string());
    let page = PageRequest::parse("m", Some(1), Some(&cursor)).unwrap();
    assert_eq!(list(db, &on, MessageFilter::default(), page).await, ["one", "both"]);
    drop(read);
    let other = db.bot(on.owner).await;
    let mut read = db.store.read().await.unwrap();
    assert!(read.messages().page(other, &filter, &PageRequest::default()).await.unwrap().rows.is_empty());
}

async fn filters_select_messages(db: &Db) {
    let on = stage(db).await;
    let minute = Duration::from_secs(60);
    let mut messages = Vec::new();
    for (n, (peer, text)) in
        [("ann", "Hello there"), ("bob", "hello"), ("ann", "Grüße")].into_iter().enumerate()
    {
        let mut one = message(db, on.bot, peer, &n.to_string(), text);
        let at = START + minute * u32::try_from(n).unwrap();
        // Ids begin with the time.
        one.row.id = MessageId::from_u128(MessageId::first_at(at).as_u128() + 1);
        one.row.created_at = at;
        messages.push(one);
    }
    db.store.accept(batch(&on.lease, None, messages)).await.unwrap();
    let all = MessageFilter::default;
    let list = async |filter| list(db, &on, filter, PageRequest::default()).await;
    assert_eq!(list(MessageFilter { user_id: Some("ann".into()), ..all() }).await, ["Grüße", "Hello there"]);
    assert_eq!(list(MessageFilter { user_id: Some("Ann".into()), ..all() }).await, [] as [&str; 0]);
    assert_eq!(list(MessageFilter { direction: Some(Direction::Outbound), ..all() }).await, [] as [&str; 0]);
    assert_eq!(list(MessageFilter { direction: Some(Direction::Inbound), ..all() }).await.len(), 3);
    assert_eq!(list(MessageFilter { q: Some("HELLO".into()), ..all() }).await, ["hello", "Hello there"]);
    assert_eq!(list(MessageFilter { q: Some("üß".into()), ..all() }).await, ["Grüße"]);
    let since = MessageFilter { since: Some(START + minute), ..all() };
    assert_eq!(list(since).await, ["Grüße", "hello"], "from that moment on");
    let until = MessageFilter { until: Some(START + minute), ..all() };
    assert_eq!(list(until).await, ["Hello there"], "before that moment");
}

async fn patterns_in_a_search_are_plain_text(db: &Db) {
    let on = stage(db).await;
    let texts = ["50% off", "50 off", "a_b", "axb", r"back\slash", "'; --"];
    let messages = texts.iter().map(|text| message(db, on.bot, "ann", text, text)).collect();
    db.store.accept(batch(&on.lease, None, messages)).await.unwrap();
    for (q, expected) in
        [("0%", "50% off"), ("_", "a_b"), (r"\", r"back\slash"), ("';", "'; --"), ("0 o", "50 off")]
    {
        let filter = MessageFilter { q: Some(q.into()), ..MessageFilter::default() };
        assert_eq!(list(db, &on, filter, PageRequest::default()).await, [expected], "{q}");
    }
}

async fn quoted_messages_are_found_within_the_bot(db: &Db) {
    let on = stage(db).await;
    let other = db.bot(on.owner).await;
    let leases = lease(db).await.1;
    let mut mine: Vec<_> =
        ["first", "second", "third"].map(|text| message(db, on.bot, "ann", text, text)).into();
    // As most messages are: the key contains the id.
    "id:third".clone_into(&mut mine[2].row.dedupe_key);
    db.store.accept(batch(&on.lease, None, mine)).await.unwrap();
    db.store.accept(batch(&leases[&other], None, vec![message(db, other, "ann", "9", "his")])).await.unwrap();
    let sent = outbound(db, on.bot, "ann", "key", &["a reply"]);
    let id = sent.message_id;
    commit!(db, |tx| tx.outbox().enqueue(&[sent]).await).unwrap();
    db.sql("UPDATE outbox SET network_id = '77'").await;
    let mut read = db.store.read().await.unwrap();
    let wanted = ["second", "third", "77", "9", "unknown"];
    let found = read.messages().quoted(on.bot, &wanted).await.unwrap();
    for (key, text, direction) in [
        ("second", "second", Direction::Inbound),
        ("third", "third", Direction::Inbound),
        ("77", "a reply", Direction::Outbound),
    ] {
        let one = &found[key];
        assert_eq!((one.content.as_str(), one.direction, one.kind), (text, direction, MessageKind::Text));
    }
    assert_eq!((found.len(), found["77"].message_id), (3, id));
    assert!(read.messages().quoted(db.ids.next(), &["77"]).await.unwrap().is_empty());
    assert!(read.messages().quoted(on.bot, &[]).await.unwrap().is_empty());
}

async fn a_message_is_found_within_its_bot(db: &Db) {
    let on = stage(db).await;
    let (id, _, _) = accept_one(db, &on, "ann", "1", 0).await;
    let other = db.bot(on.owner).await;
    let mut read = db.store.read().await.unwrap();
    assert!(read.messages().exists(on.bot, id).await.unwrap());
    assert!(!read.messages().exists(other, id).await.unwrap());
    assert!(!read.messages().exists(on.bot, db.ids.next()).await.unwrap());
    let found = read.messages().find(on.bot, id).await.unwrap().unwrap();
    assert_eq!((found.id, found.channel_ids), (id, vec![on.channel]));
    assert!(read.messages().find(other, id).await.unwrap().is_none());
    let all = read.messages().find_all(on.bot, &[db.ids.next(), id]).await.unwrap();
    assert_eq!(
        all.into_iter().map(|message| (message.id, message.channel_ids)).collect::<Vec<_>>(),
        [(id, vec![on.channel])]
    );
    assert!(read.messages().find_all(other, &[id]).await.unwrap().is_empty());
    assert!(read.messages().find(on.bot, db.ids.next()).await.unwrap().is_none());
}
