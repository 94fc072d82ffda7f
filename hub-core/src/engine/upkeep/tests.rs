//! Checks and rotations of hubs in which something is sealed or broken.

use std::{collections::BTreeSet, path::Path};

use super::*;
use crate::{
    Hub,
    backup::{Home, HomeKey},
    data_dir,
    error::{Advice, ErrorCode},
    media::MediaConfig,
    presets::SelfHosted,
    random::Random,
    secret::Sealer,
    store::{SEALED_COLUMNS, Store, StoreConfig, Upkeep, claim_file},
    time::Clock,
};

const OWNER: &str = "usr_01J0000000000000000000000A";
const BOT: &str = "bot_01J0000000000000000000000A";

/// A hub in a folder with so many contacts whose tokens are sealed.
async fn hub(folder: &Path, contacts: usize) -> Home {
    let home = Home {
        data_dir: folder.to_owned(),
        store: StoreConfig::Sqlite(data_dir::database(folder)),
        media: MediaConfig::Folder(folder.join("media")),
        key: None,
    };
    data_dir::load_key(folder, &Random::seeded(1)).unwrap();
    Store::open(&home.store, Clock::system()).await.unwrap().close().await;
    let sealer = home.sealer(&Random::seeded(2)).unwrap();
    let seal = |place: String| sealer.seal(&place, &format!("secret of {place}").into()).as_str().to_owned();
    let mut sql = format!(
        "BEGIN; INSERT INTO users VALUES ('{OWNER}', 'ada', '', '', 'admin', 'active', NULL, 0, 0, 0);
         INSERT INTO bots VALUES ('{BOT}', '{OWNER}', 'b', 'sim', 'online', NULL, 0, 'w', 'o', '{}', 1, '',
            NULL, NULL, NULL, 0, NULL, 0, 0);
         INSERT INTO idempotency VALUES ('user:1', 'k', 'h', '{}', 0);
         INSERT INTO ai_config VALUES (1, '{{}}', '{}', 0);
         INSERT INTO apps (id, owner_id, name, slug, description, icon_url, homepage, redirect_uris, events, scopes,
            tools, webhook_verified, listing, client_secret_hash, webhook_secret, created_at, updated_at)
         VALUES ('app', '{OWNER}', 'a', 'a', '', '', '', '[]', '[]', '[]', '[]', 0, 'unlisted', '', '{}', 0, 0);
         INSERT INTO app_installations (id, app_id, bot_id, handle, scopes, tools, config, enabled, token_hash,
            token_last4, created_at, updated_at)
         VALUES ('ins', 'app', '{BOT}', 'a', '[]', '[]', '{}', 1, '', '', 0, 0);",
        seal(format!("bots.credentials:{BOT}")),
        seal("idempotency:user:1:k".to_owned()),
        seal("ai_config.api_key".to_owned()),
        seal("apps.webhook_secret:app".to_owned()),
        seal("app_installations.config:ins".to_owned()),
    );
    for n in 0..contacts {
        let token = seal(format!("contacts.context_token:{BOT}:u{n}"));
        let row = format!("('{BOT}', 'u{n}', '', '', '', 0, 0, '{token}', NULL, 0, NULL, '')");
        sql.extend(["INSERT INTO contacts VALUES ", &row, ";"]);
    }
    for (id, from, private) in [
        ("m1", "u0", seal("messages.private:m1".to_owned())),
        ("m2", "u0", seal(format!("contacts.context_token:{BOT}:u0")) + ".contact"),
    ] {
        let row = format!(
            "('{id}', '{BOT}', 'inbound', '{from}', '{from}', '', '', '', '', 'text', '', '', '{id}', '{private}',
              'received', 0, 0)"
        );
        let columns =
            "id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id, group_id, kind,
            content, items, dedupe_key, private, status, sent_at, created_at";
        sql.extend(["INSERT INTO messages (", columns, ") VALUES ", &row, ";"]);
    }
    let mut upkeep = Upkeep::open(&home.store).await.unwrap();
    upkeep.run(&(sql + "COMMIT")).await.unwrap();
    upkeep.close().await.unwrap();
    home
}

/// The fingerprints of the keys that secrets are sealed with; every secret opens and is what it was.
async fn keys_in_use(home: &Home) -> BTreeSet<String> {
    let sealer = home.sealer(&Random::seeded(3)).unwrap();
    let mut upkeep = Upkeep::open(&home.store).await.unwrap();
    let mut keys = BTreeSet::new();
    for column in SEALED_COLUMNS {
        for row in upkeep.sealed().page(column, None, 10_000).await.unwrap() {
            let place = column.place(&row);
            let secret = sealer.open(&place, &row.value).unwrap();
            assert_eq!(secret.expose(), format!("secret of {place}"));
            keys.insert(row.value.key_id().unwrap().to_owned());
        }
    }
    keys
}

