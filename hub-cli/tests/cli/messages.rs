//! Messages and their traces at the command line, on the files of a stopped hub.

use hub_core::demo::ADA;
use serde_json::Value;

use crate::{
    hubs::hub_with_demo,
    program::{run, stderr, stdout},
};

#[test]
fn sends_and_traces_of_a_stopped_hub() {
    let folder = hub_with_demo();
    let sent = run(folder.path(), &["send", "demo", ADA, "hello", "--json"]);
    let sent: Value = serde_json::from_str(&stdout(&sent)).unwrap();
    assert_eq!(sent["status"], "queued");
    let list = run(folder.path(), &["traces", "list", "--bot", "demo", "--json"]);
    let list: Value = serde_json::from_str(&stdout(&list)).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    assert_eq!(list["items"][0]["trace_id"], sent["trace_id"]);
    assert!(list["next_cursor"].is_null());
    let rows = run(folder.path(), &["traces", "list", "--bot", "demo", "--status", "ok"]);
    assert_eq!(stdout(&rows).lines().count(), 1, "no header in a pipe");
    assert_eq!(stdout(&rows).lines().next().unwrap().split('\t').count(), 5);
    let trace = list["items"][1]["trace_id"].as_str().unwrap();
    let shown = run(folder.path(), &["traces", "show", trace]);
    assert!(stdout(&shown).lines().all(|line| line.chars().count() <= 80), "{}", stdout(&shown));
    let shown = run(folder.path(), &["traces", "show", trace, "--json=status,steps"]);
    let shown: Value = serde_json::from_str(&stdout(&shown)).unwrap();
    assert_eq!((&shown["status"], &shown["steps"][0]["name"]), (&"ok".into(), &"received".into()));
}

#[test]
fn tail_shows_messages_and_traces_and_goes_on_behind_one() {
    let folder = hub_with_demo();
    let tail = |more: &[&str]| {
        let arguments = [&["tail", "--bot", "demo", "--follow=false", "--json"], more].concat();
        let output = run(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let lines: Vec<Value> =
            stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines
    };
    assert!(tail(&[]).is_empty(), "from now on");
    let start = "tr_00000000000000000000000000";
    let all = tail(&["--since", start]);
    let said = all.iter().find(|line| line["direction"] == "inbound").expect("the message");
    assert_eq!((&said["content"], &said["from_user_id"]), (&"order 42".into(), &ADA.into()));
    let trace = all.iter().rfind(|line| line["summary"].is_string()).expect("the trace");
    assert_eq!(tail(&["--since", start, "--status", "ok"]).len(), 1, "one trace, and no message");
    let last = trace["trace_id"].as_str().unwrap();
    run(folder.path(), &["send", "demo", ADA, "and one more"]);
    let rest = tail(&["--since", last]);
    assert!(rest.iter().any(|line| line["content"] == "and one more"), "{rest:?}");
    assert!(rest.iter().all(|line| line["content"] != "order 42"), "{rest:?}");
}
