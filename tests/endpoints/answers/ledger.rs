//! Record of responses, each validated against the OpenAPI document.

use std::collections::{BTreeSet, HashMap};

use hub_server::openapi;
use jsonschema::{Registry, Validator};
use serde_json::{Value, json};

use crate::endpoints::{
    operation::{Operation, operations},
    stage::Answer,
};

/// The address of the document for its schemas.
const DOCUMENT: &str = "urn:hub:openapi";

/// The document as JSON Schema, and the documented responses of operations that were seen.
pub struct Ledger {
    document: Value,
    /// The document, so that it is read once and not for each schema.
    registry: Registry<'static>,
    validators: HashMap<String, Validator>,
    given: BTreeSet<(String, String)>,
    wrong: Vec<String>,
}

impl Ledger {
    pub fn new() -> Self {
        let mut document: Value = serde_json::from_str(&openapi::Rendering::JsonV3_1.text()).unwrap();
        // A response has no field that its schema does not name.
        for schema in document["components"]["schemas"].as_object_mut().unwrap().values_mut() {
            if schema["properties"].is_object() && schema.get("additionalProperties").is_none() {
                schema["additionalProperties"] = false.into();
            }
        }
        let components = json!({ "components": &document["components"] });
        let registry = Registry::new().add(DOCUMENT, components).unwrap().prepare().unwrap();
        Self { document, registry, validators: HashMap::new(), given: BTreeSet::new(), wrong: Vec::new() }
    }

    /// The schemas of the document by name, with their examples.
    pub fn schemas(&self) -> Vec<(String, Value)> {
        let schemas = self.document["components"]["schemas"].as_object().unwrap();
        schemas.iter().map(|(name, schema)| (name.clone(), schema["examples"][0].clone())).collect()
    }

    /// The example of the body of an operation; null if it has none.
    pub fn example(&self, operation: &Operation) -> Value {
        let schema = &operation.described["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        let schema = schema.as_str().and_then(|path| self.document.pointer(path.trim_start_matches('#')));
        schema.map_or(Value::Null, |schema| schema["examples"][0].clone())
    }

    /// Returns the violations of a schema of the document.
    pub fn breaks(&mut self, schema: &str, value: &Value) -> Vec<String> {
        let validator = self.validators.entry(schema.to_owned()).or_insert_with(|| {
            let root = json!({ "$ref": format!("{DOCUMENT}#/components/schemas/{schema}") });
            jsonschema::options().with_registry(&self.registry).build(&root).unwrap()
        });
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }

    /// Returns the documented response for a status; `default` is for statuses without an entry.
    fn described(&self, operation: &Operation, status: u16) -> Option<(String, Value)> {
        let responses = &operation.described["responses"];
        let named = [status.to_string(), "default".to_owned()];
        let name = named.into_iter().find(|name| responses.get(name).is_some())?;
        let response = &responses[&name];
        let shared =
            response["$ref"].as_str().and_then(|path| self.document.pointer(path.trim_start_matches('#')));
        Some((name, shared.unwrap_or(response).clone()))
    }

    /// Records a response: its status has to be documented, and its body has to match the schema.
    pub fn note(&mut self, operation: &Operation, answer: &Answer, why: &str) {
        let (id, Answer { status, json }) = (&operation.id, answer);
        let Some((name, described)) = self.described(operation, *status) else {
            self.wrong.push(format!("{id} does not document {status}, which it answers to {why}: {json}"));
            return;
        };
        self.given.insert((id.clone(), name));
        let mut content = ["application/json", "text/event-stream"].iter();
        let schema = content.find_map(|kind| described["content"][kind]["schema"]["$ref"].as_str());
        let Some(schema) = schema.and_then(|path| path.rsplit('/').next()) else { return };
        for broken in self.breaks(schema, json) {
            self.wrong
                .push(format!("{id} answers {why} with {status}, which is no {schema}: {broken} in {json}"));
        }
    }

    /// As [`note`](Self::note), of an answer that has to have this status.
    pub fn expect(&mut self, operation: &Operation, answer: &Answer, status: u16, why: &str) {
        if answer.status != status {
            let Answer { status: got, json } = answer;
            self.wrong.push(format!("{} answers {why} with {got}, not {status}: {json}", operation.id));
        }
        self.note(operation, answer, why);
    }

    /// Returns the wrong responses, and the documented failures that no request provoked.
    pub fn close(self, elsewhere: &[(&str, u16, &str)]) -> Vec<String> {
        let mut wrong = self.wrong;
        for operation in operations() {
            for status in operation.described["responses"].as_object().unwrap().keys() {
                let is_failure = !status.starts_with(['1', '2', '3']);
                let is_given = self.given.contains(&(operation.id.clone(), status.clone()));
                let named =
                    elsewhere.iter().find(|(id, of, _)| *id == operation.id && of.to_string() == *status);
                if is_failure && !is_given && named.is_none() {
                    wrong.push(format!("{} documents {status}, and nothing provoked it", operation.id));
                }
                if is_given && let Some((.., test)) = named {
                    wrong.push(format!("{} {status} is provoked here, not by {test} alone", operation.id));
                }
            }
        }
        wrong
    }
}
