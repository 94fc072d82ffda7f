//! Steps as they are stored with a trace: pieces of bytes, one for all that was stored together. A piece is its length, and
//! steps as JSON without the values that most steps have, compressed if that is shorter.

use std::borrow::Cow;

use data_encoding::BASE64_NOPAD;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_with::skip_serializing_none;
use sqlx::{ColumnIndex, Decode, FromRow, Row, Type, error::BoxDynError};

use super::{
    step::{Step, StepDetail, StepKind, StepName},
    step_dictionary::{FIRST, of_trace},
    trace::TraceStatus,
};
use crate::{columns::undecodable, id::TraceId, text::json_of_size};

/// Longest text of steps that is compressed, in bytes. Most are some hundred bytes, nearly all of it in the dictionary; longer
/// ones are bodies and logs, and stay as they are, so that the size of a stored trace tells how much memory it needs.
const MAX_COMPRESSED: usize = 4096;

/// The bit of a piece's first number that tells whether it is compressed; the others are its length.
const COMPRESSED: usize = 1;

/// A step as stored. Absent fields have the defaults of [`Step`]; the time is in Unix milliseconds.
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

/// Steps that are appended to those of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedSteps(Vec<u8>);

impl PackedSteps {
    /// Packs steps of a trace.
    pub fn new(trace: TraceId, steps: &[Step]) -> Self {
        let mut packed = Self::default();
        if steps.is_empty() {
            return packed;
        }
        let json = json_text(steps);
        if json.len() <= MAX_COMPRESSED {
            let compressed = lz4_flex::block::compress_with_dict(json.as_bytes(), of_trace(trace).as_bytes());
            if compressed.len() < json.len() {
                packed.push(&compressed, COMPRESSED);
                return packed;
            }
        }
        packed.push(json.as_bytes(), 0);
        packed
    }

    /// The number has seven bits in each byte, the lowest first; the highest bit says that there are more.
    fn push(&mut self, piece: &[u8], flag: usize) {
        let mut number = piece.len() << 1 | flag;
        self.0.reserve(piece.len() + 3);
        while number > 0x7f {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
        self.0.extend(piece);
    }

    /// Appends later steps of the same trace.
    pub fn append(&mut self, later: &Self) {
        self.0.extend(&later.0);
    }

    /// The bytes that are stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

fn json_text(steps: &[Step]) -> String {
    let bodies: usize = steps.iter().filter_map(|step| step.detail.body.as_ref()).map(String::len).sum();
    let stored: Vec<Stored<'_>> = steps.iter().map(Stored::from).collect();
    let mut array = json_of_size(&stored, 384 * steps.len() + bodies + bodies / 4);
    array.pop();
    array.remove(0);
    array
}

/// Steps of a stored trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoredSteps(pub Vec<Step>);

impl StoredSteps {
    /// Reads what is stored of a trace: the array that version 0.1.0 stored first, an empty text for none, and what is
    /// packed.
    pub(crate) fn read(trace: TraceId, array: &str, packed: &[u8]) -> Result<Self, BoxDynError> {
        let mut steps = if array.is_empty() { Vec::new() } else { serde_json::from_str::<Array>(array)?.0 };
        let mut rest = packed;
        while let Some((is_compressed, piece)) = next_piece(&mut rest)? {
            let json = if is_compressed {
                decompressed(piece, &of_trace(trace))?
            } else {
                [b"[", piece, b"]"].concat()
            };
            steps.append(&mut serde_json::from_slice(&json)?);
        }
        Ok(Self(steps))
    }
}

/// Out of the columns `id`, `steps` and `packed_steps` of a trace; a list that leaves the steps out has NULL in both.
impl<'r, R: Row> FromRow<'r, R> for StoredSteps
where
    Option<&'r str>: Decode<'r, R::Database> + Type<R::Database>,
    Option<&'r [u8]>: Decode<'r, R::Database> + Type<R::Database>,
    TraceId: Decode<'r, R::Database> + Type<R::Database>,
    for<'i> &'i str: ColumnIndex<R>,
{
    fn from_row(row: &'r R) -> sqlx::Result<Self> {
        let (array, packed): (Option<&str>, Option<&[u8]>) =
            (row.try_get("steps")?, row.try_get("packed_steps")?);
        Self::read(row.try_get("id")?, array.unwrap_or_default(), packed.unwrap_or_default())
            .map_err(|source| undecodable("steps", source))
    }
}

fn next_piece<'p>(rest: &mut &'p [u8]) -> Result<Option<(bool, &'p [u8])>, BoxDynError> {
    if rest.is_empty() {
        return Ok(None);
    }
    let mut number = 0;
    for shift in (0..usize::BITS).step_by(7) {
        let (&byte, after) = rest.split_first().ok_or("a piece ends within its length")?;
        *rest = after;
        number |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    let (piece, after) = rest.split_at_checked(number >> 1).ok_or("a piece is cut off")?;
    *rest = after;
    Ok(Some((number & COMPRESSED != 0, piece)))
}

/// Steps as version 0.1.0 stored them: an array of steps, and of strings with compressed ones.
struct Array(Vec<Step>);

impl<'de> Deserialize<'de> for Array {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Element<'t> {
            Compressed(#[serde(borrow)] Cow<'t, str>),
            Step(Box<Step>),
        }
        let read = |text: &str| -> Result<Vec<Step>, BoxDynError> {
            Ok(serde_json::from_slice(&decompressed(&BASE64_NOPAD.decode(text.as_bytes())?, FIRST)?)?)
        };
        let mut steps = Vec::new();
        for element in Vec::<Element<'de>>::deserialize(deserializer)? {
            match element {
                Element::Step(step) => steps.push(*step),
                Element::Compressed(text) => steps.extend(read(&text).map_err(D::Error::custom)?),
            }
        }
        Ok(Self(steps))
    }
}

