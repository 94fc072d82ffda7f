//! `/mcp` is in no OpenAPI document: its protocol describes itself. It has its place in the matrix all the same.

use serde_json::{Value, json};

use super::stage::Stage;

#[tokio::test]
async fn no_credential_but_an_apps_opens_mcp() {
    let stage = Stage::new().await;
    let before = stage.stored().await;
    let credentials = &stage.credentials;
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "send_message", "arguments": { "to_user_id": "ann", "content": "hi" } } });
    let ask = async |name: &str, value: String| {
        let request = stage.client.post("/mcp").header(name, value).body_json(&message);
        let mut response = request.send().await.0;
        let status = response.status().as_u16();
        (status, response.take_body().into_json::<Value>().await.unwrap())
    };
    for (name, value, code) in [
        ("X-Nothing", "0".to_owned(), "UNAUTHORIZED"),
        ("Cookie", format!("session={}", stage.ada), "UNAUTHORIZED"),
        ("Cookie", format!("session={}", credentials.admin), "UNAUTHORIZED"),
        ("Authorization", format!("Bearer {}", stage.ada), "INVALID_TOKEN"),
        ("Authorization", format!("Bearer {}", credentials.ada_key), "INVALID_TOKEN"),
        ("Authorization", format!("Bearer {}", credentials.bob_key), "INVALID_TOKEN"),
        ("Authorization", format!("Bearer {}", credentials.channel_key), "INVALID_TOKEN"),
        ("X-API-Key", credentials.ada_key.clone(), "INVALID_TOKEN"),
        ("Authorization", format!("Basic {}", credentials.app_token), "UNAUTHORIZED"),
    ] {
        let (status, json) = ask(name, value).await;
        assert_eq!((status, &json["error"]["code"]), (401, &json!(code)), "{name}: {json}");
    }
    assert_eq!(stage.stored().await, before, "a refusal changed something");
    // No one can be written to here, and that is the tool's answer.
    let (status, json) = ask("Authorization", format!("Bearer {}", credentials.app_token)).await;
    assert_eq!((status, &json["result"]["isError"]), (200, &json!(true)), "{json}");
    assert!(json["result"]["content"][0]["text"].as_str().unwrap().starts_with("WINDOW_CLOSED"), "{json}");
}
