//! Lenient reading of the network's JSON (`docs/ilink.md#json`): ids come as numbers or strings, absent means zero,
//! and one value that cannot be read spoils nothing around it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use serde_with::{BorrowCow, Map, Same, serde_as};

/// The fields of an object in their order, each still as it was written; of two with one name the last one counts. A
/// value nested too deep, or a text that is no Unicode, is found only when that field is read.
#[serde_as]
#[derive(Default, Deserialize)]
pub(super) struct Fields<'a>(
    #[serde(borrow)]
    #[serde_as(as = "Map<BorrowCow, Same>")]
    Vec<(Cow<'a, str>, &'a RawValue)>,
);

impl<'a> Fields<'a> {
    /// The fields of a text that is one JSON object.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// A field as it was written; `None` when absent or `null`.
    pub(super) fn raw(&self, name: &str) -> Option<&'a str> {
        let field = self.0.iter().rfind(|(field, _)| field == name);
        field.map(|(_, raw)| raw.get()).filter(|raw| *raw != "null")
    }

    pub(super) fn value(&self, name: &str) -> Value {
        self.raw(name).and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default()
    }

    pub(super) fn text(&self, name: &str) -> String {
        text(&self.value(name)).unwrap_or_default()
    }

    pub(super) fn integer(&self, name: &str) -> i64 {
        integer(&self.value(name)).unwrap_or_default()
    }

    pub(super) fn id(&self, name: &str) -> Option<String> {
        id(&self.value(name))
    }
}

/// A text. NUL is replaced: PostgreSQL cannot store it, and no person types it.
pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(|text| text.replace('\0', "\u{fffd}"))
}

/// An integer, also one written as a string.
pub(super) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        _ => value.as_i64(),
    }
}

/// A size or a duration: not negative, and zero means "not said".
pub(super) fn amount(value: &Value) -> Option<u64> {
    integer(value).and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0)
}

/// An id: a number of up to 64 bits without loss, or a text; zero and the empty text are no id.
pub(super) fn id(value: &Value) -> Option<String> {
    let id = match value {
        Value::Number(number) => number.to_string(),
        _ => text(value)?,
    };
    (id != "0").then_some(id)
}

/// The id of the message that a `ref_msg` refers to.
pub(in crate::adapters::network) fn quoted_id(reference: &Value) -> Option<String> {
    id(&reference["svr_id"]).or_else(|| id(&reference["message_item"]["msg_id"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive_both_forms_without_loss() {
        for (json, expected) in [
            ("7497484083968569736", Some("7497484083968569736")),
            ("\"7497484083968569736\"", Some("7497484083968569736")),
            ("18446744073709551615", Some("18446744073709551615")),
            ("\"v1:abc\"", Some("v1:abc")),
            ("0", None),
            ("\"0\"", None),
            ("\"\"", None),
            ("null", None),
            ("[1]", None),
        ] {
            assert_eq!(id(&serde_json::from_str(json).unwrap()).as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn a_broken_field_leaves_the_others_readable() {
        let deep = "[".repeat(500) + &"]".repeat(500);
        let body = format!(r#"{{"a":{deep},"b":"\ud800","c":6,"\u0063":5,"d":"7","e":null,"f":"x\u0000y"}}"#);
        let fields = Fields::parse(&body).unwrap();
        assert_eq!(fields.value("a"), Value::Null);
        assert_eq!(fields.text("b"), "");
        assert_eq!((fields.integer("c"), fields.integer("d"), fields.integer("none")), (5, 7, 0));
        assert_eq!(fields.raw("e"), None);
        assert_eq!(fields.text("f"), "x\u{fffd}y");
        assert!(Fields::parse("[]").is_none());
    }
}
