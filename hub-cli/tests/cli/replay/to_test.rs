//! `traces to-test`: a trace as a test of the plugin that ran in it.

use serde_json::{Value, json};

use crate::{
    program::{ends, fails},
    stage::Stage,
};

#[test]
fn to_test_writes_a_case_without_personal_data_and_secrets() {
    let stage = Stage::new();
    let bare = stage.say("no plugin yet").trace_id.to_string();
    let script = stage.path().join("tagger.js").display().to_string();
    std::fs::write(&script, include_str!("../../../../examples/plugins/tagger.js")).unwrap();
    ends(&stage.files(&["plugins", "submit", &script, "--author", "ada"]), 0);
    ends(&stage.files(&["plugins", "approve", "tagger"]), 0);
    ends(
        &stage.files(&["channels", "plugins", "install", "tagger", "--bot", "demo", "--channel", "demo"]),
        0,
    );
    let token = "q8Zr2Lw0XbN5tYc7Vd1m";
    let text = format!("order 42, call +49 30 1234567, ada@shop.example, {token}");
    let mut trace = stage.say(&text);
    // The hub hears of what was installed next to it within a second.
    for _ in 0..40 {
        let shown = ends(&stage.files(&["traces", "show", &trace.trace_id.to_string()]), 0).0;
        if shown.contains("plugin.on_request") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(250));
        trace = stage.say(&text);
    }
    let trace = trace.trace_id.to_string();
    let folder = stage.path().join("cases");
    let out = folder.display().to_string();
    for place in [Stage::files, Stage::server] {
        let (files, err) = ends(&place(&stage, &["traces", "to-test", &trace, "--out", &out]), 0);
        assert_eq!(files.lines().count(), 4, "{files}");
        assert!(!err.contains("does something else"), "{err}");
    }
    let read = |name: String| std::fs::read_to_string(folder.join(name)).unwrap();
    let case: Value = serde_json::from_str(&read(format!("{trace}.case.json"))).unwrap();
    assert_eq!(
        case["expect"]["request"]["headers"],
        json!({ "X-Kind": "order" }),
        "what the plugin did alone"
    );
    assert_eq!(case["expect"]["request"]["body"]["order"], 42);
    let everything =
        [".case.json", ".response.case.json", ".jsonl"].map(|end| read(format!("{trace}{end}"))).concat();
    for real in ["ada@", "1234567", token, "AARz", "whsec_", "sha256="] {
        assert!(!everything.contains(real), "{real} in {everything}");
    }
    let (table, _) = ends(&stage.files(&["plugins", "test", &out]), 0);
    assert_eq!(table.lines().filter(|line| line.contains("\tok\t")).count(), 2, "{table}");
    // The recording is one that can be sent again.
    let (looked, _) =
        ends(&stage.files(&["replay", "--from", &out, "--to", "http://localhost:1/", "--dry-run"]), 0);
    assert_eq!(looked.lines().count(), 1, "{looked}");

    // With a source of one's own, for a trace in which none ran.
    let other = stage.path().join("other").display().to_string();
    fails(&stage.files(&["traces", "to-test", &bare, "--out", &other]), 5, "NOT_FOUND");
    fails(
        &stage.files(&["traces", "to-test", &trace, "--out", &other, "--plugin", "nobody"]),
        5,
        "NOT_FOUND",
    );
    fails(
        &stage.files(&["traces", "to-test", &trace, "--out", &other, "--script", "/no/such.js"]),
        6,
        "INVALID_PARAMS",
    );
    ends(&stage.files(&["traces", "to-test", &bare, "--out", &other, "--script", &script]), 0);
    ends(&stage.files(&["plugins", "test", &other]), 0);
    // The case tests the file that its author changes, not a copy of it.
    assert!(!stage.path().join("other/tagger.js").exists());
    std::fs::write(
        &script,
        "// ==UserScript==\n// @name tagger\n// ==/UserScript==\nfunction onRequest() { broken() }",
    )
    .unwrap();
    ends(&stage.files(&["plugins", "test", &other]), 9);
    std::fs::write(folder.join("tagger.js"), "// mine").unwrap();
    let told = fails(&stage.files(&["traces", "to-test", &trace, "--out", &out]), 6, "CONFLICT");
    assert!(told.contains("tagger.js exists already"), "{told}");
}
