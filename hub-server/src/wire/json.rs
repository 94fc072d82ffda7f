//! JSON text as a value, with the names that an object repeats.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses one JSON value. Returns it with the paths of the names that an object contains more than once. The meaning
/// of a repeated name is undefined (RFC 8259 §4): one program may check the first value while another uses the last.
///
/// # Errors
/// An error if the text is not JSON.
pub(super) fn value(bytes: &[u8]) -> serde_json::Result<(Value, Vec<String>)> {
    let mut repeated = Vec::new();
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let value = ValueSeed { path: String::new(), repeated: &mut repeated }.deserialize(&mut text)?;
    text.end()?;
    Ok((value, repeated))
}

/// Returns the path of a field of the object at `path`.
pub(super) fn member(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Returns the path of an element of the array at `path`.
pub(super) fn element(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

struct ValueSeed<'a> {
    path: String,
    repeated: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let Self { path, repeated } = self;
        let mut read = Vec::new();
        loop {
            let path = element(&path, read.len());
            match items.next_element_seed(ValueSeed { path, repeated: &mut *repeated })? {
                Some(item) => read.push(item),
                None => return Ok(Value::Array(read)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let Self { path, repeated } = self;
        let mut read = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let path = member(&path, &name);
            if read.contains_key(&name) && !repeated.contains(&path) {
                repeated.push(path.clone());
            }
            let value = members.next_value_seed(ValueSeed { path, repeated: &mut *repeated })?;
            read.insert(name, value);
        }
        Ok(Value::Object(read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_what_the_library_reads() {
        for text in [
            "null",
            "true",
            "-1",
            "18446744073709551615",
            "0.1",
            "1e300",
            "\"a\\u00e9\\n\"",
            "[]",
            "{}",
            "[1,[2,{\"a\":[null]}]]",
            "{\"a\":{\"b\":{\"a\":1}},\"b\":2}",
        ] {
            let (read, repeated) = value(text.as_bytes()).unwrap();
            assert_eq!(read, serde_json::from_str::<Value>(text).unwrap(), "{text}");
            assert!(repeated.is_empty(), "{text}");
        }
        let deep = "[".repeat(1000);
        for bad in ["", "{", "{} x", "{\"a\":1,}", "\u{feff}{}", "NaN", "\"\\ud800\"", &deep] {
            assert!(value(bad.as_bytes()).is_err(), "{bad}");
            assert!(serde_json::from_str::<Value>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn repeated_names_are_found_at_every_depth() {
        for (text, expected) in [
            ("{\"a\":1,\"a\":1}", vec!["a"]),
            ("{\"a\":1,\"\\u0061\":2,\"a\":3}", vec!["a"]),
            ("{\"a\":{\"b\":1,\"b\":2},\"c\":[{},{\"d\":1,\"d\":1}]}", vec!["a.b", "c[1].d"]),
            ("[{\"a\":1},{\"a\":1}]", vec![]),
        ] {
            assert_eq!(value(text.as_bytes()).unwrap().1, expected, "{text}");
        }
    }
}
