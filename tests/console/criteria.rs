//! Requirements on every page: equivalent commands, hostile texts, secrets, and a network that fails.

use super::{Demo, drive, run};
use crate::support::binaries;

#[tokio::test]
async fn the_commands_of_every_page_run_and_return_what_the_page_shows() {
    let program = binaries::program("hub-cli");
    let more = [("HUB_CLI", program.display().to_string())];
    run("commands.mjs", &Demo::start().await, &more).await;
}

#[tokio::test]
async fn hostile_texts_are_shown_as_text_and_run_nothing() {
    drive("hostile.mjs").await;
}

#[tokio::test]
async fn secrets_are_shown_once_and_kept_nowhere() {
    drive("secrets.mjs").await;
}

#[tokio::test]
async fn a_lost_network_is_shown_and_the_page_recovers_by_itself() {
    drive("offline.mjs").await;
}
