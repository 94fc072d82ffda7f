//! Stable fakes in the place of what must not leave: people, their addresses and numbers, credentials.
//!
//! The same text always gets the same fake, so that what belongs together still does; fakes are numbered in the order
//! in which they are needed, so that the same recording always becomes the same fixture.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::Recording;
use crate::{
    error::{Error, Result},
    redact::{MASK, names_credential},
};

/// Fields that hold the id of a person or of a conversation.
const ID_FIELDS: [&str; 8] =
    ["user_id", "from_user_id", "to_user_id", "group_id", "sessionID", "session_id", "wx_id", "to"];
/// Fields that hold what people call each other.
const NAME_FIELDS: [&str; 5] = ["user_name", "nickname", "nick_name", "display_name", "remark"];
/// Fields and headers with numbers that are no person's.
const PLAIN_FIELDS: [&str; 2] = ["webhook-timestamp", "network_id"];
const NAMES: [&str; 8] = ["Robin", "Sasha", "Kim", "Noa", "Jules", "Charlie", "Sam", "Alex"];
/// With as many digits in a row, separators aside, it may be a telephone number, or another number of a person.
const MIN_DIGITS: usize = 7;
/// A word that is as long, with letters and digits in it, may be a credential.
const MIN_TOKEN: usize = 20;

/// Kinds of replaced texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Id,
    Name,
    Email,
    Digits,
    Token,
}

/// Replaces personal data and secrets with fakes.
#[derive(Debug, Default)]
pub struct Fakes {
    /// By kind and text.
    known: HashMap<(Kind, String), String>,
    counts: HashMap<Kind, usize>,
    /// Ids and names that are looked for in texts, longest first.
    literals: Vec<(String, String)>,
}

impl Fakes {
    /// Fakes for everything from the first number on.
    pub fn new() -> Self {
        Self::default()
    }

    /// A recording without personal data. Ids of the hub's objects are kept: they identify no person.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when the result is not a recording.
    pub fn recording(&mut self, recording: &Recording) -> Result<Recording> {
        let document = serde_json::to_value(recording).map_err(Error::internal)?;
        let document = self.document(&document);
        serde_json::from_value(document).map_err(Error::internal)
    }

    /// Replaces personal data and secrets in a JSON document.
    pub fn document(&mut self, document: &Value) -> Value {
        self.learn(document);
        self.value("", document)
    }

