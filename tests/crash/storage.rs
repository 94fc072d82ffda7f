//! Faults of the SQLite file. Full disk: reads continue, writes are rejected temporarily, the network's cursor does
//! not move, and the hub recovers by itself. Locked file: writes wait, then are rejected in the same way. Broken
//! file: the process acknowledges nothing more, logs the fault once, and exits with a failure.
//!
//! A file system that turns read-only under a running process breaks its open file (the kernel refuses that
//! to people, and does it after an I/O error), so read-only is about starting; for a database that is
//! read-only for a while see `postgres`.

use std::{
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use hub_core::time::Clock;
use reqwest::Method;
use serde_json::json;
use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};

use super::{
    load::Load,
    server::Server,
    stage::{Stage, TEST_TIMEOUT},
};
use crate::support::{http::until, process::Process, strace::Tampering};

const SECOND: Duration = Duration::from_secs(1);

/// A file system of 24 MiB; unmounted in the end.
struct Disk(PathBuf);

impl Disk {
    /// `None`, said on standard error, when this process may not mount.
    fn mount(at: &Path) -> Option<Self> {
        let mounted = run("mount", &["-t", "tmpfs", "-o", "size=24m", "hub-test", &at.display().to_string()]);
        if !mounted {
            let told = "no file system can be mounted here; a full disk is played by strace instead";
            let _ = writeln!(std::io::stderr(), "{told}");
            return None;
        }
        Some(Self(at.to_owned()))
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    /// Takes all the space there is.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.filler()).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }

    fn remount(&self, how: &str) {
        assert!(run("mount", &["-o", &format!("remount,{how}"), &self.0.display().to_string()]));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run("umount", &["-l", &self.0.display().to_string()]);
    }
}

fn run(program: &str, arguments: &[&str]) -> bool {
    let ended = std::process::Command::new(program).args(arguments).output();
    ended.is_ok_and(|ended| ended.status.success())
}

/// Waits until the hub refuses writes, and looks at what it does meanwhile.
async fn watch_refusals(stage: &Stage) {
    // Rests of space may let a small commit through; until they are used up nothing is quiet.
    until("writes are refused and the cursor does not move", async || {
        let acks = stage.upstream.acks(0).len();
        let refused = !stage.is_writable().await && !stage.is_ready().await;
        Clock::system().sleep(SECOND).await;
        (refused && !stage.is_writable().await && stage.upstream.acks(0).len() == acks).then_some(())
    })
    .await;
    assert!(stage.upstream.pending() > 0, "messages wait at the network");
    let bots = stage.caller.get("/api/bots").await;
    assert_eq!(bots["items"].as_array().unwrap().len(), stage.bots.len(), "reads go on");
}

#[tokio::test]
async fn a_full_disk_stops_writes_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let disk = Disk::mount(&path);
    let (mut stage, mut server) =
        Stage::open_in("full disk", None, path.join("hub"), folder, Load::of_everything()).await;
    let url = server.ready().await;
    stage.moved(Some(url));
    stage.start();
    stage.is_under_way().await;
    if let Some(disk) = &disk {
        disk.fill();
        watch_refusals(&stage).await;
        disk.free();
    } else {
        let faults = ["trace=pwrite64", "inject=pwrite64:error=ENOSPC"];
        if let Some(full) = Tampering::attach(&[server.process.id()], &faults).await {
            watch_refusals(&stage).await;
            full.detach().await;
        }
    }
    until("it is ready again", async || stage.is_ready().await.then_some(())).await;
    let log = server.process.log();
    assert!(log.matches("writes fail").count() < 20, "it is not told again and again:\n{log}");
    // Nothing crashed: nothing may be repeated.
    let stage = stage.settle(0).await;
    stage.close(server).await;
    drop(disk);
}

#[tokio::test]
async fn a_locked_file_is_waited_for_and_then_refused() {
    let (mut stage, mut server) = Stage::open("locked", None).await;
    let url = server.ready().await;
    stage.moved(Some(url));
    let file = SqliteConnectOptions::new().filename(stage.home.folder.join("hub.db"));
    // A waiting writer of SQLite has no place in a queue: it asks again and again, and the hub writes almost all the time.
    let mut other = SqliteConnection::connect_with(&file.busy_timeout(TEST_TIMEOUT)).await.unwrap();
    // For a moment: writers wait.
    let lock = other.begin_with("BEGIN EXCLUSIVE").await.unwrap();
    let remark = json!({ "name": "short", "webhook": { "enabled": false } });
    let path = format!("/api/bots/{}/channels", stage.bots[0].id);
    let (written, ()) = tokio::join!(stage.caller.attempt(Method::POST, &path, "short", &remark), async {
        Clock::system().sleep(SECOND).await;
        lock.rollback().await.unwrap();
    });
    assert!(written.unwrap().0.is_success());
    // For longer than anyone waits.
    stage.start();
    stage.is_under_way().await;
    let lock = other.begin_with("BEGIN EXCLUSIVE").await.unwrap();
    watch_refusals(&stage).await;
    lock.rollback().await.unwrap();
    other.close().await.unwrap();
    until("it is ready again", async || stage.is_ready().await.then_some(())).await;
    let stage = stage.settle(0).await;
    stage.close(server).await;
}

#[tokio::test]
async fn an_io_error_ends_the_process_and_loses_nothing() {
    let (mut stage, mut server) = Stage::open("I/O error", None).await;
    let url = server.ready().await;
    stage.moved(Some(url));
    stage.start();
    stage.is_under_way().await;
    let faults = ["trace=fsync,fdatasync", "inject=fsync,fdatasync:error=EIO"];
    if let Some(_broken) = Tampering::attach(&[server.process.id()], &faults).await {
        let (ended, log) = server.process.wait().await;
        assert_eq!(ended.code(), Some(1), "{log}");
        assert_eq!(log.matches("\"ERROR\"").count(), 1, "it is said once:\n{log}");
        assert!(log.contains("the storage failed"), "{log}");
        stage.crashed();
        server = Server::spawn(&stage.home);
        let url = server.ready().await;
        stage.moved(Some(url));
    }
    let in_flight = stage.in_flight();
    let stage = stage.settle(in_flight).await;
    stage.close(server).await;
}

#[tokio::test]
async fn a_read_only_folder_and_a_damaged_file_are_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let disk = Disk::mount(&path);
    let (mut stage, server) =
        Stage::open_in("start", None, path.join("hub"), folder, Load::of_everything()).await;
    let (ended, log) = server.process.terminate().await;
    assert!(ended.success(), "{log}");
    if let Some(disk) = &disk {
        disk.remount("ro");
        refused(&stage, "Read-only").await;
        disk.remount("rw");
    }
    let file = stage.home.folder.join("hub.db");
    let sound = std::fs::read(&file).unwrap();
    let mut damaged = sound.clone();
    damaged[..64].fill(0xff);
    std::fs::write(&file, damaged).unwrap();
    refused(&stage, "not a database").await;
    // Refused means untouched: with the file as it was, everything is there.
    std::fs::write(&file, sound).unwrap();
    let mut server = Server::spawn(&stage.home);
    let url = server.ready().await;
    stage.moved(Some(url));
    let stage = stage.settle(0).await;
    stage.close(server).await;
    drop(disk);
}

/// A start that fails, with a sentence about why.
async fn refused(stage: &Stage, why: &str) {
    let process: Process = Server::spawn(&stage.home).process;
    let (ended, log) = process.wait().await;
    assert_eq!(ended.code(), Some(1), "{log}");
    assert!(log.contains(why), "{why}:\n{log}");
}
