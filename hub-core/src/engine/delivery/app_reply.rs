//! The replies in an app's response.

use super::response_reply::{json_text, members, text_of};
use crate::{bots::Attachment, egress::Receipt, error::Result};

/// The synchronous reply of an app.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answered {
    /// Empty when there is none.
    pub text: String,
    url: Option<String>,
    base64: Option<String>,
    name: Option<String>,
    /// The answer comes later, through the bot API.
    pub later: bool,
}

impl Answered {
    /// Reads an answer, whatever its `Content-Type` is; with the reason if a reply in it cannot be sent. What is not in
    /// this form is no reply.
    pub fn read(answer: &Receipt) -> (Self, Option<String>) {
        match json_text(&answer.headers, &answer.body) {
            Ok(text) => {
                let (answered, unsent) = Self::of_text(&text);
                let broken = unsent.as_ref().and_then(|_| answer.end.problem());
                (
                    answered,
                    [unsent, broken].into_iter().flatten().reduce(|why, more| format!("{why}; {more}")),
                )
            }
            Err(_) => (Self::default(), None),
        }
    }

    /// Reads the text of an answer.
    pub fn of_text(text: &str) -> (Self, Option<String>) {
        let members = match members(text) {
            Ok(members) => members,
            Err(why) => return (Self::default(), text.contains("\"reply").then_some(why)),
        };
        let mut unsent = None;
        let mut member = |name: &str| match members.get(name).map(|value| text_of(name, value)) {
            Some(Ok(text)) => text.filter(|text| !text.trim().is_empty()),
            Some(Err(why)) => {
                unsent.get_or_insert(why);
                None
            }
            None => None,
        };
        let answered = Self {
            text: member("reply").unwrap_or_default(),
            url: member("reply_url"),
            base64: member("reply_base64"),
            name: member("reply_name"),
            later: members
                .get("reply_async")
                .is_some_and(|value| matches!(value.get(), "true" | "\"true\"" | "1")),
        };
        (answered, unsent)
    }

    /// The file.
    ///
    /// # Errors
    /// `INVALID_PARAMS` for one that cannot be read.
    pub fn file(self) -> Result<Option<Attachment>> {
        match (self.url, self.base64) {
            (Some(url), _) => Ok(Some(Attachment::Url(url))),
            (None, Some(text)) => {
                Attachment::from_base64("reply_base64", &text, self.name.unwrap_or_default()).map(Some)
            }
            (None, None) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};

    use super::*;
    use crate::egress::BodyEnd;

    fn text(text: &str) -> Answered {
        Answered { text: text.to_owned(), ..Answered::default() }
    }

    #[test]
    fn replies_are_read_member_by_member() {
        for (body, expected, reason) in [
            (r#"{"reply":"hi","other":1e999}"#, text("hi"), None),
            (r#"{"reply":"hi","reply_url":7}"#, text("hi"), Some("`reply_url` is a number, not a text")),
            (r#"{"reply":["hi"]}"#, text(""), Some("`reply` is an array, not a text")),
            (r#"{"reply":null,"reply_url":" "}"#, text(""), None),
            (r#"{"reply":"hi","reply_async":"true"}"#, Answered { later: true, ..text("hi") }, None),
            (r#"{"reply":"hi","reply_async":{}}"#, text("hi"), None),
            ("ok", text(""), None),
            (r#"["reply"]"#, text(""), Some("the response is an array in JSON, not an object")),
            (
                "{\"reply\":\"hi\"",
                text(""),
                Some("the response is not JSON: EOF while parsing an object at line 1 column 13"),
            ),
        ] {
            let (answered, unsent) = Answered::of_text(body);
            assert_eq!((answered, unsent.as_deref()), (expected, reason), "{body}");
        }
    }

    #[test]
    fn a_response_is_read_whatever_its_type_is() {
        for (content_type, body) in [
            ("text/html", &b"\xef\xbb\xbf{\"reply\":\"\xe4\xbd\xa0\"}"[..]),
            ("text/plain; charset=gbk", b"{\"reply\":\"\xc4\xe3\"}"),
        ] {
            let headers = HeaderMap::from_iter([(http::header::CONTENT_TYPE, content_type.parse().unwrap())]);
            let body = Bytes::from_static(body);
            let receipt = Receipt { status: StatusCode::OK, headers, body, end: BodyEnd::Complete };
            assert_eq!(Answered::read(&receipt), (text("你"), None), "{content_type}");
        }
        let cut = Receipt {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            body: Bytes::from_static(b"{\"reply_base64\":\"AAAA"),
            end: BodyEnd::Cut { limit: 1 << 20 },
        };
        let (_, unsent) = Answered::read(&cut);
        assert!(unsent.unwrap().ends_with("; the body is cut: it is larger than 1024 KiB"));
    }
}
