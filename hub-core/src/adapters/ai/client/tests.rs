//! Against an endpoint inside the process; `tests/ai` has endpoints behind ports.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use http::Response;
use serde_json::json;

use http::HeaderMap;
use serde_json::Value;

use super::*;
use crate::{
    ai::{MAX_ANSWER, Message, Role, Tool, ToolCall, Usage},
    egress::{EgressConfig, EgressFault},
    local_http::{Cut, LocalService},
};

/// Answers as instructed, in order, and keeps what it was asked.
#[derive(Default)]
struct Model {
    answers: Mutex<VecDeque<(u16, &'static str, String)>>,
    requests: Mutex<Vec<(HeaderMap, Value)>>,
}

#[async_trait]
impl LocalService for Model {
    async fn call(&self, request: http::Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        assert_eq!(request.uri().path(), "/v1/chat/completions");
        let body = serde_json::from_slice(request.body()).unwrap();
        self.requests.lock().unwrap().push((request.headers().clone(), body));
        let (status, content_type, body) = self.answers.lock().unwrap().pop_front().ok_or(Cut)?;
        let answer = Response::builder().status(status).header("content-type", content_type);
        Ok(answer.header("retry-after", "7").body(Bytes::from(body)).unwrap())
    }
}

const SSE: &str = "text/event-stream; charset=utf-8";

fn said(text: &str) -> String {
    let event = json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }] });
    format!("data: {event}\n\ndata: [DONE]\n\n")
}

struct Stage {
    model: Arc<Model>,
    egress: Egress,
    endpoint: Endpoint,
    dialects: Dialects,
}

impl Stage {
    fn new(answers: &[(u16, &'static str, String)]) -> Self {
        let model = Arc::new(Model { answers: Mutex::new(answers.to_vec().into()), ..Model::default() });
        let service = Arc::clone(&model) as Arc<dyn LocalService>;
        let in_process = HashMap::from([("model.test".to_owned(), service)]);
        let egress = Egress::new(EgressConfig { in_process, ..EgressConfig::default() }).unwrap();
        let endpoint = Endpoint {
            base_url: "http://model.test/v1/".to_owned(),
            api_key: Some("sk-of-the-endpoint".into()),
            key_header: String::new(),
        };
        Self { model, egress, endpoint, dialects: Dialects::default() }
    }

    async fn ask(&self) -> Result<Completion, AiFault> {
        self.ask_with(Vec::new(), Some(0.5)).await
    }

    async fn ask_with(&self, tools: Vec<Tool>, temperature: Option<f64>) -> Result<Completion, AiFault> {
        let prompt = Prompt {
            model: "m".to_owned(),
            messages: vec![Message::text(Role::System, "be brief"), Message::text(Role::User, "hi")],
            max_tokens: Some(5),
            temperature,
            tools,
        };
        let limits = Limits { silence: Duration::from_secs(5), total: Duration::from_secs(5) };
        complete(&self.egress, &self.dialects, &Clock::system(), &self.endpoint, &prompt, limits).await
    }

    fn requests(&self) -> Vec<Value> {
        self.model.requests.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }
}

#[tokio::test]
async fn the_request_is_the_documented_one() {
    let stage = Stage::new(&[(200, SSE, said("hello"))]);
    let answer = stage.ask().await.unwrap();
    assert_eq!((answer.text.as_str(), answer.finish_reason.as_deref()), ("hello", Some("stop")));
    let request = stage.model.requests.lock().unwrap().remove(0);
    assert_eq!(request.0["authorization"], "Bearer sk-of-the-endpoint");
    assert_eq!(request.0["content-type"], "application/json");
    assert_eq!(
        request.1,
        json!({
            "model": "m",
            "messages": [{ "role": "system", "content": "be brief" }, { "role": "user", "content": "hi" }],
            "stream": true,
            "stream_options": { "include_usage": true },
            "max_tokens": 5,
            "temperature": 0.5,
        })
    );
}

#[test]
fn tools_and_images_are_written_as_documented() {
    let call = ToolCall {
        id: "c1".to_owned(),
        name: "now".to_owned(),
        arguments: "{}".to_owned(),
        ..ToolCall::default()
    };
    let asking = Completion { tool_calls: vec![call.clone()], ..Completion::default() };
    let messages = [
        Message::asking(asking),
        Message::of_tool(&call, "noon".to_owned()),
        Message::parts(vec![
            crate::ai::Part::Text { text: "what is this?".to_owned() },
            crate::ai::Part::ImageUrl {
                image_url: crate::ai::ImageUrl { url: "data:image/png;base64,AA".to_owned() },
            },
        ]),
    ];
    assert_eq!(
        serde_json::to_value(&messages).unwrap(),
        json!([
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "now", "arguments": "{}" } }] },
            { "role": "tool", "content": "noon", "tool_call_id": "c1" },
            { "role": "user", "content": [
                { "type": "text", "text": "what is this?" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AA" } }] },
        ])
    );
    let tool = Tool::Function {
        name: "now".to_owned(),
        description: "the time".to_owned(),
        parameters: json!({ "type": "object" }),
    };
    assert_eq!(
        serde_json::to_value(tool).unwrap(),
        json!({ "type": "function", "function":
            { "name": "now", "description": "the time", "parameters": { "type": "object" } } })
    );
}

#[tokio::test]
async fn a_whole_answer_is_understood_too() {
    let whole = json!({
        "id": "x", "object": "chat.completion",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "hello" } }],
        "usage": { "prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10 },
    });
    let answer = Stage::new(&[(200, "application/json", whole.to_string())]).ask().await.unwrap();
    assert_eq!(answer.text, "hello");
    assert_eq!(answer.usage, Some(Usage { prompt_tokens: 9, completion_tokens: 1 }));
}

