//! The keys of the console, as a page and as the dialog that `?` opens.

use maud::{Markup, html};

use super::{
    page::{Answer, Ask, Page, handler},
    parts::list,
    words::{Shortcuts, Text},
};
use crate::envelope::ApiError;

/// Address of the page.
pub(super) const PATH: &str = "/console/help/keys";

pub(super) static PAGE: Page =
    Page { path: PATH, shows: &[], command: "", show: handler!(show), actions: &[] };

/// A sentence in the language of the page.
type Sentence = fn(&Shortcuts) -> Text;
/// Keys and their effects.
type Rows = &'static [(&'static str, Sentence)];

/// The keys by the pages on which they work.
const GROUPS: &[(Sentence, Rows)] = &[
    (
        |words| words.everywhere,
        &[
            ("⌘K / Ctrl+K", |words| words.palette),
            ("/", |words| words.filter),
            ("?", |words| words.help),
            ("g h", |words| words.go_home),
            ("g m", |words| words.go_messages),
            ("g b", |words| words.go_bots),
            ("g p", |words| words.go_plugins),
            ("g a", |words| words.go_account),
            ("Esc", |words| words.close),
        ],
    ),
    (
        |words| words.in_lists,
        &[
            ("j", |words| words.next),
            ("k", |words| words.previous),
            ("Enter", |words| words.open),
            ("x", |words| words.select),
            ("n", |words| words.show_new),
            ("[", |words| words.newest),
            ("]", |words| words.older),
        ],
    ),
    (
        |words| words.in_messages,
        &[("f", |words| words.failed), ("r", |words| words.replay), ("y", |words| words.copy_trace)],
    ),
    (
        |words| words.in_traces,
        &[
            ("j / k", |words| words.steps),
            ("d", |words| words.difference),
            ("r", |words| words.replay),
            ("y", |words| words.copy_trace),
        ],
    ),
];

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.shortcuts;
    let main = html! {
        p { (words.what) " " a href="/console/account#look" { (words.switch) } }
        @for (title, rows) in GROUPS { h2 { (title(words)) } (table(words, title(words), rows)) }
    };
    Ok(Answer::page(words.title, Vec::new(), main))
}

fn table(words: &Shortcuts, title: &str, rows: Rows) -> Markup {
    let rows = html! {
        @for (keys, what) in rows {
            tr { td { @for key in keys.split(' ') { @if key == "/" && *keys != "/" { "/ " } @else { kbd { (key) } " " } } } td { (what(words)) } }
        }
    };
    list::table(title, &[words.key, words.action], &rows)
}
