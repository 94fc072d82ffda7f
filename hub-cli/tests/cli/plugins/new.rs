//! `plugins new`, `lint`, `test` and `debug` without a hub.

use serde_json::Value;

use crate::program::{refuses, run, run_with_input, stderr, stdout};

/// The template passes its own case and runs in `debug`, and errors show their place.
#[test]
fn a_new_plugin_passes_lint_and_its_test_case() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let here = folder.path().display().to_string();
    let made = run(folder.path(), &["plugins", "new", "tagger", "--dir", &here]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    refuses(folder.path(), &["plugins", "new", "tagger", "--dir", &here], 6, "CONFLICT");
    let script = at("tagger/tagger.js");
    let linted = run(folder.path(), &["plugins", "lint", &script]);
    assert_eq!((linted.status.code(), &*stdout(&linted)), (Some(0), ""), "{}", stderr(&linted));
    let tested = run(folder.path(), &["plugins", "test", &at("tagger")]);
    assert_eq!(tested.status.code(), Some(0), "{}{}", stdout(&tested), stderr(&tested));
    let tried = run(folder.path(), &["debug", "request", &script, "--text", "hello you"]);
    let shown = stdout(&tried);
    assert_eq!(tried.status.code(), Some(0), "{shown}{}", stderr(&tried));
    for part in [
        "tagger.js 0.1.0   onRequest",
        "sandbox ok",
        "log   from Ada",
        "reply \"Hello!\"",
        "+   X-Plugin: tagger",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let json = run(folder.path(), &["debug", "request", &script, "--json=replies,skipped"]);
    let document: Value = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!(document["skipped"], false);

    std::fs::write(
        &script,
        "// ==UserScript==\n// @name x\n// ==/UserScript==\nfunction onRequest(ctx) {\n  ctx.a.b = 1;\n}\n",
    )
    .unwrap();
    let broken = run(folder.path(), &["debug", "request", &script]);
    assert_eq!(broken.status.code(), Some(1));
    let shown = stdout(&broken);
    assert!(shown.contains("error[throw]") && shown.contains("tagger.js:5:"), "{shown}");
    assert!(shown.contains("    5 |   ctx.a.b = 1;"), "{shown}");
    assert_eq!(run(folder.path(), &["plugins", "test", &at("tagger")]).status.code(), Some(9));
    std::fs::write(&script, "// ==UserScript==\n// @timeout 0\n// ==/UserScript==\nfunction (").unwrap();
    let linted = run(folder.path(), &["plugins", "lint", &script]);
    assert_eq!(linted.status.code(), Some(6));
    assert!(
        stdout(&linted).contains("tagger.js:2:13\terror\t@timeout must be 1 to 10000"),
        "{}",
        stdout(&linted)
    );
    let refused = run(folder.path(), &["debug", "request", &script]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("tagger.js:2:13: @timeout must be 1 to 10000"), "{}", stderr(&refused));
}

#[test]
fn debug_repl_evaluates_javascript_with_the_context() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("p.js");
    std::fs::write(
        &script,
        "const rate = 2;\nfunction onRequest(ctx) { ctx.req.body.n = rate; ctx.reply('r'); }\n",
    )
    .unwrap();
    let script = script.display().to_string();
    let typed = "1 + rate\nconst x = ctx.msg.content\nx.length\nonRequest(ctx)\nthis is wrong\n";
    let output = run_with_input(folder.path(), &["debug", "repl", &script, "--text", "order"], typed);
    let shown = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for part in ["3", "5", "reply \"r\"", "\"n\": 2", "! syntax error"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}
