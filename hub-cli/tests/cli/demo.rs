//! `demo`: what it shows, as text and as a document, and that nothing of it stays.

use serde_json::Value;

use crate::{
    hubs::temp,
    program::{command, run, stderr, stdout},
};

/// Replaces what differs from run to run: ids and times.
fn normalise(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let Some((head, bar)) = line.split_once(" ms  ").filter(|_| line.starts_with("  ")) else {
            let id = line.find("tr_").map(|at| &line[at..at + 29]);
            let line = id.map_or_else(|| line.to_owned(), |id| line.replace(id, "TRACE"));
            let words = line.split("  ").map(|part| if part.ends_with(" ms") { "TIME" } else { part });
            lines.push(words.collect::<Vec<_>>().join("  "));
            continue;
        };
        assert!(head.trim().parse::<u64>().is_ok(), "{line}");
        // Columns: 8 for the offset, then name and status, 7 for the duration, 16 for the bar.
        let parts: Vec<&str> = bar.split("  ").filter(|part| !part.trim().is_empty()).collect();
        let words = parts.iter().filter(|part| !part.contains(['▏', '█']) && !part.trim().ends_with(" ms"));
        lines.push(format!("AT {}", words.map(|part| part.trim()).collect::<Vec<_>>().join(" | ")));
    }
    lines.join("\n")
}

const DEMO: &str = r#"chat
  Ada → demo   order 42
  demo → Ada   42 is on its way

receiver
  POST http://receiver.local/hook  attempt 1
  signature verified (X-Signature, webhook-signature)

trace TRACE  ok  TIME  status 200
AT received | ok | text
AT filter | ok | matched
AT request | ok | POST http://receiver.lo…
AT response | ok | 200 {"reply":"42 is on …
AT reply | pending | queued to ada@im.wechat
AT reply | ok | sent to ada@im.wechat"#;

#[test]
fn the_demo_delivers_and_leaves_nothing_behind() {
    let (folder, temporary) = (temp(), temp());
    let output = command(folder.path()).arg("demo").env("TMPDIR", temporary.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(normalise(&stdout(&output)), DEMO);
    assert!(stdout(&output).lines().all(|line| line.chars().count() <= 80));
    assert!(!stdout(&output).contains('\u{1b}'), "no colour in a pipe");
    assert_eq!(temporary.path().read_dir().unwrap().count(), 0);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    let narrow = command(folder.path()).args(["demo", "-q"]).env("COLUMNS", "40").output().unwrap();
    assert!(stdout(&narrow).lines().skip(9).all(|line| line.chars().count() <= 48), "{}", stdout(&narrow));
    assert_eq!(stderr(&narrow), "");
}

#[test]
fn the_demo_prints_its_outcome_as_json() {
    let folder = temp();
    let output = run(folder.path(), &["demo", "--json"]);
    let document: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(document["reply"], "42 is on its way");
    assert_eq!(document["verified"], true);
    assert_eq!(document["trace"]["status"], "ok");
    let fields = run(folder.path(), &["demo", "--json=?"]);
    let mut listed: Vec<String> = stdout(&fields).lines().map(str::to_owned).collect();
    listed.sort();
    let mut keys: Vec<String> = document.as_object().unwrap().keys().cloned().collect();
    keys.sort();
    assert_eq!(listed, keys);
    let some = run(folder.path(), &["demo", "--json=verified,reply"]);
    let some: Value = serde_json::from_str(&stdout(&some)).unwrap();
    assert_eq!(some, serde_json::json!({ "verified": true, "reply": "42 is on its way" }));
    assert_eq!(stderr(&output), "", "no prose next to a document");
}

#[test]
fn colour_follows_the_flag_and_the_environment() {
    let folder = temp();
    assert!(stdout(&run(folder.path(), &["demo", "--color", "always"])).contains('\u{1b}'));
    let forced = command(folder.path()).arg("demo").env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(stdout(&forced).contains('\u{1b}'));
    let refused = command(folder.path()).arg("demo").env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output();
    assert!(!stdout(&refused.unwrap()).contains('\u{1b}'));
}
