//! Sealed values, wherever they stand.

use hub_core::{
    random::Random,
    secret::{Sealed, Sealer},
    store::{SEALED_COLUMNS, Upkeep},
};

use super::scene::{accept_one, stage};
use crate::support::database::Db;

contract!("sealed": {
    every_column_is_read_in_pages_and_a_value_is_replaced_once => [page, replace],
    the_key_is_known_by_its_note => [key_id],
    a_key_that_the_database_needs_is_missed => [missing_key],
});

async fn every_column_is_read_in_pages_and_a_value_is_replaced_once(db: &Db) {
    let stage = stage(db).await;
    for (key, peer) in [("1", "ann"), ("2", "ben"), ("3", "cid")] {
        accept_one(db, &stage, peer, key, 1).await;
    }
    db.sql("UPDATE contacts SET context_token = 'v1.old.' || user_id").await;
    let mut upkeep = Upkeep::open(&db.config).await.unwrap();
    for column in SEALED_COLUMNS {
        upkeep.sealed().page(column, None, 10).await.unwrap();
    }
    let tokens = SEALED_COLUMNS.iter().find(|column| column.column == "context_token").unwrap();
    let first = upkeep.sealed().page(tokens, None, 2).await.unwrap();
    let rest = upkeep.sealed().page(tokens, first.last(), 2).await.unwrap();
    let values: Vec<&str> = first.iter().chain(&rest).map(|row| row.value.as_str()).collect();
    assert_eq!(values, ["v1.old.ann", "v1.old.ben", "v1.old.cid"]);
    let place = format!("contacts.context_token:{}:ann", stage.bot);
    assert_eq!(tokens.place(&first[0]), place);

    upkeep.sealed().replace(tokens, &first[0], &Sealed::from("v1.new.ann".to_owned())).await.unwrap();
    // What was changed meanwhile is left alone.
    upkeep.sealed().replace(tokens, &first[0], &Sealed::from("v1.late.ann".to_owned())).await.unwrap();
    let values = db.texts("SELECT context_token FROM contacts ORDER BY user_id").await;
    assert_eq!(values, ["v1.new.ann", "v1.old.ben", "v1.old.cid"]);
}

async fn the_key_is_known_by_its_note(db: &Db) {
    let mut upkeep = Upkeep::open(&db.config).await.unwrap();
    assert_eq!(upkeep.sealed().key_id().await.unwrap(), None);
    upkeep.note(Upkeep::KEY_ID, "00c0ffee").await.unwrap();
    assert_eq!(upkeep.sealed().key_id().await.unwrap().as_deref(), Some("00c0ffee"));
}

async fn a_key_that_the_database_needs_is_missed(db: &Db) {
    let stage = stage(db).await;
    accept_one(db, &stage, "ann", "1", 1).await;
    let sealer = Sealer::new(&[7; 32], Random::system());
    for column in SEALED_COLUMNS {
        db.sql(format!(
            "UPDATE {} SET {} = NULL WHERE {} LIKE 'v1.%'",
            column.table, column.column, column.column
        ))
        .await;
    }
    let mut upkeep = Upkeep::open(&db.config).await.unwrap();
    for (sealed_with, missing) in [(sealer.key_id(), None), ("00c0ffee", Some("00c0ffee"))] {
        db.sql(format!("UPDATE contacts SET context_token = 'v1.{sealed_with}.x'")).await;
        assert_eq!(upkeep.sealed().missing_key(&sealer).await.unwrap().as_deref(), missing);
    }
    upkeep.note(Upkeep::KEY_ID, sealer.key_id()).await.unwrap();
    assert_eq!(upkeep.sealed().missing_key(&sealer).await.unwrap(), None, "the noted key counts");
}
