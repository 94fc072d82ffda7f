//! The process of a foreign client and its output: one JSON object per line, with its name in `event`.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

/// Longer than any step takes on a busy machine, an interpreter's start included.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A client that runs.
pub struct Foreign {
    process: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

/// Arguments of every client in addition to the address: files to send, and a folder for downloads.
pub struct SampleFiles {
    pub file: PathBuf,
    pub image: PathBuf,
    pub folder: tempfile::TempDir,
}

impl SampleFiles {
    /// A file that fills its last cipher block and an image that does not.
    pub fn create() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (file, image) = (folder.path().join("offer v2.pdf"), folder.path().join("picture.png"));
        let bytes = |count: u32| (0..count).map(|n| (n * n / 7).to_le_bytes()[0]).collect::<Vec<_>>();
        std::fs::write(&file, bytes(65_536)).unwrap();
        std::fs::write(&image, bytes(1_001)).unwrap();
        Self { file, image, folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Foreign {
    pub fn start(command: std::process::Command, base_url: &str, samples: &SampleFiles) -> Self {
        let mut command = Command::from(command);
        command.arg(base_url).args([&samples.file, &samples.image]).arg(samples.path());
        // The simulator is on this machine: no proxy that the environment may name.
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command.kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { input: process.stdin.take().unwrap(), process, lines }
    }

    /// The next event, which has to be this one.
    pub async fn expect(&mut self, event: &str) -> Value {
        let next = timeout(TEST_TIMEOUT, self.next()).await;
        let next = next.unwrap_or_else(|_| panic!("the client does not come to {event}"));
        let next = next.unwrap_or_else(|| panic!("the client ended before {event}"));
        assert_eq!(next["event"], event, "{next}");
        next
    }

    /// The next line that is an event; clients print other things too.
    async fn next(&mut self) -> Option<Value> {
        while let Some(line) = self.lines.next_line().await.unwrap() {
            let event = serde_json::from_str::<Value>(&line).ok().filter(|value| value["event"].is_string());
            if event.is_some() {
                return event;
            }
        }
        None
    }

    /// Types a line, as the person before the client does.
    pub async fn type_line(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Waits for the end, which has to be a good one.
    pub async fn end(mut self) {
        let ended =
            timeout(TEST_TIMEOUT, self.process.wait()).await.expect("the client does not end").unwrap();
        assert!(ended.success(), "{ended}");
    }
}
