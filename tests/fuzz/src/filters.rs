//! Filters of channels, with their expressions in CEL.

use std::{sync::LazyLock, thread};

use hub_core::{
    channels::filter::{CompiledFilter, Decision, Filter, FilterInput, Match},
    network::MessageKind,
};

/// Stack for an evaluation, in bytes. A delivery task has two MiB.
const STACK: usize = 1024 * 1024;
/// The longest content that an expression is measured for.
static LONG: LazyLock<String> = LazyLock::new(|| "z,9 ".repeat(16 * 1024));

/// A filter as JSON, or else an expression alone: what is accepted is stored as it is, and decides any message
/// within bounds of time (libFuzzer's `-timeout`), memory and stack.
pub fn filter(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let read = serde_json::from_str::<Filter>(&text);
    let filter = read.unwrap_or_else(|_| Filter { expression: Some(text.into_owned()), ..Filter::default() });
    let stored = serde_json::to_string(&filter).expect("a filter is JSON");
    assert_eq!(serde_json::from_str::<Filter>(&stored).ok().as_ref(), Some(&filter));
    let Ok(compiled) = filter.compile() else { return };
    let small = thread::Builder::new().stack_size(STACK).spawn(move || decide(&filter, &compiled));
    if let Err(panic) = small.expect("a thread").join() {
        std::panic::resume_unwind(panic);
    }
}

fn decide(filter: &Filter, compiled: &CompiledFilter) {
    check(&compiled.matches(&input(&LONG, MessageKind::Text)));
    for content in ["", "hello", "\u{ff28}ELLO 小明"] {
        for kind in [MessageKind::Text, MessageKind::Other] {
            let input = input(content, kind);
            let decision = compiled.matches(&input);
            check(&decision);
            if filter.keywords.is_empty() && filter.expression.is_none() {
                assert_eq!(decision.passed, lists_pass(filter, &input));
            }
        }
    }
}

fn input(content: &str, kind: MessageKind) -> FilterInput<'_> {
    FilterInput {
        content,
        user_id: "u1",
        user_name: "小明",
        session_id: "s1",
        kind,
        timestamp: 1_790_000_000,
        bot_id: "bot_1",
        channel_id: "ch_1",
    }
}

fn check(decision: &Decision) {
    assert_eq!(decision.passed, decision.reason == "passed");
    assert!(decision.reason.chars().count() <= 250 && !decision.reason.contains('\n'));
}

/// The rule of a filter for its lists, implemented a second time.
fn lists_pass(filter: &Filter, input: &FilterInput<'_>) -> bool {
    let mut said = Vec::new();
    if !filter.user_ids.is_empty() {
        said.push(filter.user_ids.iter().any(|id| id == input.user_id));
    }
    if !filter.message_types.is_empty() {
        said.push(filter.message_types.iter().any(|name| name == input.kind.as_str()));
    }
    match filter.mode {
        Match::All => said.iter().all(|yes| *yes),
        Match::Any => said.is_empty() || said.iter().any(|yes| *yes),
    }
}
