//! The shapes of responses that endpoints and adapters send, each read whole and in pieces.

use std::{collections::BTreeSet, fs, path::PathBuf};

use super::{Completion, read_answer};

#[path = "../../../../tests/fuzz/src/shapes.rs"]
mod shapes;

use shapes::{Meaning, SHAPES};

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fuzz/corpus/completion"))
}

fn read(file: &[u8], size: usize) -> Result<Completion, super::AiFault> {
    let (status, content_type, body) = shapes::parts(file);
    let pieces: Vec<&[u8]> = body.chunks(size).collect();
    read_answer(status, content_type, &pieces)
}

#[test]
fn every_shape_is_read_as_it_is_meant() {
    let mut wrong = Vec::new();
    for (name, meaning) in SHAPES {
        let file = fs::read(folder().join(format!("{name}.txt"))).unwrap();
        let found = read(&file, usize::MAX);
        let is_right = match (&found, meaning) {
            (Ok(found), Meaning::Says { text, calls, finish }) => {
                let found_calls: Vec<_> =
                    found.tool_calls.iter().map(|call| (&*call.name, &*call.arguments)).collect();
                found.text == *text
                    && found_calls == *calls
                    && found.finish_reason.as_deref().unwrap_or_default() == *finish
            }
            (Err(fault), Meaning::Fails { class, permanent, told }) => {
                fault.class.as_str() == *class
                    && fault.permanent == *permanent
                    && fault.endpoint_message.as_deref().unwrap_or_default().contains(told)
            }
            _ => false,
        };
        if !is_right {
            wrong.push(format!("{name}: {found:?}, not {meaning:?}"));
        }
        for size in [1, 2, 7] {
            if read(&file, size) != found {
                wrong.push(format!("{name}: another answer in pieces of {size}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), SHAPES.len(), wrong.join("\n"));
}

#[test]
fn every_file_of_the_corpus_has_a_meaning() {
    let files = fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let files: BTreeSet<_> =
        files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    let named: BTreeSet<_> = SHAPES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(files, named);
}

fn event(json: &str) -> String {
    format!("data: {json}\n\n")
}

#[test]
fn an_answer_may_be_long_in_tokens_and_thoughts() {
    // 250 bytes for one token.
    let filler = "f".repeat(150);
    let token = |member: &str| {
        event(&format!(
            r#"{{"id":"{filler}","choices":[{{"index":0,"delta":{{"{member}":"word "}},"finish_reason":null}}]}}"#
        ))
    };
    let end = event(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#);
    let long =
        format!("{}{}{end}", token("reasoning_content").repeat(30_000), token("content").repeat(5_000));
    assert!(long.len() > 6 << 20);
    let found = read_answer(200, "text/event-stream", &[long.as_bytes()]).unwrap();
    assert_eq!((found.text.len(), found.thinking.len()), (25_000, 150_000));
    for (member, times) in [("content", 60_000), ("reasoning", 900_000)] {
        let endless = token(member).replace(&filler, "").repeat(times);
        let fault = read_answer(200, "text/event-stream", &[endless.as_bytes()]).unwrap_err();
        assert_eq!((fault.class.as_str(), fault.permanent), ("too_large", true), "{member}");
    }
}

#[test]
fn the_message_is_kept_as_it_came() {
    let stream = [
        r#"{"choices":[{"delta":{"role":"assistant","content":"","reasoning_content":"I nee"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_content":"d it","vendor":"v1","note":null}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_details":[{"text":"a"}],"vendor":"v1"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_details":[{"signature":"s"}],"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
    ];
    let found = read_answer(200, "", &[stream.map(event).concat().as_bytes()]).unwrap();
    let message = serde_json::to_value(super::Message::asking(found)).unwrap();
    assert_eq!(
        message,
        serde_json::json!({
            "role": "assistant", "content": null, "reasoning_content": "I need it", "vendor": "v1",
            "reasoning_details": [{ "text": "a" }, { "signature": "s" }],
            "tool_calls": [{ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } }],
        })
    );
    let whole = r#"{"choices":[{"message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}],
        "tool_calls":[{"id":"c","function":{"name":"f","arguments":{"a":1}}}]}}]}"#;
    let found = read_answer(200, "", &[whole.as_bytes()]).unwrap();
    let message = serde_json::to_value(super::Message::asking(found)).unwrap();
    assert_eq!(message["content"][0]["signature"], "s");
    assert_eq!(message["tool_calls"][0]["function"]["arguments"], "{\"a\":1}");
}
