//! The manual of plugins, held to the parser and the sandbox: each claim of its tables, and its code.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use hub_core::{
    plugins::{
        Manifest, Permissions,
        debug::{DebugResponse, DebugRun, SAMPLE_URL, debug, sample_message},
        manifest::{DEFAULT_TIMEOUT_MS, MAX_SOURCE, MAX_TIMEOUT_MS},
    },
    sandbox::{self, Limits, Sandbox, SandboxConfig, WorkerProgram},
    time::Clock,
};

use super::{markdown::rows, read};

const MANUAL: &str = "examples/plugins/README.md";

/// The text between backticks.
fn code(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The numbers of a text, with their units.
fn numbers(text: &str) -> Vec<usize> {
    let words: Vec<String> = text.split_whitespace().map(|word| word.replace([',', ':', ';'], "")).collect();
    let unit = |at: usize| match words.get(at + 1).map(String::as_str) {
        Some("KiB") => 1 << 10,
        Some("MiB") => 1 << 20,
        _ => 1,
    };
    (0..words.len()).filter_map(|at| Some(words[at].parse::<usize>().ok()? * unit(at))).collect()
}

fn block(lines: &str) -> String {
    format!("// ==UserScript==\n{lines}\n// ==/UserScript==\nfunction onRequest(ctx) {{}}\n")
}

#[track_caller]
fn accepted(line: &str) -> Manifest {
    let manifest = Manifest::parse(&block(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(manifest.warnings, [], "{line}");
    manifest
}

fn refused(line: &str) -> bool {
    Manifest::parse(&block(line)).is_err()
}

#[test]
fn each_line_of_the_metadata_table_is_what_the_parser_does() {
    let table = rows(&read(MANUAL), "## The file");
    let row = |key: &str| {
        let found = table.iter().find(|row| code(&row[0]).iter().any(|name| name == key));
        found.unwrap_or_else(|| panic!("the manual has no {key}")).clone()
    };
    let keys: BTreeSet<String> = table.iter().flat_map(|row| code(&row[0])).collect();
    for key in &keys {
        let value = match key.as_str() {
            "@grant" => "none",
            "@timeout" => "100",
            "@match" => "*",
            _ => "a.example",
        };
        accepted(&format!("// {key} {value}"));
    }
    let known = ["@name", "@version", "@description", "@author", "@match", "@connect", "@timeout", "@grant"];
    assert_eq!(keys, known.map(str::to_owned).into());

    let [_, meaning, default] = &row("@match")[..] else { panic!("three columns") };
    let forms: Vec<String> = code(meaning).into_iter().filter(|form| !form.starts_with("hub-cli")).collect();
    assert_eq!(forms.len(), 3, "{forms:?}");
    for form in &forms {
        let line = match form.as_str() {
            "expr:" => "// @match expr: content.startsWith(\"/pic\")".to_owned(),
            form => format!("// @match {form}"),
        };
        accepted(&line);
    }
    assert_eq!(accepted("").matches.as_written(), code(default));
    assert!(refused("// @match content.startsWith(\"/pic\")"), "an expression without expr:");
    let several = accepted(&format!("// @match {}\n// @match expr: content == \"x\"", forms[1]));
    assert_eq!(several.matches.as_written().len(), 6, "several lines");

    let [_, meaning, default] = &row("@timeout")[..] else { panic!("three columns") };
    assert_eq!(numbers(meaning), [MAX_TIMEOUT_MS as usize]);
    assert_eq!(default.parse(), Ok(DEFAULT_TIMEOUT_MS));
    assert_eq!(accepted(&format!("// @timeout {MAX_TIMEOUT_MS}")).timeout.as_millis(), MAX_TIMEOUT_MS);
    assert!(refused(&format!("// @timeout {}", MAX_TIMEOUT_MS + 1)) && refused("// @timeout 5s"));

    let [_, meaning, default] = &row("@grant")[..] else { panic!("three columns") };
    assert_eq!((code(meaning), code(default)), (vec!["none".to_owned()], vec!["none".to_owned()]));
    assert!(refused("// @grant reply"));
}

#[test]
fn the_hosts_of_the_manual_are_accepted_and_mean_what_it_says() {
    let manual = read(MANUAL);
    let paragraph = manual.split("\n\n").find(|text| text.starts_with("`@connect` accepts")).unwrap();
    let (hosts, _) = paragraph.split_once("Private addresses").unwrap();
    let hosts: Vec<String> = code(hosts).into_iter().filter(|host| !host.starts_with('@')).collect();
    assert_eq!(hosts.len(), 4, "{hosts:?}");
    let (lines, commas) = (hosts.join("\n// @connect "), hosts.join(", "));
    for value in [lines, commas] {
        let manifest = accepted(&format!("// @connect {value}"));
        assert_eq!(manifest.connects, hosts);
        let words = Permissions::from(&manifest).words.join("\n");
        assert!(words.contains(&format!("and their sub-domains: {}\n", hosts[0])), "{words}");
        assert!(words.contains(&format!("these hosts: {}\n", hosts[1..].join(", "))), "{words}");
    }
}

#[test]
fn the_limits_of_the_manual_are_those_of_the_sandbox() {
    let table = rows_of_limits();
    let limit = |what: &str| {
        let row = table.iter().find(|row| row[0] == what).unwrap_or_else(|| panic!("no {what} in {table:?}"));
        numbers(&row[1])
    };
    assert_eq!(Duration::from_secs(limit("time of a run")[0] as u64), Limits::MAX_TIMEOUT);
    assert_eq!(limit("memory"), [Limits::default().memory]);
    assert_eq!(limit("source"), [MAX_SOURCE]);
    assert_eq!(limit("replies"), [sandbox::MAX_REPLIES, sandbox::MAX_REPLY_TEXT]);
    assert_eq!(limit("fetches"), [sandbox::MAX_FETCHES as usize, sandbox::MAX_FETCH_BODY]);
    assert_eq!(limit("log"), [sandbox::MAX_LOG_LINES, sandbox::MAX_LOG_BYTES]);
    assert_eq!(limit("`ctx.state`"), [sandbox::MAX_STATE]);
}

/// The rows of the table of limits.
fn rows_of_limits() -> Vec<Vec<String>> {
    let manual = read(MANUAL);
    let (_, section) = manual.split_once("## Limits").unwrap();
    let lines = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let lines = lines.take_while(|line| line.starts_with('|'));
    lines
        .map(|line| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

#[tokio::test]
async fn the_code_of_the_manual_runs_and_does_what_its_comments_say() {
    let manual = read(MANUAL);
    let (_, script) = manual.split_once("```js\n").unwrap();
    let (script, _) = script.split_once("```").unwrap();
    let worker = WorkerProgram::Path(PathBuf::from(env!("CARGO_BIN_EXE_sandbox-worker")));
    let sandbox = Sandbox::new(SandboxConfig::of(worker), Clock::system());
    let manifest = Manifest::parse(script).unwrap();
    let run = |text: &str, response| DebugRun {
        script: script.to_owned(),
        message: sample_message(text, "u", "Ada", 0),
        request: None,
        url: SAMPLE_URL.to_owned(),
        response,
        state: None,
    };
    let asked = debug(&sandbox, "manual", run("order", None), &manifest).await.unwrap();
    assert_eq!((asked.error, asked.skipped, asked.replies.len()), (None, false, 1));
    assert_eq!(asked.request.unwrap().headers["X-Kind"], "order");
    assert_eq!(asked.state.unwrap().get(), r#"{"order":42}"#);
    let stopped = debug(&sandbox, "manual", run("stop", None), &manifest).await.unwrap();
    assert!(stopped.skipped && stopped.error.is_none(), "{stopped:?}");
    for (status, replies) in [(200, 0), (500, 1)] {
        let response = DebugResponse { status, headers: [].into(), body: String::new() };
        let answered = debug(&sandbox, "manual", run("order", Some(response)), &manifest).await.unwrap();
        assert_eq!((answered.error, answered.replies.len()), (None, replies));
    }
}

/// Globals of the language, which neither the manual nor the types list.
const LANGUAGE: &str = "AggregateError Array ArrayBuffer AsyncDisposableStack BigInt BigInt64Array BigUint64Array Boolean DataView Date DisposableStack Error EvalError \
    Float16Array Float32Array Float64Array Infinity Int16Array Int32Array Int8Array InternalError Iterator JSON Map Math NaN Number \
    Object Promise Proxy RangeError ReferenceError Reflect RegExp Set String SuppressedError Symbol SyntaxError TypeError URIError \
    Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakSet decodeURI decodeURIComponent encodeURI encodeURIComponent \
    escape globalThis isFinite isNaN parseFloat parseInt undefined unescape";

#[tokio::test]
async fn the_manual_and_the_types_have_the_globals_of_the_sandbox() {
    let worker = WorkerProgram::Path(PathBuf::from(env!("CARGO_BIN_EXE_sandbox-worker")));
    let sandbox = Sandbox::new(SandboxConfig::of(worker), Clock::system());
    let run = DebugRun {
        script: "function onRequest(ctx) { ctx.state = Object.getOwnPropertyNames(globalThis) }".to_owned(),
        message: sample_message("", "u", "Ada", 0),
        request: None,
        url: SAMPLE_URL.to_owned(),
        response: None,
        state: None,
    };
    let ran = debug(&sandbox, "manual", run, &Manifest::default()).await.unwrap();
    let mut globals: BTreeSet<String> = serde_json::from_str(ran.state.unwrap().get()).unwrap();
    for name in LANGUAGE.split_whitespace() {
        assert!(globals.remove(name), "the language has no {name}");
    }
    let table = rows(&read(MANUAL), "## What there is");
    let listed: BTreeSet<String> = table.iter().flat_map(|row| code(&row[0])).collect();
    assert_eq!(listed, globals);
    let types = read("hub-cli/src/commands/plugins/plugin.d.ts");
    let declared = types.lines().filter_map(|line| {
        let (kind, rest) = line.strip_prefix("declare ")?.split_once(' ')?;
        assert!(["function", "class", "const"].contains(&kind), "{line}");
        rest.split(|c: char| !c.is_ascii_alphanumeric()).next().map(str::to_owned)
    });
    assert_eq!(declared.collect::<BTreeSet<String>>(), globals);
    // What the manual says is left out.
    let manual = read(MANUAL);
    let (_, section) = manual.split_once("## What there is").unwrap();
    let (left_out, _) = section.split_once("and these globals").unwrap();
    for name in code(left_out) {
        assert!(!LANGUAGE.split_whitespace().any(|known| known == name), "{name}");
    }
}