#[tokio::test]
async fn responses_that_are_no_completion_are_classified() {
    let error = json!({ "error": { "message": "slow down", "type": "x" } }).to_string();
    let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n".to_owned();
    for (answer, class, permanent) in [
        ((200, "text/html", "<html>".to_owned()), AiFaultClass::NotUnderstood, false),
        ((200, "application/json", "{".to_owned()), AiFaultClass::NotUnderstood, false),
        ((200, "application/json", "{}".to_owned()), AiFaultClass::NotUnderstood, false),
        ((200, "application/json", "{\"choices\":[]}".to_owned()), AiFaultClass::NotUnderstood, false),
        ((200, SSE, "data: <html>\n\n".to_owned()), AiFaultClass::NotUnderstood, false),
        ((200, SSE, piece.clone()), AiFaultClass::Cut, false),
        ((200, SSE, String::new()), AiFaultClass::Cut, false),
        ((200, SSE, format!("{piece}data: {error}\n\n")), AiFaultClass::Cut, false),
        ((200, SSE, said(&"x".repeat(MAX_ANSWER + 1))), AiFaultClass::Egress(EgressFault::TooLarge), true),
        ((200, SSE, "x".repeat(5 << 20)), AiFaultClass::Egress(EgressFault::TooLarge), true),
        (
            (200, "application/json", format!("{{{}", " ".repeat(5 << 20))),
            AiFaultClass::Egress(EgressFault::TooLarge),
            true,
        ),
        ((200, "text/plain", "x".repeat(1 << 20)), AiFaultClass::Egress(EgressFault::TooLarge), true),
        ((200, "text/html", format!("<html>{}", "x".repeat(1 << 20))), AiFaultClass::NotUnderstood, false),
        ((402, "application/json", error.clone()), AiFaultClass::Status(402), true),
        ((429, "application/json", error.clone()), AiFaultClass::Status(429), false),
        ((500, "text/plain", "oops".to_owned()), AiFaultClass::Status(500), false),
        ((503, SSE, format!("event: error\ndata:{error}\n\n")), AiFaultClass::Status(503), false),
        ((408, "text/plain", String::new()), AiFaultClass::Status(408), false),
        ((401, "application/json", error.clone()), AiFaultClass::Status(401), true),
        ((404, "text/plain", String::new()), AiFaultClass::Status(404), true),
        ((302, "text/plain", String::new()), AiFaultClass::Status(302), true),
    ] {
        let shown = format!("{} {} {:.40}", answer.0, answer.1, answer.2);
        let fault = Stage::new(std::slice::from_ref(&answer)).ask().await.unwrap_err();
        assert_eq!((fault.class, fault.permanent), (class, permanent), "{shown}");
        if answer.0 >= 300 {
            assert_eq!(fault.headers["retry-after"], "7");
            let expected = match answer.2.as_str() {
                "" => None,
                text if text.contains("slow down") => Some("slow down"),
                text => Some(text),
            };
            assert_eq!(fault.endpoint_message.as_deref(), expected, "{shown}");
        }
    }
    let nobody = Stage::new(&[]).ask().await.unwrap_err();
    assert_eq!(nobody.class, AiFaultClass::Egress(EgressFault::Broken));
}

