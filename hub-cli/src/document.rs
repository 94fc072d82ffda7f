//! JSON documents of the API: fields as text, pages, bodies of requests.

use hub_core::traces::Cause;
use serde::{Deserialize as _, Serialize};
use serde_json::{Value, json};

use crate::screen;

/// The end of the name of a field with a cause, after the name of its sentence.
const OF_CAUSE: &str = "_cause";

/// A field as text; empty when it is absent. A sentence that states a cause is rendered from the values of the cause,
/// unless this program does not know its code: that of a newer server is shown as its sentence.
pub fn cell(document: &Value, field: &str) -> String {
    if let Some(cause) = document.get(format!("{field}{OF_CAUSE}"))
        && let Ok(cause) = Cause::deserialize(cause)
    {
        return cause.to_string();
    }
    match &document[field] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Fields as texts.
pub fn cells<const N: usize>(document: &Value, fields: [&str; N]) -> [String; N] {
    fields.map(|field| cell(document, field))
}

/// Fields of a document, one per line, after their names in a column of this width. Causes are shown as sentences.
pub fn lines<'f>(document: &Value, fields: impl IntoIterator<Item = &'f str>, width: usize) -> String {
    let line = |field: &str| format!("{field:<width$}  {}", screen::clean(&words(document, field)));
    let shown = fields.into_iter().filter(|field| !field.ends_with(OF_CAUSE));
    shown.map(line).collect::<Vec<_>>().join("\n")
}

/// A field as text; the items of a list with commas.
pub fn words(document: &Value, field: &str) -> String {
    match &document[field] {
        Value::Array(items) => {
            let word = |item: &Value| item.as_str().map_or_else(|| item.to_string(), str::to_owned);
            items.iter().map(word).collect::<Vec<_>>().join(",")
        }
        _ => cell(document, field),
    }
}

/// Takes the items of a page.
pub fn take_items(page: &mut Value) -> Vec<Value> {
    page["items"].as_array_mut().map(std::mem::take).unwrap_or_default()
}

/// The cursor of the page after this one.
pub fn next_cursor(page: &Value) -> Option<String> {
    page["next_cursor"].as_str().map(str::to_owned)
}

/// A body of a request, without the fields that have no value.
pub fn without_nulls(body: &impl Serialize) -> Value {
    let mut body = json!(body);
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    body
}
