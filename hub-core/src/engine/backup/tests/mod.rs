//! Backups of a hub that has messages, files and secrets.

use std::{fs, path::Path};

use super::*;
use crate::{
    secret::Secret,
    store::{Store, Upkeep, claim_file},
    time::Clock,
};

mod nightly;

const FILE: &str = "med_01J0000000000000000000000A";

fn home(folder: &Path) -> Home {
    Home {
        data_dir: folder.to_owned(),
        store: StoreConfig::Sqlite(data_dir::database(folder)),
        media: MediaConfig::Folder(folder.join("media")),
        key: None,
    }
}

/// A folder of a hub with an AI endpoint whose key is sealed, and a file.
async fn hub(folder: &Path) -> Home {
    let home = home(folder);
    let random = Random::seeded(1);
    data_dir::load_key(folder, &random).unwrap();
    let store = Store::open(&home.store, Clock::system()).await.unwrap();
    store.close().await;
    let mut upkeep = Upkeep::open(&home.store).await.unwrap();
    let sealed = home.sealer(&random).unwrap().seal("ai_config.api_key", &"sk-secret".into());
    upkeep
        .run(&format!(
            "INSERT INTO ai_config (id, settings, api_key, updated_at) VALUES (1, '{{}}', '{}', 0);
             INSERT INTO media (id, owner_id, bot_id, item, kind, file_name, content_type, size, md5, state,
                attempts, due_at, expires_at, created_at)
             VALUES ('{FILE}', '', '', 0, 'file', 'a.txt', 'text/plain', 5, '', 'ready', 0, 0, 0, 0)",
            sealed.as_str()
        ))
        .await
        .unwrap();
    upkeep.close().await.unwrap();
    let path = media_path(&folder.join("media"), FILE);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "hello").unwrap();
    home
}

fn at(file: &Path) -> Location {
    file.to_owned().into()
}

async fn back_up(home: &Home, to: &Path, passphrase: Option<&str>) -> Result<Created> {
    let new = NewBackup { to: to.to_owned().into(), passphrase: passphrase.map(Secret::new), with_key: true };
    create(home, new, &Clock::system(), &Random::seeded(2)).await
}

async fn bring_back(file: &Path, home: &Home, passphrase: Option<&str>, replace: bool) -> Result<Restored> {
    restore(&at(file), home, passphrase.map(Secret::new), replace, &Random::seeded(3)).await
}

/// The secret that [`hub`] sealed.
async fn api_key(home: &Home) -> String {
    let sealer = home.sealer(&Random::seeded(4)).unwrap();
    let mut upkeep = Upkeep::open(&home.store).await.unwrap();
    let column = &crate::store::SEALED_COLUMNS[0];
    let row = upkeep.sealed().page(column, None, 1).await.unwrap().remove(0);
    upkeep.close().await.unwrap();
    sealer.open(&column.place(&row), &row.value).unwrap().expose().to_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn a_backup_comes_back_in_another_folder() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let home_there = hub(old.path()).await;
    for passphrase in [None, Some("open sesame")] {
        let file = old.path().join(format!("backups/{}.tar", passphrase.unwrap_or("plain")));
        let created = back_up(&home_there, &file, passphrase).await.unwrap();
        assert_eq!(names(file.parent().unwrap()).len(), if passphrase.is_some() { 2 } else { 1 });
        assert_eq!((created.manifest.files(), created.has_key), (1, true));
        assert_eq!(fs::metadata(&file).unwrap().len(), created.size);
        assert!(!private_files_are_exposed(&file));
        let here = home(&new.path().join(passphrase.unwrap_or("plain")));
        let verified =
            verify(&at(&file), &here, passphrase.map(Secret::new), &Random::system()).await.unwrap();
        assert_eq!(verified, created.manifest);
        assert!(!here.data_dir.exists(), "a check changes nothing");
        let restored = bring_back(&file, &here, passphrase, false).await.unwrap();
        assert_eq!((restored.manifest, restored.replaced.len()), (created.manifest, 0));
        assert_eq!(api_key(&here).await, "sk-secret");
        assert_eq!(fs::read_to_string(media_path(&here.data_dir.join("media"), FILE)).unwrap(), "hello");
        assert_eq!(names(&here.data_dir), ["hub.db", "hub.db.lock", "media", "secret.key"]);
        let store = Store::open_existing(&here.store, Clock::system()).await.unwrap();
        store.close().await;
    }
}

fn private_files_are_exposed(path: &Path) -> bool {
    crate::private_files::is_exposed(path).unwrap()
}

