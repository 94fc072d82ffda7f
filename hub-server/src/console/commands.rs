//! The commands that show the same as a page: `curl` for the operations of the API, and `hub-cli`.

use std::{borrow::Cow, sync::LazyLock};

use super::{messages, page::Ask};
use crate::openapi;

/// An operation that reads.
struct Read {
    operation: String,
    /// Its path; the address of the hub is not in it.
    path: String,
    /// The names of its parameters in the query.
    query: Vec<String>,
}

/// The operations of the OpenAPI document that read.
static READS: LazyLock<Vec<Read>> = LazyLock::new(|| {
    let document = openapi::document("http://localhost");
    let paths = document["paths"].as_object().cloned().unwrap_or_default();
    let reads = paths.into_iter().filter_map(|(path, methods)| {
        let operation = methods["get"]["operationId"].as_str()?.to_owned();
        let parameters = methods["get"]["parameters"].as_array().cloned().unwrap_or_default();
        let in_query = parameters.iter().filter(|parameter| parameter["in"] == "query");
        let query = in_query.filter_map(|parameter| parameter["name"].as_str().map(str::to_owned)).collect();
        Some(Read { operation, path, query })
    });
    reads.collect()
});

/// The commands, with the ids and the filters of this page and without a secret. Operations about things that the
/// address of the page does not name are left out.
pub(super) fn of(ask: &Ask) -> Vec<String> {
    let base = ask.settings.public_url.as_str().trim_end_matches('/');
    let shown = ask.page.shows.iter().filter_map(|shown| READS.iter().find(|read| read.operation == *shown));
    let curl = shown.filter_map(|read| {
        let path = filled(ask, &read.path, segment)?;
        Some(format!("curl -H \"Authorization: Bearer $HUB_KEY\" '{base}{path}{}'", query(ask, read)))
    });
    curl.chain(filled(ask, ask.page.command, quoted).filter(|command| !command.is_empty())).collect()
}

/// Builds the query from parameters of the page with the same name, or from ids in its path.
fn query(ask: &Ask, read: &Read) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for name in &read.query {
        let of_path = ask.param(name.trim_end_matches("_id"));
        let value = if of_path.is_empty() { ask.query(name).unwrap_or_default() } else { of_path };
        if name == "since" && !value.is_empty() {
            let since = messages::since(value, ask.hub.context().store.now());
            query.append_pair(name, &since.map(|at| at.to_string()).unwrap_or_default());
        } else if !value.is_empty() {
            query.append_pair(name, value);
        }
    }
    let query = query.finish();
    if query.is_empty() { query } else { format!("?{query}") }
}

/// Puts the parameters of the page into a template. In a path of the API, `{id}` is named after what precedes it:
/// `/api/bots/{id}/channels/{channelId}`. `None` if the page has not all of them.
fn filled(ask: &Ask, template: &str, encode: fn(&str) -> Cow<'_, str>) -> Option<String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let (name, tail) = after.split_once('}')?;
        let name = match name {
            "id" => before.trim_end_matches('/').rsplit('/').next().unwrap_or_default().trim_end_matches('s'),
            _ => name.trim_end_matches("Id"),
        };
        let value = Some(ask.param(name)).filter(|value| !value.is_empty())?;
        filled.push_str(&encode(value));
        rest = tail;
    }
    Some(filled + rest)
}

/// A segment of a path.
fn segment(text: &str) -> Cow<'_, str> {
    let encoded: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
    encoded.replace('+', "%20").into()
}

/// Quotes a word of a command line. Ids of people on the network may contain any character.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.@:".contains(&byte);
    if word.bytes().all(is_plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', "'\\''")).into()
}

/// The operations of the document, for tests.
#[cfg(test)]
pub(super) fn operations() -> Vec<(String, String)> {
    let document = openapi::document("http://localhost");
    let methods = document["paths"].as_object().cloned().unwrap_or_default();
    let operations =
        methods.into_iter().flat_map(|(_, methods)| methods.as_object().cloned().unwrap_or_default());
    operations
        .filter_map(|(method, operation)| Some((method, operation["operationId"].as_str()?.to_owned())))
        .collect()
}
