use std::{collections::BTreeSet, path::Path};

use super::{examples::UNKNOWN, *};
use crate::api::TAG_ORDER;

#[test]
fn the_committed_document_is_this_one() {
    let Committed { json, yaml, json_v3_1, json_plain } = committed();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi");
    let documents = [
        ("hub.json", json),
        ("hub.yaml", yaml),
        ("hub.v3_1.json", json_v3_1),
        ("hub.plain.json", json_plain),
    ];
    for (name, text) in documents {
        let path = folder.join(name);
        if std::env::var_os("HUB_UPDATE_OPENAPI").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == text, "openapi/{name} is out of date; run the tests with HUB_UPDATE_OPENAPI=1");
    }
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

#[test]
fn every_reference_leads_somewhere_and_paths_stand_once() {
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

/// Texts without a bound, and parts that are `null` in an answer while their schema forbids it, come of fields whose
/// type is a bare `String` or of answers that lack `skip_serializing_if_is_none`.
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
        // What an example looks like is not what may be sent.
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
