use std::{collections::BTreeSet, path::Path};

use hub_core::traces::Cause;
use poem_openapi::types::ToJSON as _;
use serde_json::json;

use super::{examples::UNKNOWN, *};
use crate::api::TAG_ORDER;

#[test]
fn the_committed_document_is_up_to_date() {
    let text = Rendering::Json.text();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi/hub.json");
    if std::env::var_os("HUB_UPDATE_OPENAPI").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "openapi/hub.json is out of date; run the tests with HUB_UPDATE_OPENAPI=1");
}

#[test]
fn yaml_is_the_same_document() {
    let read: Value = serde_norway::from_str(&Rendering::Yaml.text()).unwrap();
    assert!(read == document("/"));
}

/// The codes of the schema are those that serde reads and writes.
#[test]
fn every_code_of_a_cause_is_a_variant_and_every_variant_has_a_code() {
    let schema = document("/")["components"]["schemas"]["Cause"].clone();
    let codes: BTreeSet<&str> =
        schema["properties"]["code"]["enum"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let read = |code: &str| serde_json::from_value::<Cause>(json!({ "code": code }));
    let unknown = read("?").unwrap_err().to_string();
    let variants: BTreeSet<&str> = unknown.split('`').skip(3).step_by(2).collect();
    assert!(codes == variants && codes.len() > 100, "{:?}", codes.symmetric_difference(&variants));
    for code in codes {
        if let Ok(cause) = read(code) {
            assert_eq!(cause.to_json(), Some(json!({ "code": code })));
        }
    }
    let failed = Cause::read("failed after 2 attempt(s): keyword; a reply could not be sent: status 400");
    assert_eq!(failed.to_json(), Some(json!(failed)), "serde and the API write the same");
}

/// Every sentence that states a cause is next to that cause, under one name.
#[test]
fn causes_are_next_to_their_sentences() {
    let document = document("/");
    let mut places = 0;
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_cause = examples::reference(property) == Some("Cause");
            let Some(sentence) = field.strip_suffix("_cause") else {
                assert!(!is_cause || name == "Cause", "{name}.{field}");
                continue;
            };
            assert!(is_cause && schema["properties"][sentence]["type"] == "string", "{name}.{field}");
            let required = schema["required"].as_array();
            assert!(required.is_none_or(|names| !names.contains(&json!(field))), "{name}.{field}");
            places += 1;
        }
    }
    assert!(places > 15, "{places}");
}

#[test]
fn every_operation_is_named_tagged_and_described() {
    let document = document("/");
    let mut ids = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let place = format!("{method} {path}");
            let id = operation["operationId"].as_str().unwrap_or_default();
            assert!(id.starts_with(|c: char| c.is_ascii_lowercase()), "{place}: operationId {id:?}");
            assert!(id.chars().all(|c| c.is_ascii_alphanumeric()), "{place}: operationId {id:?}");
            assert!(ids.insert(id.to_owned()), "{place}: {id} is used twice");
            let tag = operation["tags"][0].as_str().unwrap_or_default();
            assert!(TAG_ORDER.contains(&tag), "{place}: tag {tag:?}");
            assert!(!operation["summary"].as_str().unwrap_or_default().is_empty(), "{place}: no summary");
            for (status, response) in operation["responses"].as_object().unwrap() {
                let described = response.get("$ref").is_some()
                    || response["description"].as_str().is_some_and(|text| !text.is_empty());
                assert!(described, "{place}: {status} says nothing");
            }
        }
    }
}

/// Doc comments of records are texts of the document, in which rustdoc links have no meaning.
#[test]
fn no_text_has_a_link_of_rustdoc() {
    visit(&mut document("/"), &mut |object| {
        let text = object.get("description").and_then(Value::as_str).unwrap_or_default();
        assert!(!text.contains("[`") && !text.contains("]("), "{text}");
    });
}

#[test]
fn lists_in_queries_are_known_to_the_check_of_repeated_parameters() {
    let document = document("/");
    let mut lists = BTreeSet::new();
    for operations in document["paths"].as_object().unwrap().values() {
        for operation in operations.as_object().unwrap().values() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let is_list = |one: &&Value| one["in"] == "query" && one["schema"]["type"] == "array";
            lists.extend(parameters.filter(is_list).map(|one| one["name"].as_str().unwrap()));
        }
    }
    assert_eq!(lists.into_iter().collect::<Vec<_>>(), crate::parameters::LISTS);
}

