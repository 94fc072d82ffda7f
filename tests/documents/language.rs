//! The language of comments, messages and documents: no reference to a document that is not in the repository, and none
//! of the phrases that readers stumble over.

use std::path::{Path, PathBuf};

use super::{links::has_anchor, workspace};

/// Phrases with a plain equivalent: in prose, and in the names of tests, which are sentences.
const AVOIDED: [(&str, &str); 14] = [
    ("anew", "again; re-create, reconnect"),
    ("becomes of", "outcome, result, state"),
    ("became of", "outcome, result, state"),
    ("beside", "next to, in addition to, together with"),
    ("for good", "permanently"),
    ("is told", "is notified; log, return, report"),
    ("are told", "are notified; log, return, report"),
    ("was told", "was notified; log, return, report"),
    ("be told", "be notified; log, return, report"),
    ("nobody", "no one, or the person that is meant"),
    ("opens nothing", "is rejected, is revoked"),
    ("somebody", "the caller, the user, another user, someone"),
    ("stands", "is; status, state; represents"),
    ("whoever", "the caller, the user that, anyone who"),
];

/// Names of documents of which only those in the repository may be cited.
const DOCUMENTS: [&str; 5] = ["contract", "dialects", "ilink", "reliability", "ux"];

/// Documents that are generated from the program.
const GENERATED: [&str; 4] =
    ["hub-cli/REFERENCE.md", "hub-server/SETTINGS.md", "openapi/RECIPES.md", "openapi/hub.yaml"];

/// The text files of the repository, except those that are generated.
fn files() -> Vec<(PathBuf, String)> {
    let listed = std::process::Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(workspace())
        .output()
        .unwrap();
    assert!(listed.status.success());
    let is_text = |path: &Path| {
        let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
        matches!(kind, "rs" | "md" | "toml" | "sql" | "yaml" | "yml" | "js" | "css" | "html")
            && !GENERATED.iter().any(|generated| path == Path::new(generated))
            && path != Path::new("tests/documents/language.rs")
    };
    let listed = String::from_utf8(listed.stdout).unwrap();
    let paths = listed.lines().map(PathBuf::from).filter(|path| is_text(path));
    let read = |path: PathBuf| std::fs::read_to_string(workspace().join(&path)).ok().map(|text| (path, text));
    paths.filter_map(read).collect()
}

/// The comments of Rust code and its string literals of several words; the rest is replaced by blanks.
pub fn prose(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let raw = rest.strip_prefix('r').map(|after| after.len() - after.trim_start_matches('#').len());
        let (kept, len) = if rest.starts_with("//") {
            (true, rest.find('\n').unwrap_or(rest.len()))
        } else if let Some(hashes) = raw.filter(|hashes| rest[1 + hashes..].starts_with('"')) {
            let end = format!("\"{}", "#".repeat(hashes));
            let start = hashes + 2;
            let len = rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len());
            (rest[..len].contains(' '), len)
        } else if first == '"' {
            let len = string_len(rest);
            (rest[..len].contains(' '), len)
        } else if first == '\'' {
            (false, char_len(rest))
        } else {
            // A whole word, so that the `r` of a name does not begin a raw string.
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            (false, word.max(first.len_utf8()))
        };
        let (part, after) = rest.split_at(len);
        if kept {
            out.push_str(part);
        } else {
            out.extend(part.chars().map(|c| if c == '\n' { c } else { ' ' }));
        }
        rest = after;
    }
    out
}

/// The names of functions that are sentences, one per line.
fn sentences(code: &str) -> String {
    let names = code.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
    let sentences = names.filter(|name| name.matches('_').count() > 2);
    sentences.flat_map(|name| ["\n".to_owned(), name.replace('_', " ")]).collect()
}

fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a character literal, or of the apostrophe of a lifetime.
fn char_len(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, c))) => {
            let after = at + c.len_utf8();
            text[after..].find('\'').map_or(1, |end| after + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// Whether the phrase is in the text as whole words.
fn says(text: &str, phrase: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(phrase)
        .any(|(at, _)| !text[..at].ends_with(is_word) && !text[at + phrase.len()..].starts_with(is_word))
}

#[test]
fn text_avoids_phrases_that_have_a_plain_equivalent() {
    let mut found = Vec::new();
    // The checksum of a migration covers its comments.
    let is_migration = |path: &Path| path.extension().is_some_and(|kind| kind == "sql");
    for (path, text) in files().into_iter().filter(|(path, _)| !is_migration(path)) {
        let text = if path.extension().is_some_and(|kind| kind == "rs") {
            prose(&text) + &sentences(&text)
        } else {
            text
        };
        for (number, line) in text.to_lowercase().lines().enumerate() {
            for (phrase, instead) in AVOIDED {
                if says(line, phrase) {
                    found.push(format!("{}:{}: {phrase}: {instead}: {line}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "{} phrases:\n{}", found.len(), found.join("\n"));
}

/// The citations in a line: paths of documents with an anchor if there is one, and references by section or number.
fn citations(line: &str) -> Vec<String> {
    // The name of a document may be marked as code.
    let line = &line.replace('`', "");
    let in_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '#');
    let mut found = Vec::new();
    for name in DOCUMENTS {
        let name = format!("{name}.md");
        found.extend(line.match_indices(&name).map(|(at, _)| {
            let start = line[..at].rfind(|c| !in_path(c)).map_or(0, |before| before + 1);
            let start = (start..=at).find(|start| line.is_char_boundary(*start)).unwrap_or(at);
            let end = line[at..].find(|c| !in_path(c)).map_or(line.len(), |end| at + end);
            line[start..end].trim_end_matches('.').to_owned()
        }));
    }
    for name in ["contract", "ilink", "spec", "reliability"] {
        found.extend(line.contains(&format!("{name} §")).then(|| format!("{name} §")));
    }
    let is_number = |text: &str| {
        let mut chars = text.chars();
        chars.next().is_some_and(|c| c.is_ascii_uppercase())
            && chars.next().is_some_and(|c| c.is_ascii_digit())
    };
    for name in ["reliability ", "design rule ", "design rules "] {
        let at = line.to_lowercase().find(name).map(|at| at + name.len());
        found.extend(at.filter(|at| line.get(*at..).is_some_and(is_number)).map(|_| name.to_owned()));
    }
    found
}

/// Whether the document is in the repository, relative to the file that cites it or to a folder around it.
fn exists(citation: &str, file: &Path) -> bool {
    let (path, anchor) = citation.split_once('#').map_or((citation, None), |(path, to)| (path, Some(to)));
    file.ancestors()
        .skip(1)
        .map(|folder| workspace().join(folder).join(path))
        .any(|target| target.is_file() && anchor.is_none_or(|anchor| has_anchor(&target, anchor)))
}

#[test]
fn citations_name_documents_of_the_repository() {
    let mut unknown = Vec::new();
    let mut known = 0;
    for (path, text) in files() {
        for (number, line) in text.lines().enumerate() {
            for citation in citations(line) {
                if exists(&citation, &path) {
                    known += 1;
                } else {
                    unknown.push(format!("{}:{}: {citation}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    assert!(known >= 10, "only {known} citations were found");
}

#[test]
fn citations_and_phrases_are_found() {
    let citation = |line: &str| citations(line).join(" ");
    assert_eq!(citation("see `docs/ilink.md#cursor`."), "docs/ilink.md#cursor");
    assert_eq!(citation("the rule of contract §5, and Reliability B5"), "contract § reliability ");
    assert_eq!(citation("the most of it (`reliability` J10)"), "reliability ");
    assert_eq!(citation("a reliability report of a contract"), "");
    let file = Path::new("hub-core/src/network/ilink/mod.rs");
    assert!(exists("docs/ilink.md#cursor", file));
    assert!(!exists("docs/ilink.md#cursors", file) && !exists("protocols/ilink.md", file));
    let code = "let nobody = 'n'; // told\nfn f<'a>() { r#\"so anew\"#; \"for \\\" good\"; \"nobody\"; }";
    assert_eq!(
        prose(code).split_whitespace().collect::<Vec<_>>(),
        ["//", "told", "r#\"so", "anew\"#", "\"for", "\\\"", "good\""]
    );
    assert_eq!(sentences("fn one_two() {}\nasync fn nobody_is_told_anew() {"), "\nnobody is told anew");
    assert!(
        says("it stands there", "stands") && !says("it understands", "stands") && !says("besides", "beside")
    );
}
