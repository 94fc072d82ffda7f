//! Errors of `replay` with their exit codes; nothing is sent.

use crate::{
    program::{ends, fails, run},
    replay::sink::Sink,
    stage::Stage,
};

const UNKNOWN_TRACE: &str = "tr_01KAJ6Z8QH0000000000000000";

#[test]
fn replay_arguments_are_checked_before_anything_is_sent() {
    let stage = Stage::new();
    let trace = stage.say("order 1").trace_id.to_string();
    let sink = Sink::kind();
    let file = stage.path().join("traces.jsonl").display().to_string();
    ends(&stage.files(&["traces", "export", "--bot", "demo", "--out", &file]), 0);
    let bad = stage.path().join("bad.jsonl").display().to_string();
    std::fs::write(&bad, std::fs::read_to_string(&file).unwrap() + "{\"trace_id\":\"x\"}\n").unwrap();
    let empty = stage.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let empty = empty.display().to_string();
    let script = stage.path().join("p.js").display().to_string();
    std::fs::write(&script, "function onRequest(ctx) {}").unwrap();
    let to = ["--to", &sink.url];
    for (arguments, exit, code) in [
        (vec!["replay", "nonsense"], 5, "NOT_FOUND"),
        (vec!["replay", UNKNOWN_TRACE, to[0], to[1]], 5, "NOT_FOUND"),
        (vec!["replay", &trace, UNKNOWN_TRACE, to[0], to[1]], 5, "NOT_FOUND"),
        (vec!["replay", "--bot", "nobody", to[0], to[1]], 5, "NOT_FOUND"),
        (vec!["replay", "--bot", "demo", "--channel", "nobody", to[0], to[1]], 5, "NOT_FOUND"),
        (vec!["replay", "--bot", "demo", "--since", "soon", to[0], to[1]], 2, "INVALID_PARAMS"),
        (vec!["replay", "--from", "/no/such/file", to[0], to[1]], 6, "INVALID_PARAMS"),
        (vec!["replay", "--from", &empty, to[0], to[1]], 5, "NOT_FOUND"),
        (vec!["replay", "--from", &bad, to[0], to[1]], 6, "INVALID_PARAMS"),
        (vec!["replay", "--from", &file, "--channel", "demo", to[0], to[1]], 2, "INVALID_PARAMS"),
        (vec!["replay", "--from", &file, "--through-plugins", to[0], to[1]], 2, "INVALID_PARAMS"),
        (vec!["replay", "--from", &file, "--resume-from", UNKNOWN_TRACE, to[0], to[1]], 5, "NOT_FOUND"),
        (vec!["replay", "--from", &file, "--resume-from", "x", to[0], to[1]], 5, "NOT_FOUND"),
        // To the URLs of the recordings only when it is meant.
        (vec!["replay", "--from", &file], 2, "INVALID_PARAMS"),
        (vec!["replay", "--from", &file, "--to", "https://shop.example/hook"], 2, "INVALID_PARAMS"),
        (vec!["replay", &trace, "--resign", to[0], to[1]], 2, "INVALID_PARAMS"),
        (vec!["replay", &trace, "--secret", "s"], 2, "INVALID_PARAMS"),
        (vec!["replay", &trace, "--as-recorded", "--secret", "s", to[0], to[1]], 2, "INVALID_PARAMS"),
        (
            vec!["replay", &trace, "--resign", "--secret-file", "/no/such/file", to[0], to[1]],
            6,
            "INVALID_PARAMS",
        ),
        (vec!["replay", "-", "--resign", "--secret-file", "-", to[0], to[1]], 2, "INVALID_PARAMS"),
    ] {
        let told = fails(&stage.files(&arguments), exit, code);
        assert_eq!(sink.count(), 0, "{arguments:?}: {told}");
    }
    for arguments in [
        &["replay", &trace, "--from", &file][..],
        &["replay", &trace, "--as-recorded", "--resign"],
        &["replay", &trace, "--script", &script],
        &["replay", &trace, "--rate", "0"],
        &["replay", &trace, "--concurrency", "0"],
        &["replay", &trace, "--to", "ftp://127.0.0.1/hook"],
        &["replay", "--from", &file, "--bot", "demo"],
    ] {
        assert_eq!(run(stage.path(), arguments).status.code(), Some(2), "{arguments:?}");
    }
    let told = fails(&stage.files(&["replay", "--from", &bad, to[0], to[1]]), 6, "INVALID_PARAMS");
    assert!(told.contains("bad.jsonl:2: is not a recording"), "{told}");
    // The line is in the place, and counted from the beginning of the file.
    assert!(told.contains(" at column ") && !told.contains(" line "), "{told}");
    // The recorded URL is that of a receiver inside the hub's process: no one is there for this one.
    let (out, _) = ends(&stage.files(&["replay", &trace, "--as-recorded"]), 1);
    assert!(out.contains("\tfail\t"), "{out}");
    fails(&stage.files(&["traces", "diff", &trace, UNKNOWN_TRACE]), 5, "NOT_FOUND");
    fails(&stage.files(&["traces", "show", "x"]), 5, "NOT_FOUND");
    fails(&stage.server(&["traces", "show", UNKNOWN_TRACE]), 5, "NOT_FOUND");
    assert_eq!(sink.count(), 0);
}

#[test]
fn a_secret_in_an_argument_prints_a_warning() {
    let stage = Stage::new();
    let trace = stage.say("order 1").trace_id.to_string();
    let sink = Sink::kind();
    let (_, err) = ends(&stage.files(&["replay", &trace, "--to", &sink.url, "--secret", "abcdefgh"]), 0);
    assert!(err.starts_with("warning: --secret ") && !err.contains("abcdefgh"), "{err}");
    assert!(sink.requests()[0].header("x-signature").is_some(), "a secret means --resign");
}
