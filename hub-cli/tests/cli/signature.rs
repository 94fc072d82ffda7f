//! Signatures at the command line: created, checked, and the explanation of a mismatch.

use std::{path::Path, process::Output};

use serde_json::{Value, json};

use crate::program::{command, ends, feed};

fn signature(folder: &Path, arguments: &[&str], secret: Option<&str>, input: &str) -> Output {
    let mut command = command(folder);
    command.current_dir(folder).args(["signature"]).args(arguments);
    if let Some(secret) = secret {
        command.env("HUB_WEBHOOK_SECRET", secret);
    }
    feed(&mut command, input)
}

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY: &str = r#"{"test": 2432232314}"#;

/// A folder with the secret, the body and the headers that the hub would send.
fn signed(body: &str, more: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), format!("{SECRET}\n")).unwrap();
    std::fs::write(folder.path().join("body"), body).unwrap();
    let sign = ["sign", "--secret-file", "secret", "--body", "body", "--timestamp", "1614265330"];
    let (out, err) = ends(&signature(folder.path(), &[&sign[..], more].concat(), None, ""), 0);
    assert_eq!(err, "");
    std::fs::write(folder.path().join("headers"), out).unwrap();
    folder
}

/// Key, id, time and body are those that the libraries of Standard Webhooks are tested with.
#[test]
fn signature_sign_prints_the_headers_of_the_webhook_sink() {
    let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    let folder = signed(BODY, &["--id", id]);
    let headers = std::fs::read_to_string(folder.path().join("headers")).unwrap();
    let mut lines: Vec<&str> = headers.lines().collect();
    lines.sort_unstable();
    let expected = [
        "X-Signature: sha256=80ec8a89ce3cd22133a1066caecb4d04fea7467657c8514d717ec42c38a5c94c",
        &format!("webhook-id: {id}"),
        "webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "webhook-timestamp: 1614265330",
    ];
    assert_eq!(lines, expected);
    let json = ["sign", "--body", "-", "--id", id, "--timestamp", "1614265330", "--json"];
    let (out, _) = ends(&signature(folder.path(), &json, Some(SECRET), BODY), 0);
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["webhook-signature"], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

#[test]
fn signature_verify_explains_a_mismatch() {
    for more in [&[][..], &["--app"]] {
        let body = r#"{"test":2432232314}"#;
        let folder = signed(body, more);
        let verify = |body: &str, at: &str, secret: &str| {
            let arguments = ["verify", "--body", "-", "--headers", "headers", "--at", at, "--json"];
            let output = signature(folder.path(), &arguments, Some(secret), body);
            let document: Value = serde_json::from_slice(&output.stdout).unwrap();
            let problems = document["findings"].as_array().unwrap().iter();
            let problems: Vec<Value> = problems
                .map(|finding| finding["problem"].clone())
                .filter(|problem| !problem.is_null())
                .collect();
            assert_eq!(output.status.code(), Some(if problems.is_empty() { 0 } else { 9 }));
            assert_eq!(document["verified"], problems.is_empty());
            problems
        };
        assert!(verify(body, "1614265330", SECRET).is_empty(), "{more:?}");
        assert!(verify(&format!("{body}\n"), "1614265330", SECRET).iter().all(|problem| problem == "body"));
        assert!(verify(BODY, "1614265330", SECRET).iter().all(|problem| problem == "body"));
        assert_eq!(verify(body, "1614269999", SECRET), [json!("too_old")]);
        assert!(verify(body, "1614265330", "another").iter().all(|problem| problem == "secret_or_body"));
    }
    let folder = signed(BODY, &[]);
    let wrong = ["verify", "--body", "body", "--secret-file", "secret", "--header", "X-Signature: sha256=00"];
    let (out, _) = ends(&signature(folder.path(), &wrong, None, ""), 9);
    assert!(out.starts_with("wrong\tX-Signature\tis no signature of the hub"), "{out}");
    let none = ["verify", "--body", "body", "--secret-file", "secret", "--header", "Accept: */*"];
    let (out, _) = ends(&signature(folder.path(), &none, None, ""), 9);
    assert!(out.contains("carries no signature"), "{out}");
}

#[test]
fn signature_errors_have_hints_and_no_secrets() {
    let folder = signed(BODY, &[]);
    let refused = |arguments: &[&str], exit: i32| {
        let (out, err) = ends(&signature(folder.path(), arguments, None, ""), exit);
        assert_eq!(out, "");
        assert!(!err.contains(SECRET), "{err}");
        err
    };
    assert!(refused(&["sign", "--body", "body"], 2).contains("HUB_WEBHOOK_SECRET"));
    assert!(refused(&["sign", "--body", "-", "--secret-file", "-"], 2).contains("stdin"));
    refused(&["sign", "--body", "/no/such/file", "--secret-file", "secret"], 6);
    refused(&["sign", "--body", "body", "--secret-file", "/no/such/file"], 6);
    std::fs::write(folder.path().join("empty"), "\n").unwrap();
    refused(&["sign", "--body", "body", "--secret-file", "empty"], 6);
    refused(&["sign", "--body", "body", "--secret-file", "secret", "--secret", "x"], 2);
    assert!(refused(&["verify", "--body", "body", "--secret-file", "secret"], 2).contains("--headers FILE"));
    refused(&["verify", "--body", "body", "--secret-file", "secret", "--header", "X-Signature"], 2);
    let (_, err) =
        ends(&signature(folder.path(), &["sign", "--body", "body", "--secret", "a-secret"], None, ""), 0);
    assert!(err.contains("warning: --secret is visible") && !err.contains("a-secret"), "{err}");
}