async fn open(home: &Home) -> crate::Result<()> {
    let builder = Hub::builder().store(home.store.clone()).key_file(data_dir::key_file(&home.data_dir));
    builder.open_existing().await?.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_rotation_reseals_everything_and_is_refused_while_a_hub_runs() {
    let folder = tempfile::tempdir().unwrap();
    let home = hub(folder.path(), 1_203).await;
    let old = keys_in_use(&home).await;
    let claim = claim_file(home.database().unwrap()).unwrap();
    assert_eq!(rotate_key(&home, None, &Random::seeded(5)).await.unwrap_err().code(), ErrorCode::Unavailable);
    drop(claim);
    assert!(!folder.path().join("secret.key.new").exists(), "nothing has begun");
    let rotated = rotate_key(&home, None, &Random::seeded(5)).await.unwrap();
    assert_eq!((rotated.sealed, rotated.unreadable), (1_210, 0));
    assert_eq!(keys_in_use(&home).await, BTreeSet::from([rotated.new_key.clone()]));
    assert!(old.contains(&rotated.old_key) && rotated.old_key != rotated.new_key);
    assert!(!folder.path().join("secret.key.new").exists());
    open(&home).await.unwrap();

    // The old key alone is rejected any more, and the hub says so before it works.
    std::fs::copy(folder.path().join("secret.key.old"), folder.path().join("secret.key")).unwrap();
    let refused = open(&home).await.unwrap_err();
    assert!(refused.message().contains(&rotated.new_key), "{refused}");
}

#[tokio::test]
async fn a_rotation_flushes_the_commit_log_first() {
    let folder = tempfile::tempdir().unwrap();
    let home = hub(folder.path(), 3).await;
    let mut upkeep = Upkeep::open(&home.store).await.unwrap();
    upkeep.run("INSERT INTO commit_log (id, entry) VALUES (1, x'ff'), (2, x'02')").await.unwrap();
    let unreadable = upkeep.unreadable_entries().await.unwrap();
    assert_eq!(unreadable.len(), 1);
    assert!(unreadable[0].message().contains("(entry 1)"), "{unreadable:?}");
    let found = check(&home, &Random::seeded(5)).await.unwrap().findings;
    let found = found.iter().find(|found| found.check == "commit-log").expect("check names it");
    assert!(found.message.contains("(entry 1); start and stop the version"), "{found:?}");
    let refused = rotate_key(&home, None, &Random::seeded(5)).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Unavailable, "{refused}");
    upkeep.run("DELETE FROM commit_log WHERE id = 1").await.unwrap();
    rotate_key(&home, None, &Random::seeded(5)).await.unwrap();
    upkeep.run("INSERT INTO commit_log (id, entry) VALUES (2, x'02')").await.expect("entry 2 was flushed");
}

#[tokio::test]
async fn a_rotation_that_ended_halfway_leaves_a_hub_that_works_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let home = hub(folder.path(), 1_203).await;
    // The key is there and some secrets are sealed with it: where a kill between two transactions leaves it.
    let old = data_dir::read_key(&folder.path().join("secret.key")).unwrap();
    let new = data_dir::create_key(&folder.path().join("secret.key.new"), &Random::seeded(6)).unwrap();
    open(&home).await.unwrap();
    let sealer = Sealer::new(&new, Random::seeded(7)).opening(&old);
    let mut upkeep = Upkeep::open(&home.store).await.unwrap();
    upkeep.note(Upkeep::KEY_ID, sealer.key_id()).await.unwrap();
    let column = SEALED_COLUMNS.iter().find(|column| column.table == "contacts").unwrap();
    for row in upkeep.sealed().page(column, None, 500).await.unwrap() {
        let place = column.place(&row);
        let secret = sealer.open(&place, &row.value).unwrap();
        upkeep.sealed().replace(column, &row, &sealer.seal(&place, &secret)).await.unwrap();
    }
    upkeep.close().await.unwrap();
    assert_eq!(keys_in_use(&home).await.len(), 2);
    open(&home).await.unwrap();
    assert_eq!(check(&home, &Random::seeded(8)).await.unwrap().findings, []);

    let rotated = rotate_key(&home, None, &Random::seeded(9)).await.unwrap();
    assert_eq!((rotated.sealed, rotated.unreadable), (710, 0));
    assert_eq!(rotated.new_key, sealer.key_id());
    assert_eq!(keys_in_use(&home).await, BTreeSet::from([rotated.new_key]));
    open(&home).await.unwrap();
}

