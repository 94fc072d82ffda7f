use super::*;
use crate::{Hub, error::ErrorCode};

#[tokio::test]
async fn a_self_hosted_hub_finds_its_folder_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    for _ in 0..2 {
        let hub = Hub::open(SelfHosted::in_folder(&path).plugins()).await.unwrap();
        assert_eq!(hub.context().networks.keys().collect::<Vec<_>>(), ["ilink"]);
        hub.shutdown().await;
    }
    let mut names: Vec<_> =
        path.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["hub.db", "hub.db.lock", "secret.key"]);
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = Hub::open(SelfHosted::in_folder(file.join("hub"))).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unavailable);
    assert!(error.message().contains("file/hub"), "{error}");
}

#[tokio::test]
async fn a_builder_says_everything_that_is_missing_or_there_twice() {
    let error = Hub::builder().open().await.unwrap_err();
    let fields: Vec<_> = error.details().iter().map(|detail| detail.field.as_ref()).collect();
    assert_eq!(fields, ["store", "secret_key"]);
    let folder = tempfile::tempdir().unwrap();
    let network = || {
        let egress = Egress::new(EgressConfig::default()).unwrap();
        IlinkNetwork::new("ilink", IlinkConfig::default(), &egress, Clock::system(), Random::seeded(1))
            .unwrap()
    };
    let twice = SelfHosted::in_folder(folder.path()).builder().unwrap().network(network());
    let error = twice.open().await.unwrap_err();
    assert_eq!(error.details()[0].field, "network");
}

#[tokio::test]
async fn a_second_hub_in_a_folder_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let database = data_dir::database(folder.path());
    let claim = crate::store::claim_file(&database).unwrap();
    let refused = Hub::open(SelfHosted::in_folder(folder.path())).await.unwrap_err();
    assert_eq!(refused.message(), "another process works on this database");
    let names: Vec<_> = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["hub.db.lock"]);
    drop(claim);

    let hub = Hub::open(SelfHosted::in_folder(folder.path())).await.unwrap();
    assert!(Hub::open(SelfHosted::in_folder(folder.path())).await.is_err(), "before the first one starts");
    assert!(!hub.is_at_work().await.unwrap());
    // A program that only looks and writes may run next to it.
    let guest = SelfHosted::in_folder(folder.path()).builder().unwrap().open_existing().await.unwrap();
    hub.start().await.unwrap();
    assert!(hub.is_at_work().await.unwrap() && guest.is_at_work().await.unwrap());
    assert_eq!(guest.start().await.unwrap_err().code(), ErrorCode::Unavailable);
    hub.shutdown().await;
    guest.start().await.unwrap();
    guest.shutdown().await;
    Hub::open(SelfHosted::in_folder(folder.path())).await.unwrap().shutdown().await;
}

/// A folder whose key was lost and whose schema is to be migrated.
#[tokio::test]
async fn a_wrong_key_is_found_before_the_schema_is_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Hub::open(SelfHosted::in_folder(folder.path()));
    open().await.unwrap().shutdown().await;
    let store = StoreConfig::Sqlite(data_dir::database(folder.path()));
    let mut upkeep = crate::store::Upkeep::open(&store).await.unwrap();
    upkeep.note(crate::store::Upkeep::KEY_ID, "of another key").await.unwrap();
    upkeep.run("DELETE FROM _sqlx_migrations WHERE version > 20").await.unwrap();
    std::fs::remove_file(data_dir::key_file(folder.path())).unwrap();
    let refused = open().await.unwrap_err();
    assert!(
        refused.message().contains("of another key") && refused.message().contains("does not exist"),
        "{refused}"
    );
    assert_eq!(upkeep.schema().await.unwrap().version, 20);
    let mut names: Vec<_> =
        folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.retain(|name| !["hub.db-wal", "hub.db-shm"].iter().any(|log| name == log));
    names.sort();
    assert_eq!(names, ["hub.db", "hub.db.lock"], "neither a key nor a copy of the database");
}
