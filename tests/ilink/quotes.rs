//! Quotes.

use hub_core::{
    id::MessageId,
    network::{MessageKind, Quote},
};
use serde_json::{Value, json};

use super::stage::Stage;

/// The quote that arrives when an item carries `reference`.
async fn quote_on(item: Value, reference: Value) -> (MessageKind, Quote) {
    let stage = Stage::quick().await;
    let bot = stage.bind().await;
    let mut item = item;
    item["ref_msg"] = reference;
    stage.sim.inject(json!({ "wx_id": bot.account.wx_id, "items": [item] })).unwrap();
    let message = bot.receive("").await.messages.remove(0);
    (message.kind, message.quote.expect("the quote arrives"))
}

async fn quote(reference: Value) -> Quote {
    quote_on(json!({ "type": 1, "text_item": { "text": "and this one?" } }), reference).await.1
}

#[tokio::test]
async fn q1_a_quote_with_its_text_carries_it() {
    let quote = quote(json!({ "title": "", "message_item": {
        "type": 1, "create_time_ms": 1_789_999_990_000_i64, "is_completed": true,
        "text_item": { "text": "first offer" } } }))
    .await;
    assert_eq!((quote.text.as_deref(), quote.network_id), (Some("first offer"), None));
}

#[tokio::test]
async fn q3_a_quote_without_a_text_keeps_its_id() {
    for (reference, id) in [
        (json!({ "svr_id": "7497484083968569700" }), Some("7497484083968569700")),
        (
            json!({ "message_item": { "type": 0, "msg_id": 7_497_484_083_968_569_700_u64 } }),
            Some("7497484083968569700"),
        ),
        (json!({ "message_item": { "type": 8, "is_completed": true } }), None),
    ] {
        let quote = quote(reference.clone()).await;
        assert_eq!((quote.network_id.as_deref(), quote.text), (id, None), "{reference}");
    }
}

#[tokio::test]
async fn q4_a_part_is_found_by_either_count_and_the_hash_decides() {
    let whole = "abcabcXYZabc";
    for (end_index, md5, expected) in [
        (2, "c43a5009e108d27985d51161f0579a7a", "abcXYZabc"),
        (0, "c43a5009e108d27985d51161f0579a7a", "abcXYZabc"),
        (2, "00000000000000000000000000000000", whole),
    ] {
        let partial = json!({
            "start": "abc", "end": "abc", "startindex": 1, "endindex": end_index, "quotemd5": md5,
        });
        let sent =
            json!({ "message_item": { "type": 1, "text_item": { "text": whole } }, "partial_text": partial });
        assert_eq!(quote(sent).await.meant(), Some(expected));
        let mut by_id = quote(json!({ "svr_id": "9", "partial_text": partial })).await;
        assert_eq!(by_id.text, None);
        by_id.resolve(MessageId::from_u128(1), MessageKind::Text, whole);
        assert_eq!(by_id.meant(), Some(expected));
    }
}

#[tokio::test]
async fn q5_a_quote_on_a_voice_message_is_kept() {
    let voice = json!({ "type": 3, "voice_item": { "playtime": 2380, "text": "on my way" } });
    let (kind, quote) = quote_on(voice, json!({ "svr_id": "9" })).await;
    assert_eq!((kind, quote.network_id.as_deref()), (MessageKind::Voice, Some("9")));
}
