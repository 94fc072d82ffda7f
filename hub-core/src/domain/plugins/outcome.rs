//! The outcome of a tried hook as JSON.

use serde_json::{Map, Value, json};

use super::{debug::Debugged, permission::Permissions};
use crate::sandbox::{Body, PluginRequest, Reply};

/// The reproducible part of an outcome, next to its error.
const EXPECTED_FIELDS: [&str; 4] = ["request", "replies", "skipped", "state"];

impl Debugged {
    /// The outcome as `hub-cli debug` prints it, with the fields of the debug endpoints' response.
    pub fn document(&self) -> Value {
        json!({
            "hook": self.hook.as_str(),
            "matched": self.matched,
            "present": self.present,
            "before": request_document(&self.before),
            "request": self.request.as_ref().map(request_document),
            "response": self.response,
            "replies": self.replies.iter().map(reply_document).collect::<Vec<_>>(),
            "skipped": self.skipped,
            "logs": self.logs,
            "state": self.state,
            "error": self.error.as_ref().map(|error| json!({
                "kind": error.kind,
                "message": error.message,
                "line": error.line,
                "column": error.column,
                "stack": error.stack,
            })),
            "duration_ms": millis(self.duration_us),
            "memory_bytes": self.memory_bytes,
            "permissions": permissions_document(&self.permissions),
            "warnings": self.warnings.iter().map(|note| format!("line {}: {}", note.line, note.message)).collect::<Vec<_>>(),
        })
    }
}

fn request_document(request: &PluginRequest) -> Value {
    let body = match &request.body {
        Body::Empty => Value::Null,
        Body::Text(text) => json!(text),
        Body::Json(json) => json!(json),
    };
    json!({ "url": request.url, "method": request.method, "headers": request.headers, "body": body })
}

/// A reply as the debug endpoints and test cases have it.
pub fn reply_document(reply: &Reply) -> Value {
    match reply {
        Reply::Text(text) => json!({ "type": "text", "text": text }),
        Reply::DataUri(uri) => json!({ "type": "data_uri", "uri": uri }),
        Reply::File { base64, filename } => {
            json!({ "type": "base64", "filename": filename, "base64": base64 })
        }
        Reply::Forward => json!({ "type": "forward" }),
    }
}

/// Microseconds as milliseconds with one decimal.
#[expect(clippy::cast_precision_loss, reason = "a run lasts seconds")]
pub fn millis(micros: u64) -> f64 {
    (micros as f64 / 100.0).round() / 10.0
}

/// The permissions of a plugin.
fn permissions_document(permissions: &Permissions) -> Value {
    json!({
        "grants": permissions.grants,
        "matches": permissions.matches,
        "connects": permissions.connects,
        "timeout_ms": permissions.timeout_ms,
        "words": permissions.words,
    })
}

/// The reproducible part of an outcome's [`document`](Debugged::document): what a test case expects.
pub fn expectation(document: &Value) -> Value {
    let mut kept: Map<String, Value> =
        EXPECTED_FIELDS.iter().map(|name| ((*name).to_owned(), document[*name].clone())).collect();
    kept.insert("error".to_owned(), document["error"]["kind"].clone());
    Value::Object(kept)
}
