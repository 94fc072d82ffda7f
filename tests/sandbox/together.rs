//! Runs that are sent to a worker together: each is as if it had been made alone.

use futures_util::future::join_all;
use hub_core::sandbox::{ErrorKind, HookInput, HookOutcome, Reply};
use serde_json::json;

use super::stage::{self, Stage, asked, kind, within};

/// Replies with the message's text and how often this engine was used; hangs, crashes or fails when the text asks for it.
const SOURCE: &str = "globalThis.count = (globalThis.count ?? 0) + 1;
    function onRequest(ctx) {
        const { content } = ctx.msg;
        if (content.startsWith('hang')) [].reverse.call({ length: 2 ** 53 - 1 });
        if (content.startsWith('crash')) {
            let wide = 1;
            for (;;) wide = [wide, wide, function () {}.bind(...new Array(60000))];
        }
        if (content.startsWith('fill')) { const all = []; for (;;) all.push(new Array(100000).fill(content)); }
        if (content.startsWith('throw')) throw new Error(content);
        ctx.reply(`${content} ${count}`);
        if (content.startsWith('large')) for (let n = 0; n < 7; n++) ctx.reply('x'.repeat(65536));
    }";

fn input(content: &str) -> HookInput {
    let msg = stage::json(&json!({ "content": content }));
    within(1_000, HookInput { msg, ..asked() })
}

/// Runs the source on all texts at once, after a first run that has the tenant trusted.
async fn run_all(stage: &Stage, texts: &[String]) -> Vec<HookOutcome> {
    stage.run(SOURCE, input("first")).await;
    join_all(texts.iter().map(|text| stage.run(SOURCE, input(text)))).await
}

fn replied(text: &str) -> Reply {
    Reply::Text(format!("{text} 1"))
}

#[tokio::test]
async fn each_run_has_its_own_engine_and_outcome() {
    let stage = Stage::new(2);
    let texts: Vec<String> =
        (0..60).map(|n| format!("{} {n}", ["plain", "throw", "plain", "large"][n % 4])).collect();
    for (text, outcome) in texts.iter().zip(run_all(&stage, &texts).await) {
        if text.starts_with("throw") {
            let error = outcome.error.expect(text);
            assert_eq!((error.kind, error.message), (ErrorKind::Throw, format!("Error: {text}")));
            continue;
        }
        assert_eq!(outcome.error, None, "{text}");
        assert_eq!(outcome.replies[0], replied(text));
        assert_eq!(outcome.replies.len(), if text.starts_with("large") { 8 } else { 1 });
    }
}

#[tokio::test]
async fn a_run_that_ends_the_worker_does_not_fail_the_others() {
    let stage = Stage::new(1);
    let texts: Vec<String> = (0..40)
        .map(|n| match n {
            7 => "hang 7".to_owned(),
            19 => "fill 19".to_owned(),
            31 => "crash 31".to_owned(),
            _ => format!("plain {n}"),
        })
        .collect();
    for (text, outcome) in texts.iter().zip(run_all(&stage, &texts).await) {
        match text.split(' ').next() {
            Some("hang") => assert_eq!(kind(&outcome), Some(ErrorKind::Timeout), "{text}"),
            Some("fill") => assert_eq!(kind(&outcome), Some(ErrorKind::Memory), "{text}"),
            Some("crash") => {
                let crashed = [ErrorKind::Crash, ErrorKind::Memory, ErrorKind::Timeout];
                assert!(kind(&outcome).is_some_and(|kind| crashed.contains(&kind)), "{outcome:?}");
            }
            _ => assert_eq!((outcome.error, &outcome.replies[..]), (None, &[replied(text)][..])),
        }
    }
}
