//! Outcome of a hook as reported by the plugin's process, which the plugin may control.

use hub_core::sandbox::{Body, HookOutcome, Reply};

/// Any bytes as the frame of an outcome: what is taken is within the caps, and JSON in it is JSON.
pub fn hook(data: &[u8]) {
    let Ok(outcome) = HookOutcome::decode(data) else { return };
    assert!(outcome.replies.len() <= 10 && outcome.logs.len() <= 100);
    let mut bytes = 0;
    for reply in &outcome.replies {
        bytes += match reply {
            Reply::Text(text) => {
                assert!(text.len() <= 64 << 10);
                text.len()
            }
            Reply::DataUri(uri) => uri.len(),
            Reply::File { base64, filename } => base64.len() + filename.len(),
            Reply::Forward => 0,
        };
    }
    assert!(bytes <= 512 * 1024);
    assert!(outcome.logs.iter().map(|line| line.text.len()).sum::<usize>() <= 8 * 1024);
    if let Some(state) = &outcome.state {
        assert!(state.get().len() <= 64 * 1024);
        read(state.get());
    }
    if let Some(request) = &outcome.request {
        assert!(request.headers.len() <= 64);
        if let Body::Json(json) = &request.body {
            read(json.get());
        }
    }
    if let Some(error) = &outcome.error {
        assert!(error.message.len() <= 4096 && error.stack.as_ref().is_none_or(|stack| stack.len() <= 4096));
    }
    let again = serde_json::json!({ "done": { "id": 1, "outcome": outcome } }).to_string();
    assert!(HookOutcome::decode(again.as_bytes()).is_ok(), "{again}");
}

/// Not so deep that a reader would stop.
fn read(json: &str) {
    let value: serde_json::Value = serde_json::from_str(json).expect("JSON is JSON");
    assert!(depth(&value) <= 64);
}

fn depth(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        serde_json::Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
