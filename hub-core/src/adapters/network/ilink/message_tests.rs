use serde_json::json;

use super::*;
use crate::id::MessageId;

/// A CDN reference, with the secrets one carries.
fn reference() -> Value {
    json!({
        "encrypt_query_param": "P1", "aes_key": "MDAxMTIyMzM0NDU1NjY3Nzg4OTlhYWJiY2NkZGVlZmY=", "encrypt_type": 1,
        "full_url": "https://novac2c.cdn.weixin.qq.com/c2c/download?encrypted_query_param=P1",
    })
}

fn with_items(items: &Value) -> Value {
    json!({
        "seq": 41, "message_id": 7_497_484_083_968_569_736_u64,
        "from_user_id": "o9cq80Ab_C-dE@im.wechat", "to_user_id": "0123456789ab@im.bot",
        "client_id": "c1", "session_id": "s1", "group_id": "",
        "create_time_ms": 1_790_000_000_123_i64, "message_type": 1, "message_state": 2,
        "context_token": "AARz1", "item_list": items,
    })
}

fn read(message: &Value) -> InboundMessage {
    parse(&message.to_string(), Timestamp::from_millis(7)).message
}

fn read_one(item: &Value) -> InboundMessage {
    read(&with_items(&json!([item])))
}

#[test]
fn a_text_message_is_read_whole() {
    let item = json!({
        "type": 1, "create_time_ms": 1_790_000_000_123_i64, "is_completed": true,
        "msg_id": "7497484083968569736", "text_item": { "text": "hello" },
    });
    let message = read_one(&item);
    assert_eq!(message.dedupe_key, "id:7497484083968569736");
    assert_eq!(message.network_id.as_deref(), Some("7497484083968569736"));
    assert_eq!(message.class, MessageClass::User);
    assert_eq!(message.from_user_id, "o9cq80Ab_C-dE@im.wechat");
    assert_eq!((message.to_user_id.as_str(), message.session_id.as_str()), ("0123456789ab@im.bot", "s1"));
    assert_eq!((message.kind, message.content.as_str()), (MessageKind::Text, "hello"));
    assert_eq!(message.context_token.as_ref().map(Secret::expose), Some("AARz1"));
    assert_eq!(message.sent_at.as_millis(), 1_790_000_000_123);
    assert_eq!(message.raw.expose(), "", "the other fields contain all of it");
    assert_eq!(message.quote, None);
}

#[test]
fn media_arrive_as_items_without_their_keys() {
    let image = json!({ "type": 2, "image_item": {
        "media": reference(), "aeskey": "00112233445566778899aabbccddeeff", "mid_size": 248_736,
        "hd_size": 248_736, "thumb_media": reference(), "thumb_size": 18_224 } });
    let voice = json!({ "type": 3, "voice_item": {
        "media": reference(), "encode_type": 4, "playtime": 2_380, "size": 4_760, "text": "on my way" } });
    let file = json!({ "type": 4, "file_item": {
        "media": reference(), "file_name": "offer.pdf", "md5": "cca24504019bf1f5b8247e6ed7483563", "len": "5" } });
    let video = json!({ "type": 5, "video_item": {
        "media": reference(), "video_size": 10_485_776, "play_length": 18_320, "thumb_media": reference() } });
    let expected = |kind, text: Option<&str>, file_name: Option<&str>, size, duration_ms| MessageItem {
        kind,
        text: text.map(Into::into),
        file_name: file_name.map(Into::into),
        size: Some(size),
        duration_ms,
    };
    for (item, read_as, content) in [
        (image, expected(MessageKind::Image, None, None, 248_736, None), ""),
        (voice, expected(MessageKind::Voice, Some("on my way"), None, 4_760, Some(2_380)), "on my way"),
        (file, expected(MessageKind::File, None, Some("offer.pdf"), 5, None), "offer.pdf"),
        (video, expected(MessageKind::Video, None, None, 10_485_776, Some(18_320)), ""),
    ] {
        let message = read_one(&item);
        assert_eq!((message.kind, message.content.as_str()), (read_as.kind, content));
        let shown = serde_json::to_string(&message.items).unwrap();
        assert!(!shown.contains("P1") && !shown.contains("MDAx") && !shown.contains("0011"), "{shown}");
        assert_eq!(message.items, [read_as]);
    }
}

#[test]
fn several_items_make_one_content() {
    let message = read(&with_items(&json!([
        { "type": 99, "something_item": {} },
        { "type": 1, "text_item": { "text": "one" } },
        { "type": "1", "text_item": { "text": "two" } },
        { "type": 3, "voice_item": { "text": "spoken" } },
    ])));
    assert_eq!((message.kind, message.content.as_str()), (MessageKind::Text, "one\ntwo"));
    assert_eq!(message.items.len(), 4);
}

#[test]
fn odd_items_are_other_and_stay_deliverable() {
    for items in [
        json!([{ "type": 99, "something_item": { "x": 1 }, "button_item_list": [] }]),
        json!([{ "type": 1 }]),
        json!([{ "type": 1, "text_item": "text" }]),
        json!([{ "type": 4, "file_item": null }]),
        json!([5]),
        json!([{}]),
        json!([]),
        Value::Null,
    ] {
        let message = read(&with_items(&items));
        assert_eq!((message.class, message.kind), (MessageClass::User, MessageKind::Other), "{items}");
        assert_eq!((message.content.as_str(), message.raw.expose()), ("", &*with_items(&items).to_string()));
    }
}

