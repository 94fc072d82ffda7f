//! A new key for a database of PostgreSQL, which every node has to get.

use std::{collections::BTreeSet, path::Path};

use hub_core::{
    ErrorCode,
    backup::{Home, HomeKey},
    data_dir,
    media::MediaConfig,
    random::Random,
    secret::Sealer,
    store::{SEALED_COLUMNS, StoreConfig, Upkeep},
    upkeep::rotate_key,
};
use serde_json::json;

use super::restore::{kill_at, succeed};
use crate::support::{database::Db, postgres};

/// More than two of the pieces in which secrets are sealed again.
const CONTACTS: usize = 1_203;

/// The home of a database that has a sealed secret per contact, and one of its administrator.
async fn home(db: &Db, folder: &Path) -> Home {
    let home = Home {
        data_dir: folder.to_owned(),
        store: db.config.clone(),
        media: MediaConfig::Folder(folder.join("media")),
        key: None,
    };
    data_dir::load_key(folder, &Random::seeded(1)).unwrap();
    let bot = db.bot(db.user("ada").await).await;
    let sealer = home.sealer(&Random::seeded(2)).unwrap();
    let seal = |place: String| sealer.seal(&place, &format!("secret of {place}").into()).as_str().to_owned();
    let row = |n| {
        let token = seal(format!("contacts.context_token:{bot}:u{n}"));
        format!("('{bot}', 'u{n}', '', '', '', 0, 0, '{token}', NULL, 0, NULL, '')")
    };
    let rows: Vec<String> = (0..CONTACTS).map(row).collect();
    db.sql(format!("INSERT INTO contacts VALUES {}", rows.join(", "))).await;
    let credentials = seal(format!("bots.credentials:{bot}"));
    db.sql(format!("UPDATE bots SET credentials = '{credentials}'")).await;
    let key = seal("ai_config.api_key".to_owned());
    db.sql(format!("INSERT INTO ai_config VALUES (1, '{{}}', '{key}', 0)")).await;
    home
}

/// The keys that secrets are sealed with; each opens and is what it was.
async fn keys_in_use(home: &Home) -> BTreeSet<String> {
    let sealer = home.sealer(&Random::seeded(3)).unwrap();
    let mut upkeep = Upkeep::open(&home.store).await.unwrap();
    let (mut keys, mut count) = (BTreeSet::new(), 0);
    for column in SEALED_COLUMNS {
        for row in upkeep.sealed().page(column, None, 10_000).await.unwrap() {
            let place = column.place(&row);
            assert_eq!(sealer.open(&place, &row.value).unwrap().expose(), format!("secret of {place}"));
            keys.insert(row.value.key_id().unwrap().to_owned());
            count += 1;
        }
    }
    assert_eq!(count, CONTACTS + 2);
    keys
}

#[tokio::test]
async fn every_secret_is_resealed_and_not_while_a_node_runs() {
    let (Some(db), folder) = (Db::postgres().await, tempfile::tempdir().unwrap()) else { return };
    let home = home(&db, folder.path()).await;
    let old = keys_in_use(&home).await;
    let far = i64::MAX / 2;
    db.sql(format!("INSERT INTO nodes (id, lease_until) VALUES ('node', {far})")).await;
    db.sql("UPDATE bots SET lease_owner = 'node'").await;
    let refused = rotate_key(&home, None, &Random::seeded(5)).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Unavailable);
    assert!(!folder.path().join("secret.key.new").exists(), "nothing has begun");
    // The lease of a node that died is over.
    db.sql("UPDATE nodes SET lease_until = 1").await;
    let rotated = rotate_key(&home, None, &Random::seeded(5)).await.unwrap();
    assert_eq!((rotated.sealed, rotated.unreadable), (CONTACTS as u64 + 2, 0));
    assert_eq!(old, BTreeSet::from([rotated.old_key]));
    assert_eq!(keys_in_use(&home).await, BTreeSet::from([rotated.new_key]));
    assert!(folder.path().join("secret.key.old").exists());
    db.remove().await;
}

