//! The OpenAPI document: the descriptions of the endpoints, and a finishing pass.
//!
//! The document is OpenAPI 3.0.3, which every generator reads; a 3.1 version is derived from it. The finished document is
//! committed as `openapi/hub.json`; a test compares it and, with `HUB_UPDATE_OPENAPI=1`, writes it. JSON, because readers
//! of YAML take the times in examples for dates.

use std::collections::{BTreeMap, BTreeSet};

use poem_openapi::{
    OpenApi, OpenApiService,
    registry::{MetaSchema, MetaSchemaRef, Registry},
};
use serde_json::{Map, Value, json};

use crate::api::{self, Api};

mod examples;
mod failures;
mod finish;
mod links;
mod names;
#[cfg(test)]
mod tests;
mod version_3_1;

/// The endpoints as an OpenAPI service. Stateless: a pure function, so that the document needs no hub.
pub fn service() -> OpenApiService<Api, ()> {
    OpenApiService::new(api::all(), "Message Hub", env!("CARGO_PKG_VERSION")).description(
        "A hub between people's chat bot accounts and programs: webhooks, WebSocket clients and AI models.\n\n\
         Every response under `/api` is `{success: true, data}` or `{success: false, error}`. Lists are pages: \
         parameters `limit` and `cursor`, fields `items` and `next_cursor`, newest first. Bodies are JSON of at most 1 MiB, \
         of 16 KiB without a credential. A request that violates HTTP, or whose head is too long or arrives too \
         slowly, gets 400, 408, 414 or 431 in the same envelope, and its connection is closed.",
    )
}

/// The finished document, for a hub at `public_url`.
pub fn document(public_url: &str) -> Value {
    let mut document: Value =
        serde_json::from_str(&service().spec()).expect("poem-openapi writes the document as JSON");
    finish::finish(&mut document, &operations::<Api>());
    document["servers"] = json!([{ "url": public_url.trim_end_matches('/') }]);
    document.sort_all_objects();
    document
}

/// A rendering of the document, independent of a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rendering {
    /// OpenAPI 3.0 as JSON: `openapi/hub.json`.
    Json,
    /// OpenAPI 3.0 as YAML.
    Yaml,
    /// OpenAPI 3.1 as JSON.
    JsonV3_1,
}

impl Rendering {
    /// The text of the document.
    pub fn text(self) -> String {
        let document = document("/");
        let pretty =
            |value: &Value| serde_json::to_string_pretty(value).expect("a value has only text keys") + "\n";
        match self {
            Self::Json => pretty(&document),
            Self::Yaml => serde_norway::to_string(&document).expect("a value has only text keys"),
            Self::JsonV3_1 => pretty(&version_3_1::derive(&document)),
        }
    }
}

/// The names of the fields of what an operation responds with, or of the items of its list with this name if it has one,
/// in the order of the document; none for an unknown operation. The list of a page is `items`.
pub fn fields(operation_id: &str, list: &str) -> Vec<&'static str> {
    let mut registry = Registry::new();
    Api::register(&mut registry);
    let operations = Api::meta().into_iter().flat_map(|api| api.paths).flat_map(|path| path.operations);
    let operation = operations.into_iter().find(|operation| operation.operation_id == Some(operation_id));
    let responses = operation.map(|operation| operation.responses.responses).unwrap_or_default();
    let success = responses.into_iter().find(|response| response.status == Some(200));
    let content = success.and_then(|response| response.content.into_iter().next());
    let envelope = content.and_then(|content| resolved(&registry, &content.schema).cloned());
    let data = envelope.and_then(|envelope| property(&registry, &envelope, "data").cloned());
    let item = data.as_ref().and_then(|data| {
        let items = property(&registry, data, list).and_then(|items| items.items.as_deref());
        items.map_or(Some(data), |items| resolved(&registry, items))
    });
    item.map(|item| item.properties.iter().map(|(name, _)| *name).collect()).unwrap_or_default()
}

fn property<'r>(registry: &'r Registry, schema: &'r MetaSchema, name: &str) -> Option<&'r MetaSchema> {
    let (_, found) = schema.properties.iter().find(|(property, _)| *property == name)?;
    resolved(registry, found)
}

fn resolved<'r>(registry: &'r Registry, schema: &'r MetaSchemaRef) -> Option<&'r MetaSchema> {
    match schema {
        MetaSchemaRef::Reference(name) => registry.schemas.get(name),
        // A reference with a description of its own.
        MetaSchemaRef::Inline(schema) => match schema.all_of.first() {
            Some(all) => resolved(registry, all),
            None => Some(schema),
        },
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

/// Calls `act` with every object of a document, outer objects first.
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

/// Adds the names of the schemas that a part of the document refers to.
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
