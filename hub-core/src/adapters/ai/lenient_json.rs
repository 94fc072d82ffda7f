//! Foreign JSON: parsed although it is not quite JSON, and read although its members have another type than documented.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Most that is kept of what an endpoint says about an error, in bytes.
pub(super) const MAX_WORDS: usize = 2 * 1024;
/// Levels of an error that are searched for its words.
const MAX_DEPTH: u32 = 8;
/// Members in which adapters wrap the documented answer, or their error.
const WRAPPERS: [&str; 5] = ["data", "result", "output", "response", "body"];
/// Members that hold the words of an error.
const WORDS: [&str; 11] = [
    "message",
    "msg",
    "error_msg",
    "error_message",
    "errorMessage",
    "status_msg",
    "detail",
    "details",
    "error_description",
    "description",
    "reason",
];
/// Members that hold an error.
const ERRORS: [&str; 4] = ["error", "errors", "err", "base_resp"];
/// Members that name an error.
const CODES: [&str; 7] = ["code", "type", "status", "error_code", "errorCode", "status_code", "param"];

/// Parses a JSON text, and what common serializers write in its place: half a surrogate pair becomes U+FFFD, `NaN` and
/// `Infinity` become `null`, control characters in strings are taken as they are.
pub(super) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| serde_json::from_str(&repaired(text)).map_err(|_| error))
}

/// Parses values that follow each other, on lines or not; `Err` has those before the first that is none.
pub(super) fn parse_all(text: &str) -> Result<Vec<Value>, (Vec<Value>, serde_json::Error)> {
    if let Ok(value) = parse(text) {
        return Ok(vec![value]);
    }
    let repaired = repaired(text);
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(&repaired).into_iter() {
        match value {
            Ok(value) => values.push(value),
            Err(error) => return Err((values, error)),
        }
    }
    Ok(values)
}

fn repaired(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut in_string) = (text, false);
    while let Some(next) = rest.chars().next() {
        let mut taken = next.len_utf8();
        match next {
            '"' => {
                in_string = !in_string;
                out.push('"');
            }
            '\\' if in_string => taken = repair_escape(rest, &mut out),
            '\0'..='\x1f' if in_string => {
                // Writing to a text cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(next));
            }
            _ if in_string => out.push(next),
            _ => match ["NaN", "-Infinity", "Infinity", "undefined"]
                .into_iter()
                .find(|word| rest.starts_with(word))
            {
                Some(word) => {
                    taken = word.len();
                    out.push_str("null");
                }
                None => out.push(next),
            },
        }
        rest = &rest[taken..];
    }
    out
}

/// Writes the escape that `rest` begins with; returns its length.
fn repair_escape(rest: &str, out: &mut String) -> usize {
    let unit = |text: &str| {
        let digits = text.strip_prefix("\\u").and_then(|digits| digits.get(..4));
        digits.and_then(|digits| u32::from_str_radix(digits, 16).ok())
    };
    match (rest.as_bytes().get(1), unit(rest)) {
        (Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't'), _) => {
            out.push_str(&rest[..2]);
            2
        }
        (Some(b'u'), Some(0xd800..=0xdbff))
            if matches!(rest.get(6..).and_then(unit), Some(0xdc00..=0xdfff)) =>
        {
            out.push_str(&rest[..12]);
            12
        }
        (Some(b'u'), Some(0xd800..=0xdfff)) => {
            out.push('\u{fffd}');
            6
        }
        (Some(b'u'), Some(_)) => {
            out.push_str(&rest[..6]);
            6
        }
        _ => {
            out.push_str("\\\\");
            1
        }
    }
}

/// The objects in a value that is one, or an array of them.
pub(super) fn objects(value: Option<&Value>) -> impl Iterator<Item = &Map<String, Value>> {
    let (one, many) = match value {
        Some(Value::Array(many)) => (None, many.as_slice()),
        other => (other, [].as_slice()),
    };
    one.into_iter().chain(many).filter_map(Value::as_object)
}