#[tokio::test]
async fn a_rotation_that_ended_halfway_goes_on_with_a_key_in_a_file_or_a_setting() {
    for is_setting in [false, true] {
        let (Some(db), folder) = (Db::postgres().await, tempfile::tempdir().unwrap()) else { return };
        let mut home = home(&db, folder.path()).await;
        let old = data_dir::read_key(&folder.path().join("secret.key")).unwrap();
        let new = if is_setting {
            home.key = Some(HomeKey(old));
            [8; 32]
        } else {
            data_dir::create_key(&folder.path().join("secret.key.new"), &Random::seeded(6)).unwrap()
        };
        // Where a kill between two transactions leaves it.
        let sealer = Sealer::new(&new, Random::seeded(7)).opening(&old);
        let mut upkeep = Upkeep::open(&home.store).await.unwrap();
        upkeep.note(Upkeep::KEY_ID, sealer.key_id()).await.unwrap();
        let column = SEALED_COLUMNS.iter().find(|column| column.table == "contacts").unwrap();
        for row in upkeep.sealed().page(column, None, 500).await.unwrap() {
            let secret = sealer.open(&column.place(&row), &row.value).unwrap();
            upkeep.sealed().replace(column, &row, &sealer.seal(&column.place(&row), &secret)).await.unwrap();
        }
        upkeep.close().await.unwrap();

        let rotated = rotate_key(&home, is_setting.then_some(new), &Random::seeded(9)).await.unwrap();
        assert_eq!((rotated.sealed, rotated.unreadable), (CONTACTS as u64 - 498, 0), "{is_setting}");
        assert_eq!(rotated.new_key, sealer.key_id());
        home.key = is_setting.then_some(HomeKey(new));
        assert_eq!(keys_in_use(&home).await, BTreeSet::from([rotated.new_key]));
        db.remove().await;
    }
}

#[tokio::test]
async fn killed_at_any_of_its_calls_a_rotation_leaves_a_hub_that_works() {
    let (Some(server), folder) = (postgres::server(), tempfile::tempdir().unwrap()) else { return };
    let config = server.create_database().await;
    let StoreConfig::Postgres(url) = &config else { unreachable!("it makes such databases") };
    let (home, secret) = (folder.path().join("hub"), folder.path().join("secret"));
    std::fs::write(&secret, "correct-horse-battery\n").unwrap();
    let secret = secret.to_str().unwrap();
    let run = |arguments: &[&str]| succeed(&home, &[arguments, &["--database-url", url.expose()]].concat());
    run(&["users", "create-admin", "ada", "--password-file", secret]);
    let endpoint =
        ["ai-config", "set", "--base-url", "https://ai.example/v1", "--model", "m", "--api-key-file"];
    run(&[&endpoint[..], &[secret]].concat());
    let rotate = ["db", "encrypt", "rotate-key", "--database-url", url.expose()];
    let (mut kills, mut halves, mut key) = (0, 0, run(&["db", "status"])["key_id"].clone());
    for n in 1..200 {
        match kill_at("sendto,sendmsg,writev,rename,fsync", n, &home, &rotate) {
            None => return,
            Some(false) => break,
            Some(true) => kills += 1,
        }
        halves += u32::from(home.join("secret.key.new").exists());
        assert_eq!(run(&["db", "check"])["items"], json!([]), "killed at {n}");
        assert_eq!(run(&["users", "list"])["items"][0]["username"], "ada");
        let after = run(&["db", "encrypt", "rotate-key"])["key_id"].clone();
        assert_ne!(after, key, "killed at {n}");
        assert_eq!(run(&["db", "check"])["items"], json!([]), "killed at {n}");
        key = after;
    }
    assert!(kills > 10 && halves > 3, "{kills} kills, {halves} in the middle, are too few to say anything");
    server.drop_database(&config).await;
}