#[tokio::test]
async fn a_hub_is_replaced_only_when_that_is_said_and_kept_aside_then() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (there, here) = (hub(old.path()).await, home(new.path()));
    let file = old.path().join("backup.tar");
    back_up(&there, &file, None).await.unwrap();
    assert!(would_replace(&there).unwrap() && !would_replace(&here).unwrap());
    data_dir::load_key(new.path(), &Random::seeded(9)).unwrap();
    Store::open(&here.store, Clock::system()).await.unwrap().close().await;
    let key = fs::read(new.path().join("secret.key")).unwrap();
    let before = names(new.path());

    let refused = bring_back(&file, &here, None, false).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Conflict);
    let claim = claim_file(here.database().unwrap()).unwrap();
    let refused = bring_back(&file, &here, None, true).await.unwrap_err();
    assert!(refused.message().contains("another process"), "{refused}");
    drop(claim);
    assert_eq!(fs::read(new.path().join("secret.key")).unwrap(), key);
    assert!(names(new.path()).iter().all(|name| before.contains(name) || is_lock(name)));

    let restored = bring_back(&file, &here, None, true).await.unwrap();
    assert_eq!(api_key(&here).await, "sk-secret");
    assert_eq!(fs::read(new.path().join("secret.key.replaced")).unwrap(), key);
    assert!(restored.replaced.contains(&new.path().join("hub.db.replaced")), "{restored:?}");
    let aside = StoreConfig::Sqlite(new.path().join("hub.db.replaced"));
    assert_eq!(Upkeep::open(&aside).await.unwrap().integrity().await.unwrap(), Vec::<String>::new());
    bring_back(&file, &here, None, true).await.unwrap();
}

#[tokio::test]
async fn a_damaged_or_foreign_backup_changes_nothing() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (there, here) = (hub(old.path()).await, home(new.path()));
    let file = old.path().join("backup.tar");
    let created = back_up(&there, &file, None).await.unwrap();
    let whole = fs::read(&file).unwrap();
    let bad = old.path().join("bad.tar");
    let tries: [(&str, Vec<u8>); 5] = [
        ("cut off in the database", whole[..9_000].to_vec()),
        ("cut off before its end", whole[..whole.len() - 3_000].to_vec()),
        ("empty", Vec::new()),
        ("a text", b"this is no backup, whatever its name says".to_vec()),
        ("changed", {
            let mut changed = whole.clone();
            changed[20_000] ^= 1;
            changed
        }),
    ];
    for (what, bytes) in tries {
        fs::write(&bad, bytes).unwrap();
        let refused = bring_back(&bad, &here, None, true).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidParams, "{what}: {refused}");
        assert!(verify(&at(&bad), &here, None, &Random::system()).await.is_err(), "{what}");
        assert_eq!(names(new.path()), ["hub.db.lock"], "{what}");
    }
    let sealed = old.path().join("sealed.tar");
    back_up(&there, &sealed, Some("open sesame")).await.unwrap();
    assert!(bring_back(&sealed, &here, None, true).await.unwrap_err().message().contains("sealed"));
    assert!(bring_back(&sealed, &here, Some("simsim"), true).await.is_err());

    let other_key = Home { key: Some(HomeKey([9; 32])), ..here.clone() };
    let refused = bring_back(&file, &other_key, None, true).await.unwrap_err();
    assert!(refused.message().contains(&created.manifest.key_id), "{refused}");
    assert_eq!(names(new.path()), ["hub.db.lock"]);
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_a_backup_without_key_wants_it() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (there, here) = (hub(old.path()).await, home(new.path()));
    let file = old.path().join("backup.tar");
    let new_backup = NewBackup { to: file.clone().into(), passphrase: None, with_key: false };
    let created = create(&there, new_backup, &Clock::system(), &Random::seeded(2)).await.unwrap();
    assert!(!created.has_key);
    assert!(bring_back(&file, &here, None, false).await.unwrap_err().hint().unwrap().contains("secret.key"));
    fs::copy(old.path().join("secret.key"), new.path().join("secret.key")).unwrap();
    bring_back(&file, &here, None, true).await.unwrap();
    assert_eq!(api_key(&here).await, "sk-secret");

    let mut upkeep = Upkeep::open(&there.store).await.unwrap();
    upkeep
        .run(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                VALUES (9999, 'of tomorrow', 1, x'00', 0)",
        )
        .await
        .unwrap();
    upkeep.close().await.unwrap();
    let newer = old.path().join("newer.tar");
    back_up(&there, &newer, None).await.unwrap();
    let refused = bring_back(&newer, &here, None, true).await.unwrap_err();
    assert!(refused.message().contains("9999"), "{refused}");
}

#[tokio::test]
async fn files_of_an_interrupted_backup_do_not_disturb_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let home = hub(folder.path()).await;
    let file = folder.path().join("backup.tar");
    fs::write(folder.path().join("backup.tar.partial"), "half of it").unwrap();
    fs::write(folder.path().join("backup.tar.partial-db"), "half of it").unwrap();
    {
        let other = crate::private_files::open(&folder.path().join("backup.tar.partial")).unwrap();
        other.lock().unwrap();
        assert_eq!(back_up(&home, &file, None).await.unwrap_err().code(), ErrorCode::Conflict);
    }
    back_up(&home, &file, None).await.unwrap();
    assert!(names(folder.path()).iter().all(|name| !name.contains("partial")));
    assert_eq!(back_up(&home, &file, None).await.unwrap_err().code(), ErrorCode::Conflict);
}

fn is_lock(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "lock")
}
