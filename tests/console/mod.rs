//! The web console in Debian's Chromium, driven by Playwright, against the shipped server with its demo.
//!
//! `.ci/run tools` and `.ci/run clients` install what is needed; a test whose counterpart is missing is skipped,
//! in CI it fails.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

use crate::{
    clients::installed,
    identity::stage::{chromium, npm},
    support::{binaries, process::Process},
};

mod budgets;
mod criteria;
mod proxies;
mod recipes;
mod stock;

/// A server with its demo, as a developer starts it.
struct Demo {
    url: String,
    /// The control address of its simulator.
    sim: String,
    /// The link for the first account, if it takes a setup token.
    setup_link: String,
    /// A free port to which the hub may send webhooks.
    receiver: u16,
    _process: Process,
    folder: tempfile::TempDir,
}

impl Demo {
    async fn start() -> Self {
        Self::start_with("127.0.0.1:0", &[]).await
    }

    /// With another address and more settings.
    async fn start_with(listen: &str, more: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().display().to_string();
        let receiver = free_port();
        let allow = format!("127.0.0.1:{receiver}");
        let mut settings = vec![
            ("HUB_EGRESS_ALLOW", allow.as_str()),
            ("HUB_DATA_DIR", data.as_str()),
            ("HUB_SIM_LISTEN", "127.0.0.1:0"),
            // Every page of the crawl comes from one session.
            ("HUB_RATE_DEFAULT", "100000"),
            ("HUB_RATE_AUTH_PER_IP", "1000"),
            ("HUB_RATE_AUTH_PER_ACCOUNT", "1000"),
        ];
        let program = binaries::program("hub-server");
        settings.extend(more);
        let mut process = Process::start(&program, &["--listen", listen], &settings);
        let url = process.wait_url().await;
        let log = process.log();
        let started = log.lines().find(|line| line.contains("hub-server started")).unwrap();
        let started: serde_json::Value = serde_json::from_str(started).unwrap();
        let sim = format!("http://{}", started["simulator"].as_str().unwrap());
        let setup_link = started["setup_link"].as_str().unwrap_or_default().to_owned();
        Self {
            url: url.replace("127.0.0.1", "localhost"),
            sim,
            setup_link,
            receiver,
            _process: process,
            folder,
        }
    }
}

fn free_port() -> u16 {
    let free = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
    free.local_addr().unwrap().port()
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("console").join(name)
}

/// Runs a script against a server of its own. Pages that it stores lie in the folder.
async fn drive(name: &str) -> Option<tempfile::TempDir> {
    run(name, &Demo::start().await, &[]).await.map(|(pages, _)| pages)
}

/// Runs a script against a server with more variables; it prints `all of it` at its end. `None` where a counterpart is
/// missing, else the folder of the pages that it stores and what it printed.
async fn run(name: &str, demo: &Demo, more: &[(&str, String)]) -> Option<(tempfile::TempDir, String)> {
    let (chromium, playwright, axe) = (chromium()?, npm("playwright-core-1.52.0")?, npm("axe-core-4.14.1")?);
    let pages = tempfile::tempdir().unwrap();
    let ran = Command::new("node")
        .arg(script(name))
        .env("MODULES", playwright)
        .env("AXE", axe.join("axe-core/axe.min.js"))
        .env("CHROMIUM", chromium)
        .env("HUB_URL", &demo.url)
        .env("SIM_URL", &demo.sim)
        .env("SETUP_LINK", &demo.setup_link)
        .env("RECEIVER_PORT", demo.receiver.to_string())
        .env("PAGES", pages.path())
        .env("PROGRAM", binaries::program("hub-server"))
        .env("PICTURES", std::env::var_os("HUB_TEST_PICTURES").unwrap_or_default())
        .envs(more.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}\n{err}");
    assert!(out.trim_end().ends_with("all of it"), "{out}\n{err}");
    Some((pages, out.into_owned()))
}

#[tokio::test]
async fn every_page_is_accessible_valid_and_fits_in_both_languages_and_themes() {
    let Some(pages) = drive("every_page.mjs").await else { return };
    let (Some(java), Some(vnu)) = (installed::java(), npm("vnu-jar-26.9.27")) else { return };
    // Which language a page has by its most frequent letters says nothing here: those of commands and ids are English.
    let checked = Command::new(java)
        .args(["-jar"])
        .arg(vnu.join("vnu-jar/build/dist/vnu.jar"))
        .args(["--Werror", "--skip-non-html", "--no-langdetect"])
        .arg(pages.path())
        .output()
        .await
        .unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[tokio::test]
async fn a_newcomer_gets_from_the_first_account_to_a_replay_without_a_terminal() {
    drive("newcomer.mjs").await;
}

#[tokio::test]
async fn a_newcomer_who_reads_chinese_does_all_of_it_on_a_phone() {
    run("newcomer.mjs", &Demo::start().await, &[("SPOKEN", "zh".to_owned())]).await;
}

#[tokio::test]
async fn a_model_answers_new_rows_are_announced_and_a_run_becomes_a_test() {
    let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/plugins/tagger.js");
    run("answers.mjs", &Demo::start().await, &[("PLUGIN", plugin.display().to_string())]).await;
}

#[tokio::test]
async fn a_person_without_scripts_can_use_every_form() {
    drive("without_script.mjs").await;
}

#[tokio::test]
async fn a_person_with_a_keyboard_alone_gets_everywhere() {
    drive("keyboard.mjs").await;
}

#[tokio::test]
async fn passkeys_are_added_other_devices_let_in_files_sent_and_signatures_checked() {
    drive("account.mjs").await;
}

#[tokio::test]
async fn messages_stays_whole_when_the_hub_is_killed_and_behind_proxies_and_shares_its_stream() {
    drive("outage.mjs").await;
}

#[tokio::test]
async fn the_console_can_be_used_with_other_settings_and_older_browsers() {
    drive("settings.mjs").await;
}

/// The types are comments, so that browsers get the files as they are.
#[tokio::test]
async fn the_scripts_pass_the_type_checker() {
    let Some(modules) = npm("openapi-typescript-7.13.0") else { return };
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub-server/src/console/assets");
    let mut scripts: Vec<PathBuf> =
        std::fs::read_dir(assets).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.retain(|path| path.extension().is_some_and(|end| end == "js"));
    let checked = Command::new("node")
        .arg(modules.join("typescript/bin/tsc"))
        .args(["--checkJs", "--noEmit", "--strict", "--target", "es2022", "--module", "es2022"])
        .args(["--lib", "dom,dom.iterable,es2022"])
        .args(scripts)
        .output()
        .await
        .unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}
