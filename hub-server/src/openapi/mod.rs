//! The OpenAPI document: what the endpoints say of themselves, and a finishing pass over it.
//!
//! The contract is OpenAPI 3.0.3, which every generator reads; the same in the words of 3.1, and the same with one type
//! for each purpose, are derived from it. The finished documents are committed as `openapi/hub.json`,
//! `openapi/hub.yaml`, `openapi/hub.v3_1.json` and `openapi/hub.plain.json`; a test compares them and, with
//! `HUB_UPDATE_OPENAPI=1`, writes them.

use std::collections::{BTreeMap, BTreeSet};

use poem_openapi::{OpenApi, OpenApiService};
use serde_json::{Map, Value, json};

use crate::api::{self, Api};

mod examples;
mod failures;
mod finish;
mod links;
mod names;
mod plain;
#[cfg(test)]
mod tests;
mod version_3_1;

/// The endpoints as an OpenAPI service. Stateless: a pure function, so that the document needs no hub.
pub fn service() -> OpenApiService<Api, ()> {
    OpenApiService::new(api::all(), "Message Hub", env!("CARGO_PKG_VERSION")).description(
        "A hub between people's chat bot accounts and programs: webhooks, WebSocket clients and AI models.\n\n\
         Every answer under `/api` is `{success: true, data}` or `{success: false, error}`. Lists are pages: \
         `limit` and `cursor` in, `items` and `next_cursor` out, newest first. Bodies are JSON of at most 1 MiB, \
         of 16 KiB without a credential. A request that breaks a rule of HTTP, or whose head is too long or comes too \
         slowly, is answered with 400, 408, 414 or 431 in the same envelope, and its connection ends.",
    )
}

/// The finished document, for a hub that people reach at `public_url`.
pub fn document(public_url: &str) -> Value {
    let mut document: Value =
        serde_json::from_str(&service().spec()).expect("poem-openapi writes the document as JSON");
    finish::finish(&mut document, &operations::<Api>());
    document["servers"] = json!([{ "url": public_url.trim_end_matches('/') }]);
    document.sort_all_objects();
    document
}

/// The documents as they are committed, of no hub in particular.
#[derive(Debug)]
pub struct Committed {
    /// `openapi/hub.json`.
    pub json: String,
    /// `openapi/hub.yaml`.
    pub yaml: String,
    /// `openapi/hub.v3_1.json`.
    pub json_v3_1: String,
    /// `openapi/hub.plain.json`.
    pub json_plain: String,
}

/// The documents as they are committed.
pub fn committed() -> Committed {
    let document = document("/");
    let pretty =
        |value: &Value| serde_json::to_string_pretty(value).expect("a value has only text keys") + "\n";
    let yaml = serde_norway::to_string(&document).expect("a value has only text keys");
    Committed {
        json: pretty(&document),
        yaml,
        json_v3_1: pretty(&version_3_1::derive(&document)),
        json_plain: pretty(&plain::derive(&document)),
    }
}

/// Whether an operation has a security requirement, by operation id.
type Guarded = BTreeMap<&'static str, bool>;

fn operations<A: OpenApi>() -> Guarded {
    let operations = A::meta().into_iter().flat_map(|api| api.paths).flat_map(|path| path.operations);
    operations
        .filter_map(|operation| Some((operation.operation_id?, !operation.security.is_empty())))
        .collect()
}

/// Shows every object of a document to `act`, the outer before the inner.
fn visit(value: &mut Value, act: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            act(object);
            object.values_mut().for_each(|inner| visit(inner, act));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| visit(inner, act)),
        _ => {}
    }
}

/// Adds the names of the schemas that a part of the document leads to.
fn reached(part: &Value, schemas: &Value, names: &mut BTreeSet<String>) {
    visit(&mut part.clone(), &mut |object| {
        let reference = object.get("$ref").and_then(Value::as_str).unwrap_or_default();
        if let Some(name) = reference.strip_prefix("#/components/schemas/")
            && names.insert(name.to_owned())
        {
            reached(&schemas[name], schemas, names);
        }
    });
}
