//! Messages that a commit gives out to the clients that wait for them.

use serde_json::json;

use super::*;

#[tokio::test]
async fn a_client_at_the_end_gets_what_was_committed_and_later_ones_the_same_from_the_store() {
    let stage = Stage::with(NewChannel { handle: Some("orders".to_owned()), ..NewChannel::named("o") }).await;
    let mut first = stage.listen(None).await;
    let quoted = json!({ "svr_id": "9", "message_item": { "type": 1, "text_item": { "text": "which?" } } });
    for message in [
        json!({ "text": "@orders where is \u{0} order 42?" }),
        json!({ "items": [{ "type": 1, "text_item": { "text": "@orders this one" }, "ref_msg": quoted }] }),
        json!({ "group_id": "group\u{0}1", "session_id": "s 1", "text": "@orders from a group" }),
        json!({ "items": [{ "type": 1, "text_item": { "text": "@orders with a picture" } },
            { "type": 2, "bytes": "iVBORw0KGgo=" }] }),
        json!({ "text": "@orders and after it" }),
    ] {
        let mut message = message;
        message["wx_id"] = stage.bot.wx_id.clone().into();
        stage.hub.sim().inject(message).unwrap();
    }
    while first.newest() < 5 {
        first.changed().await;
    }
    let mut given = Vec::new();
    while first.is_behind() {
        given.extend(first.read(PAGE).await.unwrap().iter().map(data));
    }
    drop(first);
    let stored = stage.listen(Some(0)).await.read(PAGE).await.unwrap();
    let stored: Vec<Value> = stored.iter().map(data).collect();
    assert_eq!((given.len(), &given[..3], &given[4]), (5, &stored[..3], &stored[4]));
    assert_eq!(given[0]["content"], "where is \u{fffd} order 42?");
    assert_eq!(given[1]["quoted"]["text"], "which?");
    assert_eq!(given[3]["media"].as_array().unwrap().len(), 1, "files are looked up: {}", given[3]);
}

#[tokio::test]
async fn what_a_commit_gave_out_is_not_read_again() {
    let stage = Stage::new().await;
    let (mut here, mut behind) = (stage.listen(None).await, stage.listen(Some(0)).await);
    stage.write(texts(1..2)).await;
    stage.sql("DELETE FROM messages").await;
    assert_eq!(drain(&mut here, PAGE).await, [1]);
    stage.write(texts(2..4)).await;
    assert_eq!(drain(&mut here, PAGE).await, [2, 3]);
    assert_eq!(drain(&mut behind, 2).await, [1, 2, 3], "one that is not as fast, too");
    stage.sql("DELETE FROM messages WHERE content = 'text 2'").await;
    drop((here, behind));
    assert_eq!(drain(&mut stage.listen(Some(0)).await, PAGE).await, [-1, 3], "another one reads");
}
