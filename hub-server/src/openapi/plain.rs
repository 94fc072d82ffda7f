//! The same document for generators that support only one type for the body of an operation, one for its responses
//! and one for its errors.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{finish::drop_unused_schemas, visit};

const JSON: &str = "application/json";

/// A finished document in which each operation has one type for each purpose, as JSON. Operations that no call can
/// use are removed: WebSockets and redirects.
pub(super) fn derive(document: &Value) -> Value {
    let mut plain = document.clone();
    let components = &document["components"];
    if let Some(paths) = plain["paths"].as_object_mut() {
        for operations in paths.values_mut().filter_map(Value::as_object_mut) {
            operations.retain(|_, operation| is_answered(&operation["responses"]));
            for operation in operations.values_mut() {
                simplify(operation, components);
            }
        }
        paths.retain(|_, operations| operations.as_object().is_some_and(|operations| !operations.is_empty()));
    }
    visit(&mut plain, &mut keep_one_spelling);
    drop_unused_schemas(&mut plain);
    drop_unused_schemes(&mut plain);
    plain
}

fn is_success(status: &str) -> bool {
    status.starts_with('2')
}

fn is_answered(responses: &Value) -> bool {
    let mut statuses = responses.as_object().into_iter().flat_map(Map::keys);
    responses.get("101").is_none() && statuses.any(|status| is_success(status))
}

fn simplify(operation: &mut Value, components: &Value) {
    keep_json(operation.pointer_mut("/requestBody/content"));
    let Some(responses) = operation["responses"].as_object_mut() else { return };
    // `default` would include successes.
    responses.retain(|status, _| !status.starts_with('3') && status != "default");
    for response in responses.values_mut() {
        keep_json(response.get_mut("content"));
    }
    unite_refusals(responses, components);
}

/// Of several media types, JSON is kept; a single one is kept too.
fn keep_json(content: Option<&mut Value>) {
    let Some(content) = content.and_then(Value::as_object_mut) else { return };
    if content.contains_key(JSON) {
        content.retain(|media, _| media == JSON);
    }
}

/// If an operation has several error types, all errors get the general one.
fn unite_refusals(responses: &mut Map<String, Value>, components: &Value) {
    let shared = |response: &Value| {
        let name = response["$ref"].as_str()?.rsplit('/').next()?;
        components["responses"].get(name).cloned()
    };
    let refusals: Vec<_> = responses
        .iter_mut()
        .filter(|(status, _)| !is_success(status))
        .map(|(_, response)| (shared(response).unwrap_or_else(|| response.clone()), response))
        .collect();
    let schemas: BTreeSet<_> =
        refusals.iter().filter_map(|(refusal, _)| schema_of(refusal)?["$ref"].as_str()).collect();
    let stands_for_any = |reference: &&str| {
        let name = reference.rsplit('/').next().unwrap_or_default();
        components["schemas"][name].get("anyOf").is_some()
    };
    if schemas.len() < 2 {
        return;
    }
    let Some(any) = schemas.into_iter().find(stands_for_any).map(str::to_owned) else { return };
    for (mut refusal, response) in refusals {
        if let Some(schema) = refusal.pointer_mut("/content/application~1json/schema") {
            schema["$ref"] = any.as_str().into();
        }
        *response = refusal;
    }
}

fn schema_of(response: &Value) -> Option<&Value> {
    response.pointer("/content/application~1json/schema")
}

/// A field that also has a camel case spelling, for older clients, keeps the snake case one, in schemas and in
/// examples: most languages derive the same name from both.
fn keep_one_spelling(object: &mut Map<String, Value>) {
    let fields = object.get("properties").and_then(Value::as_object);
    let second = fields.map(second_spellings).unwrap_or_default();
    if let Some(required) = object.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !name.as_str().is_some_and(|name| second.contains(name)));
    }
    let second = second_spellings(object);
    object.retain(|name, _| !second.contains(name));
}

fn second_spellings(fields: &Map<String, Value>) -> BTreeSet<String> {
    let is_snake = |name: &str| !name.contains(|letter: char| letter.is_ascii_uppercase());
    let (snake, camel): (Vec<_>, Vec<_>) = fields.keys().partition(|name| is_snake(name));
    let snake: BTreeSet<_> = snake.into_iter().map(|name| name.replace('_', "")).collect();
    camel.into_iter().filter(|name| snake.contains(&name.to_lowercase())).cloned().collect()
}

/// Security schemes that only the removed operations use.
fn drop_unused_schemes(document: &mut Value) {
    let mut used = BTreeSet::new();
    visit(document, &mut |object| {
        let requirements = object.get("security").and_then(Value::as_array).into_iter().flatten();
        used.extend(requirements.filter_map(Value::as_object).flat_map(Map::keys).cloned());
    });
    if let Some(schemes) = document["components"]["securitySchemes"].as_object_mut() {
        schemes.retain(|name, _| used.contains(name));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::{super::document, *};

    fn operations(document: &Value) -> BTreeMap<&str, &Value> {
        let paths = document["paths"].as_object().into_iter().flat_map(Map::values);
        let operations = paths.filter_map(Value::as_object).flat_map(Map::values);
        operations.map(|operation| (operation["operationId"].as_str().unwrap(), operation)).collect()
    }

    /// What progenitor asserts before it makes anything.
    #[test]
    fn every_operation_has_one_type_for_each_purpose() {
        let plain = derive(&document("/"));
        for (id, operation) in operations(&plain) {
            let bodies = operation["requestBody"]["content"].as_object().map_or(0, Map::len);
            assert!(bodies <= 1, "{id}: {bodies} kinds of bodies");
            let mut types = [BTreeSet::new(), BTreeSet::new()];
            for (status, response) in operation["responses"].as_object().unwrap() {
                assert!(status.starts_with(['2', '4', '5']), "{id}: {status}");
                let shared = response["$ref"].as_str().map(|reference| &reference[1..]);
                let response = shared.map_or(response, |pointer| plain.pointer(pointer).unwrap());
                let media = response["content"].as_object().map_or(0, Map::len);
                assert!(media <= 1, "{id}: {media} media types of {status}");
                types[usize::from(is_success(status))].insert(schema_of(response).map(Value::to_string));
            }
            let [refusals, successes] = types;
            assert_eq!(successes.len(), 1, "{id}: {successes:?}");
            assert_eq!(refusals.len(), 1, "{id}: {refusals:?}");
        }
    }

    #[test]
    fn only_what_no_call_answers_is_left_out() {
        let document = document("/");
        let plain = derive(&document);
        let kept = operations(&plain);
        let left_out: BTreeSet<_> =
            operations(&document).into_keys().filter(|id| !kept.contains_key(id)).collect();
        let expected = [
            "connectApp",
            "connectChannel",
            "connectInstallation",
            "finishExternalLogin",
            "getQrLoginStatus",
            "setUpApp",
            "startExternalLogin",
        ];
        assert_eq!(left_out, BTreeSet::from(expected));
    }

    #[test]
    fn of_two_spellings_the_one_in_snake_case_stays() {
        let mut schema = json!({
            "properties": { "sessionID": {}, "session_id": {}, "reqID": {} },
            "required": ["sessionID", "session_id"],
            "example": { "items": [{ "sessionID": "s", "session_id": "s", "reqID": "r" }] },
        });
        visit(&mut schema, &mut keep_one_spelling);
        let expected = json!({
            "properties": { "session_id": {}, "reqID": {} },
            "required": ["session_id"],
            "example": { "items": [{ "session_id": "s", "reqID": "r" }] },
        });
        assert_eq!(schema, expected);
    }
}