#[tokio::test]
async fn bad_endpoints_are_not_asked() {
    let mut stage = Stage::new(&[]);
    for base_url in ["http://127.0.0.1/v1", "http://[::1]:11434/v1", "ftp://model.test/v1", "no URL"] {
        stage.endpoint.base_url = base_url.to_owned();
        let fault = stage.ask().await.unwrap_err();
        assert_eq!((fault.class, fault.permanent), (AiFaultClass::BadUrl, true), "{base_url}");
    }
    stage.endpoint.base_url = "http://model.test/v1".to_owned();
    stage.endpoint.api_key = Some("a\nkey".into());
    let fault = stage.ask().await.unwrap_err();
    assert!(fault.permanent && !format!("{fault:?}").contains("a\nkey"));
    assert!(stage.requests().is_empty());
}

fn refusal(status: u16, error: &Value) -> (u16, &'static str, String) {
    (status, "application/json", error.to_string())
}

fn message(words: &str) -> Value {
    json!({ "error": { "message": words, "type": "invalid_request_error", "param": null } })
}

fn param(words: &str, param: &str) -> Value {
    json!({ "error": { "message": words, "type": "invalid_request_error", "param": param, "code": "unsupported" } })
}

fn tool() -> Tool {
    Tool::Function {
        name: "now".to_owned(),
        description: String::new(),
        parameters: json!({ "type": "object" }),
    }
}

#[tokio::test]
async fn what_an_endpoint_refuses_is_left_out_and_remembered() {
    type Check = fn(&Value) -> bool;
    let no_stream: Check = |body| body.get("stream").is_none() && body.get("stream_options").is_none();
    let no_options: Check = |body| body["stream"] == true && body.get("stream_options").is_none();
    let renamed: Check = |body| body.get("max_tokens").is_none() && body["max_completion_tokens"] == 5;
    let no_temperature: Check = |body| body.get("temperature").is_none();
    let folded: Check = |body| body["messages"] == json!([{ "role": "user", "content": "be brief\n\nhi" }]);
    let developer: Check = |body| body["messages"][0]["role"] == "developer";
    let no_tools: Check = |body| body.get("tools").is_none();
    let fastapi = json!({ "detail": [{ "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted",
        "type": "extra_forbidden" }] });
    let cases: Vec<(u16, Value, &str, Check)> = vec![
        (
            400,
            param("Your organization must be verified to stream this model.", "stream"),
            "stream",
            no_stream,
        ),
        (400, message("stream is not supported for this model"), "stream", no_stream),
        (501, json!({ "detail": "Streaming is not implemented" }), "stream", no_stream),
        (
            500,
            json!({ "error": { "code": 500, "message": "Cannot use tools with stream" } }),
            "stream",
            no_stream,
        ),
        (
            400,
            message("Unrecognized request argument supplied: stream_options"),
            "stream_options",
            no_options,
        ),
        (422, fastapi, "stream_options", no_options),
        (400, json!({ "message": "unknown field \"stream_options\"" }), "stream_options", no_options),
        (400, param("Use 'max_completion_tokens' instead.", "max_tokens"), "max_tokens", renamed),
        (422, json!({ "detail": "Unsupported parameter: max_tokens" }), "max_tokens", renamed),
        (
            400,
            param("Only the default (1) value is supported.", "temperature"),
            "temperature",
            no_temperature,
        ),
        (
            400,
            message("invalid temperature: only 1 is allowed for this model"),
            "temperature",
            no_temperature,
        ),
        (400, json!({ "detail": "Unsupported parameter: temperature" }), "temperature", no_temperature),
        (400, message("System role not supported"), "system_role", folded),
        (
            400,
            message("Conversation roles must alternate user/assistant/user/assistant/..."),
            "system_role",
            folded,
        ),
        (
            400,
            json!([{ "error": { "code": 400, "message": "Developer instruction is not enabled for models/g" } }]),
            "system_role",
            folded,
        ),
        (
            400,
            param("'messages[0].role' does not support 'system'. Use 'developer'.", "messages[0].role"),
            "system_role",
            developer,
        ),
        (400, json!({ "error": "registry/gemma does not support tools" }), "tools", no_tools),
        (404, message("No endpoints found that support tool use."), "tools", no_tools),
        (400, message("\"auto\" tool choice requires --enable-auto-tool-choice"), "tools", no_tools),
    ];
    for (status, error, part, is_right) in cases {
        let stage =
            Stage::new(&[refusal(status, &error), (200, SSE, said("at last")), (200, SSE, said("again"))]);
        let answer = stage.ask_with(vec![tool()], Some(0.5)).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.left_out.as_slice()), ("at last", &[part][..]), "{error}");
        let again = stage.ask_with(vec![tool()], Some(0.5)).await.unwrap();
        assert_eq!((again.text.as_str(), again.left_out.as_slice()), ("again", &[part][..]), "{error}");
        let requests = stage.requests();
        assert!(
            !is_right(&requests[0]) && is_right(&requests[1]) && is_right(&requests[2]),
            "{error}: {:?}",
            requests[1]
        );
    }
}