    /// Learns the ids and names of people, because names are in texts too.
    fn learn(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match (kind_of(name), value) {
                        (Some(kind), Value::String(text)) => self.meet(kind, text),
                        _ => self.learn(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            Value::String(text) => {
                if let Some(inner) = inner_document(text) {
                    self.learn(&inner);
                }
            }
            _ => {}
        }
    }

    fn meet(&mut self, kind: Kind, text: &str) {
        if text.is_empty() || text == MASK || self.known.contains_key(&(kind, text.to_owned())) {
            return;
        }
        let fake = self.fake(kind, text);
        // A name of one letter is in every text.
        if text.chars().count() > 1 {
            self.literals.push((text.to_owned(), fake));
            self.literals.sort_by_key(|(real, _)| std::cmp::Reverse(real.len()));
        }
    }

    fn value(&mut self, field: &str, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone(), self.value(name, value))).collect()
            }
            Value::Array(items) => match items.as_slice() {
                // A header, as traces keep them.
                [Value::String(name), value @ Value::String(_)] => {
                    json!([name, self.value(name, value)])
                }
                items => items.iter().map(|item| self.value("", item)).collect(),
            },
            Value::String(text) if text.is_empty() || text == MASK || PLAIN_FIELDS.contains(&field) => {
                value.clone()
            }
            Value::String(text) => {
                let fake = match kind_of(field) {
                    Some(kind) => self.fake(kind, text),
                    None if names_credential(field) && !is_of_the_hub(text) => self.fake(Kind::Token, text),
                    None => match inner_document(text) {
                        Some(inner) => self.value("", &inner).to_string(),
                        None => self.text(text),
                    },
                };
                Value::String(fake)
            }
            other => other.clone(),
        }
    }

    /// Replaces personal data and secrets in a text, in one pass: fakes are not replaced again.
    pub fn text(&mut self, text: &str) -> String {
        let (mut faked, mut at) = (String::with_capacity(text.len()), 0);
        while let Some(next) = text[at..].chars().next() {
            let before = text[..at].chars().next_back();
            let (taken, fake) = match self.found(before, &text[at..]) {
                Some(found) => found,
                None => (next.len_utf8(), next.to_string()),
            };
            faked.push_str(&fake);
            at += taken;
        }
        faked
    }

    /// Finds a text to replace at the beginning of `rest`; returns its length and its fake.
    fn found(&mut self, before: Option<char>, rest: &str) -> Option<(usize, String)> {
        let fits = |(real, _): &&(String, String)| {
            let after = rest.get(real.len()..).and_then(|rest| rest.chars().next());
            rest.starts_with(real.as_str())
                && !(joins(before) && joins(real.chars().next()))
                && !(joins(after) && joins(real.chars().next_back()))
        };
        if let Some((real, fake)) = self.literals.iter().find(fits) {
            return Some((real.len(), fake.clone()));
        }
        if joins(before) {
            return None;
        }
        let kinds = [(Kind::Email, email(rest)), (Kind::Token, token(rest)), (Kind::Digits, digits(rest))];
        let (kind, length) = kinds.into_iter().find_map(|(kind, length)| Some((kind, length?)))?;
        Some((length, self.fake(kind, &rest[..length])))
    }

    fn fake(&mut self, kind: Kind, text: &str) -> String {
        // The same number in another spelling is the same number.
        let key: String = match kind {
            Kind::Digits => text.chars().filter(char::is_ascii_digit).collect(),
            Kind::Email => text.to_ascii_lowercase(),
            _ => text.to_owned(),
        };
        let next = self.counts.entry(kind).or_default();
        let fake = self.known.entry((kind, key)).or_insert_with_key(|(_, key)| {
            *next += 1;
            match kind {
                Kind::Id => format!("user_{next}"),
                Kind::Name => {
                    NAMES.get(*next - 1).map_or_else(|| format!("Person {next}"), ToString::to_string)
                }
                Kind::Email => format!("person{next}@example.com"),
                Kind::Token => format!("fake_token_{next}"),
                Kind::Digits => format!("555{next:0width$}", width = key.len() - 3),
            }
        });
        if kind == Kind::Digits { in_the_shape_of(text, fake) } else { fake.clone() }
    }
}

fn kind_of(field: &str) -> Option<Kind> {
    if ID_FIELDS.contains(&field) {
        Some(Kind::Id)
    } else if NAME_FIELDS.contains(&field) {
        Some(Kind::Name)
    } else {
        None
    }
}

/// The document that a text is, as bodies are.
fn inner_document(text: &str) -> Option<Value> {
    if text.starts_with(['{', '[']) { serde_json::from_str(text).ok() } else { None }
}

/// Whether a word goes on with this character. Scripts without spaces have no words to be in the middle of.
fn joins(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The length of an e-mail address at the beginning.
fn email(text: &str) -> Option<usize> {
    let is_local = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '%' | '+' | '-');
    let local = text.find(|c| !is_local(c)).filter(|local| *local > 0)?;
    let domain = text[local..].strip_prefix('@')?;
    let end =
        domain.find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '-').unwrap_or(domain.len());
    let domain = domain[..end].trim_end_matches(['.', '-']);
    domain.contains('.').then_some(local + 1 + domain.len())
}

/// The length of a telephone number, or of another long number, at the beginning.
fn digits(text: &str) -> Option<usize> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '(' | ')' | ' ' | '.');
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == '(') {
        return None;
    }
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let number = text[..end].trim_end_matches(|c: char| !c.is_ascii_digit());
    let count = number.bytes().filter(u8::is_ascii_digit).count();
    let is_date = number.len() == 10 && number.match_indices('-').map(|(at, _)| at).eq([4, 7]);
    (count >= MIN_DIGITS && !is_date && !joins(text[number.len()..].chars().next())).then_some(number.len())
}

