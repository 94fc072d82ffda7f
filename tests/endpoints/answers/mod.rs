//! Every failure that the document has is provoked, on each operation that has it; and every answer that is given is
//! documented, and of the schema that is there.

use serde_json::json;

use super::stage::Stage;
use ledger::Ledger;

mod everywhere;
mod ledger;
mod special;

#[tokio::test]
async fn every_documented_failure_is_provoked_and_every_answer_documented() {
    let mut ledger = Ledger::new();
    let stage = Stage::new().await;
    everywhere::callers(&stage, &mut ledger).await;
    everywhere::requests(&stage, &mut ledger).await;
    everywhere::heads(&stage, &mut ledger).await;
    everywhere::repetitions(&stage, &mut ledger).await;
    everywhere::switched_off(&stage, &mut ledger).await;
    Box::pin(everywhere::too_many(&mut ledger)).await;
    Box::pin(everywhere::faults(&mut ledger)).await;
    Box::pin(everywhere::outage(&mut ledger)).await;
    special::all(&mut ledger).await;
    let wrong = ledger.close(special::ELSEWHERE);
    assert!(wrong.is_empty(), "{}: {}", wrong.len(), wrong.join("\n"));
}

/// The tests that `ELSEWHERE` names are there.
#[test]
fn codes_provoked_by_other_tests_are_named_correctly() {
    let workspace = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (operation, status, test) in special::ELSEWHERE {
        let (file, name) = test.split_once(' ').unwrap();
        let text = std::fs::read_to_string(workspace.join(file)).unwrap_or_default();
        assert!(text.contains(&format!("fn {name}(")), "{operation} {status}: {file} has no test {name}");
    }
}

/// An example is of its own schema, and of every schema that it is a part of.
#[test]
fn every_example_is_of_its_schema() {
    let mut ledger = Ledger::new();
    let mut wrong = Vec::new();
    for (name, example) in ledger.schemas() {
        wrong.extend(ledger.breaks(&name, &example).into_iter().map(|broken| format!("{name}: {broken}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The rule finds something where there is something.
    assert!(!ledger.breaks("Bot", &json!({ "id": "bot_x" })).is_empty());
}
