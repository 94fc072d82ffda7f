//! Links: operations that can follow on what an operation created or lists. Fuzzers and documentation pages use them.
//!
//! They are derived from ids. Every kind of id has its own pattern, so that `createChannel`, which returns a `ch_…`
//! under a bot, links to every operation with that bot and a channel in its path. Ids in bodies create no links:
//! openapi-generator rejects a document with a `requestBody` of fields, which OpenAPI 3.0.3 (Link Object) permits.

use serde_json::{Map, Value, json};

use super::examples::reference;

/// One operation, as needed for links.
struct Operation {
    id: String,
    path: String,
    /// Whether it creates or lists something.
    offers: bool,
    /// Required parameters of its path and its query.
    needs: Vec<IdParameter>,
    /// The ids in its response.
    own: Vec<Id>,
}

#[derive(Clone)]
struct IdParameter {
    place: ParameterLocation,
    id: Id,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ParameterLocation {
    Path,
    Query,
}

/// A name and, for an id, the pattern of its kind.
#[derive(Clone)]
struct Id {
    name: String,
    pattern: String,
    /// Its place in the response.
    pointer: String,
}

impl Id {
    /// Whether this field of a response is the value of a parameter.
    fn is(&self, wanted: &Self) -> bool {
        let snake = snake(&wanted.name);
        self.pattern == wanted.pattern
            && (self.name == snake || (self.name == "id" && !self.pattern.is_empty()))
    }
}

fn snake(name: &str) -> String {
    name.chars().fold(String::new(), |mut text, letter| {
        if letter.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
        text
    })
}

/// Adds the links to every operation that creates or lists something.
pub(super) fn add(document: &mut Value) {
    let operations = operations(document);
    for from in operations.iter().filter(|operation| operation.offers) {
        let links: Map<String, Value> =
            operations.iter().filter_map(|to| Some((to.id.clone(), from.link(to)?))).collect();
        if links.is_empty() {
            continue;
        }
        let described = document["paths"][&from.path].as_object_mut().into_iter().flat_map(Map::values_mut);
        for operation in described.filter(|operation| operation["operationId"] == from.id) {
            operation["responses"]["200"]["links"] = links.clone().into();
        }
    }
}

fn operations(document: &Value) -> Vec<Operation> {
    let schemas = &document["components"]["schemas"];
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        for (method, described) in methods.as_object().into_iter().flatten() {
            let id = described["operationId"].as_str().unwrap_or_default();
            let is_list = method == "get" && id.starts_with("list");
            operations.push(Operation {
                id: id.to_owned(),
                path: path.clone(),
                offers: is_list || method == "post",
                needs: needs(described),
                own: own(described, schemas),
            });
        }
    }
    operations
}

fn resolved<'a>(schema: &'a Value, schemas: &'a Value) -> &'a Value {
    reference(schema).map_or(schema, |name| resolved(&schemas[name], schemas))
}

/// A parameter for a plugin or a version also accepts the id of a plugin.
fn pattern(schema: &Value) -> String {
    schema["pattern"].as_str().unwrap_or_default().replace("pl[gv]", "plg")
}

fn needs(described: &Value) -> Vec<IdParameter> {
    let parameters = described["parameters"].as_array().into_iter().flatten();
    let needed = parameters.filter(|one| one["required"] == true).filter_map(|one| {
        let place = match one["in"].as_str()? {
            "path" => ParameterLocation::Path,
            "query" => ParameterLocation::Query,
            _ => return None,
        };
        let name = one["name"].as_str()?.to_owned();
        Some(IdParameter { place, id: Id { name, pattern: pattern(&one["schema"]), pointer: String::new() } })
    });
    needed.collect()
}

/// The ids in a response, or of the first item of a page: its `id`, or other fields with an id.
fn own(described: &Value, schemas: &Value) -> Vec<Id> {
    let answer = &described["responses"]["200"]["content"]["application/json"]["schema"];
    let data = resolved(&resolved(answer, schemas)["properties"]["data"], schemas);
    let (record, start) = match &data["properties"]["items"]["items"] {
        Value::Null => (data, "/data"),
        item => (resolved(item, schemas), "/data/items/0"),
    };
    let fields = record["properties"].as_object().into_iter().flatten();
    fields
        .map(|(name, schema)| Id {
            name: name.clone(),
            pattern: pattern(schema),
            pointer: format!("{start}/{name}"),
        })
        .collect()
}

impl Operation {
    /// The parameters of `to` after this operation; `None` if it is unrelated.
    fn link(&self, to: &Self) -> Option<Value> {
        // The id of an object comes last; the objects that contain it precede it.
        let main = to.needs.iter().rfind(|need| need.place == ParameterLocation::Path).or(to.needs.last())?;
        let is_old = |need: &IdParameter| {
            self.needs.iter().any(|own| own.id.pattern == need.id.pattern && !need.id.pattern.is_empty())
        };
        let is_below = self.id.starts_with("list")
            && main.place == ParameterLocation::Path
            && !to.path.starts_with(self.path.trim_end_matches("list"));
        if is_old(main) || is_below {
            return None;
        }
        let mut parameters = Map::new();
        for need in &to.needs {
            match (self.expression(need), need.place) {
                (Some(expression), _) => drop(parameters.insert(need.id.name.clone(), expression.into())),
                (None, ParameterLocation::Path) => return None,
                (None, ParameterLocation::Query) => {}
            }
        }
        let has_main = parameters.contains_key(&main.id.name);
        has_main.then(|| json!({ "operationId": to.id, "parameters": parameters }))
    }

    /// The runtime expression of a value: in the response, or in the path of the request.
    fn expression(&self, need: &IdParameter) -> Option<String> {
        let in_path =
            |own: &&IdParameter| own.place == ParameterLocation::Path && own.id.pattern == need.id.pattern;
        if let Some(parent) = self.needs.iter().find(in_path) {
            return Some(format!("$request.path.{}", parent.id.name));
        }
        let found = self.own.iter().find(|own| own.is(&need.id))?;
        Some(format!("$response.body#{}", found.pointer))
    }
}