/// The length of what may be a credential, at the beginning.
fn token(text: &str) -> Option<usize> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '=');
    let word = &text[..text.find(|c| !is_part(c)).unwrap_or(text.len())];
    let mixed = word.bytes().any(|b| b.is_ascii_digit()) && word.bytes().any(|b| b.is_ascii_alphabetic());
    (word.len() >= MIN_TOKEN && mixed && !is_of_the_hub(word)).then_some(word.len())
}

/// Whether a text is an id of one of the hub's things: a prefix and a ULID.
fn is_of_the_hub(text: &str) -> bool {
    let parts = text.rsplit_once('_');
    parts.is_some_and(|(prefix, digits)| {
        (2..=4).contains(&prefix.len())
            && prefix.bytes().all(|b| b.is_ascii_lowercase())
            && digits.len() == 26
            && digits.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
    })
}

/// Digits in the places where a number has its own.
fn in_the_shape_of(number: &str, digits: &str) -> String {
    let mut digits = digits.chars();
    number.chars().map(|c| if c.is_ascii_digit() { digits.next().unwrap_or('0') } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::recording::tests::{FIRST, recording};

    #[test]
    fn people_and_credentials_are_replaced_everywhere_by_the_same_fake() {
        let mut fakes = Fakes::new();
        let token = "q8Zr2Lw0XbN5tYc7Vd1m";
        let faked = fakes.document(&json!({
            "content": format!("Ada (ada@im.wechat, wxid_ada9, +49 30 1234567) wrote to 小明: {token}, adapter"),
            "sender": { "user_id": "wxid_ada9", "user_name": "Ada" },
            "to": { "user_name": "小明" },
            "api_key": "short", "token": token, "again": format!("({token})"), "number": "0049301234567 and +49-30-1234567",
        }));
        assert_eq!(
            faked,
            json!({
                "content": "Robin (person1@example.com, user_1, +55 50 0000001) wrote to Sasha: fake_token_1, adapter",
                "sender": { "user_id": "user_1", "user_name": "Robin" },
                "to": { "user_name": "Sasha" },
                "api_key": "fake_token_2", "token": "fake_token_1", "again": "(fake_token_1)",
                "number": "5550000000002 and +55-50-0000001",
            })
        );
    }

    #[test]
    fn texts_without_names_stay() {
        let mut fakes = Fakes::new();
        for text in [
            "order 42 is 3.50 EUR",
            "tr_01KAJ6Z8QH0000000000000001",
            "2026-01-02",
            "a@b",
            "***",
            "https://receiver.test/hook?x=1",
            "一二三",
            "",
        ] {
            assert_eq!(fakes.text(text), text);
        }
    }

    #[test]
    fn bodies_inside_texts_are_looked_into_and_recordings_stay_recordings() {
        let mut before = recording(FIRST, "mail ada@example.org");
        before.trace.steps[2].detail.body = Some(
            json!({ "sender": { "user_id": "wxid_1", "user_name": "A" }, "content": "I am A" }).to_string(),
        );
        let faked = Fakes::new().recording(&before).unwrap();
        let text = serde_json::to_string(&faked).unwrap();
        assert!(!text.contains("ada@example.org") && !text.contains("wxid_1"), "{text}");
        let body: Value = serde_json::from_str(&faked.request().unwrap().body).unwrap();
        assert_eq!(body["content"], "I am A", "one letter is no name to look for");
        assert_eq!(faked.trace.trace_id, before.trace.trace_id);
        assert_eq!(
            faked.request().unwrap().headers["webhook-timestamp"],
            "1700000000",
            "no telephone number"
        );
        assert_eq!(Fakes::new().recording(&before).unwrap(), faked, "the same every time");
    }
}