#[tokio::test]
async fn each_part_is_left_out_once() {
    let stage = Stage::new(&[
        refusal(400, &message("unknown field: stream_options")),
        refusal(400, &message("max_tokens is not supported, use max_completion_tokens")),
        refusal(400, &message("max_completion_tokens is not supported")),
        (200, SSE, said("at last")),
    ]);
    let answer = stage.ask().await.unwrap();
    assert_eq!(answer.left_out, ["stream_options", "max_tokens", "max_completion_tokens"]);
    let requests = stage.requests();
    assert!(requests[1].get("stream_options").is_none() && requests[1]["max_tokens"] == 5);
    assert!(requests[2].get("max_tokens").is_none() && requests[2]["max_completion_tokens"] == 5);
    assert!(requests[3].get("max_completion_tokens").is_none());
    for repeated in [
        message("unknown field: stream_options"),
        message("temperature"),
        param("stream", "stream"),
        message("tools and system role and stream and developer and max_tokens are not supported"),
    ] {
        let stage = Stage::new(&vec![refusal(400, &repeated); 20]);
        assert_eq!(stage.ask().await.unwrap_err().class, AiFaultClass::Status(400));
        assert!(stage.requests().len() <= 8, "{repeated}: {}", stage.requests().len());
        // What did not help is not remembered.
        assert!(stage.ask().await.is_err());
        assert!(stage.requests().last().is_some());
    }
}

#[tokio::test]
async fn a_refusal_that_names_no_part_is_final() {
    for error in [
        message("max_tokens is too large: 5. This model allows at most 4."),
        message("This model's maximum context length is 8192 tokens."),
        param("you must provide a model parameter", "model"),
        json!({ "error": "model not found" }),
        json!({}),
    ] {
        let stage = Stage::new(&[refusal(400, &error), (200, SSE, said("never"))]);
        assert_eq!(stage.ask().await.unwrap_err().class, AiFaultClass::Status(400), "{error}");
        assert_eq!(stage.requests().len(), 1, "{error}");
    }
}

#[tokio::test]
async fn the_key_goes_into_its_header_and_the_query_stays() {
    let mut stage = Stage::new(&[(200, SSE, said("hello"))]);
    stage.endpoint.base_url = "http://model.test/v1/chat/completions?api-version=1".to_owned();
    stage.endpoint.key_header = "api-key".to_owned();
    stage.ask().await.unwrap();
    let headers = stage.model.requests.lock().unwrap().remove(0).0;
    assert_eq!(headers["api-key"], "sk-of-the-endpoint");
    assert!(!headers.contains_key("authorization"));
}
