//! What is written down is true: the commands of the guides are typed into a shell next to a hub, in their order, as a
//! reader would; the tables of the reference pages are held to the code; links lead somewhere.

mod build;
mod commands;
mod language;
mod layers;
mod links;
mod manual;
mod markdown;
mod references;
mod session;
mod settings;

use std::path::{Path, PathBuf};

use self::session::Session;

/// The folder of the workspace.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

fn read(document: &str) -> String {
    std::fs::read_to_string(workspace().join(document)).unwrap_or_else(|error| panic!("{document}: {error}"))
}

/// The README from top to bottom, build, start, write, receive; then once more on the same machine, since readers
/// start again after a break or a mistake. The pages that it names are there.
#[test]
fn a_newcomer_receives_a_message_with_the_readme_alone_and_again_the_next_day() {
    let session = Session::beside_nothing();
    for _ in 0..2 {
        session.types("README.md", "newcomer");
        session.opens_the_pages_of("README.md");
        session.stops();
    }
}

#[test]
fn a_newcomer_who_reads_chinese_does_too() {
    let session = Session::beside_nothing();
    session.types("README.zh-CN.md", "newcomer-zh");
    session.opens_the_pages_of("README.zh-CN.md");
}

#[test]
fn an_admin_makes_people_reviews_a_plugin_and_takes_a_backup() {
    let session = Session::beside_a_hub();
    session.types("hub-server/README.md", "admin");
}

#[test]
fn an_author_writes_tests_submits_and_sees_a_plugin_run() {
    let session = Session::beside_a_hub();
    session.types("examples/plugins/README.md", "author");
}

#[test]
fn a_program_is_connected_with_curl() {
    let session = Session::beside_a_hub();
    session.types("openapi/README.md", "program");
}
