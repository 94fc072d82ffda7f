//! Steps as they are stored: a JSON array that grows as text. An element is a step without the values that most steps
//! have, or a string: steps that were stored together, compressed.

use std::borrow::Cow;

use data_encoding::BASE64_NOPAD;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_with::skip_serializing_none;

use super::{
    step::{Step, StepDetail, StepKind, StepName},
    step_dictionary::DICTIONARY,
    trace::TraceStatus,
};
use crate::text::json_of_size;

/// Longest text of steps that is compressed, in bytes. Most are some hundred bytes, nearly all of it in the dictionary; longer
/// ones are bodies and logs, and stay as they are, so that the size of a stored trace tells how much memory it needs.
const MAX_COMPRESSED: usize = 4096;

/// What is missing is as [`Step`] reads it; the time is in Unix milliseconds.
#[skip_serializing_none]
#[derive(Serialize)]
struct Stored<'s> {
    name: StepName,
    kind: StepKind,
    status: Option<TraceStatus>,
    at: i64,
    duration_ms: Option<u64>,
    attempt: Option<u32>,
    detail: Option<&'s StepDetail>,
}

impl<'s> From<&'s Step> for Stored<'s> {
    fn from(step: &'s Step) -> Self {
        Self {
            name: step.name,
            kind: step.kind,
            status: Some(step.status).filter(|status| *status != TraceStatus::Ok),
            at: step.started_at.as_millis(),
            duration_ms: Some(step.duration_ms).filter(|ms| *ms > 0),
            attempt: step.attempt,
            detail: Some(&step.detail).filter(|detail| **detail != StepDetail::default()),
        }
    }
}

/// The array of steps that is stored.
pub(crate) fn steps_array(steps: &[Step]) -> String {
    ["[", &steps_text(steps), "]"].concat()
}

/// Steps as the text that is appended to a stored array: without its brackets.
pub(crate) fn steps_text(steps: &[Step]) -> String {
    let text = json_text(steps);
    if text.is_empty() || text.len() > MAX_COMPRESSED {
        return text;
    }
    let compressed = lz4_flex::block::compress_with_dict(text.as_bytes(), DICTIONARY.as_bytes());
    let length = BASE64_NOPAD.encode_len(compressed.len()) + 2;
    if length >= text.len() {
        return text;
    }
    let mut string = String::with_capacity(length);
    string.push('"');
    BASE64_NOPAD.encode_append(&compressed, &mut string);
    string.push('"');
    string
}

fn json_text(steps: &[Step]) -> String {
    let bodies: usize = steps.iter().filter_map(|step| step.detail.body.as_ref()).map(String::len).sum();
    let stored: Vec<Stored<'_>> = steps.iter().map(Stored::from).collect();
    let mut array = json_of_size(&stored, 384 * steps.len() + bodies + bodies / 4);
    array.pop();
    array.remove(0);
    array
}

/// Steps out of a stored array.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoredSteps(pub Vec<Step>);

impl<'de> Deserialize<'de> for StoredSteps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Element<'t> {
            Compressed(#[serde(borrow)] Cow<'t, str>),
            Step(Box<Step>),
        }
        let mut steps = Vec::new();
        for element in Vec::<Element<'de>>::deserialize(deserializer)? {
            match element {
                Element::Step(step) => steps.push(*step),
                Element::Compressed(text) => steps.extend(decompressed(&text).map_err(D::Error::custom)?),
            }
        }
        Ok(Self(steps))
    }
}

