//! The AI sink: the administrator's endpoint, conversations, costs.

use std::{sync::Arc, time::Duration};

use hub_core::{
    id::{ChannelId, MessageId},
    secret::Sealed,
    store::{
        ai::{AiConfigRow, AiUsage, Conversation, ConversationQuery},
        deliveries::{DeliveryState, Finished},
    },
};

use super::scene::{Stage, accept_one, add_channel, batch, message, outbound, stage, stamp, taken, update};
use crate::support::database::{Db, START};

contract!("ai": {
    the_endpoint_is_one_row => [config, set_config],
    a_conversation_is_what_the_channel_and_the_person_said => [conversation],
    answers_given_later_count_unless_it_is_a_replay => [conversation],
    only_the_replies_of_the_channel_are_counted => [conversation],
    messages_that_wait_for_an_endpoint_are_due_when_there_is_one => [wake_waiting],
    costs_add_up_per_day_and_endpoint_and_are_forgotten => [conversation, delete_usage_before],
    the_cost_of_a_test_counts_like_that_of_a_delivery => [add_usage, conversation],
});

async fn the_cost_of_a_test_counts_like_that_of_a_delivery(db: &Db) {
    let on = stage(db).await;
    let used = |source| AiUsage {
        channel_id: on.channel,
        day: 7,
        source,
        calls: 1,
        prompt_tokens: 15,
        completion_tokens: 2,
    };
    for source in ["global", "global", "custom"] {
        let used = used(source);
        commit!(db, |tx| tx.ai().add_usage(&used).await).unwrap();
    }
    let found = conversation(db, &query(&on, on.channel, db.ids.next())).await;
    assert_eq!(found.tokens_today, 34, "those of another endpoint do not count");
}

async fn messages_that_wait_for_an_endpoint_are_due_when_there_is_one(db: &Db) {
    let on = stage(db).await;
    accept_one(db, &on, "ann", "1", 0).await;
    let later = (START + Duration::from_secs(3600)).as_millis();
    db.sql(format!(
        "UPDATE deliveries SET state = 'parked', sink = 'ai', last_error = 'no endpoint', due_at = {later}"
    ))
    .await;
    for (reason, due_at) in [("another reason", later), ("no endpoint", START.as_millis())] {
        commit!(db, |tx| tx.ai().wake_waiting(reason, START).await).unwrap();
        let stored = db.texts("SELECT CAST(due_at AS TEXT) FROM deliveries").await;
        assert_eq!(stored, [due_at.to_string()], "{reason}");
    }
}

fn query(on: &Stage, channel_id: ChannelId, message_id: MessageId) -> ConversationQuery {
    ConversationQuery {
        bot_id: on.bot,
        channel_id,
        peer: "ann".to_owned(),
        message_id,
        later_answers: true,
        limit: 100,
        replies_since: START,
        day: 7,
    }
}

async fn conversation(db: &Db, query: &ConversationQuery) -> Conversation {
    db.store.read().await.unwrap().ai().conversation(query).await.unwrap()
}

fn texts(conversation: &Conversation) -> Vec<&str> {
    conversation.messages.iter().map(|said| said.content.as_str()).collect()
}

/// The bot says something to ann, by a channel or by no one's.
async fn answer(db: &Db, on: &Stage, channel: Option<ChannelId>, key: &str) {
    let row = hub_core::store::outbox::NewOutbound {
        channel_id: channel,
        ..outbound(db, on.bot, "ann", key, &[key])
    };
    commit!(db, |tx| tx.outbox().enqueue(&[row]).await).unwrap();
}

async fn the_endpoint_is_one_row(db: &Db) {
    let config = async || db.store.read().await.unwrap().ai().config().await.unwrap();
    assert_eq!(config().await, None);
    let first = AiConfigRow {
        settings: "{}".into(),
        api_key: Some(Sealed::from("sealed".to_owned())),
        updated_at: START,
    };
    let second = AiConfigRow {
        settings: r#"{"model":"'"}"#.into(),
        api_key: None,
        updated_at: START + Duration::from_secs(1),
    };
    for row in [first, second] {
        let stored = row.clone();
        commit!(db, |tx| tx.ai().set_config(&stored).await).unwrap();
        assert_eq!(config().await, Some(row));
    }
}

