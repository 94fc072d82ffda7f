//! Conversion of Markdown answers to plain text.

use std::fmt::Write as _;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Returns the text of a Markdown document without its marks: lists keep their numbers and dashes, code keeps its
/// lines, tables get a line per row, links are followed by their target.
pub fn strip_markdown(text: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut plain = Plain::default();
    for event in Parser::new_ext(text, options) {
        plain.take(event);
    }
    plain.out.trim().to_owned()
}

#[derive(Debug, Default)]
struct Plain {
    out: String,
    /// The next number of each open list; `None` for an unnumbered list.
    lists: Vec<Option<u64>>,
    /// Target of each open link, and the offset of its text in `out`.
    links: Vec<(String, usize)>,
    /// Pending line breaks before the next text.
    breaks: usize,
    /// Whether the current table row has a cell already.
    is_row_begun: bool,
}

impl Plain {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.text(&text);
            }
            Event::SoftBreak | Event::HardBreak => self.breaks = self.breaks.max(1),
            Event::Rule => self.breaks = 2,
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::List(first) => {
                self.breaks = self.breaks.max(if self.lists.is_empty() { 2 } else { 1 });
                self.lists.push(first);
            }
            Tag::Item => {
                self.breaks = self.breaks.max(1);
                let indent = "  ".repeat(self.lists.len().saturating_sub(1));
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{indent}{}. ", *number - 1)
                    }
                    _ => format!("{indent}- "),
                };
                self.text(&mark);
            }
            Tag::TableHead | Tag::TableRow => self.is_row_begun = false,
            Tag::TableCell if std::mem::replace(&mut self.is_row_begun, true) => self.text(" | "),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.flush();
                self.links.push((dest_url.into_string(), self.out.len()));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph
            | TagEnd::Heading(_)
            | TagEnd::CodeBlock
            | TagEnd::Table
            | TagEnd::HtmlBlock => {
                self.breaks = self.breaks.max(if self.lists.is_empty() { 2 } else { 1 });
            }
            TagEnd::Item | TagEnd::TableHead | TagEnd::TableRow => self.breaks = self.breaks.max(1),
            TagEnd::List(_) => {
                self.lists.pop();
                self.breaks = self.breaks.max(if self.lists.is_empty() { 2 } else { 1 });
            }
            TagEnd::Link | TagEnd::Image => {
                if let Some((target, begin)) = self.links.pop()
                    && !target.is_empty()
                    && self.out.get(begin..) != Some(&target)
                {
                    // Writing into a `String` cannot fail.
                    let _ = write!(self.out, " ({target})");
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        self.flush();
        self.out.push_str(text);
    }

    /// Writes the pending line breaks, except at the very beginning.
    fn flush(&mut self) {
        if self.out.is_empty() {
            self.breaks = 0;
        }
        let there = self.out.len() - self.out.trim_end_matches('\n').len();
        for _ in there..self.breaks {
            self.out.push('\n');
        }
        self.breaks = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_taken_out_and_words_stay() {
        for (text, plain) in [
            ("plain", "plain"),
            (
                "# Title\n\nSome **bold**, *slanted*, ~~gone~~ and `code`.",
                "Title\n\nSome bold, slanted, gone and code.",
            ),
            ("one\ntwo  \nthree", "one\ntwo\nthree"),
            ("a\n\n\n\nb", "a\n\nb"),
            ("- one\n- two\n  - deep\n\nafter", "- one\n- two\n  - deep\n\nafter"),
            ("3. three\n4. four", "3. three\n4. four"),
            ("- [x] done\n- [ ] open", "- [x] done\n- [ ] open"),
            ("```rust\nlet x = 1;\n\nlet y = 2;\n```\nend", "let x = 1;\n\nlet y = 2;\n\nend"),
            ("> quoted\n> more", "quoted\nmore"),
            (
                "[here](https://a.example) and <https://b.example>",
                "here (https://a.example) and https://b.example",
            ),
            ("![a cat](https://a.example/c.png)", "a cat (https://a.example/c.png)"),
            ("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |", "a | b\n1 | 2\n3 | 4"),
            ("2 * 3 * 4 and snake_case_name", "2 * 3 * 4 and snake_case_name"),
            ("**你好**，世界", "你好，世界"),
            ("a &amp; b \\*c\\*", "a & b *c*"),
            ("<b>html</b> stays", "<b>html</b> stays"),
            ("**never closed", "**never closed"),
            ("", ""),
        ] {
            assert_eq!(strip_markdown(text), plain, "{text:?}");
        }
    }
}