#[test]
fn every_reference_resolves_and_every_path_is_unique() {
    let mut document = document("/");
    let paths: Vec<_> = Api::meta().into_iter().flat_map(|api| api.paths).map(|path| path.path).collect();
    assert_eq!(paths.iter().collect::<BTreeSet<_>>().len(), paths.len(), "a path is split over two impls");
    let copy = document.clone();
    visit(&mut document, &mut |object| {
        if let Some(Value::String(reference)) = object.get("$ref") {
            let pointer = reference.trim_start_matches('#');
            assert!(copy.pointer(pointer).is_some(), "{reference} leads nowhere");
        }
    });
}

#[test]
fn every_schema_has_an_example() {
    let document = document("/");
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let lacking: Vec<_> = schemas
        .iter()
        .filter(|(_, schema)| schema["example"].is_null() || schema["example"].to_string().contains(UNKNOWN))
        .map(|(name, schema)| format!("{name}: {}", schema["example"]))
        .collect();
    assert!(lacking.is_empty(), "openapi/examples.rs does not know a text of {lacking:#?}");
}

/// Causes of a failure: texts without a bound, and parts that are `null` although their schema forbids it, come from
/// fields of type `String` or from responses without `skip_serializing_if_is_none`.
#[test]
fn every_text_that_is_sent_has_a_bound() {
    let document = document("/");
    let schemas = &document["components"]["schemas"];
    let (mut sent, mut inline) = (BTreeSet::new(), Vec::new());
    for operation in document["paths"].as_object().unwrap().values().filter_map(Value::as_object).flatten() {
        let (_, operation) = operation;
        for part in [&operation["parameters"], &operation["requestBody"]] {
            reached(part, schemas, &mut sent);
            inline.push((operation["operationId"].as_str().unwrap_or_default(), part));
        }
    }
    assert!(sent.len() > 30, "{sent:?}");
    let mut unbounded = BTreeSet::new();
    let named = sent.iter().map(|name| (name.as_str(), &schemas[name.as_str()]));
    for (place, part) in named.chain(inline) {
        let mut part = part.clone();
        // The form of an example does not restrict the values.
        visit(&mut part, &mut |object| drop(object.remove("example")));
        visit(&mut part, &mut |object| {
            let is_bound = ["maxLength", "enum", "format", "pattern", "allOf"]
                .iter()
                .any(|word| object.contains_key(*word));
            if object.get("type").is_some_and(|kind| kind == "string") && !is_bound {
                unbounded.insert(format!("{place}: {object:?}"));
            }
        });
    }
    assert!(unbounded.is_empty(), "{unbounded:#?}");
}

/// Returns the names of the schemas that a part of every operation refers to.
fn reached_from(document: &Value, part: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for operation in document["paths"].as_object().unwrap().values().filter_map(Value::as_object).flatten() {
        reached(&operation.1[part], &document["components"]["schemas"], &mut names);
    }
    names
}

/// Every body and every response is a named schema. The schemas are tested above, and `tests/endpoints/answers/mod.rs`
/// tests that the examples match them.
#[test]
fn every_body_and_every_response_has_an_example() {
    let document = document("/");
    let (mut bodies, mut answers) = (0, 0);
    for operation in document["paths"].as_object().unwrap().values().filter_map(Value::as_object).flatten() {
        let (_, operation) = operation;
        let id = &operation["operationId"];
        let check = |content: &Value, count: &mut usize| {
            // HTML pages are human-readable.
            let content = content.as_object().into_iter().flatten().filter(|(kind, _)| *kind != "text/html");
            for (kind, media) in content {
                let name = examples::reference(&media["schema"]);
                let name = name.unwrap_or_else(|| panic!("{id}: {kind} has no name"));
                assert!(!document["components"]["schemas"][name]["example"].is_null(), "{id}: {kind}");
                *count += 1;
            }
        };
        check(&operation["requestBody"]["content"], &mut bodies);
        let responses = operation["responses"].as_object().unwrap();
        for (status, answer) in responses {
            // Upgrades to a WebSocket and redirects have no body.
            let begins = status == "200" && responses.contains_key("101") && answer.get("content").is_none();
            let is_empty = begins || answer.get("$ref").is_some() || matches!(&**status, "101" | "303");
            assert!(is_empty || answer["content"].is_object(), "{id} does not say what {status} looks like");
            check(&answer["content"], &mut answers);
        }
    }
    assert!(bodies > 50 && answers > 120, "{bodies} bodies, {answers} answers");
}

