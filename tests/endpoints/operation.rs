//! The operations of the OpenAPI document.

use hub_server::openapi;
use poem::http::Method;
use serde_json::{Value, json};

use super::{
    stage::ORIGIN,
    table::{Entry, TABLE},
};

/// One operation as the document describes it.
#[derive(Debug, Clone)]
pub struct Operation {
    pub id: String,
    pub method: Method,
    pub path: String,
    pub described: Value,
}

/// Every operation that the document describes.
pub fn operations() -> Vec<Operation> {
    let document = openapi::document(ORIGIN);
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, described) in methods.as_object().unwrap() {
            operations.push(Operation {
                id: described["operationId"].as_str().unwrap().to_owned(),
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                described: described.clone(),
            });
        }
    }
    operations
}

impl Operation {
    pub fn is_open(&self) -> bool {
        self.described["security"].as_array().is_none_or(Vec::is_empty)
    }

    pub fn is_administration(&self) -> bool {
        self.path.starts_with("/api/admin/")
    }

    /// Whether it asks for a channel's key.
    pub fn is_for_channels(&self) -> bool {
        self.described["security"].to_string().contains("channelKey")
    }

    /// Whether it asks for an app's token.
    pub fn is_for_apps(&self) -> bool {
        self.described["security"].to_string().contains("appToken")
    }

    /// Whether it asks for the secret of a whole app.
    pub fn is_for_whole_apps(&self) -> bool {
        self.described["security"].to_string().contains("appSecret")
    }

    /// Whether a program asks, with a key of its own: it knows no cookie, and may say more than the hub knows.
    pub fn is_for_programs(&self) -> bool {
        self.is_for_channels() || self.is_for_apps() || self.is_for_whole_apps()
    }

    /// Whether it is OAuth's own: it ignores what it does not know, and answers in words of its own.
    pub fn is_token_endpoint(&self) -> bool {
        self.id.starts_with("exchangeAppCode")
    }

    pub fn takes_body(&self) -> bool {
        self.described["requestBody"].is_object()
    }

    /// Whether it takes a body of this type, whatever its parameters.
    pub fn takes(&self, content_type: &str) -> bool {
        let content_type = content_type.split(';').next().unwrap_or_default();
        self.described["requestBody"]["content"][content_type].is_object()
    }

    pub fn body_is_required(&self) -> bool {
        self.described["requestBody"]["required"] == json!(true)
    }

    pub fn entry(&self) -> &'static Entry {
        let found = TABLE.iter().find(|entry| entry.operation == self.id);
        found.unwrap_or_else(|| panic!("{} has no entry in the table of endpoints", self.id))
    }

    /// The path with these ids in the places of its parameters.
    pub fn with(&self, ids: &[(&str, &str)]) -> String {
        let filled =
            ids.iter().fold(self.path.clone(), |path, (name, id)| path.replace(&format!("{{{name}}}"), id));
        assert!(!filled.contains('{'), "{filled}: who fills this in?");
        filled
    }

    pub fn parameters(&self) -> Vec<&str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect()
    }
}
