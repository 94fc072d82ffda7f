//! The `reply` of a response, which a channel may send to the sender of its message.

use std::{borrow::Cow, collections::HashMap};

use http::HeaderMap;
use serde_json::value::RawValue;

use crate::{
    body_text,
    egress::{BodyEnd, Receipt},
    model::cause::Cause,
};

/// The reply to the sender that a response contains, or the reason why it contains none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseReply {
    /// Nothing.
    None,
    /// A text.
    Text(String),
    /// A `reply` that cannot be sent, with the reason.
    Unusable(String),
    /// A body in which no `reply` can be looked for, with the reason.
    Unreadable(String),
}

impl ResponseReply {
    /// Reads a response. Any body that is a JSON object is read, whatever its `Content-Type` is; only a 2xx replies.
    pub fn of(receipt: &Receipt) -> Self {
        match Self::read(&receipt.headers, &receipt.body, &receipt.end) {
            found if receipt.status.is_success() => found,
            Self::None | Self::Unreadable(_) => Self::None,
            Self::Text(_) | Self::Unusable(_) => {
                let status = receipt.status.as_u16();
                Self::Unusable(Cause::ReplyWithFailure { status }.to_string())
            }
        }
    }

    /// Reads the body of a success, which ended in this way.
    pub fn read(headers: &HeaderMap, body: &[u8], end: &BodyEnd) -> Self {
        let text = match json_text(headers, body) {
            Ok(text) if text.is_empty() => return Self::None,
            Ok(text) => text,
            Err(why) => return Self::Unreadable(why),
        };
        let members = match members(&text) {
            Ok(members) => members,
            Err(why) => {
                let why = [Some(why), end.problem()].into_iter().flatten().collect::<Vec<_>>().join("; ");
                return if text.contains("\"reply\"") { Self::Unusable(why) } else { Self::Unreadable(why) };
            }
        };
        match members.get("reply").map(|reply| text_of("reply", reply)) {
            Some(Ok(None)) => Self::None,
            Some(Ok(Some(reply))) if reply.trim().is_empty() => Self::Unusable(Cause::ReplyEmpty.to_string()),
            Some(Ok(Some(reply))) => Self::Text(reply),
            Some(Err(why)) => Self::Unusable(why),
            None => match members.keys().find(|name| name.trim().eq_ignore_ascii_case("reply")) {
                Some(name) => {
                    Self::Unusable(Cause::ReplyMisspelled { name: format!("{name:?}") }.to_string())
                }
                None if text.contains("\"reply\"") => Self::Unusable(Cause::ReplyNested.to_string()),
                None => Self::None,
            },
        }
    }
}

/// The text of a body that may be JSON, without white space around it.
pub(super) fn json_text<'b>(headers: &HeaderMap, body: &'b [u8]) -> Result<Cow<'b, str>, String> {
    let text =
        body_text::decode_strictly(headers, body).ok_or_else(|| match body_text::media_type(headers) {
            none if none.is_empty() => Cause::NotTextUntyped.to_string(),
            media_type => Cause::NotText { media_type }.to_string(),
        })?;
    let is_space = |c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '\0');
    Ok(match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_matches(is_space)),
        Cow::Owned(text) => Cow::Owned(text.trim_matches(is_space).to_owned()),
    })
}

/// The members of a JSON object, unread, so that an odd one spoils no other; or why there are none. Of two with the
/// same name the last counts.
pub(super) fn members(text: &str) -> Result<HashMap<String, &RawValue>, String> {
    let json: &RawValue = serde_json::from_str(text).map_err(|error| {
        // Where JSON begins later, the position of the error says nothing.
        let is_preceded = !text.starts_with(['{', '[']) && text.contains('{');
        let error = error.to_string();
        let cause = if is_preceded { Cause::NotJsonPreceded { error } } else { Cause::NotJson { error } };
        cause.to_string()
    })?;
    if !json.get().starts_with('{') {
        return Err(Cause::NotObject { found: kind(json).to_owned() }.to_string());
    }
    serde_json::from_str(json.get()).map_err(|error| Cause::NotJson { error: error.to_string() }.to_string())
}

/// The text of a member; `None` for `null`.
///
/// # Errors
/// A sentence with the type that the member has in place of a text.
pub(super) fn text_of(name: &str, value: &RawValue) -> Result<Option<String>, String> {
    match value.get() {
        "null" => Ok(None),
        json if json.starts_with('"') => serde_json::from_str(json).map(Some).map_err(|error| {
            Cause::MemberUnreadable { name: name.to_owned(), error: error.to_string() }.to_string()
        }),
        _ => {
            let (name, found) = (name.to_owned(), kind(value).to_owned());
            Err(Cause::MemberNotText { name, found }.to_string())
        }
    }
}

