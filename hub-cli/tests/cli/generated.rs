//! What is made from the commands themselves, and what lists and help look like. The files are
//! written again with `HUB_UPDATE_GOLDEN=1`.

use std::{fs, path::PathBuf};

use crate::{
    hubs::{hub_at_a_fixed_time, temp},
    program::{command, document, ends, prints, stdout},
    pty::Terminal,
};

/// Compares a file of the repository with what it should be.
#[track_caller]
fn assert_golden(path: &str, is: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("HUB_UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, is).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if is != expected {
        let diff = similar::TextDiff::from_lines(&*expected, is);
        let changes = diff.unified_diff().context_radius(1).to_string();
        panic!("{}: HUB_UPDATE_GOLDEN=1 writes it\n{changes}", path.display());
    }
}

#[test]
fn the_reference_matches_this_program() {
    let page = prints(temp().path(), &["man", "--markdown"], 0);
    assert_golden("REFERENCE.md", &page);
    // The same each time, whatever the surroundings are.
    let mut elsewhere = command(temp().path());
    elsewhere.env("COLUMNS", "40").env("HUB_SERVER", "https://hub.example").args(["man", "--markdown"]);
    assert_eq!(stdout(&elsewhere.output().unwrap()), page);
}

#[test]
fn man_pages_and_completion_scripts_are_deterministic() {
    let (one, other) = (temp(), temp());
    for folder in [&one, &other] {
        ends(&command(folder.path()).args(["man", "--out"]).arg(folder.path()).output().unwrap(), 0);
    }
    let pages = |folder: &tempfile::TempDir| {
        let mut pages: Vec<(String, String)> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| {
                (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
            })
            .collect();
        pages.sort();
        pages
    };
    assert!(pages(&one).len() > 90);
    assert_eq!(pages(&one), pages(&other));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = prints(one.path(), &["completions", shell], 0);
        assert_eq!(prints(other.path(), &["completions", shell], 0), script);
    }
}

/// Ids, times and the ends of keys are others each time.
fn normalise(text: &str) -> String {
    let mut text = text.to_owned();
    let shown: Vec<usize> = text.match_indices("_…").map(|(at, mark)| at + mark.len()).collect();
    for end in shown {
        text.replace_range(end..end + 4, "0000");
    }
    for prefix in
        ["bot_", "usr_", "ch_", "msg_", "tr_", "plg_", "plv_", "app_", "aud_", "ses_", "apv_", "dlv_"]
    {
        let mut from = 0;
        while let Some(at) = text[from..].find(prefix).map(|at| at + from) {
            let id = at + prefix.len();
            let length = text[id..].bytes().take_while(u8::is_ascii_alphanumeric).count();
            if length == 26 {
                text.replace_range(id..id + 26, &"0".repeat(26));
            }
            from = id;
        }
    }
    let numbered: Vec<usize> =
        text.match_indices("\"network_id\":\"").map(|(at, name)| at + name.len()).collect();
    for at in numbered.into_iter().rev() {
        let digits = text[at..].bytes().take_while(u8::is_ascii_digit).count();
        text.replace_range(at..at + digits, "7000000000000000001");
    }
    let bytes = text.clone().into_bytes();
    for at in 0..bytes.len().saturating_sub(23) {
        let is_time = bytes[at + 4] == b'-' && bytes[at + 10] == b'T' && bytes[at + 23] == b'Z';
        if is_time && bytes[at..at + 4].iter().all(u8::is_ascii_digit) {
            text.replace_range(at..at + 24, "2026-01-02T03:04:05.678Z");
        }
    }
    let bytes = text.clone().into_bytes();
    for at in 0..bytes.len().saturating_sub(7) {
        // `<12 hex>@im.bot`
        if at >= 12
            && bytes[at..].starts_with(b"@im.bot")
            && bytes[at - 12..at].iter().all(u8::is_ascii_hexdigit)
        {
            text.replace_range(at - 12..at, "0123456789ab");
        }
    }
    text
}

/// Every list and view that a hub with a demo has something for.
const VIEWS: [&[&str]; 16] = [
    &["bots", "list"],
    &["bots", "show", "demo"],
    &["bots", "status", "demo"],
    &["bots", "messages", "demo"],
    &["bots", "contacts", "demo"],
    &["traces", "list", "--bot", "demo"],
    &["traces", "show", "TRACE"],
    &["audit", "list"],
    &["users", "sessions", "list", "ada"],
    &["channels", "list", "--bot", "demo"],
    &["channels", "show", "demo", "--bot", "demo"],
    &["channels", "plugins", "list", "--bot", "demo", "--channel", "demo"],
    &["users", "list"],
    &["users", "show", "ada"],
    &["apps", "list"],
    &["plugins", "list"],
];

#[test]
fn lists_and_views_match_their_golden_files() {
    let folder = hub_at_a_fixed_time();
    let traces = document(folder.path(), &["traces", "list", "--bot", "demo"]);
    let trace = traces["items"][0]["trace_id"].as_str().unwrap();
    for arguments in VIEWS {
        let name = arguments
            .iter()
            .take_while(|word| !word.starts_with("--") && **word != "TRACE")
            .copied()
            .collect::<Vec<_>>()
            .join("-");
        let words: Vec<&str> =
            arguments.iter().map(|word| if *word == "TRACE" { trace } else { word }).collect();
        let piped = |more: &[&str]| {
            let output = command(folder.path()).args(&words).args(more).output().unwrap();
            let (out, err) = ends(&output, 0);
            normalise(&format!("{out}{err}"))
        };
        assert_golden(&format!("tests/golden/{name}.tsv"), &piped(&[]));
        assert_golden(&format!("tests/golden/{name}.json"), &piped(&["--json"]));
        for columns in ["80", "120"] {
            let mut at_terminal = command(folder.path());
            at_terminal.env("COLUMNS", columns).env("NO_COLOR", "1").args(&words).arg("--utc");
            let (exit, seen) = Terminal::start(&at_terminal).end();
            assert_eq!(exit, 0, "{seen}");
            assert!(!seen.contains('\u{1b}'), "{seen:?}");
            let seen = normalise(&seen.replace("\r\n", "\n"));
            assert_golden(&format!("tests/golden/{name}.{columns}.txt"), &seen);
        }
    }
    let mut forced = command(folder.path());
    forced.env("CLICOLOR_FORCE", "1").env("COLUMNS", "80").args(["bots", "list", "--utc"]);
    let (_, seen) = Terminal::start(&forced).end();
    assert_golden("tests/golden/bots-list.colour.txt", &normalise(&seen.replace("\r\n", "\n")));
}

#[test]
fn help_matches_its_golden_files() {
    let folder = temp();
    let help = |words: &[&str]| {
        let mut command = command(folder.path());
        // Help tells what a variable holds.
        command.env_remove("HUB_DATA_DIR").env("COLUMNS", "80");
        let (out, err) = ends(&command.args(words).arg("--help").output().unwrap(), 0);
        assert!(err.is_empty() && !out.contains('\u{1b}'), "{words:?}: {out:?}{err}");
        out
    };
    assert_golden("tests/golden/help/hub-cli.txt", &help(&[]));
    for noun in document(folder.path(), &["help"])["commands"].as_array().unwrap() {
        let noun = noun["name"].as_str().unwrap().split(' ').nth(1).unwrap();
        assert_golden(&format!("tests/golden/help/{noun}.txt"), &help(&[noun]));
    }
}
