//! The part of Markdown that phones show (`docs/ilink.md#content`): images, the marks of headings 5 and 6, and italic
//! marks around CJK text are taken out, all else passes. Code passes untouched.

use super::fence::Fence;

/// The longest code span, image or italic text that is looked for, in bytes: every mark would otherwise
/// search the whole line.
const LONGEST_SPAN: usize = 2_000;

/// Takes out what phones do not show.
pub(super) fn filter(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut fence: Option<Fence> = None;
    for line in text.split_inclusive('\n') {
        let was_code = fence.is_some();
        fence = Fence::after_line(fence, line);
        if was_code || fence.is_some() {
            out.push_str(line);
        } else {
            filter_inline(without_small_heading(line), &mut out);
        }
    }
    out
}

/// The line without the marks of a heading of level 5 or 6.
fn without_small_heading(line: &str) -> &str {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let title = line[indent..].trim_start_matches('#');
    let level = line.len() - indent - title.len();
    if indent <= 3 && (5..=6).contains(&level) && title.starts_with([' ', '\t']) {
        title.trim_start_matches([' ', '\t'])
    } else {
        line
    }
}

fn filter_inline(line: &str, out: &mut String) {
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let near = &rest[..rest.floor_char_boundary(LONGEST_SPAN)];
        let used = match first {
            '\\' => {
                let used = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                out.push_str(&rest[..used]);
                used
            }
            '`' => {
                let used = code_len(near);
                out.push_str(&rest[..used]);
                used
            }
            '!' => image_len(near).unwrap_or_else(|| {
                out.push('!');
                1
            }),
            '*' | '_' => emphasis(near, out),
            _ => {
                out.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[used..];
    }
}

/// Length of the code span at the start of `text`, or of its backticks when they are never closed.
fn code_len(text: &str) -> usize {
    let ticks = run_len(text, '`');
    let mut at = ticks;
    while let Some(found) = text[at..].find('`') {
        let run = run_len(&text[at + found..], '`');
        at += found + run;
        if run == ticks {
            return at;
        }
    }
    ticks
}

/// Length of the image `![…](…)` at the start of `text`.
fn image_len(text: &str) -> Option<usize> {
    let label = text.strip_prefix('!')?;
    let target = 1 + balanced_len(label, '[', ']')?;
    Some(target + balanced_len(&text[target..], '(', ')')?)
}

/// Length of a bracketed text at the start of `text`; brackets inside come in pairs or escaped.
fn balanced_len(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0_usize;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == open {
            depth += 1;
        } else if c == close && depth > 0 {
            depth -= 1;
        }
        if depth == 0 {
            return (at > 0).then(|| at + c.len_utf8());
        }
    }
    None
}

/// Writes the text at a run of emphasis marks, and returns its length in `text`. Italics around CJK text lose their
/// marks, bold italics become bold; everything else is copied mark by mark.
fn emphasis(text: &str, out: &mut String) -> usize {
    let mark = if text.starts_with('*') { '*' } else { '_' };
    let run = run_len(text, mark);
    let word_before = out.chars().next_back().is_some_and(char::is_alphanumeric);
    let closed = if mark == '_' && word_before { None } else { closing_at(text, mark, run) };
    match closed {
        Some(end) if run != 2 && text[run..end].chars().any(is_cjk) => {
            let kept = &text[..run - 1];
            out.push_str(kept);
            filter_inline(&text[run..end], out);
            out.push_str(kept);
            end + run
        }
        _ => {
            out.push_str(&text[..run]);
            run
        }
    }
}

/// Returns the position of the run of marks that closes the one at the start of `text`. Italics and bold italics
/// only: longer runs mean nothing.
fn closing_at(text: &str, mark: char, run: usize) -> Option<usize> {
    let body = &text[run..];
    if run > 3 || body.starts_with(char::is_whitespace) {
        return None;
    }
    let mut at = 0;
    while let Some(found) = body[at..].find([mark, '`', '\\']) {
        let here = at + found;
        let tail = &body[here..];
        let length = match tail.as_bytes()[0] {
            b'`' => code_len(tail),
            b'\\' => 1 + tail[1..].chars().next().map_or(0, char::len_utf8),
            _ => run_len(tail, mark),
        };
        let before = body[..here].chars().next_back();
        let after = tail[length..].chars().next();
        let closes = tail.starts_with(mark)
            && length == run
            && before.is_some_and(|c| !c.is_whitespace())
            && !(mark == '_' && after.is_some_and(char::is_alphanumeric));
        if closes {
            return Some(run + here);
        }
        at = here + length;
    }
    None
}

fn run_len(text: &str, mark: char) -> usize {
    text.len() - text.trim_start_matches(mark).len()
}

/// Chinese, Japanese and Korean letters and their punctuation.
fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::filter;

    #[test]
    fn takes_out_what_phones_do_not_show_and_passes_the_rest() {
        for (markdown, shown) in [
            // The published vectors.
            ("##### h5", "h5"),
            ("*中文*", "中文"),
            ("*it*", "*it*"),
            ("![a](http://x) [l](http://y)", " [l](http://y)"),
            // Headings.
            ("###### h6\n#### h4\n####### seven\n#####tag", "h6\n#### h4\n####### seven\n#####tag"),
            ("    ##### code", "    ##### code"),
            // Images.
            ("a ![x [y] z](http://h/(1).png \"t\") b", "a  b"),
            ("[![badge](http://i)](http://l)", "[](http://l)"),
            ("wow![", "wow!["),
            ("![label] only", "![label] only"),
            ("\\![a](b)", "\\![a](b)"),
            // Emphasis.
            ("这是*重点*。_也是_", "这是*重点*。_也是_".replace('*', "").replace("_也是_", "也是").as_str()),
            ("**粗体** ~~删~~", "**粗体** ~~删~~"),
            ("***粗斜***", "**粗斜**"),
            ("* 列表\n* 项目", "* 列表\n* 项目"),
            ("2*3*4 snake_case_名", "2*3*4 snake_case_名"),
            ("*看 **这里** 吧*", "看 **这里** 吧"),
            ("*没有结束", "*没有结束"),
            ("*跨`*`码*", "跨`*`码"),
            ("----\n***\n", "----\n***\n"),
            // Code.
            ("`*中文* ![a](b)`", "`*中文* ![a](b)`"),
            ("```md\n##### h5\n*中文*\n```\n*中文*", "```md\n##### h5\n*中文*\n```\n中文"),
            ("~~~\n*中文*\n```\n*中文*\n~~~\n", "~~~\n*中文*\n```\n*中文*\n~~~\n"),
            ("``a`*中文*", "``a`中文"),
            ("| a | b |\n|---|---|\n> q\n1. x", "| a | b |\n|---|---|\n> q\n1. x"),
            ("", ""),
        ] {
            assert_eq!(filter(markdown), shown, "{markdown:?}");
        }
    }

    #[test]
    fn odd_input_ends_and_stays() {
        for mark in ["*", "_", "`", "![", "![](", "*a ", "_a *", "`a``b"] {
            let text = mark.repeat(3_000);
            assert_eq!(filter(&text), text);
        }
        assert_eq!(filter("\\"), "\\");
        assert_eq!(filter("*中\\"), "*中\\");
    }
}
