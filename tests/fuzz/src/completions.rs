//! Responses of endpoints of models.

use hub_core::ai::{AiFault, Completion, MAX_ANSWER, MAX_THINKING, read_answer, without_thinking};
use serde_json::{Value, json};

use super::shapes::parts;

/// Reads a status, a content type and a body: chunk sizes do not change the result, the result is bounded, and JSON
/// in undocumented members loses no text.
pub fn completion(data: &[u8]) {
    let (status, content_type, body) = parts(data);
    let read = |size: usize| read_answer(status, content_type, &body.chunks(size).collect::<Vec<_>>());
    let whole = read(usize::MAX);
    check(&whole);
    for size in [1, 5] {
        assert_eq!(read(size), whole, "in pieces of {size}");
    }
    let body = String::from_utf8_lossy(body);
    let _ = without_thinking(&body);
    for value in body.lines().filter_map(|line| {
        serde_json::from_str::<Value>(line.strip_prefix("data:").unwrap_or(line).trim()).ok()
    }) {
        loses_nothing(&value);
    }
}

fn check(answer: &Result<Completion, AiFault>) {
    match answer {
        Ok(completion) => {
            let arguments = completion.tool_calls.iter().map(|call| call.arguments.len()).sum::<usize>();
            assert!(completion.text.len() + arguments <= MAX_ANSWER + 64);
            assert!(completion.thinking.len() <= MAX_THINKING);
            for (place, call) in completion.tool_calls.iter().enumerate() {
                assert!(!call.name.is_empty() && !call.id.is_empty());
                assert!(completion.tool_calls[..place].iter().all(|other| other.id != call.id));
            }
        }
        Err(fault) => assert!(fault.endpoint_message.as_ref().is_none_or(|message| message.len() <= 2048)),
    }
}

/// Reads a short answer with a strange value wherever nothing is documented, or where it is optional.
fn loses_nothing(value: &Value) {
    let piece = |text: &str, finish: &str| {
        let mut piece = json!({
            "id": value, "model": value, "usage": value, "service_tier": value, "x_groq": value, "timings": value,
            "choices": [{
                "index": 0, "logprobs": value, "native_finish_reason": value, "content_filter_results": value,
                "delta": { "content": text, "role": value, "annotations": value, "audio": value, "vendor": value },
            }],
        });
        if !finish.is_empty() {
            piece["choices"][0]["finish_reason"] = finish.into();
        }
        format!("data: {piece}\n\n")
    };
    let stream = format!("{}{}data: [DONE]\n\n", piece("one ", ""), piece("two", "stop"));
    // What is kept of foreign members is bounded, and inputs may be large.
    if stream.len() > MAX_THINKING {
        return;
    }
    let answer = read_answer(200, "text/event-stream", &[stream.as_bytes()]);
    assert_eq!(answer.expect("the answer is whole").text, "one two");
}
