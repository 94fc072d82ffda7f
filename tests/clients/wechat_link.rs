//! wechat-link 0.4.0: `GET` for the QR code, uploads by `upload_param` only, null for what it leaves out.

use std::collections::HashSet;

use hub_core::network::sim::{SimConfig, ViolationKind};

use super::{
    installed,
    story::{Client, Media, tell},
};

#[tokio::test]
async fn wechat_link_logs_in_receives_answers_and_exchanges_media() {
    let Some(command) = installed::wechat_link() else { return };
    let client = Client {
        command,
        sim: SimConfig { strict_media: true, ..SimConfig::quick() },
        pairs: false,
        idle_polls: 1,
        media: Media::Both { caption: None },
        // It reads `ret` only, and -14 comes as `errcode`.
        notices_expiry: false,
        announces: false,
        // It knows neither `iLink-App-*` header but on the status of a login.
        violations: HashSet::from([ViolationKind::BadAppHeaders]),
    };
    tell(client).await;
}
