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
    assert_eq!(names, ["hub.db", "secret.key"]);
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