/// The array of steps.
fn decompressed(compressed: &[u8], dictionary: &str) -> Result<Vec<u8>, BoxDynError> {
    let json = lz4_flex::block::decompress_with_dict(compressed, MAX_COMPRESSED, dictionary.as_bytes())?;
    Ok([b"[", &json[..], b"]"].concat())
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

    fn trace() -> TraceId {
        "tr_01M8FNC2T393QS6DZW6MH5XAYN".parse().unwrap()
    }

    fn read(array: &str, packed: &PackedSteps) -> Vec<Step> {
        StoredSteps::read(trace(), array, packed.as_bytes()).unwrap().0
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
        let mut packed = PackedSteps::new(trace(), &first);
        packed.append(&PackedSteps::new(trace(), &long));
        packed.append(&PackedSteps::default());
        packed.append(&PackedSteps::new(trace(), &last));
        assert!(packed.as_bytes().len() < MAX_COMPRESSED + 512, "short ones are compressed");
        assert_eq!(read("", &packed), [&first[..], &long, &last].concat());
        assert_eq!(PackedSteps::new(trace(), &[]), PackedSteps::default());
        assert_eq!(read("", &PackedSteps::default()), Vec::new());
    }

    #[test]
    fn a_usual_attempt_takes_a_fifth_of_its_json() {
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
        let (json, packed) = (json_text(&steps), PackedSteps::new(trace(), &steps));
        let (packed, json) = (packed.as_bytes().len(), json.len());
        assert!(packed * 5 <= json, "{packed} of {json} bytes");
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
        let none = PackedSteps::default();
        assert_eq!(read(old, &none), expected);
        assert_eq!(read(r#"["B+YBD2MCC785NTgyMjA2MjQwM24CPgJcAGA2MjQwM30"]"#, &none), expected);
        let grown = PackedSteps::new(trace(), &expected);
        assert_eq!(read(old, &grown), [&expected[..], &expected].concat());
        // Lines may be added at the beginning of a dictionary; these ends are what stored steps were compressed with.
        let of_trace = of_trace(trace());
        let ends = [&FIRST[FIRST.len() - 2616..], &of_trace[of_trace.len() - 2726..]];
        assert_eq!(
            ends.map(|end| crc32fast::hash(end.as_bytes())),
            [0x4e4e_bc79, 0x4e50_ccab],
            "steps that are stored can no longer be read"
        );
    }

    #[test]
    fn damaged_steps_are_an_error() {
        let is_read = |array: &str, packed: &[u8]| StoredSteps::read(trace(), array, packed).is_ok();
        assert!(is_read("[]", b"") && is_read("", b"\x00"));
        for damaged in [r#"["!"]"#, r#"["AAAA"]"#, "[7]", r#"["8P"]"#] {
            assert!(!is_read(damaged, b""), "{damaged}");
        }
        for damaged in
            [&b"\x80"[..], b"\x04{", b"\x04{}", b"\x03\xf0", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"]
        {
            assert!(!is_read("", damaged), "{damaged:?}");
        }
    }
}
