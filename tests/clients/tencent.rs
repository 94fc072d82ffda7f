//! Tencent's own modules, 2.4.9: the reference. Held to the strict forms of the simulator.

use std::collections::HashSet;

use hub_core::network::sim::{SimConfig, UploadUrls};

use super::{
    installed,
    similarity::assert_hub_writes_alike,
    story::{Client, Media, tell},
};

#[tokio::test]
async fn tencents_modules_log_in_receive_answer_and_exchange_media_and_the_hub_writes_alike() {
    let state = tempfile::tempdir().unwrap();
    let Some(command) = installed::tencent(state.path()) else { return };
    let client = Client {
        command,
        sim: SimConfig {
            strict_headers: true,
            strict_media: true,
            awkward_cdn_params: true,
            upload_urls: UploadUrls::Param,
            ..SimConfig::quick()
        },
        pairs: true,
        idle_polls: 1,
        media: Media::Both { caption: Some("a caption") },
        notices_expiry: true,
        announces: true,
        violations: HashSet::new(),
    };
    let stage = tell(client).await;
    assert_hub_writes_alike(&stage.tap.all()).await;
}
