//! weixin-agent 0.3.0, in Rust: a client after Tencent's current version. Held to the strict forms.

use std::{collections::HashSet, time::Duration};

use hub_core::network::sim::{SimConfig, UploadUrls};

use super::{
    installed,
    similarity::assert_hub_writes_alike,
    story::{Client, Media, tell},
};

#[tokio::test]
async fn weixin_agent_logs_in_receives_answers_and_exchanges_media_and_the_hub_writes_alike() {
    let Some(command) = installed::weixin_agent() else { return };
    let client = Client {
        command,
        sim: SimConfig {
            // Its limit for a poll is the hold time that the server suggested, so an idle poll is a race; here none is idle.
            hold: Duration::from_secs(35),
            strict_headers: true,
            strict_media: true,
            awkward_cdn_params: true,
            upload_urls: UploadUrls::Full,
            ..SimConfig::quick()
        },
        pairs: true,
        idle_polls: 0,
        media: Media::Both { caption: None },
        notices_expiry: true,
        announces: true,
        violations: HashSet::new(),
    };
    let stage = tell(client).await;
    assert_hub_writes_alike(&stage.tap.all()).await;
}
