//! Help for people and for scripts.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

use crate::{
    hubs::{hub_with_demo, temp},
    program::{command, document, documents, ends, prints, run, stdout},
};

#[test]
fn help_lists_exit_codes_variables_and_options() {
    let folder = temp();
    let codes = run(folder.path(), &["help", "exit-codes"]);
    for code in ["  0  done", "  7  unreachable", "130  interrupted"] {
        assert!(stdout(&codes).contains(code), "{code}");
    }
    assert!(stdout(&run(folder.path(), &["help", "env"])).contains("HUB_DATA_DIR"));
    assert!(stdout(&run(folder.path(), &["help", "sim", "say"])).contains("--as <PERSON>"));
    assert_eq!(run(folder.path(), &["--version"]).status.code(), Some(0));
}

#[test]
fn the_first_page_fits_a_terminal_without_the_options() {
    let folder = temp();
    let (out, first) = ends(&run(folder.path(), &[]), 2);
    assert!(out.is_empty() && first.trim_end().lines().count() < 24, "{first}");
    assert!(first.contains("ai-config") && !first.contains("--json"), "{first}");
    assert_eq!(prints(folder.path(), &["-h"], 0).trim_end(), first.trim_end());
    let all = prints(folder.path(), &["--help"], 0);
    assert!(all.contains("--json") && all.contains("Configure the AI endpoint"), "{all}");
}

/// The lines of a topic below a heading.
fn lines(topic: &str, heading: &str) -> Vec<String> {
    let text = stdout(&run(temp().path(), &["help", topic]));
    let below = text.lines().skip_while(|line| *line != heading).skip(1);
    let lines: Vec<String> =
        below.take_while(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect();
    assert!(lines.len() > 3, "{text}");
    lines
}

/// What a shell makes of a line that calls the program.
fn shell(folder: &Path, line: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_hub-cli")).parent().unwrap();
    let mut command = Command::new("/bin/sh");
    command.env_clear().env("LANG", "C.UTF-8").env("PATH", program).env("HUB_DATA_DIR", folder);
    command.args(["-c", line]).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn the_filters_of_the_help_topic_are_accepted() {
    let folder = hub_with_demo();
    for expression in lines("filters", "Expressions:") {
        let set = ["channels", "set-filter", "demo", "--bot", "demo", "--expression", &expression];
        assert_eq!(document(folder.path(), &set)["filter"]["expression"], expression);
    }
    for line in lines("filters", "Examples:") {
        ends(&shell(folder.path(), &line), 0);
    }
}

#[test]
fn the_commands_of_the_formatting_topic_print_data() {
    let folder = hub_with_demo();
    for line in lines("formatting", "Examples:") {
        let (out, err) = ends(&shell(folder.path(), &line), 0);
        assert!(!out.is_empty() && err.is_empty(), "{line}: {out}{err}");
    }
    let texts = ["bots", "messages", "demo", "--direction", "inbound", "--jq", ".items[].content"];
    assert_eq!(prints(folder.path(), &texts, 0), "order 42\n");
    let rows = documents(&prints(folder.path(), &["bots", "list", "--jsonl=name"], 0));
    assert_eq!(rows, [serde_json::json!({ "name": "demo" })]);
}

#[test]
fn invalid_output_options_are_rejected_and_fields_are_listed() {
    let folder = hub_with_demo();
    let path = folder.path();
    let (out, err) = ends(&run(path, &["bots", "list", "--jq", ".items.x"]), 2);
    assert!(out.is_empty() && err.contains("--jq: cannot index") && err.len() < 500, "{err}");
    for wrong in [&["--jq", ".items["][..], &["--jq", "nonsense"], &["--jsonl", "--json"]] {
        let (out, err) = ends(&run(path, &[&["bots", "list"], wrong].concat()), 2);
        assert!(out.is_empty() && !err.is_empty(), "{wrong:?}");
    }
    let (_, err) = ends(&command(path).args(["bots", "list"]).env("HUB_FORMAT", "xml").output().unwrap(), 2);
    assert!(err.contains("HUB_FORMAT is xml"), "{err}");
    // No bot is named, and none is needed to know the fields.
    let fields = prints(path, &["traces", "list", "--json=?"], 0);
    assert!(fields.lines().any(|field| field == "trace_id"), "{fields}");
    assert!(prints(path, &["channels", "plugins", "install", "--jsonl=?"], 0).contains("plugin_id"));
    ends(&run(path, &["traces", "list", "--json"]), 2);
}
