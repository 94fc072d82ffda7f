//! The systemd unit, as far as it can be compared with the hub without a running systemd.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use reqwest::Method;
use serde_json::json;

use super::{read, succeed, tool};
use crate::support::{
    binaries,
    http::{Caller, until},
    postgres_user::find_program,
    process::{Process, reported_url},
};

const UNIT: &str = "systemd/hub.service";

/// The unit, with a program that this machine has.
fn unit(folder: &Path) -> PathBuf {
    let text = read(UNIT);
    let start = "ExecStart=/usr/local/bin/hub-server\n";
    assert!(text.contains(start));
    let program = find_program("true").unwrap();
    let path = folder.join("hub.service");
    std::fs::write(&path, text.replace(start, &format!("ExecStart={}\n", program.display()))).unwrap();
    path
}

#[test]
fn systemd_has_nothing_to_say_about_the_unit() {
    let Some(mut analyze) = tool("systemd-analyze") else { return };
    let folder = tempfile::tempdir().unwrap();
    let told =
        succeed(analyze.args(["verify", "--man=no", "--recursive-errors=no"]).arg(unit(folder.path())));
    assert_eq!(told, "");
}

#[test]
fn the_unit_restricts_what_the_hub_can_access() {
    let Some(mut analyze) = tool("systemd-analyze") else { return };
    let folder = tempfile::tempdir().unwrap();
    // Fails beyond 2.0; a unit without any of it has 9.2.
    let arguments = ["security", "--offline=yes", "--threshold=20", "--no-pager"];
    let told = succeed(analyze.args(arguments).arg(unit(folder.path())));
    assert!(told.contains("Overall exposure level for hub.service: "), "{told}");
}

/// The system calls of each group that systemd knows, by its name.
fn groups() -> Option<BTreeMap<String, Vec<String>>> {
    let told = succeed(tool("systemd-analyze")?.args(["syscall-filter", "--no-pager"]));
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut group = String::new();
    for line in told.lines().map(|line| line.split('#').next().unwrap_or_default()) {
        match (line.starts_with('@'), line.trim()) {
            (_, "") => {}
            (true, name) => name.clone_into(&mut group),
            (false, member) => groups.entry(group.clone()).or_default().push(member.to_owned()),
        }
    }
    Some(groups)
}

fn expand(groups: &BTreeMap<String, Vec<String>>, name: &str, found: &mut BTreeSet<String>) {
    if name.starts_with('@') {
        let members = groups.get(name).unwrap_or_else(|| panic!("systemd knows no {name}"));
        for member in members {
            expand(groups, member, found);
        }
    } else {
        found.insert(name.to_owned());
    }
}

/// System calls that the unit's filter allows. Each line adds calls to the default group, or removes calls with `~`.
fn allowed(groups: &BTreeMap<String, Vec<String>>) -> BTreeSet<String> {
    let mut allowed = BTreeSet::new();
    // No filter forbids these.
    expand(groups, "@default", &mut allowed);
    for line in read(UNIT).lines().filter_map(|line| line.strip_prefix("SystemCallFilter=")) {
        let (names, takes_away) = line.strip_prefix('~').map_or((line, false), |names| (names, true));
        let mut named = BTreeSet::new();
        for name in names.split_whitespace() {
            expand(groups, name, &mut named);
        }
        if takes_away {
            allowed.retain(|call| !named.contains(call));
        } else {
            allowed.append(&mut named);
        }
    }
    allowed
}