/// A text that is not empty; numbers count as one.
pub(super) fn text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A count, written as an integer, a float or a text.
pub(super) fn number(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::Number(number) => number.as_u64().or_else(|| {
            // A count of tokens is far below the precision of a float.
            let float = number.as_f64().filter(|float| (0.0..1e15).contains(float))?;
            format!("{float:.0}").parse().ok()
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Whether a member is there and holds something.
pub(super) fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => items.iter().any(is_something),
        Value::Object(members) => members.values().any(is_something),
        Value::Bool(true) => true,
        Value::Number(number) => number.as_f64() != Some(0.0),
    }
}

/// The object with the answer: the value itself, or what an adapter wrapped.
pub(super) fn unwrapped(
    value: &Map<String, Value>,
    is_answer: impl Fn(&Map<String, Value>) -> bool,
) -> &Map<String, Value> {
    if is_answer(value) {
        return value;
    }
    let inner = WRAPPERS.iter().filter_map(|name| value.get(*name)?.as_object());
    inner.into_iter().find(|inner| is_answer(inner)).unwrap_or(value)
}

/// The error in an answer that may be one, wherever endpoints put it. `base_resp` is an error unless its code is 0.
pub(super) fn error_in(value: &Map<String, Value>) -> Option<&Value> {
    ERRORS.iter().find_map(|name| {
        let error = value.get(*name).filter(|error| is_something(error))?;
        let is_success =
            *name == "base_resp" && error.get("status_code").is_none_or(|code| !is_something(code));
        (!is_success).then_some(error)
    })
}

/// Whether an object without an answer describes an error.
pub(super) fn describes_error(value: &Map<String, Value>) -> bool {
    let is_failure = |name: &&str| {
        let code = text(value.get(*name)).unwrap_or_default().to_ascii_lowercase();
        !["", "0", "200", "success", "succeeded", "ok"].contains(&code.as_str())
    };
    let has_words = WORDS.iter().any(|name| value.get(*name).is_some_and(is_something));
    let has_detail = value.get("detail").is_some_and(is_something);
    error_in(value).is_some() || has_detail || (has_words && CODES.iter().any(is_failure))
}

/// The words of an error, wherever endpoints put them; the JSON itself without any. At most 2 KiB.
pub(super) fn error_words(value: &Value) -> String {
    let words = find_words(value, 0).unwrap_or_else(|| value.to_string());
    cut(words.trim()).to_owned()
}

fn find_words(value: &Value, depth: u32) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    match value {
        // An adapter repeats the JSON of the endpoint after it as a text.
        Value::String(text) => match text.trim_start().starts_with('{').then(|| parse(text)) {
            Some(Ok(inner)) => find_words(&inner, depth + 1).or_else(|| Some(text.clone())),
            _ => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        },
        Value::Array(items) => {
            let words: Vec<String> = items.iter().filter_map(|item| find_words(item, depth + 1)).collect();
            (!words.is_empty()).then(|| words.join("; "))
        }
        Value::Object(members) => {
            let inner = error_in(members).and_then(|error| find_words(error, depth + 1));
            inner.or_else(|| words_of(members, depth))
        }
        _ => None,
    }
}

fn words_of(members: &Map<String, Value>, depth: u32) -> Option<String> {
    // FastAPI: where in the request, and what is wrong there.
    if let (Some(place), Some(words)) =
        (members.get("loc").and_then(Value::as_array), text(members.get("msg")))
    {
        let place: Vec<String> = place.iter().filter_map(|part| text(Some(part))).collect();
        return Some(format!("{}: {words}", place.join(".")));
    }
    let words = WORDS.iter().find_map(|name| find_words(members.get(*name)?, depth + 1));
    // OpenRouter: the words of the provider after it.
    let raw = members.get("metadata").and_then(|data| text(data.get("raw")));
    let words = match (words, raw) {
        (Some(words), Some(raw)) if !words.contains(&raw) => {
            Some(format!("{words}: {}", find_words(&Value::String(raw), depth + 1).unwrap_or_default()))
        }
        (words, _) => words,
    };
    words
        .or_else(|| {
            let inner =
                WRAPPERS.iter().filter_map(|name| members.get(*name).filter(|inner| inner.is_object()));
            inner.into_iter().find_map(|inner| find_words(inner, depth + 1))
        })
        .or_else(|| CODES.iter().find_map(|name| text(members.get(*name))))
}

/// The names that an error has, in lower case: its codes, types and the parameter that it is about.
pub(super) fn error_names(value: &Value) -> Vec<String> {
    let mut names = Vec::new();
    collect_names(value, &mut names, 0);
    names
}

fn collect_names(value: &Value, names: &mut Vec<String>, depth: u32) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_names(item, names, depth + 1)),
        Value::Object(members) => {
            names.extend(
                CODES.iter().filter_map(|name| text(members.get(*name))).map(|name| name.to_lowercase()),
            );
            if let Some(place) = members.get("loc").and_then(Value::as_array) {
                names.extend(place.last().and_then(|last| text(Some(last))).map(|name| name.to_lowercase()));
            }
            let inner = ERRORS.iter().chain(&WRAPPERS).chain(&["detail", "details"]);
            inner
                .filter_map(|name| members.get(*name))
                .for_each(|inner| collect_names(inner, names, depth + 1));
        }
        _ => {}
    }
}

