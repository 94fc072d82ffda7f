//! Processes of the shipped programs: started, watched through what they print on standard error, ended
//! with a signal, and never left behind.

use std::{
    path::Path,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use hub_core::{tasks::Tasks, time::Clock};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    sync::watch,
};

/// Maximum time until a process reports that it is ready, or exits.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time of reading the output of a process that has exited.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// A running program.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    news: watch::Receiver<usize>,
    readers: Tasks,
}

/// The address in the line with which a server starts its JSON log, without a slash at the end.
pub fn reported_url(line: &str) -> Option<String> {
    let (_, url) = line.split_once("\"url\":\"")?;
    Some(url.split('"').next()?.trim_end_matches('/').to_owned())
}

impl Process {
    /// Starts a program with these arguments and, of the environment, only what it is given.
    pub fn start(program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (lines, reader) = (Arc::<Mutex<Vec<String>>>::default(), Tasks::new());
        let (tell, news) = watch::channel(0);
        let tell = Arc::new(tell);
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let keep = |lines: &Arc<Mutex<Vec<String>>>, tell: &Arc<watch::Sender<usize>>, line: String| {
            lines.lock().unwrap().push(line);
            tell.send_modify(|count| *count += 1);
        };
        let (kept, told) = (Arc::clone(&lines), Arc::clone(&tell));
        reader.spawn("standard error", async move {
            let mut text = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = text.next_line().await {
                keep(&kept, &told, line);
            }
        });
        let kept = Arc::clone(&lines);
        reader.spawn("standard output", async move {
            let mut text = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = text.next_line().await {
                keep(&kept, &tell, line);
            }
        });
        Self { child, lines, news, readers: reader }
    }

    /// Everything printed so far.
    pub fn log(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }

    /// Waits for a line with this text and gives what follows it.
    pub async fn wait_line(&mut self, marker: &str) -> String {
        let lines = Arc::clone(&self.lines);
        let find = || {
            let lines = lines.lock().unwrap();
            lines.iter().find_map(|line| Some(line.split_once(marker)?.1.trim().to_owned()))
        };
        let found = async {
            loop {
                if let Some(found) = find() {
                    return Some(found);
                }
                if self.news.changed().await.is_err() {
                    return find();
                }
            }
        };
        let found = Clock::system().timeout(TEST_TIMEOUT, found).await.flatten();
        found.unwrap_or_else(|| panic!("no line with {marker:?} in:\n{}", self.log()))
    }

    /// Waits until a server reports its address in its JSON log; the address, without a slash at the end.
    pub async fn wait_url(&mut self) -> String {
        let line = self.wait_line("\"message\":\"hub-server started\"").await;
        reported_url(&line).unwrap_or_else(|| panic!("no address in {line}"))
    }

    /// Sends SIGKILL and waits for the end.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.child.id().expect("it was not waited for")
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Sends a signal: `TERM`, `INT`, …
    pub fn signal(&self, name: &str) {
        let id = self.id().to_string();
        let sent = std::process::Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end by itself.
    pub async fn wait(mut self) -> (ExitStatus, String) {
        let clock = Clock::system();
        let ended = clock.timeout(TEST_TIMEOUT, self.child.wait()).await;
        let ended = ended.unwrap_or_else(|| panic!("still running:\n{}", self.log())).unwrap();
        // What it printed last may not be read yet. A child process may keep the pipe open.
        self.readers.wait(&clock, READ_TIMEOUT).await;
        (ended, self.log())
    }

    /// Sends SIGTERM and waits for the end by itself.
    pub async fn terminate(self) -> (ExitStatus, String) {
        self.signal("TERM");
        self.wait().await
    }
}
