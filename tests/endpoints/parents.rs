//! A thing is found under its own parent alone: with two of one's own, the one's parts are not there under the other.

use super::{
    operation::{Operation, operations},
    refused,
    stage::Stage,
};

/// Whether an operation names a part of something, and a parent that could be another one.
fn names_a_part(operation: &Operation) -> bool {
    let parameters = operation.parameters();
    parameters.len() > 1 && parameters[0] == "id"
}

#[tokio::test]
async fn a_thing_is_found_under_its_own_parent_alone() {
    let stage = Stage::new().await;
    let before = stage.stored().await;
    let mut asked = 0;
    for operation in operations().into_iter().filter(names_a_part) {
        let other = if operation.is_administration() { &stage.other_user } else { &stage.other_bot };
        let mut ids = stage.ids(&operation);
        for (name, id) in &mut ids {
            if *name == "id" {
                *id = other;
            }
        }
        let path = stage.path_of(&operation, &ids, "");
        let answer = stage.ask_as(&operation, &path, &stage.ada).await;
        refused(&operation, &answer, 404, "NOT_FOUND", "of another parent");
        asked += 1;
    }
    assert!(asked >= 20, "{asked} operations name parts");
    assert_eq!(stage.stored().await, before, "a refusal changed something");
}