#[test]
fn classes_follow_type_state_and_recall() {
    let class_and_key = |changes: Value| {
        let mut message = with_items(&json!([]));
        message.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let message = read(&message);
        (message.class, message.dedupe_key.replace("id:7497484083968569736", "id"))
    };
    for (changes, class, key) in [
        (json!({}), MessageClass::User, "id"),
        (json!({ "message_state": null }), MessageClass::User, "id"),
        (json!({ "message_type": 2 }), MessageClass::Bot, "id"),
        (json!({ "message_type": 0 }), MessageClass::Bot, "id"),
        (json!({ "message_state": 1 }), MessageClass::Unfinished, "id~unfinished"),
        (json!({ "delete_time_ms": 5 }), MessageClass::Recalled, "id~recalled"),
        (json!({ "from_user_id": "" }), MessageClass::Quarantined, "id"),
    ] {
        assert_eq!(class_and_key(changes.clone()), (class, key.to_owned()), "{changes}");
    }
}

#[test]
fn keys_come_from_the_first_name_there_is() {
    let item = json!([{ "type": 1, "msg_id": 12, "text_item": { "text": "x" } }]);
    let key = |remove: &[&str], items: &Value| {
        let mut message = with_items(items);
        for name in remove {
            message.as_object_mut().unwrap().remove(*name);
        }
        parse(&message.to_string(), Timestamp::from_millis(7))
    };
    let named = |parsed: Parsed| (parsed.message.dedupe_key, parsed.keyed_by_content);
    assert_eq!(named(key(&["message_id"], &item)), ("item:12".into(), false));
    assert_eq!(key(&["message_id"], &item).message.network_id.as_deref(), Some("12"));
    let sender = "o9cq80Ab_C-dE@im.wechat";
    assert_eq!(named(key(&["message_id"], &json!([]))), (format!("client:{sender}:c1"), false));
    assert_eq!(named(key(&["message_id", "client_id"], &json!([]))), (format!("seq:{sender}:41"), false));
    let (hash, by_content) = named(key(&["message_id", "client_id", "seq"], &json!([])));
    assert!(by_content && hash.starts_with("hash:"));
    let mut long = with_items(&json!([]));
    long["message_id"] = "9".repeat(5_000).into();
    assert!(read(&long).dedupe_key.len() <= MAX_KEY);
}

#[test]
fn a_missing_time_is_now() {
    let mut message = with_items(&json!([]));
    message["create_time_ms"] = 0.into();
    assert_eq!(read(&message).sent_at.as_millis(), 7);
}

fn quote_of(reference: &Value) -> Quote {
    let item = json!({ "type": 1, "text_item": { "text": "and this one?" }, "ref_msg": reference });
    read_one(&item).quote.unwrap()
}

#[test]
fn quotes_carry_text_or_id_or_both() {
    let at = 1_789_999_990_000_i64;
    for (reference, id, text) in [
        (
            json!({ "title": "", "message_item": { "type": 1, "create_time_ms": at, "is_completed": true,
                "text_item": { "text": "first offer" } } }),
            None,
            Some("first offer"),
        ),
        (json!({ "message_item": { "type": 8, "create_time_ms": at, "is_completed": true } }), None, None),
        (json!({ "message_item": { "type": 0, "msg_id": 5 } }), Some("5"), None),
        (
            json!({ "svr_id": 7_497_484_083_968_569_700_u64, "message_item": { "msg_id": 5 } }),
            Some("7497484083968569700"),
            None,
        ),
        (json!({ "svr_id": "9", "title": "summary" }), Some("9"), Some("summary")),
        (json!({ "title": "summary" }), None, Some("summary")),
        (
            json!({ "message_item": { "type": 4, "file_item": { "file_name": "a.pdf" } } }),
            None,
            Some("a.pdf"),
        ),
    ] {
        let quote = quote_of(&reference);
        assert_eq!((quote.network_id.as_deref(), quote.meant()), (id, text), "{reference}");
    }
}

#[test]
fn a_quote_keeps_the_whole_text_and_the_part_that_is_meant() {
    let partial = json!({ "start": "abc", "end": "abc", "startindex": "1", "endindex": 2,
        "quotemd5": "c43a5009e108d27985d51161f0579a7a" });
    let sent = quote_of(&json!({ "message_item": { "type": 1, "text_item": { "text": "abcabcXYZabc" } },
        "partial_text": partial }));
    assert_eq!((sent.text.as_deref(), sent.meant()), (Some("abcabcXYZabc"), Some("abcXYZabc")));
    let mut named = quote_of(&json!({ "svr_id": "9", "partial_text": partial }));
    assert!(named.text.is_none() && named.partial_text.is_some());
    named.resolve(MessageId::from_u128(1), MessageKind::Text, "abcabcXYZabc");
    assert_eq!(named.meant(), Some("abcXYZabc"));
}

#[test]
fn a_quote_of_a_file_keeps_its_kind_and_name() {
    for (item, kind, name) in [
        (json!({ "type": 2, "image_item": { "mid_size": 16 } }), Some(MessageKind::Image), None),
        (json!({ "type": 3, "voice_item": {} }), Some(MessageKind::Voice), None),
        (
            json!({ "type": "4", "file_item": { "file_name": "a.pdf" } }),
            Some(MessageKind::File),
            Some("a.pdf"),
        ),
        (json!({ "type": 5, "video_item": {} }), Some(MessageKind::Video), None),
        (json!({ "type": 9 }), None, None),
        (json!([]), None, None),
    ] {
        let quote = quote_of(&json!({ "message_item": item }));
        assert_eq!((quote.kind, quote.file_name.as_deref()), (kind, name), "{item}");
    }
}

#[test]
fn a_quote_on_a_voice_message_is_kept() {
    let message =
        read_one(&json!({ "type": 3, "voice_item": { "playtime": 1 }, "ref_msg": { "svr_id": "9" } }));
    assert_eq!(message.quote.unwrap().network_id.as_deref(), Some("9"));
}