async fn a_conversation_is_what_the_channel_and_the_person_said(db: &Db) {
    let on = stage(db).await;
    let other = add_channel(db, on.bot, "other").await;
    accept_one(db, &on, "ann", "first", 0).await;
    answer(db, &on, Some(on.channel), "dlv_1:0").await;
    accept_one(db, &on, "bob", "someone else", 0).await;
    let (elsewhere, _) = taken(db, message(db, on.bot, "ann", "k", "for the other channel"), other, 0);
    let (mut both, _) = taken(db, message(db, on.bot, "ann", "b", "@shop for both"), on.channel, 0);
    both.routes[0].taken.as_mut().unwrap().content = Some("for both".to_owned());
    let (both, _) = taken(db, both, other, 0);
    db.store.accept(batch(&on.lease, None, vec![elsewhere, both])).await.unwrap();
    answer(db, &on, Some(other), "dlv_2:0").await;
    answer(db, &on, None, "sent by hand").await;
    answer(db, &on, Some(on.channel), "dlv_3:0").await;
    db.sql("UPDATE messages SET status = 'failed' WHERE dedupe_key = 'dlv_3:0'").await;
    let (current, ..) = accept_one(db, &on, "ann", "now", 0).await;
    let mut wanted = query(&on, on.channel, current);
    let said = conversation(db, &wanted).await;
    assert_eq!(texts(&said), ["for both", "dlv_1:0", "first"], "newest first, as the channel sees them");
    let sides: Vec<_> = said.messages.iter().map(|said| said.direction.as_str()).collect();
    assert_eq!(sides, ["inbound", "outbound", "inbound"]);
    assert_eq!(
        (said.messages[0].user_name.as_str(), said.messages[0].kind.as_str()),
        ("Name of ann", "text")
    );
    wanted.limit = 2;
    assert_eq!(texts(&conversation(db, &wanted).await), ["for both", "dlv_1:0"]);
    let theirs = conversation(db, &query(&on, other, current)).await;
    assert_eq!(texts(&theirs), ["dlv_2:0", "@shop for both", "for the other channel"]);
}

async fn answers_given_later_count_unless_it_is_a_replay(db: &Db) {
    let on = stage(db).await;
    accept_one(db, &on, "ann", "first", 0).await;
    let (second, ..) = accept_one(db, &on, "ann", "second", 0).await;
    answer(db, &on, Some(on.channel), "dlv_to_first:0").await;
    accept_one(db, &on, "ann", "third", 0).await;
    let mut wanted = query(&on, on.channel, second);
    assert_eq!(texts(&conversation(db, &wanted).await), ["dlv_to_first:0", "first"]);
    wanted.later_answers = false;
    assert_eq!(texts(&conversation(db, &wanted).await), ["first"]);
}

async fn only_the_replies_of_the_channel_are_counted(db: &Db) {
    let on = stage(db).await;
    let other = add_channel(db, on.bot, "other").await;
    let (current, ..) = accept_one(db, &on, "ann", "now", 0).await;
    for (channel, key) in [
        (Some(on.channel), "dlv_1:0"),
        (Some(on.channel), "dlv_1:1"),
        (Some(other), "dlv_2:0"),
        (Some(on.channel), "a program's own"),
        (None, "dlv_3:0"),
    ] {
        answer(db, &on, channel, key).await;
    }
    let mut wanted = query(&on, on.channel, current);
    assert_eq!(conversation(db, &wanted).await.replies, 2);
    wanted.replies_since = START + Duration::from_millis(1);
    assert_eq!(conversation(db, &wanted).await.replies, 0);
}

async fn costs_add_up_per_day_and_endpoint_and_are_forgotten(db: &Db) {
    let on = stage(db).await;
    let (current, id, trace) = accept_one(db, &on, "ann", "now", on.lease.fence).await;
    let used = |day, source, tokens| AiUsage {
        channel_id: on.channel,
        day,
        source,
        calls: 1,
        prompt_tokens: tokens,
        completion_tokens: 1,
    };
    let costs = [used(7, "global", 10), used(7, "global", 20), used(7, "custom", 40), used(6, "global", 80)];
    for (attempts, usage) in (1..).zip(costs) {
        let finished = Finished {
            id,
            channel: on.channel,
            fence: on.lease.fence,
            state: DeliveryState::Parked,
            attempts,
            due_at: START,
            first_attempt_at: START,
            keep: false,
            last_error: None,
            stamp: stamp(),
            is_followed: false,
            trace: update(trace, "ai"),
            replies: Vec::new(),
            send_at_once: None,
            health: None,
            usage: Some(usage),
        };
        let finished = Arc::new(finished);
        db.store.finish(Arc::clone(&finished)).await.unwrap();
        // The commit went unheard: an outcome costs once.
        db.store.finish(finished).await.unwrap();
    }
    let wanted = query(&on, on.channel, current);
    assert_eq!(conversation(db, &wanted).await.tokens_today, 32);
    let yesterday = ConversationQuery { day: 6, ..wanted.clone() };
    assert_eq!(conversation(db, &yesterday).await.tokens_today, 81);
    let calls =
        db.number("SELECT CAST(calls AS BIGINT) FROM ai_usage WHERE day = 7 AND source = 'global'").await;
    assert_eq!(calls, 2);
    let forget = async |limit| commit!(db, |tx| tx.ai().delete_usage_before(7, limit).await).unwrap();
    assert_eq!((forget(1).await, forget(1).await), (1, 0));
    assert_eq!(conversation(db, &yesterday).await.tokens_today, 0);
    assert_eq!(conversation(db, &wanted).await.tokens_today, 32);
}
