//! openilink-sdk-python 0.1.1: `GET` for the QR code, integers as strict enumerations.

use std::collections::HashSet;

use hub_core::network::sim::{SimConfig, ViolationKind};

use super::{
    installed,
    story::{Client, Media, tell},
};

#[tokio::test]
async fn openilink_logs_in_receives_and_answers() {
    let Some(command) = installed::openilink() else { return };
    let client = Client {
        command,
        sim: SimConfig::quick(),
        pairs: false,
        idle_polls: 1,
        media: Media::AskOnly,
        notices_expiry: true,
        announces: false,
        // It knows neither `iLink-App-*` header but on the status of a login.
        violations: HashSet::from([ViolationKind::BadAppHeaders]),
    };
    tell(client).await;
}
