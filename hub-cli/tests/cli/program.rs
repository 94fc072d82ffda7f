//! The program, started as by a shell, and assertions about its output.

use std::{
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

/// The program on the files of a folder, without anything of the surroundings.
pub fn command(folder: &Path) -> Command {
    command_of(Path::new(env!("CARGO_BIN_EXE_hub-cli")), folder)
}

/// The same with another build of the program.
pub fn command_of(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("LANG", "C.UTF-8").env("HUB_DATA_DIR", folder).stdin(Stdio::null());
    command
}

pub fn run(folder: &Path, arguments: &[&str]) -> Output {
    command(folder).args(arguments).output().unwrap()
}

pub fn run_with_input(folder: &Path, arguments: &[&str], input: &str) -> Output {
    feed(command(folder).args(arguments), input)
}

/// Runs a command with this on its stdin.
pub fn feed(command: &mut Command, input: &str) -> Output {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    // A receiver that rejects at once reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Asserts the exit code; returns stdout and stderr.
#[track_caller]
pub fn ends(output: &Output, exit: i32) -> (String, String) {
    let (out, err) = (stdout(output), stderr(output));
    assert_eq!(output.status.code(), Some(exit), "{out}{err}");
    (out, err)
}

/// Asserts the exit code and the error code of a failure; returns stderr. Nothing may be on stdout.
#[track_caller]
pub fn fails(output: &Output, exit: i32, code: &str) -> String {
    let (out, err) = ends(output, exit);
    assert_eq!(out, "", "{err}");
    assert!(err.contains(&format!("error[{code}]: ")), "{err}");
    err
}

/// What a command that works writes to stdout, and to stderr.
#[track_caller]
pub fn told(folder: &Path, arguments: &[&str]) -> (String, String) {
    ends(&run(folder, arguments), 0)
}

/// What a command that ends in this way writes to stdout.
#[track_caller]
pub fn prints(folder: &Path, arguments: &[&str], exit: i32) -> String {
    ends(&run(folder, arguments), exit).0
}

/// The document of a command that works.
#[track_caller]
pub fn document(folder: &Path, arguments: &[&str]) -> Value {
    let (out, err) = told(folder, &[arguments, &["--json"]].concat());
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {out}{err}"))
}

/// The JSON documents of the lines.
pub fn documents(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A command is refused: stdout stays empty, and the code is in both forms, for people and as JSON.
#[track_caller]
pub fn refuses(folder: &Path, arguments: &[&str], exit: i32, code: &str) {
    fails(&run(folder, arguments), exit, code);
    let (out, err) = ends(&run(folder, &[arguments, &["--json"]].concat()), exit);
    assert_eq!(out, "", "{arguments:?}");
    let document: Value = serde_json::from_str(&err).unwrap_or_else(|_| panic!("{arguments:?}: {err}"));
    assert_eq!(document["success"], false);
    assert_eq!(document["error"]["code"], code);
    assert_eq!(document["exit_code"], exit);
    assert!(document["error"]["message"].is_string());
}

/// Makes an administrator, ada, and an AI endpoint whose key is sealed.
pub fn fill_hub(folder: &Path, api_key: &str) {
    let admin = ["users", "create-admin", "ada", "--password-file", "-"];
    ends(&run_with_input(folder, &admin, "correct horse\n"), 0);
    let endpoint =
        ["ai-config", "set", "--base-url", "https://ai.example/v1", "--model", "m", "--api-key-file", "-"];
    ends(&run_with_input(folder, &endpoint, &format!("{api_key}\n")), 0);
}
