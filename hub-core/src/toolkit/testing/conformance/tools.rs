//! Requirements on tools for models.

use std::{collections::HashSet, time::Duration};

use super::{Broken, Findings};
use crate::ai::{Tool, ToolCall, ToolScope, Tools};

/// A call is abandoned after about this time.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of an answer that a model is shown; the rest is cut.
const ANSWER: usize = 16 * 1024;

/// Runs every check of tools, in a conversation for which some are offered. `known` is a call of one of them that
/// works.
///
/// # Errors
/// Every rule that is broken, in the order in which they were found.
pub async fn check_tools(tools: &dyn Tools, scope: &ToolScope, known: &ToolCall) -> Result<(), Vec<Broken>> {
    let mut found = Findings::default();
    if let Some(offered) = found.need(tools.offered(scope).await, "tools can be listed") {
        let names: HashSet<&str> = offered.iter().map(|Tool::Function { name, .. }| name.as_str()).collect();
        found.check(names.len() == offered.len(), "names are unique", || {
            format!("{} tools have {} names", offered.len(), names.len())
        });
        found.check(names.contains(known.name.as_str()), "what is called was offered", || known.name.clone());
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        for Tool::Function { name, parameters, .. } in &offered {
            found.check(
                (1..=64).contains(&name.len()) && name.chars().all(plain),
                "a name has 1 to 64 letters, digits, _ and -, which is what models take",
                || name.clone(),
            );
            found.check(parameters["type"] == "object", "parameters are a JSON schema of an object", || {
                format!("{name}: {parameters}")
            });
        }
    }
    let unknown = ToolCall { name: "no_tool_of_this_name".to_owned(), ..known.clone() };
    let broken = ToolCall { arguments: "{\"cut".to_owned(), ..known.clone() };
    for (call, works) in [(known, true), (&unknown, false), (&broken, false)] {
        match tokio::time::timeout(TEST_TIMEOUT, tools.call(scope, call)).await {
            Err(_) => found.check(false, "every call ends", || format!("{} did not", call.name)),
            Ok(answer) => {
                let what = || format!("{} with {}: {answer:?}", call.name, call.arguments);
                let rule =
                    if works { "a call that works is answered" } else { "a bad call is refused in words" };
                found.check(answer.is_ok() == works, rule, what);
                let words = answer.as_ref().map_or_else(String::as_str, String::as_str);
                found.check(
                    !words.is_empty() && words.len() <= ANSWER,
                    "an answer has 1 byte to 16 KiB",
                    || format!("{}: {} bytes", call.name, words.len()),
                );
            }
        }
    }
    if found.0.is_empty() { Ok(()) } else { Err(found.0) }
}
