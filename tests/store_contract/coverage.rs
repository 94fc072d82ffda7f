//! Every method of the store has a case, and every case names methods that exist and that it calls.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

/// By the file of the contract.
const CASES: &[(&str, super::Covered)] = &[
    ("accounts", super::accounts::COVERED),
    ("audit", super::audit::COVERED),
    ("ai", super::ai::COVERED),
    ("app_calls", super::app_calls::COVERED),
    ("app_codes", super::app_codes::COVERED),
    ("app_events", super::app_events::COVERED),
    ("app_events", super::app_events::BACKLOG),
    ("app_sockets", super::app_sockets::COVERED),
    ("apps", super::apps::COVERED),
    ("immediate_send", super::immediate_send::COVERED),
    ("binds", super::binds::COVERED),
    ("bots", super::bots::COVERED),
    ("channel_plugins", super::channel_plugins::COVERED),
    ("channels", super::channels::COVERED),
    ("contacts", super::contacts::COVERED),
    ("deliveries", super::deliveries::COVERED),
    ("deliveries", super::deliveries::ON_STORE),
    ("event_deliveries", super::event_deliveries::COVERED),
    ("event_deliveries", super::event_deliveries::ON_STORE),
    ("event_deliveries", super::event_deliveries::STATEMENT),
    ("open_deliveries", super::open_deliveries::COVERED),
    ("demo", super::demo::COVERED),
    ("due", super::due::COVERED),
    ("external_accounts", super::external_accounts::COVERED),
    ("idempotency", super::idempotency::COVERED),
    ("inbox", super::inbox::COVERED),
    ("installations", super::installations::COVERED),
    ("inbox", super::inbox::ON_STORE),
    ("leases", super::leases::COVERED),
    ("media", super::media::COVERED),
    ("log", super::log::COVERED),
    ("messages", super::messages::COVERED),
    ("outbox", super::outbox::COVERED),
    ("passkeys", super::passkeys::COVERED),
    ("ilink", super::ilink::COVERED),
    ("qr_logins", super::qr_logins::COVERED),
    ("replays", super::replays::COVERED),
    ("plugins", super::plugins::COVERED),
    ("revocations", super::revocations::COVERED),
    ("sealed", super::sealed::COVERED),
    ("sending", super::sending::COVERED),
    ("sending", super::sending::ON_STORE),
    ("sign_in_flows", super::sign_in_flows::COVERED),
    ("stats", super::stats::COVERED),
    ("traces", super::traces::COVERED),
    ("upkeep", super::upkeep::COVERED),
    ("user_keys", super::user_keys::COVERED),
    ("users", super::users::COVERED),
    ("writer", super::writer::COVERED),
    ("writer", super::writer::NOTICES),
];

fn files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
}

/// The files of the store, each with the name under which cases list its methods: its own, or that of its folder.
pub(super) fn sources(store: &Path) -> Vec<(String, PathBuf)> {
    let named = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        all_files(path).into_iter().map(move |file| (name.clone(), file))
    };
    files(store).flat_map(named).collect()
}

/// A file, or the files of a folder and of the folders in it.
fn all_files(path: PathBuf) -> Vec<PathBuf> {
    if path.is_dir() { files(&path).flat_map(all_files).collect() } else { vec![path] }
}

#[test]
fn every_method_of_the_store_has_a_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub-core/src/store");
    let mut methods = BTreeSet::new();
    for (file, path) in sources(&folder) {
        // Only tests call it.
        if file == "recording" {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        // What tests alone can call is at the end of the file.
        let source = source.split("#[cfg(test)]").next().unwrap();
        let source = source.split("#[cfg(any(test,").next().unwrap();
        for line in source.lines() {
            if let Some(rest) = line.trim_start().strip_prefix("pub async fn ") {
                let name = rest.split(['(', '<']).next().unwrap();
                methods.insert(format!("{file}::{name}"));
            }
        }
    }
    let covered: BTreeSet<String> = CASES
        .iter()
        .flat_map(|(_, (file, cases))| {
            cases.iter().copied().flatten().map(move |name| format!("{file}::{name}"))
        })
        .collect();
    let uncovered: Vec<_> = methods.difference(&covered).collect();
    assert!(uncovered.is_empty(), "no case of the store's contract names {uncovered:?}");
    let unknown: Vec<_> = covered.difference(&methods).collect();
    assert!(unknown.is_empty(), "cases name methods that the store does not have: {unknown:?}");
}

#[test]
fn cases_call_what_they_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("store_contract");
    for (file, (_, cases)) in CASES {
        let own = std::fs::read_to_string(folder.join(format!("{file}.rs"))).unwrap();
        // Opening a database and handing over a command are what every case begins with.
        let shared = include_str!("../support/database.rs").to_owned() + include_str!("mod.rs");
        for method in cases.iter().copied().flatten() {
            let called = |text: &str| {
                text.contains(&format!(".{method}(")) || text.contains(&format!("Store::{method}("))
            };
            assert!(called(&own) || called(&shared), "{file}.rs names `{method}` and never calls it");
        }
    }
}
