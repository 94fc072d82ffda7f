//! Conversion of a run's input and result. Values cross the context as text only, and no plugin's value is inspected
//! outside it.

use std::collections::BTreeMap;

use rquickjs::{Ctx, Object, Value};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    super::hook::{
        Body, ErrorKind, Hook, HookInput, MAX_DEPTH, MAX_RESULT, MAX_STATE, PluginRequest, ScriptError,
    },
    Output, text_of,
};

/// `ctx.req` for the plugin.
pub(super) fn request<'js>(ctx: &Ctx<'js>, request: &PluginRequest) -> rquickjs::Result<Value<'js>> {
    #[derive(Serialize)]
    struct Shown<'a, B> {
        url: &'a str,
        method: &'a str,
        headers: &'a BTreeMap<String, String>,
        body: B,
    }
    let PluginRequest { url, method, headers, body } = request;
    let text = match body {
        Body::Empty => text_of(&Shown { url, method, headers, body: () }),
        Body::Text(body) => text_of(&Shown { url, method, headers, body }),
        Body::Json(body) => text_of(&Shown { url, method, headers, body }),
    };
    ctx.json_parse(text?)
}

/// State and request that `finish` of the prelude returns.
pub(super) struct Left {
    state: Option<String>,
    request: Option<LeftRequest>,
}

struct LeftRequest {
    url: String,
    method: String,
    headers: String,
    kind: String,
    body: String,
    /// The body before the hook ran, in the same form.
    before: String,
}

impl Left {
    pub(super) fn from_js(result: &Object<'_>, hook: Hook) -> rquickjs::Result<Self> {
        let request = match hook {
            Hook::OnResponse => None,
            Hook::OnRequest => Some(LeftRequest {
                url: result.get(1_u32)?,
                method: result.get(2_u32)?,
                headers: result.get(3_u32)?,
                kind: result.get(4_u32)?,
                body: result.get(5_u32)?,
                before: result.get(6_u32)?,
            }),
        };
        Ok(Self { state: result.get(0_u32)?, request })
    }
}

/// Returns state and request as the hook left them, `None` for what it did not change.
pub(super) fn read(
    left: &Left,
    input: &HookInput,
    output: &Output,
) -> Result<(Option<Box<RawValue>>, Option<PluginRequest>), ScriptError> {
    let size = left.state.as_ref().map_or(0, String::len)
        + left.request.as_ref().map_or(0, |left| left.url.len() + left.headers.len() + left.body.len())
        + output.reply_bytes();
    if size > MAX_RESULT {
        return Err(unusable("replies, request and state together are larger than 512 KiB"));
    }
    let nothing = |text: &str| text == "{}" && input.state.is_none();
    let state = left.state.as_deref().filter(|text| !nothing(text));
    if state.is_some_and(|text| text.len() > MAX_STATE) {
        return Err(unusable("ctx.state is larger than 64 KiB"));
    }
    let state = state.map(|text| json(text, "ctx.state")).transpose()?;
    let request = left.request.as_ref().map(|left| changed(left, &input.request)).transpose()?;
    Ok((state, request.filter(|request| *request != input.request)))
}

fn changed(left: &LeftRequest, given: &PluginRequest) -> Result<PluginRequest, ScriptError> {
    let same = match (left.kind.as_str(), &given.body) {
        ("empty", Body::Empty) => true,
        ("empty", Body::Json(_)) => left.before == "null",
        ("text", Body::Text(_) | Body::Json(_)) | ("json", Body::Json(_)) => left.body == left.before,
        _ => false,
    };
    let body = match left.kind.as_str() {
        _ if same => given.body.clone(),
        "empty" => Body::Empty,
        "text" => Body::Text(left.body.clone()),
        _ => Body::Json(json(&left.body, "ctx.req.body")?),
    };
    let headers =
        serde_json::from_str(&left.headers).map_err(|_| unusable("ctx.req.headers cannot be read"))?;
    Ok(PluginRequest { url: left.url.clone(), method: left.method.clone(), headers, body })
}

fn json(text: &str, what: &str) -> Result<Box<RawValue>, ScriptError> {
    if depth(text) > MAX_DEPTH {
        return Err(unusable(format!("{what} is nested deeper than {MAX_DEPTH} levels")));
    }
    if let Err(error) = serde_json::from_str::<serde_json::Value>(text) {
        return Err(unusable(format!("{what} is not JSON: {error}")));
    }
    RawValue::from_string(text.to_owned()).map_err(|_| unusable(format!("{what} is not JSON")))
}

/// Whether any JSON parser can read this text later: no number is out of range, no string has a lone surrogate, and
/// the nesting is within [`MAX_DEPTH`].
pub(in super::super) fn usable(text: &str) -> bool {
    json(text, "").is_ok()
}

/// Returns the nesting depth of valid JSON.
fn depth(text: &str) -> usize {
    let (mut open, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                open += 1;
                deepest = deepest.max(open);
            }
            b']' | b'}' if !quoted => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn unusable(message: impl Into<String>) -> ScriptError {
    ScriptError::new(ErrorKind::Output, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_not_every_reader_takes_is_not_usable() {
        for text in [r#"{"a":[1,-2,0.5,"\ud83d\ude00",true,null,{}]}"#, "null", r#""a""#] {
            assert!(usable(text), "{text}");
        }
        for text in ["1e999", r#"["\ud83d"]"#, "{", "[1,]", r#"{"a":1}x"#, &"[".repeat(MAX_DEPTH + 1)] {
            assert!(!usable(text), "{text}");
        }
    }

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        assert_eq!(depth("1"), 0);
        assert_eq!(depth(r#"{"a":[1,{"b":[]}],"c":[]}"#), 4);
        assert_eq!(depth(r#"["[[[","\"[[[",{"\\":"]"}]"#), 2);
    }
}