/// A hub under `strace` with its demo, and its address; `None`, which is said, where no one may be traced.
async fn start_traced(data: &Path, calls: &Path) -> Option<(Process, String)> {
    let strace = PathBuf::from(tool("strace")?.get_program());
    let server = binaries::program("hub-server").display().to_string();
    let [data, calls] = [data, calls].map(|path| path.display().to_string());
    let counting = ["-f", "-c", "-U", "name", "-o", &calls];
    let listening = [&server, "--listen", "127.0.0.1:0", "--sim-listen", "127.0.0.1:0"];
    let settings = [("HUB_DATA_DIR", data.as_str()), ("NOTIFY_SOCKET", "/nowhere")];
    let process = Process::start(&strace, &[&counting[..], &listening].concat(), &settings);
    let url = until("the hub, or that it may not be traced", async || {
        let log = process.log();
        let refused = log.contains("ptrace") && log.contains("Operation not permitted");
        let serving = log.lines().filter(|line| line.contains("hub-server started")).find_map(reported_url);
        refused.then_some(None).or(serving.map(Some))
    })
    .await;
    if url.is_none() {
        let _ = writeln!(std::io::stderr(), "SKIPPED, no system call can be seen: {}", process.log());
    }
    Some((process, url?))
}

/// Has a hub do what it is for: store, run a plugin, keep a file.
async fn exercise(url: &str) {
    let mut ada = Caller::stranger(url);
    ada.sign_in("/api/auth/register", json!({ "username": "ada", "password": "tr0mbone solo" })).await;
    let bot = ada.get("/api/bots").await["items"][0]["id"].as_str().unwrap().to_owned();
    let made = ada.post(&format!("/api/bots/{bot}/channels"), json!({ "name": "files" })).await;
    let debug = json!({
        "script": "export function onRequest(ctx) { ctx.reply('from a worker') }",
        "message": { "content": "hello", "sender": { "user_id": "ada", "user_name": "Ada" } },
    });
    let path = format!("/api/webhooks/{}/debug/request", made["id"].as_str().unwrap());
    let ran = ada.post(&path, debug).await;
    assert_eq!(ran["replies"][0]["text"], "from a worker", "{ran}");
    let desk = Caller::stranger(url).with_bearer(made["api_key"].as_str().unwrap());
    // The five bytes of a JSON text.
    let announced = "filename=a.json&content_type=application/json&size=5";
    let upload = desk.get(&format!("/api/v1/channels/upload-url?{announced}")).await;
    let path =
        upload["upload_url"].as_str().unwrap().trim_start_matches(url.trim_end_matches('/')).to_owned();
    let (status, answer, _) = Caller::stranger(url).call(Method::PUT, &path, Some(json!("abc"))).await;
    assert!(status.is_success(), "{status} {answer}");
}

/// The system calls that a hub and its workers made; `None` where no one may be traced.
async fn traced() -> Option<BTreeSet<String>> {
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls");
    let (process, url) = start_traced(&folder.path().join("data"), &calls).await?;
    exercise(&url).await;
    // strace keeps signals to itself; they are meant for its child.
    let children = format!("/proc/{0}/task/{0}/children", process.id());
    let hub = std::fs::read_to_string(children).unwrap();
    succeed(Command::new("kill").args(["-TERM", hub.trim()]));
    let (ended, log) = process.wait().await;
    assert!(ended.success(), "{log}");
    let counted = std::fs::read_to_string(&calls).unwrap();
    // Between a head and a sum, each with a line of dashes. A call in which a thread ended is a line of more than a name.
    let names = counted.lines().map(str::trim).filter(|line| !line.starts_with('-') && !line.contains(' '));
    Some(names.filter(|name| !["", "syscall", "total"].contains(name)).map(str::to_owned).collect())
}

#[tokio::test]
async fn the_filter_of_system_calls_leaves_room_for_the_hub_and_for_its_plugins() {
    let Some(groups) = groups() else { return };
    let Some(made) = traced().await else { return };
    // What a worker confines itself with was seen, so the rest was too.
    for call in ["seccomp", "prlimit64", "execve", "fsync", "accept4"] {
        assert!(made.contains(call), "{call} is not among {made:?}");
    }
    let allowed = allowed(&groups);
    // SQLite gives its files to the owner of the database when it is root, which the unit never is.
    let missing: Vec<&String> = made.difference(&allowed).filter(|call| *call != "fchown").collect();
    assert!(missing.is_empty(), "the unit forbids {missing:?}");
    assert!(!allowed.contains("mount") && !allowed.contains("setuid") && !allowed.contains("ptrace"));
}
