//! Characters that cannot be seen: controls, and those that change the direction of the text around them. People and
//! programs may send them in any text; a page shows them as signs.

use std::{borrow::Cow, fmt::Write as _};

/// Elements whose text the browser sends back, or cannot show otherwise.
const RAW: [&str; 3] = ["textarea", "script", "style"];

/// Whether a character is shown as a sign.
const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fff9}'..='\u{fffb}')
}

/// A document with signs in place of such characters in its text. The values of fields stay: they are sent back.
pub(in crate::console) fn shown(html: &str) -> Cow<'_, str> {
    if !html.contains(is_hidden) {
        return Cow::Borrowed(html);
    }
    let mut out = String::with_capacity(html.len() + 64);
    // Texts and attributes are escaped, so that `<` and `>` are the ends of tags.
    let mut is_raw = false;
    for part in html.split_inclusive(['<', '>']) {
        if let Some(tag) = part.strip_suffix('>') {
            let name = tag.split([' ', '/']).next().unwrap_or_default();
            let is_end = tag.starts_with('/');
            is_raw = RAW.contains(&name) || (is_raw && !(is_end && RAW.contains(&&tag[1..])));
            out.push_str(part);
        } else if is_raw {
            out.push_str(part);
        } else {
            part.chars().for_each(|c| push(&mut out, c));
        }
    }
    Cow::Owned(out)
}

/// Control characters have pictures of their own; for the others, the number is shown.
fn push(out: &mut String, c: char) {
    match u32::from(c) {
        code @ 0..=0x1f if is_hidden(c) => out.extend(char::from_u32(0x2400 + code)),
        0x7f => out.push('\u{2421}'),
        code if is_hidden(c) => write!(out, "⟨U+{code:04X}⟩").expect("a string takes every text"),
        _ => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::*;

    #[test]
    fn characters_that_cannot_be_seen_are_signs_in_text_and_stay_in_fields() {
        let text = "a\u{202e}b\0c\u{1b}d\u{7f}\u{85}\u{2066}>";
        let page = html! {
            p title=(text) { (text) }
            textarea { (text) }
            input value=(text);
            b { "\n\t" (text) }
        };
        let signs = "a⟨U+202E⟩b␀c␛d␡⟨U+0085⟩⟨U+2066⟩&gt;";
        let page = page.into_string();
        let found = shown(&page);
        assert!(
            found.contains(&format!(">{signs}</p>")) && found.contains(&format!("<b>\n\t{signs}</b>")),
            "{found}"
        );
        assert_eq!(found.matches('\u{202e}').count(), 3, "{found}");
        assert!(found.contains("<textarea>a\u{202e}b"), "{found}");
    }

    #[test]
    fn other_texts_are_not_copied() {
        assert!(matches!(shown("<p>Ada مرحبا 👩‍💻 order\r\n\t42</p>"), Cow::Borrowed(_)));
    }
}
