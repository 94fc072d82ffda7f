//! Versions that are submitted, checked and reviewed, on the files of a hub.

use serde_json::{Value, json};

use super::{TAGGER, file};
use crate::{
    hubs::hub,
    program::{document, prints, refuses},
};

fn words(document: &Value, field: &str) -> Vec<String> {
    let items = document["items"].as_array().unwrap().iter();
    items.map(|item| item[field].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_plugin_version_is_submitted_reviewed_and_withdrawn() {
    let folder = hub();
    let path = folder.path();
    let script = file(path, "tagger.js", TAGGER);
    refuses(path, &["plugins", "submit", &script], 2, "INVALID_PARAMS");
    refuses(path, &["plugins", "submit", &script, "--author", "nobody"], 5, "NOT_FOUND");
    let submitted = document(path, &["plugins", "submit", &script, "--author", "ada"]);
    assert_eq!((&submitted["name"], &submitted["status"]), (&json!("tagger"), &json!("pending")));
    assert_eq!(submitted["pending_version"]["version"], "1.2.0");
    assert_eq!(words(&document(path, &["plugins", "list", "--author", "ada"]), "name"), ["tagger"]);
    refuses(path, &["plugins", "list", "--mine"], 2, "INVALID_PARAMS");
    let pending = document(path, &["plugins", "pending"])["items"][0].clone();
    assert!(pending["diff"].as_str().unwrap().contains("+function onRequest"), "{pending}");
    assert!(!pending["permissions"]["words"].as_array().unwrap().is_empty());
    let wrong = "0".repeat(64);
    refuses(path, &["plugins", "approve", "tagger", "--content-hash", &wrong], 6, "CONFLICT");
    let hash = pending["content_hash"].as_str().unwrap();
    let approved = document(path, &["plugins", "approve", "tagger", "--content-hash", hash]);
    assert_eq!(words(&approved, "status"), ["approved"]);
    assert_eq!(words(&document(path, &["plugins", "list"]), "version"), ["1.2.0"]);

    let newer = TAGGER.replace("1.2.0", "1.3.0");
    let script = file(path, "tagger.js", &newer);
    document(path, &["plugins", "submit", &script, "--author", "ada"]);
    let shown = prints(path, &["plugins", "show", "tagger"], 0);
    assert!(
        shown.contains("-// @version      1.2.0") && shown.contains("+// @version      1.3.0"),
        "{shown}"
    );
    assert!(shown.contains("changes the webhook request"), "{shown}");
    document(path, &["plugins", "reject", "tagger", "--reason", "not yet"]);
    let versions = document(path, &["plugins", "versions", "tagger"]);
    assert_eq!(words(&versions, "version"), ["1.3.0", "1.2.0"]);
    assert_eq!(words(&versions, "reason"), ["not yet", ""]);
    let ranged = document(path, &["plugins", "show", "tagger", "--diff", "1.3.0..1.2.0"]);
    assert!(ranged["diff"].as_str().unwrap().contains("+// @version      1.2.0"), "{ranged}");
    refuses(path, &["plugins", "show", "tagger", "--diff", "1.3.0..9"], 5, "NOT_FOUND");

    refuses(path, &["plugins", "withdraw", "tagger", "1.2.0"], 2, "INVALID_PARAMS");
    refuses(path, &["plugins", "withdraw", "tagger", "9", "--yes"], 5, "NOT_FOUND");
    refuses(path, &["plugins", "withdraw", "tagger", "1.3.0", "--yes"], 6, "CONFLICT");
    let withdraw = ["plugins", "withdraw", "tagger", "1.2.0", "--reason", "found out", "--yes"];
    assert_eq!(document(path, &withdraw)["status"], "withdrawn");
    assert!(words(&document(path, &["plugins", "list"]), "name").is_empty());
    refuses(path, &["plugins", "delete", "tagger"], 2, "INVALID_PARAMS");
    document(path, &["plugins", "delete", "tagger", "--yes"]);
    refuses(path, &["plugins", "show", "tagger"], 5, "NOT_FOUND");
    let log = document(path, &["audit", "list", "--actor", "operator"]);
    let acts = ["plugin.deleted", "plugin.withdrawn", "plugin.rejected", "plugin.approved", "user.created"];
    assert_eq!(words(&log, "action"), acts);
    assert_eq!(words(&log, "target_name")[..4], ["tagger"; 4]);
}

#[test]
fn plugins_lint_fix_completes_the_metadata_block() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let bare = file(path, "marker.js", "function onRequest(ctx) { ctx.skip(); }\n");
    assert!(prints(path, &["plugins", "lint", &bare], 6).contains("there is no metadata block"));
    assert_eq!(prints(path, &["plugins", "lint", &bare, "--fix"], 0), "");
    let mended = std::fs::read_to_string(&bare).unwrap();
    assert!(mended.starts_with("// ==UserScript==\n// @name         marker\n"), "{mended}");
    assert!(mended.ends_with("function onRequest(ctx) { ctx.skip(); }\n"), "{mended}");
    assert_eq!(prints(path, &["plugins", "lint", &bare], 0), "");
    refuses(path, &["plugins", "lint", "-", "--fix"], 2, "INVALID_PARAMS");

    let broken = file(
        path,
        "broken.js",
        "// ==UserScript==\n// @name x\n// @colour red\n// ==/UserScript==\nlet 1;\n",
    );
    let sarif: Value =
        serde_json::from_str(&prints(path, &["plugins", "lint", &bare, &broken, "--format", "sarif"], 6))
            .unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let told: Vec<_> = results
        .iter()
        .map(|result| {
            let place = &result["locations"][0]["physicalLocation"];
            assert_eq!(place["artifactLocation"]["uri"], broken);
            (
                result["ruleId"].as_str().unwrap(),
                result["level"].as_str().unwrap(),
                place["region"]["startLine"].clone(),
            )
        })
        .collect();
    assert_eq!(told, [("metadata", "warning", json!(3)), ("syntax", "error", json!(5))]);
    let listed: Value =
        serde_json::from_str(&prints(path, &["plugins", "lint", &broken, "--format", "json"], 6)).unwrap();
    assert_eq!(words(&listed, "rule"), ["metadata", "syntax"]);
}
