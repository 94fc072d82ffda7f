//! Tables, links between pages, and empty lists.

use maud::{Markup, html};

use crate::console::page::Ask;

/// Links to the next page of a list and to its start.
pub(in crate::console) fn pages(ask: &Ask, next_cursor: Option<&str>) -> Markup {
    pages_with(ask, &[], next_cursor)
}

/// The same, with parameters of the query that the next page needs.
pub(in crate::console) fn pages_with(ask: &Ask, query: &[(&str, &str)], next_cursor: Option<&str>) -> Markup {
    let next = next_cursor.map(|cursor| ask.with_queries(&[query, &[("cursor", cursor)]].concat()));
    html! {
        @if next.is_some() || ask.query("cursor").is_some() {
            p.pages {
                @if ask.query("cursor").is_some() {
                    a.button href=(ask.with_query("cursor", "")) aria-keyshortcuts="[" { (ask.words.common.first_page) }
                }
                @if let Some(next) = next {
                    a.button href=(next) rel="next" aria-keyshortcuts="]" { (ask.words.common.older) }
                }
            }
        }
    }
}

/// A table with a heading for each column. It scrolls sideways where it is wider than the window.
pub(in crate::console) fn table(label: &str, columns: &[&str], rows: &Markup) -> Markup {
    html! {
        div.wide tabindex="0" role="group" aria-label=(label) {
            table {
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody { (rows) }
            }
        }
    }
}

/// Renders an empty list: a sentence, and a command that creates the first entry.
pub(in crate::console) fn empty(ask: &Ask, sentence: &str, command: Option<&str>) -> Markup {
    html! {
        div.empty {
            p { (sentence) }
            @if let Some(command) = command { (super::code::copied(ask.words, command)) }
        }
    }
}
