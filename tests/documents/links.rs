//! Links within the repository lead to a file, and to a heading of it.

use std::path::{Path, PathBuf};

use super::workspace;

/// Markdown files of the repository, by their paths in it.
pub fn documents() -> Vec<PathBuf> {
    let listed = std::process::Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "*.md"])
        .current_dir(workspace())
        .output()
        .unwrap();
    assert!(listed.status.success());
    String::from_utf8(listed.stdout).unwrap().lines().map(PathBuf::from).collect()
}

/// The targets of `[text](target)` outside of code.
fn links(document: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut code = false;
    for line in document.lines() {
        code ^= line.trim_start().starts_with("```");
        if code {
            continue;
        }
        let mut rest = line;
        while let Some((_, after)) = rest.split_once("](") {
            let Some((target, after)) = after.split_once(')') else { break };
            found.push(target.to_owned());
            rest = after;
        }
    }
    found
}

/// The anchor that a heading gets where the repository is shown.
fn anchor(heading: &str) -> String {
    let kept = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let text: String = heading.trim().to_lowercase().chars().filter(|c| kept(*c)).collect();
    text.replace(' ', "-")
}

pub fn has_anchor(path: &Path, wanted: &str) -> bool {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .filter(|line| line.starts_with('#'))
        .any(|line| anchor(line.trim_start_matches('#')) == wanted)
}

#[test]
fn links_lead_somewhere() {
    let documents = documents();
    assert!(documents.iter().any(|path| path == Path::new("README.md")), "{documents:?}");
    let mut broken = Vec::new();
    for document in documents {
        let path = workspace().join(&document);
        for link in links(&std::fs::read_to_string(&path).unwrap()) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, heading) =
                link.split_once('#').map_or((link.as_str(), None), |(file, to)| (file, Some(to)));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            if !target.exists() || heading.is_some_and(|heading| !has_anchor(&target, heading)) {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
