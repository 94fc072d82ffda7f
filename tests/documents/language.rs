//! The language of comments and documents: no reference to a document that is not in the repository, and doc comments
//! that say what an item does.

use std::path::{Path, PathBuf};

use super::{links::has_anchor, workspace};

/// Words with which a doc comment begins that restates a question instead of saying what the item does.
const QUESTIONS: [&str; 9] = ["What", "Where", "Who", "Whom", "Whose", "Which", "When", "Why", "How"];
/// The share of doc comments that may begin with one: libraries with good documentation have 1 to 3.5 %.
const MAX_QUESTIONS: f64 = 0.03;
/// A doc comment of so many words repeats the name of its item.
const FEW_WORDS: usize = 3;

/// Names of documents of which only those in the repository may be cited.
const DOCUMENTS: [&str; 5] = ["contract", "dialects", "ilink", "reliability", "ux"];

/// Documents that are generated from the program.
const GENERATED: [&str; 3] = ["hub-cli/REFERENCE.md", "hub-server/SETTINGS.md", "openapi/RECIPES.md"];

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

/// The doc comments of Rust code: the first line of each, its number of lines, and the line of code that follows.
fn doc_comments(code: &str) -> Vec<(&str, usize, &str)> {
    let text = |line: &str| line.trim_start().starts_with("///") || line.trim_start().starts_with("//!");
    let lines: Vec<&str> = code.lines().collect();
    let blocks = lines.chunk_by(|a, b| text(a) == text(b));
    let mut comments: Vec<(&str, usize, &str)> = Vec::new();
    for block in blocks {
        if text(block[0]) {
            let first = block[0].trim_start().trim_start_matches(['/', '!']).trim();
            comments.push((first, block.len(), ""));
        } else if let Some((.., item)) = comments.last_mut().filter(|(.., item)| item.is_empty()) {
            let is_code = |line: &&&str| !line.trim_start().starts_with("#[");
            *item = block.iter().find(is_code).copied().unwrap_or_default();
        }
    }
    comments
}

/// Whether a line of code begins an item that other crates do not see, as far as the line says it.
fn is_private(item: &str) -> bool {
    let items = ["fn ", "async fn ", "const ", "static ", "struct ", "enum ", "trait ", "type "];
    item.trim_start().starts_with("pub(") || items.iter().any(|start| item.starts_with(start))
}

#[test]
fn doc_comments_say_what_items_do() {
    let (mut all, mut questions, mut short) = (0_u32, 0_u32, Vec::new());
    for (path, code) in files().into_iter().filter(|(path, _)| is_product(path)) {
        for (first, lines, item) in doc_comments(&code) {
            all += 1;
            questions += u32::from(first.split(' ').next().is_some_and(|word| QUESTIONS.contains(&word)));
            if lines == 1 && first.split_whitespace().count() <= FEW_WORDS && is_private(item) {
                short.push(format!("{}: {first}", path.display()));
            }
        }
    }
    let share = f64::from(questions) / f64::from(all);
    assert!(share <= MAX_QUESTIONS, "{questions} of {all} doc comments begin with one of {QUESTIONS:?}");
    assert!(short.is_empty(), "a private item needs no doc comment that says nothing:\n{}", short.join("\n"));
}

/// Whether it is Rust code of one of the three crates.
fn is_product(path: &Path) -> bool {
    path.to_string_lossy().starts_with("hub-") && path.extension().is_some_and(|kind| kind == "rs")
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
fn citations_and_doc_comments_are_found() {
    let citation = |line: &str| citations(line).join(" ");
    assert_eq!(citation("see `docs/ilink.md#cursor`."), "docs/ilink.md#cursor");
    assert_eq!(citation("the rule of contract §5, and Reliability B5"), "contract § reliability ");
    assert_eq!(citation("the most of it (`reliability` J10)"), "reliability ");
    assert_eq!(citation("a reliability report of a contract"), "");
    let file = Path::new("hub-core/src/adapters/network/ilink/mod.rs");
    assert!(exists("docs/ilink.md#cursor", file));
    assert!(!exists("docs/ilink.md#cursors", file) && !exists("protocols/ilink.md", file));
    let code = "let nobody = 'n'; // told\nfn f<'a>() { r#\"so anew\"#; \"for \\\" good\"; \"nobody\"; }";
    assert_eq!(
        prose(code).split_whitespace().collect::<Vec<_>>(),
        ["//", "told", "r#\"so", "anew\"#", "\"for", "\\\"", "good\""]
    );
    let code = "//! What.\n\n/// Its id.\n#[row]\npub(crate) id: Id,\n/// Two\n/// lines.\npub fn f() {}\n";
    let found = [("What.", 1, ""), ("Its id.", 1, "pub(crate) id: Id,"), ("Two", 2, "pub fn f() {}")];
    assert_eq!(doc_comments(code), found);
    assert!(is_private("    pub(crate) id: Id,") && is_private("fn f() {}") && !is_private("    fn f();"));
}
