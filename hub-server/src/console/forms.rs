//! Forms: their fields as the JSON body of the operation that does the same, so that bounds, defaults and the names of
//! fields in errors are those of the API.

use hub_core::{Error, ErrorCode, bots::Attachment, media::MediaRoom};
use poem::{FromRequest, Request, RequestBody, http::header};
use poem_openapi::registry::{MetaSchema, MetaSchemaRef, Registry};
use serde_json::{Map, Value};

use crate::{envelope::ApiError, wire};

/// Maximum number of fields of a form.
const MAX_FIELDS: usize = 1000;

/// A form as it was sent.
#[derive(Debug, Default)]
pub(super) struct Submitted {
    /// The action: the value of the button.
    pub(super) action: String,
    pub(super) fields: Vec<(String, String)>,
    /// The file, with the memory that it occupies until it is stored.
    pub(super) file: Option<(Attachment, MediaRoom)>,
    /// Error of the action, if it was rejected.
    pub(super) refused: Option<Error>,
}

impl Submitted {
    fn put(&mut self, name: String, value: &str) {
        // Browsers send the line ends of texts as CRLF.
        let value = value.replace("\r\n", "\n");
        if name == "do" { self.action = value } else { self.fields.push((name, value)) }
    }

    /// The value of a field, the last one if there are several: a checkbox follows a hidden field with its opposite.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().rfind(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }
}

/// Reads the form in the body of a request: URL-encoded, or `multipart/form-data` where it has a file.
///
/// # Errors
/// `UNSUPPORTED_MEDIA_TYPE` for anything else, `INVALID_PARAMS` for too many fields, `PAYLOAD_TOO_LARGE`.
pub(super) async fn read(request: &mut Request) -> poem::Result<Submitted> {
    let content_type = request.header(header::CONTENT_TYPE).unwrap_or_default();
    let boundary = multer::parse_boundary(content_type).ok();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if boundary.is_none() && !essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let message = "the body must be application/x-www-form-urlencoded or multipart/form-data";
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType, message).into());
    }
    let (head, mut body) = std::mem::take(request).split();
    let read = match boundary {
        Some(boundary) => with_file(&head, &mut body, boundary).await,
        None => without_file(&head, &mut body).await,
    };
    *request = head;
    let form = read?;
    if form.fields.len() > MAX_FIELDS {
        return Err(ApiError::from(Error::invalid("form", "has too many fields")).into());
    }
    Ok(form)
}

async fn without_file(head: &Request, body: &mut RequestBody) -> poem::Result<Submitted> {
    let bytes = <Vec<u8> as FromRequest>::from_request(head, body).await?;
    let mut form = Submitted::default();
    for (name, value) in url::form_urlencoded::parse(&bytes).take(MAX_FIELDS + 1) {
        form.put(name.into_owned(), &value);
    }
    Ok(form)
}

async fn with_file(head: &Request, body: &mut RequestBody, boundary: String) -> poem::Result<Submitted> {
    let sent = wire::read_multipart(head, body, boundary).await?;
    // A file field that was left empty is sent as a file without a name and without bytes.
    let is_chosen = |file: &Attachment| match file {
        Attachment::Bytes { file_name, bytes, .. } => !file_name.is_empty() || !bytes.is_empty(),
        Attachment::Upload(_) | Attachment::Url(_) => true,
    };
    let file = sent.file.filter(is_chosen).map(|file| (file, sent.room));
    let mut form = Submitted { file, ..Submitted::default() };
    for (name, value) in sent.texts {
        form.put(name, &value);
    }
    Ok(form)
}

/// Converts the fields to the JSON value of a request type. The names of fields are the paths of the API's errors,
/// such as `webhook.url`. Numbers and booleans are parsed if the schema has that type. An empty field is left out
/// unless it is required. If the schema has a list, each line of a field is an item. `name.clear` with the value
/// `true` sets the optional field `name` to null, unless a value for it follows. Fields that the type does not have
/// are ignored.
pub(super) fn value<T: poem_openapi::types::Type>(fields: &[(String, String)]) -> Value {
    let mut registry = Registry::new();
    T::register(&mut registry);
    let schemas = Schemas(registry);
    let mut whole = Value::Object(Map::new());
    let root = T::schema_ref();
    for (name, text) in fields {
        let path: Vec<&str> = name.split('.').collect();
        if let [path @ .., "clear"] = path.as_slice() {
            if text == "true" && schemas.at(&root, path).is_some_and(|(_, is_required)| !is_required) {
                put(&mut whole, path, Value::Null);
            }
            continue;
        }
        if let Some((schema, is_required)) = schemas.at(&root, &path)
            && let Some(found) = schemas.read(&schema, is_required, text)
        {
            put(&mut whole, &path, found);
        }
    }
    whole
}

struct Schemas(Registry);

