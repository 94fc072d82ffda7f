//! Against an endpoint inside the process; `tests/ai` has endpoints behind ports.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use http::Response;
use serde_json::json;

use super::*;
use crate::{
    ai::{Message, Role, Tool, ToolCall, Usage},
    egress::{EgressConfig, EgressFault},
    local_http::{Cut, LocalService},
};

/// Answers as instructed, in order, and keeps what it was asked.
#[derive(Default)]
struct Model {
    answers: Mutex<VecDeque<(u16, &'static str, String)>>,
    asked: Mutex<Vec<(HeaderMap, Value)>>,
}

#[async_trait]
impl LocalService for Model {
    async fn call(&self, request: http::Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        assert_eq!(request.uri().path(), "/v1/chat/completions");
        let body = serde_json::from_slice(request.body()).unwrap();
        self.asked.lock().unwrap().push((request.headers().clone(), body));
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
        };
        Self { model, egress, endpoint }
    }

    async fn ask(&self) -> Result<Completion, AiFault> {
        let prompt = Prompt {
            model: "m".to_owned(),
            messages: vec![Message::text(Role::System, "be brief"), Message::text(Role::User, "hi")],
            max_tokens: Some(5),
            temperature: Some(0.5),
            tools: Vec::new(),
        };
        complete(&self.egress, &self.endpoint, &prompt, Duration::from_secs(5)).await
    }

    fn asked(&self) -> Vec<Value> {
        self.model.asked.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }
}

#[tokio::test]
async fn the_request_is_the_documented_one() {
    let stage = Stage::new(&[(200, SSE, said("hello"))]);
    let answer = stage.ask().await.unwrap();
    assert_eq!((answer.text.as_str(), answer.finish_reason.as_deref()), ("hello", Some("stop")));
    let asked = stage.model.asked.lock().unwrap().remove(0);
    assert_eq!(asked.0["authorization"], "Bearer sk-of-the-endpoint");
    assert_eq!(asked.0["content-type"], "application/json");
    assert_eq!(
        asked.1,
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
    let call = ToolCall { id: "c1".to_owned(), name: "now".to_owned(), arguments: "{}".to_owned() };
    let messages = [
        Message::asking(String::new(), vec![call.clone()]),
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
        ((200, SSE, "x".repeat(MAX_ANSWER + 1)), AiFaultClass::Egress(EgressFault::TooLarge), true),
        (
            (200, "application/json", "x".repeat(MAX_ANSWER + 1)),
            AiFaultClass::Egress(EgressFault::TooLarge),
            true,
        ),
        ((429, "application/json", error.clone()), AiFaultClass::Status(429), false),
        ((500, "text/plain", "oops".to_owned()), AiFaultClass::Status(500), false),
        ((503, SSE, piece), AiFaultClass::Status(503), false),
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
            let told = match answer.2.as_str() {
                "" => None,
                text if text == error => Some("slow down"),
                text => Some(text),
            };
            assert_eq!(fault.told.as_deref(), told, "{shown}");
        }
    }
    let nobody = Stage::new(&[]).ask().await.unwrap_err();
    assert_eq!(nobody.class, AiFaultClass::Egress(EgressFault::Broken));
}

#[tokio::test]
async fn an_endpoint_that_names_a_field_is_asked_again_without_it() {
    let refusal = |field: &str| {
        let error = json!({ "error": { "message": format!("unknown field: {field}") } });
        (400, "application/json", error.to_string())
    };
    let stage = Stage::new(&[
        refusal("stream_options"),
        refusal("max_tokens is not supported, use max_completion_tokens"),
        (200, SSE, said("at last")),
    ]);
    assert_eq!(stage.ask().await.unwrap().text, "at last");
    let asked = stage.asked();
    assert!(asked[1].get("stream_options").is_none() && asked[1]["max_tokens"] == 5);
    assert!(asked[2].get("max_tokens").is_none() && asked[2]["max_completion_tokens"] == 5);
    // The same words again teach nothing.
    let stage =
        Stage::new(&[refusal("stream_options"), refusal("stream_options"), (200, SSE, said("never"))]);
    assert_eq!(stage.ask().await.unwrap_err().class, AiFaultClass::Status(400));
    assert_eq!(stage.asked().len(), 2);
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
    assert!(stage.asked().is_empty());
}
