//! Reading the answer of a poll (`docs/ilink.md#polling`).

use std::{collections::HashMap, time::Duration};

use serde_json::value::RawValue;

use super::{field::Fields, message};
use crate::{
    network::{Batch, InboundMessage},
    time::Timestamp,
};

/// Range of the hold times that a server may suggest.
const HOLD_RANGE: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(60)];

/// The hold time that an answer suggests, successful or not; `None` keeps the old one.
pub(super) fn hold(fields: &Fields<'_>) -> Option<Duration> {
    let millis = u64::try_from(fields.integer("longpolling_timeout_ms")).ok().filter(|millis| *millis > 0)?;
    Some(Duration::from_millis(millis).clamp(HOLD_RANGE[0], HOLD_RANGE[1]))
}

/// The messages and the cursor of a successful answer.
pub(super) fn read_batch(fields: &Fields<'_>, now: Timestamp) -> Batch {
    let cursor = Some(fields.text("get_updates_buf")).filter(|cursor| !cursor.is_empty());
    Batch { messages: read_messages(fields, now), cursor, answered: true }
}

fn read_messages(fields: &Fields<'_>, now: Timestamp) -> Vec<InboundMessage> {
    let Some(raw) = fields.raw("msgs") else { return Vec::new() };
    // An invalid list is stored as one unreadable message: a cursor that does not move would return it forever.
    let messages: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
    let texts = if raw.starts_with('[') { messages.iter().map(|raw| raw.get()).collect() } else { vec![raw] };
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut number = |parsed: message::Parsed| {
        let mut message = parsed.message;
        if parsed.keyed_by_content {
            let count = seen.entry(message.dedupe_key.clone()).or_default();
            message.dedupe_key = format!("{}#{count}", message.dedupe_key);
            *count += 1;
        }
        message
    };
    texts.into_iter().map(|raw| number(message::parse(raw, now))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::MessageClass;

    fn batch(body: &str) -> Batch {
        read_batch(&Fields::parse(body).unwrap(), Timestamp::from_millis(5))
    }

    fn keys(body: &str) -> Vec<String> {
        batch(body).messages.into_iter().map(|message| message.dedupe_key).collect()
    }

    #[test]
    fn an_empty_or_missing_cursor_keeps_the_old_one() {
        for (body, cursor) in [
            ("{}", None),
            (r#"{"get_updates_buf":""}"#, None),
            (r#"{"get_updates_buf":null,"msgs":null}"#, None),
            (r#"{"get_updates_buf":7}"#, None),
            (r#"{"get_updates_buf":"QUJD","msgs":[]}"#, Some("QUJD")),
        ] {
            let batch = batch(body);
            assert_eq!(batch.cursor.as_deref(), cursor, "{body}");
            assert!(batch.messages.is_empty() && batch.answered);
        }
    }

    #[test]
    fn the_hold_time_is_adopted_kept_or_clamped() {
        for (body, seconds) in [
            (r#"{"longpolling_timeout_ms":35000}"#, Some(35)),
            (r#"{"longpolling_timeout_ms":5000}"#, Some(5)),
            (r#"{"longpolling_timeout_ms":"20000"}"#, Some(20)),
            (r#"{"longpolling_timeout_ms":0}"#, None),
            (r#"{"longpolling_timeout_ms":-1}"#, None),
            ("{}", None),
            (r#"{"longpolling_timeout_ms":300}"#, Some(5)),
            (r#"{"longpolling_timeout_ms":600000}"#, Some(60)),
        ] {
            assert_eq!(hold(&Fields::parse(body).unwrap()), seconds.map(Duration::from_secs), "{body}");
        }
    }

    #[test]
    fn equal_messages_without_ids_are_two_and_keep_their_keys_in_a_repeat() {
        let message = r#"{"from_user_id":"a@im.wechat","message_type":1,"create_time_ms":9,
            "item_list":[{"type":1,"text_item":{"text":"hi"}}]}"#;
        let sorted_otherwise = r#"{"item_list":[{"text_item":{"text":"hi"},"type":1}],"create_time_ms":9,
            "message_type":1,"from_user_id":"a@im.wechat"}"#;
        let first = keys(&format!(r#"{{"msgs":[{message},{message}]}}"#));
        assert_eq!(first.len(), 2);
        assert_ne!(first[0], first[1]);
        assert_eq!(keys(&format!(r#"{{"msgs":[{sorted_otherwise},{message}]}}"#)), first);
        let other = message.replace("\"hi\"", "\"ho\"");
        assert_eq!(keys(&format!(r#"{{"msgs":[{other},{message}]}}"#))[1], first[0]);
    }

    #[test]
    fn one_unreadable_message_does_not_spoil_the_batch() {
        let deep = "[".repeat(300) + &"]".repeat(300);
        let good = r#"{"message_id":2,"from_user_id":"a","message_type":1}"#;
        for bad in [
            "null".to_owned(),
            "5".to_owned(),
            "[]".to_owned(),
            r#"{"message_id":1,"message_type":1}"#.to_owned(),
            r#"{"message_id":1,"from_user_id":"a","message_type":1,"item_list":"x"}"#.to_owned(),
            r#"{"message_id":1,"from_user_id":"\ud800","message_type":1}"#.to_owned(),
            format!(r#"{{"message_id":1,"from_user_id":"a","message_type":1,"item_list":{deep}}}"#),
        ] {
            let batch = batch(&format!(r#"{{"msgs":[{bad},{good}],"get_updates_buf":"c"}}"#));
            let classes: Vec<_> = batch.messages.iter().map(|message| message.class).collect();
            assert_eq!(classes, [MessageClass::Quarantined, MessageClass::User], "{bad}");
            assert_eq!(batch.messages[0].raw.expose(), bad);
            if bad.starts_with('{') {
                assert_eq!(batch.messages[0].dedupe_key, "id:1");
            }
            assert_eq!(batch.cursor.as_deref(), Some("c"));
        }
        let odd = batch(r#"{"msgs":{"a":1}}"#);
        assert_eq!(odd.messages.len(), 1);
        assert_eq!(odd.messages[0].class, MessageClass::Quarantined);
    }

    #[test]
    fn mutated_batches_are_read_or_refused_and_nothing_else() {
        let random = crate::random::Random::seeded(12);
        let below = |bound: usize| usize::try_from(random.below(bound as u64)).unwrap();
        let good = r#"{"ret":0,"msgs":[{"seq":4,"message_id":7497484083968569736,"from_user_id":"a@im.wechat",
            "create_time_ms":1790000000123,"message_type":1,"context_token":"AARz","item_list":[{"type":1,
            "text_item":{"text":"hi"},"ref_msg":{"svr_id":"9","partial_text":{"start":"a","end":"b",
            "startindex":1}}}]},{"message_id":"2","from_user_id":"b","item_list":[{"type":4,
            "file_item":{"len":"5"}}]}],"get_updates_buf":"c","longpolling_timeout_ms":35000}"#;
        let pieces =
            ["\"", "\\", "{", "}", "[", "]", ",", ":", "null", "-1", "1e999", "\\ud800", "\\u0000", "[[[["];
        for _ in 0..10_000 {
            let mut bytes = good.as_bytes().to_vec();
            for _ in 0..=below(3) {
                let (from, piece) = (below(bytes.len()), pieces[below(pieces.len())]);
                let to = (from + below(4)).min(bytes.len());
                bytes.splice(from..to, piece.bytes());
            }
            let body = String::from_utf8_lossy(&bytes);
            let Some(fields) = Fields::parse(&body) else { continue };
            let _ = hold(&fields);
            for message in read_batch(&fields, Timestamp::from_millis(5)).messages {
                assert!(!message.dedupe_key.is_empty() && !message.dedupe_key.contains('\0'));
            }
        }
    }
}