impl Schemas {
    /// Follows references and the `allOf` wrapper of an optional object to the schema.
    fn resolve(&self, reference: &MetaSchemaRef) -> Option<MetaSchema> {
        match reference {
            MetaSchemaRef::Inline(schema) if !schema.all_of.is_empty() => self.resolve(&schema.all_of[0]),
            MetaSchemaRef::Inline(schema) => Some((**schema).clone()),
            MetaSchemaRef::Reference(name) => self.0.schemas.get(name).cloned(),
        }
    }

    /// The schema of a field, and whether its object requires it.
    fn at(&self, root: &MetaSchemaRef, path: &[&str]) -> Option<(MetaSchema, bool)> {
        let object = self.resolve(root)?;
        let (name, rest) = path.split_first()?;
        let (_, property) = object.properties.iter().find(|(property, _)| property == name)?;
        if rest.is_empty() {
            return Some((self.resolve(property)?, object.required.contains(name)));
        }
        self.at(property, rest)
    }

    /// Parses a field as the type of the schema. A value that cannot be parsed stays a string, which the schema
    /// rejects.
    fn read(&self, schema: &MetaSchema, is_required: bool, text: &str) -> Option<Value> {
        if schema.ty == "array" {
            let item = schema.items.as_ref().and_then(|items| self.resolve(items))?;
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            return Some(lines.filter_map(|line| self.read(&item, true, line)).collect());
        }
        if text.is_empty() && !is_required {
            return None;
        }
        let read = match schema.ty {
            "integer" | "number" => text.trim().parse().ok().map(Value::Number),
            "boolean" => text.parse().ok().map(Value::Bool),
            _ => None,
        };
        Some(read.unwrap_or_else(|| text.into()))
    }
}

/// Puts a value at its path. Lists grow: a field may occur several times.
fn put(whole: &mut Value, path: &[&str], found: Value) {
    let Some((name, rest)) = path.split_first() else { return };
    let Value::Object(object) = whole else { return };
    if !rest.is_empty() {
        let inner = object.entry(*name).or_insert_with(|| Value::Object(Map::new()));
        return put(inner, rest, found);
    }
    match (object.get_mut(*name), found) {
        (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
        (_, found) => drop(object.insert((*name).to_owned(), found)),
    }
}

#[cfg(test)]
mod tests {
    use hub_core::accounts::NewApiKey;
    use poem_openapi::Object;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Object)]
    struct Inner {
        url: String,
        retries: Option<Vec<u32>>,
    }

    #[derive(Debug, Object)]
    struct Outer {
        name: String,
        enabled: Option<bool>,
        words: Option<Vec<String>>,
        webhook: Option<Inner>,
    }

    fn fields(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn fields_become_the_body_of_the_operation() {
        let form = fields(&[
            ("name", ""),
            ("enabled", "false"),
            ("enabled", "true"),
            ("words", "order\n\n 订单 "),
            ("words", "third"),
            ("webhook.url", "https://a.example"),
            ("webhook.retries", "5\n30"),
            ("once", "abc"),
        ]);
        let expected = json!({
            "name": "", "enabled": true, "words": ["order", "订单", "third"],
            "webhook": { "url": "https://a.example", "retries": [5, 30] },
        });
        assert_eq!(value::<Outer>(&form), expected);
    }

    #[test]
    fn a_cleared_field_is_null_unless_a_value_follows() {
        use hub_core::channels::{ChannelPatch, sinks::WebhookUpdate};
        let cleared = value::<ChannelPatch>(&fields(&[("handle.clear", "true"), ("handle", "")]));
        assert_eq!(cleared, json!({ "handle": null }));
        let named = value::<ChannelPatch>(&fields(&[("handle.clear", "true"), ("handle", "orders")]));
        assert_eq!(named, json!({ "handle": "orders" }));
        let kept = value::<WebhookUpdate>(&fields(&[("auth.secret.clear", "false"), ("auth.secret", "")]));
        assert_eq!(kept, json!({}));
        let removed = value::<WebhookUpdate>(&fields(&[("auth.secret.clear", "true"), ("auth.secret", "")]));
        assert_eq!(removed, json!({ "auth": { "secret": null } }));
    }

    #[test]
    fn empty_optional_fields_are_absent_and_bad_numbers_are_refused_by_the_schema() {
        let empty = value::<NewApiKey>(&fields(&[("name", "nightly"), ("expires_in_days", "")]));
        assert_eq!(empty, json!({ "name": "nightly" }));
        let bad = value::<NewApiKey>(&fields(&[("name", ""), ("expires_in_days", "soon")]));
        let error = crate::wire::read::<NewApiKey>(&bad).unwrap_err();
        let wrong: Vec<_> = error.inner().details().iter().map(|detail| detail.field.as_ref()).collect();
        assert_eq!(wrong, ["name", "expires_in_days"], "{error}");
    }
}