fn kind(value: &RawValue) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'"') => "a text",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header::CONTENT_TYPE};

    use super::*;

    fn read(content_type: &str, body: &[u8]) -> ResponseReply {
        let mut headers = HeaderMap::new();
        if !content_type.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_str(content_type).unwrap());
        }
        ResponseReply::read(&headers, body, &BodyEnd::Complete)
    }

    #[test]
    fn a_json_object_replies_whatever_its_type_is() {
        let json = "{\"reply\":\"你好\",\"x\":1}";
        let marked = format!("\u{feff}\r\n {json}\n\0");
        let gbk = encoding_rs::GBK.encode(json).0.into_owned();
        let utf_16: Vec<u8> = json.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (content_type, body) in [
            ("", json.as_bytes()),
            ("application/json", json.as_bytes()),
            ("text/html", json.as_bytes()),
            ("text/html; charset=UTF-8", marked.as_bytes()),
            ("text/plain", json.as_bytes()),
            ("application/x-json", json.as_bytes()),
            ("application/octet-stream", json.as_bytes()),
            ("image/png", json.as_bytes()),
            ("not a type", json.as_bytes()),
            ("text/html; charset=gbk", &gbk),
            ("application/json; charset=utf-16", &utf_16),
        ] {
            assert_eq!(read(content_type, body), ResponseReply::Text("你好".to_owned()), "{content_type}");
        }
    }

    #[test]
    fn an_odd_member_spoils_no_reply() {
        for body in [
            r#"{"reply":"hi","n":1e999,"s":"\ud83d"}"#,
            r#"{"x":null,"reply":"no","reply":"hi"}"#,
            &format!(r#"{{"deep":{}{},"reply":"hi"}}"#, "[".repeat(500), "]".repeat(500)),
        ] {
            assert_eq!(read("", body.as_bytes()), ResponseReply::Text("hi".to_owned()), "{body}");
        }
    }

    #[test]
    fn a_reply_that_cannot_be_sent_has_its_reason() {
        for (body, reason) in [
            (r#"{"reply":7}"#, "`reply` is a number, not a text"),
            (r#"{"reply":["hi"]}"#, "`reply` is an array, not a text"),
            (r#"{"reply":{"text":"hi"}}"#, "`reply` is an object, not a text"),
            (r#"{"reply":true}"#, "`reply` is a boolean, not a text"),
            (r#"{"reply":"  "}"#, "`reply` is empty"),
            (r#"{"reply":"\ud83d"}"#, "`reply` cannot be read: "),
            (r#"{"Reply":"hi"}"#, "the response has \"Reply\"; the name is `reply`"),
            (r#"{"data":{"reply":"hi"}}"#, "`reply` is not at the top level of the response"),
            (r#"[{"reply":"hi"}]"#, "the response is an array in JSON, not an object"),
            ("{\"reply\":\"hi\"", "the response is not JSON: EOF"),
            ("<br />Notice: x {\"reply\":\"hi\"}", "column 1; there is text before the JSON"),
            ("callback({\"reply\":\"hi\"})", "there is text before the JSON"),
            ("{'reply':'hi', \"reply\": 1}", "the response is not JSON: key must be a string"),
        ] {
            let ResponseReply::Unusable(found) = read("", body.as_bytes()) else { panic!("{body}") };
            assert!(found.contains(reason), "{body}: {found}");
        }
    }

    #[test]
    fn a_response_without_a_reply_has_none_or_cannot_be_read() {
        for body in ["", " \r\n", "{}", r#"{"ok":true}"#, r#"{"reply":null}"#, r#"{"reply_to":"x"}"#] {
            assert_eq!(read("", body.as_bytes()), ResponseReply::None, "{body}");
        }
        for (content_type, body) in [
            ("", &b"ok"[..]),
            ("text/html", b"<p>hi</p>"),
            ("", b"\"hi\""),
            ("image/png", b"\x89PNG\xff"),
            ("", b"7"),
        ] {
            let found = read(content_type, body);
            assert!(matches!(found, ResponseReply::Unreadable(_)), "{content_type} {body:?}: {found:?}");
        }
    }

    #[test]
    fn a_cut_body_is_named_as_the_cause() {
        let end = BodyEnd::Cut { limit: 1 << 20 };
        let found = ResponseReply::read(&HeaderMap::new(), b"{\"reply\":\"aaa", &end);
        let ResponseReply::Unusable(why) = &found else { panic!("{found:?}") };
        assert!(why.ends_with("the body is cut: it is larger than 1024 KiB"), "{why}");
        let whole = ResponseReply::read(&HeaderMap::new(), b"{\"reply\":\"aaa\"}", &end);
        assert_eq!(whole, ResponseReply::Text("aaa".to_owned()), "what is whole is used");
    }
}