fn decompressed(text: &str) -> Result<Vec<Step>, String> {
    let compressed = BASE64_NOPAD.decode(text.as_bytes()).map_err(|error| error.to_string())?;
    let json = lz4_flex::block::decompress_with_dict(&compressed, MAX_COMPRESSED, DICTIONARY.as_bytes())
        .map_err(|error| error.to_string())?;
    serde_json::from_slice(&[b"[", &json[..], b"]"].concat()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{super::step::StepError, *};
    use crate::time::Timestamp;

    fn step(name: StepName, detail: StepDetail) -> Step {
        let at = Timestamp::from_millis(1_795_822_062_403);
        Step::new(name, StepKind::Webhook, TraceStatus::Ok, at, at, detail)
    }

    fn read(array: &str) -> Vec<Step> {
        serde_json::from_str::<StoredSteps>(array).unwrap().0
    }

    #[test]
    fn unknown_fields_of_a_step_are_not_stored() {
        let stored = |step: Step| serde_json::from_str::<Value>(&json_text(&[step])).unwrap();
        let shortest = stored(step(StepName::Response, StepDetail::default()));
        assert_eq!(shortest, json!({ "name": "response", "kind": "webhook", "at": 1_795_822_062_403_i64 }));
        let error = StepError::new("no");
        let detail = StepDetail { error: Some(error), status: Some(410), ..StepDetail::default() };
        let with = stored(step(StepName::Response, detail).of_attempt(3));
        assert_eq!(
            (&with["detail"], &with["attempt"]),
            (&json!({ "error": { "message": "no" }, "status": 410 }), &json!(3))
        );
    }

    #[test]
    fn what_grew_is_read_in_order() {
        let body = |size: usize| StepDetail { body: Some("ab".repeat(size / 2)), ..StepDetail::default() };
        let first =
            [step(StepName::Received, StepDetail::default()), step(StepName::Filter, StepDetail::default())];
        let long = [step(StepName::Response, body(MAX_COMPRESSED))];
        let last = [step(StepName::Request, body(MAX_COMPRESSED / 2))];
        let array = steps_array(&first);
        let grown =
            format!("{},{},{}]", array.strip_suffix(']').unwrap(), steps_text(&long), steps_text(&last));
        assert!(grown.len() < MAX_COMPRESSED + 512, "short ones are compressed: {grown}");
        assert_eq!(read(&grown), [&first[..], &long, &last].concat());
        assert_eq!((steps_array(&[]).as_str(), read("[]")), ("[]", Vec::new()));
    }

    #[test]
    fn a_usual_attempt_takes_two_fifths_of_its_json() {
        let pairs = |pairs: &[(&str, &str)]| {
            Some(pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect())
        };
        let request = StepDetail {
            method: Some("POST".to_owned()),
            url: Some("https://example.com/hook".to_owned()),
            headers: pairs(&[
                ("content-type", "application/json"),
                ("user-agent", "message-hub/0.1.0"),
                ("x-signature", "***"),
                ("webhook-signature", "***"),
                ("webhook-id", "dlv_01M8FNC2T393QS6DZW6MH5XAYP"),
                ("webhook-timestamp", "1795822062"),
                ("x-hub-attempt", "1"),
            ]),
            payload_crc: Some(1_275_208_943),
            ..StepDetail::default()
        };
        let response = StepDetail {
            status: Some(200),
            headers: pairs(&[("content-length", "0"), ("date", "Fri, 27 Nov 2026 23:27:42 GMT")]),
            body: Some(String::new()),
            ..StepDetail::default()
        };
        let steps = [step(StepName::Request, request), step(StepName::Response, response)];
        let (json, stored) = (json_text(&steps), steps_text(&steps));
        assert!(stored.len() * 5 <= json.len() * 2, "{} of {} bytes: {stored}", stored.len(), json.len());
    }

    #[test]
    fn stored_steps_are_still_read() {
        // Version 0.1.0 stored these: all that is known of a step as in a document, and without what most have.
        let old = r#"[{"name":"received","kind":"inbox","status":"ok","started_at":"2026-11-27T23:27:42.403Z","duration_ms":0,
            "detail":{"msg_type":"text","items":1}},{"name":"filter","kind":"filter","at":1795822062403}]"#;
        let received =
            StepDetail { msg_type: Some("text".to_owned()), items: Some(1), ..StepDetail::default() };
        let expected = [
            Step { kind: StepKind::Inbox, ..step(StepName::Received, received) },
            Step { kind: StepKind::Filter, ..step(StepName::Filter, StepDetail::default()) },
        ];
        assert_eq!(read(old), expected);
        assert_eq!(read(r#"["B+YBD2MCC785NTgyMjA2MjQwM24CPgJcAGA2MjQwM30"]"#), expected);
        // Lines may be added at the beginning of the dictionary; this is the end that the text above was compressed with.
        let first = &DICTIONARY[DICTIONARY.len() - 2616..];
        assert_eq!(
            crc32fast::hash(first.as_bytes()),
            0x4e4e_bc79,
            "steps that are stored can no longer be read"
        );
    }

    #[test]
    fn damaged_steps_are_an_error() {
        for damaged in [r#"["!"]"#, r#"["AAAA"]"#, "[7]", r#"["8P"]"#] {
            assert!(serde_json::from_str::<StoredSteps>(damaged).is_err(), "{damaged}");
        }
    }
}
