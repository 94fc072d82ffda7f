//! Texts to copy.

use maud::{Markup, html};

use crate::console::words::Words;

/// A command or a secret with a button that copies it. Without script, there is the text alone.
pub(in crate::console) fn copied(words: &Words, text: &str) -> Markup {
    html! {
        div.copied {
            pre tabindex="0" { code data-computed { (text) } }
            button type="button" data-copy hidden { (words.common.copy) }
        }
    }
}

/// An id with a button that copies it, and the key of that button.
pub(in crate::console) fn id_to_copy(words: &Words, text: impl std::fmt::Display, key: &str) -> Markup {
    html! {
        span.copied-id {
            (id(text)) " "
            button type="button" data-copy hidden aria-keyshortcuts=(key) { (words.common.copy) }
        }
    }
}

/// An id, as people copy it.
pub(in crate::console) fn id(text: impl std::fmt::Display) -> Markup {
    html! { code.id { (text) } }
}
