//! Causes in the language of the page. `hub_core` stores them as English sentences.

use hub_core::traces::Cause;
use maud::{Markup, html};

use crate::console::words::Words;

/// The cause that a text is; commands and settings in it are between backquotes.
pub(in crate::console) fn cause(words: &Words, text: &str) -> Markup {
    (words.traces.cause)(&Cause::read(text))
}

/// A text in which commands and settings are between backquotes.
pub(in crate::console) fn commands(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code data-computed { (part) } } @else { (part) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{appearance::Language, console::words::of};

    fn shown(text: &str) -> String {
        cause(of(Language::Chinese), text).into_string()
    }

    #[test]
    fn causes_are_chinese_and_other_texts_are_marked() {
        assert_eq!(shown("timeout: no response"), "超时：<span lang=\"en\"><bdi>no response</bdi></span>");
        assert_eq!(shown("`reply` is empty"), "<code>reply</code> 是空的");
        assert_eq!(shown("sender, keyword"), "发送者不符、不含关键词");
        assert_eq!(shown("no such <user>"), "<span lang=\"en\"><bdi>no such &lt;user&gt;</bdi></span>");
        assert_eq!(shown("failed after 2 attempt(s): status 500"), "2 次尝试后失败：状态 500",);
        let english = cause(of(Language::English), "anything `else`").into_string();
        assert_eq!(english, "<bdi>anything <code data-computed>else</code></bdi>");
    }
}