/// The words of a body that is no JSON: of a page its text.
pub(super) fn page_words(body: &str) -> String {
    let mut words = String::new();
    let mut rest = body;
    // Their content is no text for people.
    for name in ["script", "style"] {
        let lower = rest.to_ascii_lowercase();
        if let (Some(begin), Some(end)) =
            (lower.find(&format!("<{name}")), lower.rfind(&format!("</{name}>")))
            && begin < end
        {
            words.push_str(&rest[..begin]);
            rest = &rest[end..];
        }
    }
    words.push_str(rest);
    let mut text = String::new();
    let mut in_tag = false;
    let is_page = body.trim_start().starts_with('<');
    for c in words.chars() {
        match c {
            '<' if is_page => in_tag = true,
            '>' if is_page => {
                in_tag = false;
                text.push(' ');
            }
            _ if !in_tag => text.push(c),
            _ => {}
        }
    }
    cut(&text.split_whitespace().collect::<Vec<_>>().join(" ")).to_owned()
}

/// The beginning of a text that a trace has room for.
pub(super) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_WORDS)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_quite_json_is_parsed() {
        for (text, value) in [
            (r#"{"a":1}"#, json!({ "a": 1 })),
            (
                r#"{"a":NaN,"b":-Infinity,"c":[Infinity,undefined]}"#,
                json!({ "a": null, "b": null, "c": [null, null] }),
            ),
            (
                r#"["\ud83d","\ude00 x","\ud83d\ude00","\ud83dx\n"]"#,
                json!(["\u{fffd}", "\u{fffd} x", "😀", "\u{fffd}x\n"]),
            ),
            ("[\"a\tb\nc\"]", json!(["a\tb\nc"])),
            (r#"["C:\dir\xy"]"#, json!(["C:\\dir\\xy"])),
            (r#"["NaN \"Infinity\""]"#, json!(["NaN \"Infinity\""])),
        ] {
            assert_eq!(parse(text).unwrap(), value, "{text}");
        }
        assert_eq!(parse_all("{\"a\":1}\n{\"a\":2} {\"a\":NaN}").unwrap().len(), 3);
        assert_eq!(parse_all("{\"a\":1}\n{\"a\":").unwrap_err().0.len(), 1);
    }

    #[test]
    fn numbers_have_many_forms() {
        for (value, read) in [
            (json!(3), Some(3)),
            (json!(3.0), Some(3)),
            (json!("3"), Some(3)),
            (json!(null), None),
            (json!(-1), None),
            (json!([3]), None),
            (json!("many"), None),
        ] {
            assert_eq!(number(Some(&value)), read, "{value}");
        }
    }

    #[test]
    fn the_words_of_an_error_are_found() {
        for (error, words) in [
            (json!({ "error": { "message": "slow down", "type": "x" } }), "slow down"),
            (json!({ "error": "model is loading" }), "model is loading"),
            (json!({ "message": "no such route" }), "no such route"),
            (json!({ "detail": "Not Found" }), "Not Found"),
            (
                json!({ "detail": [{ "loc": ["body", "top_p"], "msg": "not permitted" }] }),
                "body.top_p: not permitted",
            ),
            (json!({ "errors": [{ "message": "one" }, { "message": "two" }] }), "one; two"),
            (
                json!([{ "error": { "code": 400, "message": "API key not valid", "status": "INVALID" } }]),
                "API key not valid",
            ),
            (
                json!({ "error_code": 17, "error_msg": "Open api daily request limit" }),
                "Open api daily request limit",
            ),
            (
                json!({ "base_resp": { "status_code": 1008, "status_msg": "insufficient balance" } }),
                "insufficient balance",
            ),
            (json!({ "error": { "message": "{\"error\":{\"message\":\"inner\"}}" } }), "inner"),
            (
                json!({ "error": { "message": "Provider returned error", "metadata": { "raw": "{\"detail\":\"busy\"}" } } }),
                "Provider returned error: busy",
            ),
            (json!({ "error": { "code": "invalid_api_key" } }), "invalid_api_key"),
            (
                json!({ "code": 20012, "message": "Model does not exist", "data": null }),
                "Model does not exist",
            ),
            (json!({ "x": 1 }), "{\"x\":1}"),
        ] {
            assert_eq!(error_words(&error), words, "{error}");
        }
    }

    #[test]
    fn a_page_is_shown_as_its_text() {
        let page = "<html><head><title>502 Bad Gateway</title><style>b { x: 1 }</style></head><body>\n<h1>Oh</h1></body>";
        assert_eq!(page_words(page), "502 Bad Gateway Oh");
        assert_eq!(page_words(" upstream  timeout: 3 < 5\n"), "upstream timeout: 3 < 5");
    }
}
