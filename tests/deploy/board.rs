//! The board for Grafana.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{read, succeed, tool};

fn board() -> Value {
    serde_json::from_str(&read("monitoring/grafana.json")).unwrap()
}

fn targets(panel: &Value) -> &[Value] {
    panel["targets"].as_array().map_or(&[], Vec::as_slice)
}

/// Expressions of the panels, with Grafana's variables replaced.
pub fn expressions() -> Vec<String> {
    let board = board();
    let targets = board["panels"].as_array().unwrap().iter().flat_map(targets);
    let filled = |expression: &str| {
        let filled =
            expression.replace("$__rate_interval", "1m").replace("$job", "hub").replace("$node", ".*");
        assert!(!filled.contains('$'), "an unknown variable: {expression}");
        filled
    };
    targets.map(|target| filled(target["expr"].as_str().unwrap())).collect()
}

#[test]
fn every_panel_has_a_description_and_overlaps_no_other() {
    let board = board();
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in board["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
        assert!(x + w <= 24, "{title}");
        assert!((x..x + w).all(|x| (y..y + h).all(|y| taken.insert((x, y)))), "{title} covers another");
        if panel["type"] == "row" {
            continue;
        }
        assert!(panel["description"].as_str().is_some_and(|text| text.ends_with('.')), "{title}");
        assert!(!targets(panel).is_empty(), "{title}");
        for target in targets(panel) {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
        }
    }
    let variables = board["templating"]["list"].as_array().unwrap().iter();
    let names: Vec<_> = variables.map(|variable| variable["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["datasource", "job", "node"]);
    assert!(board.get("__inputs").is_none() && board["id"].is_null(), "it is imported as it is");
}

#[test]
fn prometheus_understands_every_question_of_the_board() {
    let Some(mut promtool) = tool("promtool") else { return };
    let rules: Vec<Value> = expressions()
        .into_iter()
        .enumerate()
        .map(|(number, expr)| serde_json::json!({ "record": format!("board:{number}"), "expr": expr }))
        .collect();
    let asked = rules.len();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("board.json");
    // JSON is YAML.
    let groups = serde_json::json!({ "groups": [{ "name": "board", "rules": rules }] });
    std::fs::write(&file, groups.to_string()).unwrap();
    let told = succeed(promtool.args(["check", "rules"]).arg(file));
    assert!(asked > 25 && told.contains(&format!("{asked} rules found")), "{told}");
}