/// A type of a response in the source: its name in the document, and whether it omits absent fields.
struct Source {
    name: String,
    leaves_out: bool,
    has_options: bool,
}

fn sources(text: &str) -> Vec<Source> {
    let is_object = |derived: &str| derived.split(['(', ',', ')']).any(|word| word.trim() == "Object");
    let mut found = Vec::new();
    for (start, _) in text.match_indices("#[derive(") {
        let rest = &text[start..];
        let Some((derived, rest)) = rest.split_once("]\n") else { continue };
        let Some((attributes, rest)) = rest.split_once("struct ").filter(|_| is_object(derived)) else {
            continue;
        };
        let Some((fields, _)) = rest.split_once("\n}") else { continue };
        let own = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let renamed = attributes.split_once("rename = \"").and_then(|(_, rest)| rest.split('"').next());
        found.push(Source {
            name: renamed.map_or_else(|| names::readable(own), str::to_owned),
            leaves_out: attributes.contains("skip_serializing_if_is_none"),
            has_options: fields.contains(": Option<"),
        });
    }
    found
}

fn source_files(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            source_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Absent fields of a response are omitted, as its schema requires: a bare `Option` would be `null`, which no schema
/// here allows except that of `next_cursor`. A record that derives `Api` always omits it.
///
/// Texts of responses are plain `String`s: a bound would be a promise about stored values, which were accepted under
/// earlier bounds or came from the chat network, which has none. Description and example state the meaning; linters
/// require them of every property.
#[test]
fn absent_fields_of_a_response_are_omitted() {
    let answered = reached_from(&document("/"), "responses");
    let mut files = Vec::new();
    source_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let all: Vec<Source> =
        files.iter().flat_map(|path| sources(&std::fs::read_to_string(path).unwrap())).collect();
    let bare: Vec<_> = all
        .iter()
        .filter(|one| one.has_options && !one.leaves_out && answered.contains(&one.name))
        .map(|one| &one.name)
        .collect();
    assert!(bare.is_empty(), "skip_serializing_if_is_none is missing on {bare:?}");
    let broken = "#[derive(Debug, Object)]\npub struct BotView {\n    /// A.\n    pub a: Option<u8>,\n}\n";
    assert!(sources(broken).iter().any(|one| one.name == "Bot" && one.has_options && !one.leaves_out));
}

#[test]
fn created_and_listed_objects_have_links() {
    let document = document("/");
    let link = |path: &str, method: &str, to: &str| {
        document["paths"][path][method]["responses"]["200"]["links"][to].clone()
    };
    let channels = "/api/bots/{id}/channels";
    assert_eq!(
        link(channels, "post", "getChannel")["parameters"],
        json!({ "id": "$request.path.id", "channelId": "$response.body#/data/id" })
    );
    assert_eq!(
        link(channels, "get", "getChannel")["parameters"]["channelId"],
        "$response.body#/data/items/0/id"
    );
    // The id belongs in a body: openapi-generator would reject the document.
    assert!(link("/api/bots/bind/start", "post", "confirmBind").is_null());
    assert_eq!(
        link("/api/bots/{id}/contacts", "get", "setContactRemark")["parameters"]["userId"],
        "$response.body#/data/items/0/user_id"
    );
    // A list of channels reveals nothing new about its bot, and an operation may return an object of another user.
    assert!(link(channels, "get", "getBot").is_null());
    assert!(link("/api/apps", "post", "getChannel").is_null());
    // A link leads to an operation that the same caller may use.
    for operation in document["paths"].as_object().unwrap().values().filter_map(Value::as_object).flatten() {
        for (to, link) in operation.1["responses"]["200"]["links"].as_object().into_iter().flatten() {
            assert_eq!(&link["operationId"], to);
        }
    }
}