#[tokio::test]
async fn a_key_that_is_a_setting_is_rotated_to_one_that_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let home = hub(folder.path(), 3).await;
    let old = data_dir::read_key(&folder.path().join("secret.key")).unwrap();
    std::fs::remove_file(folder.path().join("secret.key")).unwrap();
    let set = Home { key: Some(HomeKey(old)), ..home };
    for new in [None, Some(old)] {
        assert_eq!(
            rotate_key(&set, new, &Random::seeded(5)).await.unwrap_err().code(),
            ErrorCode::InvalidParams
        );
    }
    let rotated = rotate_key(&set, Some([8; 32]), &Random::seeded(5)).await.unwrap();
    assert_eq!(rotated.sealed, 10);
    let set = Home { key: Some(HomeKey([8; 32])), ..set };
    assert_eq!(keys_in_use(&set).await, BTreeSet::from([rotated.new_key]));
    assert!(!folder.path().join("secret.key").exists());
}

#[tokio::test]
async fn a_check_finds_what_is_broken_and_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let home = hub(folder.path(), 3).await;
    let checked = check(&home, &Random::seeded(1)).await.unwrap();
    assert_eq!((checked.findings.len(), checked.secrets, checked.files), (0, 10, 0));

    let media = folder.path().join("media/0A");
    std::fs::create_dir_all(&media).unwrap();
    std::fs::write(media.join("med_01J0000000000000000000000A"), "nobody's").unwrap();
    std::fs::write(media.join("med_01J0000000000000000000000B#1"), "being written").unwrap();
    let foreign = Sealer::new(&[9; 32], Random::seeded(2)).seal("ai_config.api_key", &"x".into());
    let mut upkeep = Upkeep::open(&home.store).await.unwrap();
    upkeep
        .run(&format!(
            "PRAGMA foreign_keys = OFF; UPDATE ai_config SET api_key = '{}';
             INSERT INTO sessions VALUES ('s', 'usr_gone', 'h', 0, 0, 0, '', '');
             INSERT INTO media (id, owner_id, bot_id, item, kind, file_name, content_type, size, md5, state,
                attempts, due_at, expires_at, created_at)
             VALUES ('med_01J0000000000000000000000C', '', '', 0, 'file', '', '', 5, '', 'ready', 0, 0, 0, 0)",
            foreign.as_str()
        ))
        .await
        .unwrap();
    upkeep.close().await.unwrap();
    let checked = check(&home, &Random::seeded(1)).await.unwrap();
    let found: Vec<(&str, &str)> =
        checked.findings.iter().map(|found| (found.check, found.message.as_str())).collect();
    assert_eq!(found.len(), 4, "{found:?}");
    for ((check, message), (wanted, part)) in found.iter().zip([
        ("references", "1 rows of sessions name users"),
        ("secrets", "1 secrets in ai_config.api_key do not open"),
        ("files", "med_01J0000000000000000000000C"),
        ("loose-files", "belong to no message: med_01J0000000000000000000000A"),
    ]) {
        assert!(*check == wanted && message.contains(part), "{check}: {message}");
    }
}

#[tokio::test]
async fn a_missing_key_is_named_and_not_replaced_by_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let home = hub(folder.path(), 1).await;
    let wanted = keys_in_use(&home).await.pop_first().unwrap();
    let (file, aside) = (folder.path().join("secret.key"), folder.path().join("aside"));
    std::fs::rename(&file, &aside).unwrap();
    let refused = Hub::open(SelfHosted::in_folder(folder.path())).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Unavailable);
    assert!(refused.message().contains(&wanted), "{refused}");
    assert!(refused.message().contains("secret.key does not exist"), "{refused}");
    assert!(refused.advice().contains(&Advice::RestoreBackup), "{refused:?}");
    assert!(!file.exists(), "a key that is rejected would hide the loss");

    data_dir::load_key(folder.path(), &Random::seeded(9)).unwrap();
    let other = home.sealer(&Random::seeded(3)).unwrap();
    let refused = open(&home).await.unwrap_err();
    assert!(refused.message().contains(&wanted) && refused.message().contains(other.key_id()), "{refused}");
    assert!(file.exists(), "an operator's file stays");

    std::fs::rename(&aside, &file).unwrap();
    open(&home).await.unwrap();
}

#[tokio::test]
async fn an_emptied_database_next_to_its_key_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let home = hub(folder.path(), 1).await;
    let path = data_dir::database(folder.path());
    std::fs::write(&path, "").unwrap();
    for refused in [
        Hub::open(SelfHosted::in_folder(folder.path())).await.unwrap_err(),
        open(&home).await.unwrap_err(),
        Upkeep::open(&home.store).await.unwrap_err(),
    ] {
        assert!(refused.message().contains("0 bytes"), "{refused}");
        assert!(refused.advice().contains(&Advice::RestoreBackup), "{refused:?}");
    }
    std::fs::remove_file(&path).unwrap();
    Hub::open(SelfHosted::in_folder(folder.path())).await.unwrap().shutdown().await;
}
