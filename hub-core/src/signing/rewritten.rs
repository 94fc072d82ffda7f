//! What a body may have been before another program parsed and rewrote it.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

/// Another form of a body, and what happened to it on the way to the one that is there.
pub(super) type Rewritten = (Vec<u8>, &'static str);

/// The fields of a payload in the hub's order.
const PAYLOAD_ORDER: [&str; 15] = [
    "type",
    "content",
    "sender",
    "user_id",
    "user_name",
    "sessionID",
    "contextToken",
    "msg_type",
    "timestamp",
    "bot_id",
    "channel_id",
    "id",
    "items",
    "media",
    "quoted",
];

/// Every form that is worth a try.
pub(super) fn forms(body: &[u8]) -> Vec<Rewritten> {
    let mut forms: Vec<Rewritten> = Vec::new();
    for (end, added, lost) in [
        (
            &b"\r\n"[..],
            "the body has a line break (CR LF) at its end that was not signed",
            "the body lost the line break (CR LF) at its end",
        ),
        (
            b"\n",
            "the body has a newline at its end that was not signed",
            "the body lost the newline at its end",
        ),
    ] {
        if let Some(shorter) = body.strip_suffix(end) {
            forms.push((shorter.to_vec(), added));
        }
        forms.push(([body, end].concat(), lost));
    }
    if let Some(bare) = body.strip_prefix("\u{feff}".as_bytes()) {
        forms.push((bare.to_vec(), "a byte order mark was put before the body"));
    }
    let Ok(text) = std::str::from_utf8(body) else { return forms };
    if text.contains("\r\n") {
        forms.push((text.replace("\r\n", "\n").into(), "its line ends became CR LF"));
    } else if text.contains('\n') {
        forms.push((text.replace('\n', "\r\n").into(), "its line ends became LF"));
    }
    if let Ok(document) = serde_json::from_str::<Ordered>(text) {
        let spaces = "the body was parsed and written again: the signed one has other spaces or escapes";
        let order = "the body was parsed and written again: the signed one has its fields in another order";
        forms.push((document.written(&COMPACT).into(), spaces));
        forms.push((document.written(&SPACED).into(), spaces));
        forms.push((document.written(&PRETTY).into(), spaces));
        forms.push((document.sorted(payload_place).written(&COMPACT).into(), order));
        forms.push((document.sorted(|_| 0).written(&COMPACT).into(), order));
    }
    forms
}

fn payload_place(field: &str) -> usize {
    PAYLOAD_ORDER.iter().position(|name| *name == field).unwrap_or(PAYLOAD_ORDER.len())
}

/// How JSON is written.
struct Style {
    comma: &'static str,
    colon: &'static str,
    indent: &'static str,
}

const COMPACT: Style = Style { comma: ",", colon: ":", indent: "" };
const SPACED: Style = Style { comma: ", ", colon: ": ", indent: "" };
const PRETTY: Style = Style { comma: ",", colon: ": ", indent: "  " };

/// JSON whose fields keep their order.
#[derive(Debug, Clone)]
enum Ordered {
    Plain(Value),
    Array(Vec<Ordered>),
    Object(Vec<(String, Ordered)>),
}

impl Ordered {
    fn written(&self, style: &Style) -> String {
        let mut text = String::new();
        self.write(style, 0, &mut text);
        text
    }

    fn write(&self, style: &Style, depth: usize, text: &mut String) {
        let line = |text: &mut String, depth: usize| {
            if !style.indent.is_empty() {
                text.push('\n');
                text.push_str(&style.indent.repeat(depth));
            }
        };
        match self {
            Self::Plain(value) => text.push_str(&value.to_string()),
            Self::Array(items) => {
                text.push('[');
                for (index, item) in items.iter().enumerate() {
                    text.push_str(if index > 0 { style.comma } else { "" });
                    line(text, depth + 1);
                    item.write(style, depth + 1, text);
                }
                if !items.is_empty() {
                    line(text, depth);
                }
                text.push(']');
            }
            Self::Object(fields) => {
                text.push('{');
                for (index, (name, value)) in fields.iter().enumerate() {
                    text.push_str(if index > 0 { style.comma } else { "" });
                    line(text, depth + 1);
                    text.push_str(&Value::from(name.as_str()).to_string());
                    text.push_str(style.colon);
                    value.write(style, depth + 1, text);
                }
                if !fields.is_empty() {
                    line(text, depth);
                }
                text.push('}');
            }
        }
    }

    /// The same with the fields of every object by their place, then by their name.
    fn sorted(&self, place: impl Fn(&str) -> usize + Copy) -> Self {
        match self {
            Self::Plain(value) => Self::Plain(value.clone()),
            Self::Array(items) => Self::Array(items.iter().map(|item| item.sorted(place)).collect()),
            Self::Object(fields) => {
                let mut fields: Vec<_> =
                    fields.iter().map(|(name, value)| (name.clone(), value.sorted(place))).collect();
                fields.sort_by(|(a, _), (b, _)| (place(a), a).cmp(&(place(b), b)));
                Self::Object(fields)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Ordered;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_unit<E>(self) -> Result<Ordered, E> {
                Ok(Ordered::Plain(Value::Null))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Ordered, E> {
                Ok(Ordered::Plain(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Ordered, E> {
                Ok(Ordered::Plain(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Ordered, E> {
                Ok(Ordered::Plain(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Ordered, E> {
                Ok(Ordered::Plain(value.into()))
            }

            fn visit_str<E>(self, value: &str) -> Result<Ordered, E> {
                Ok(Ordered::Plain(value.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Ordered, A::Error> {
                let mut read = Vec::new();
                while let Some(item) = items.next_element()? {
                    read.push(item);
                }
                Ok(Ordered::Array(read))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Ordered, A::Error> {
                let mut read = Vec::new();
                while let Some(field) = fields.next_entry()? {
                    read.push(field);
                }
                Ok(Ordered::Object(read))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signed_form_is_among_those_that_are_tried() {
        let signed =
            r#"{"type":"message","content":"é \"x\"","sender":{"user_id":"u","user_name":"A"},"msg_type":1}"#;
        for arrived in [
            r#"{"type": "message", "content": "\u00e9 \"x\"", "sender": {"user_id": "u", "user_name": "A"}, "msg_type": 1}"#,
            r#"{"content":"é \"x\"","msg_type":1,"sender":{"user_id":"u","user_name":"A"},"type":"message"}"#,
            "{\n  \"type\": \"message\",\n  \"content\": \"é \\\"x\\\"\",\n  \"sender\": {\n    \"user_id\": \"u\",\n    \"user_name\": \"A\"\n  },\n  \"msg_type\": 1\n}",
        ] {
            assert!(forms(arrived.as_bytes()).iter().any(|(form, _)| form == signed.as_bytes()), "{arrived}");
        }
        let pretty = serde_json::from_str::<Ordered>("{\"b\":[1,{}],\"a\":[]}").unwrap().written(&PRETTY);
        assert_eq!(pretty, "{\n  \"b\": [\n    1,\n    {}\n  ],\n  \"a\": []\n}");
    }

    #[test]
    fn what_is_no_text_has_fewer_forms() {
        assert_eq!(forms(b"\xff").len(), 2);
        assert!(forms(b"a\r\n").iter().any(|(form, _)| form == b"a"));
    }
}
