//! Removes what a model thought aloud from its answer.

const MARKS: [(&str, &str); 11] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|start_thinking|>", "<|end_thinking|>"),
    ("◁think▷", "◁/think▷"),
    ("[think]", "[/think]"),
    ("<unused94>", "<unused95>"),
    ("<|begin_of_reasoning|>", "<|end_of_reasoning|>"),
];
/// Marks around the answer of models whose thoughts have marks.
const ANSWER_MARKS: [&str; 4] =
    ["<|begin_of_solution|>", "<|end_of_solution|>", "<|start_response|>", "<|end_response|>"];
const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";
/// Beginnings of the channels once an adapter has removed their marks.
const BARE: (&str, &str) = ("analysis", "assistantfinal");

/// The text without what the model thought aloud, in any of the forms that models use. A thought that never ends takes the
/// rest with it; a lone end ends a thought whose beginning the endpoint's template swallowed. Marks in backticks are part of
/// the answer, and so are marks other than `<think>` in the middle of a line.
pub fn without_thinking(text: &str) -> String {
    let final_channel = final_channel(text);
    let text = final_channel.as_deref().unwrap_or(text);
    // ASCII letters keep their places.
    let lower = text.to_ascii_lowercase();
    let mut kept = String::with_capacity(text.len());
    let mut at = swallowed_beginning(&lower);
    while let Some((begin, open, close)) = next_thought(&lower, at) {
        kept.push_str(&text[at..begin]);
        let thought = begin + open.len();
        at = lower[thought..].find(close).map_or(text.len(), |end| thought + end + close.len());
    }
    kept.push_str(&text[at..]);
    without_answer_marks(&kept).trim().to_owned()
}

/// Index at which the answer begins when only the end of a thought is there; else 0.
fn swallowed_beginning(lower: &str) -> usize {
    let ends = MARKS.iter().filter_map(|(open, close)| {
        let end = lower.find(close)?;
        let is_lone = lower.find(open).is_none_or(|begin| end < begin) && !is_quoted(lower, end);
        is_lone.then_some(end + close.len())
    });
    ends.max().unwrap_or(0)
}

fn next_thought(lower: &str, from: usize) -> Option<(usize, &'static str, &'static str)> {
    let of_mark = |(open, close): &(&'static str, &'static str)| {
        let begins = lower[from..].match_indices(open).map(|(place, _)| from + place);
        let is_mark = |begin: &usize| {
            let line = lower[from..*begin].rsplit('\n').next().unwrap_or_default();
            !is_quoted(lower, *begin) && (*open == "<think>" || line.trim().is_empty())
        };
        begins.into_iter().find(is_mark).map(|begin| (begin, *open, *close))
    };
    MARKS.iter().filter_map(of_mark).min_by_key(|(begin, ..)| *begin)
}

fn is_quoted(text: &str, at: usize) -> bool {
    text[..at].ends_with('`')
}

/// The text in the final channel of a model that writes to channels (gpt-oss); `None` without channels.
fn final_channel(text: &str) -> Option<String> {
    if !text.contains(CHANNEL) {
        let (open, answer) = BARE;
        let rest = text.trim_start().strip_prefix(open)?;
        return rest.rfind(answer).map(|at| rest[at + answer.len()..].to_owned());
    }
    let mut parts = text.split(CHANNEL);
    let mut answer = without_role(parts.next().unwrap_or_default()).to_owned();
    for part in parts {
        let (channel, message) = part.split_once(MESSAGE).unwrap_or((part, ""));
        if channel.trim_start().starts_with("final") {
            answer.push_str(message.split("<|").next().unwrap_or_default());
        }
    }
    Some(answer)
}

/// A text before a channel, without the role that the channel's message begins with.
fn without_role(text: &str) -> &str {
    text.split("<|start|>").next().unwrap_or_default()
}

fn without_answer_marks(text: &str) -> String {
    let mut text = text.to_owned();
    for mark in ANSWER_MARKS {
        while let Some(at) = text.to_ascii_lowercase().find(mark) {
            text.replace_range(at..at + mark.len(), "");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_taken_out() {
        for (text, kept) in [
            ("<think>hm</think>Hello", "Hello"),
            ("<think>\nhm\n</think>\n\nHello <think>again</think>there", "Hello there"),
            ("Hello<think>that never ends", "Hello"),
            ("swallowed beginning</think> Hello", "Hello"),
            ("no thoughts, 1 < 2 > 0", "no thoughts, 1 < 2 > 0"),
            ("<think></think>", ""),
            ("", ""),
            ("<Thinking>hm</Thinking>\nHello", "Hello"),
            ("<reasoning>hm\nhm</reasoning>Hello", "Hello"),
            ("<thought>hm</thought>\n<reasoning>more</reasoning>\nHello", "Hello"),
            ("Hello\n<thinking>hm</thinking>\nthere", "Hello\n\nthere"),
            ("swallowed</thinking>\nHello", "Hello"),
            (
                "<|begin_of_thought|>hm<|end_of_thought|>\n<|begin_of_solution|>Hello<|end_of_solution|>",
                "Hello",
            ),
            ("<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Hello<|END_RESPONSE|>", "Hello"),
            ("◁think▷hm◁/think▷Hello", "Hello"),
            ("hm◁/think▷你好", "你好"),
            ("[THINK]hm[/THINK]Hello", "Hello"),
            ("<seed:think>hm</seed:think>Hello", "Hello"),
            ("Write `<thinking>` before a thought.", "Write `<thinking>` before a thought."),
            ("End it with `</think>`.", "End it with `</think>`."),
            ("The tag <reasoning> is not closed.", "The tag <reasoning> is not closed."),
            ("a [think] b", "a [think] b"),
        ] {
            assert_eq!(without_thinking(text), kept, "{text:?}");
        }
    }

    #[test]
    fn of_channels_the_final_one_is_the_answer() {
        for (text, kept) in [
            (
                "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hello<|return|>",
                "Hello",
            ),
            ("<|start|>assistant<|channel|>analysis<|message|>hm<|end|>", ""),
            ("<|channel|>analysis<|message|>never ends", ""),
            ("<|channel|>commentary to=f <|message|>{}<|call|><|channel|>final <|message|>Hi", "Hi"),
            ("analysisThe person greets.assistantfinalHello", "Hello"),
            ("analysis of the market: up", "analysis of the market: up"),
        ] {
            assert_eq!(without_thinking(text), kept, "{text:?}");
        }
    }
}
