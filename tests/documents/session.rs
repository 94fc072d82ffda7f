//! A shell in a fresh folder that has what a clone has, into which the commands of a document are typed. What a
//! document cannot know is put in its place: the ports, since other tests run at the same time, and the programs, which
//! are built already.

use std::{
    collections::BTreeSet,
    fs::File,
    io::Write,
    net::TcpListener,
    os::unix::{fs::symlink, process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;

use super::{
    markdown::{Block, How, blocks},
    read, workspace,
};
use crate::support::binaries::program;

/// How often it is looked whether something came of a block, a minute in all.
const LOOKS: u32 = 1_200;
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The ports of the documents: the hub's, the simulator's, the reader's own program's.
const PORTS: [&str; 3] = ["9800", "9801", "3000"];

/// A person at two terminals.
pub struct Session {
    /// What the second terminal begins with, where the document takes it for granted.
    preface: String,
    folder: TempDir,
    ports: [String; 3],
    terminals: std::cell::RefCell<Vec<Child>>,
}

impl Session {
    /// Nothing runs yet.
    pub fn beside_nothing() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clone = folder.path().join("clone");
        std::fs::create_dir_all(clone.join("target")).unwrap();
        for entry in workspace().read_dir().unwrap() {
            let entry = entry.unwrap();
            if entry.file_name() != "target" && entry.file_name() != ".git" {
                symlink(entry.path(), clone.join(entry.file_name())).unwrap();
            }
        }
        let server = program("hub-server");
        symlink(server.parent().unwrap(), clone.join("target/release")).unwrap();
        let programs = folder.path().join("bin");
        std::fs::create_dir(&programs).unwrap();
        make_cargo(&programs.join("cargo"));
        let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = listeners.map(|listener| listener.local_addr().unwrap().port().to_string());
        Self { preface: String::new(), folder, ports, terminals: std::cell::RefCell::default() }
    }

    /// The server of the README's five minutes runs.
    pub fn beside_a_hub() -> Self {
        let mut session = Self::beside_nothing();
        let server = blocks(&read("README.md"), "newcomer").remove(0);
        assert_eq!(server.how, How::Background);
        session.start(&server);
        let environment = server.script.lines().filter(|line| line.starts_with("export "));
        session.preface = environment.collect::<Vec<_>>().join("\n");
        session
    }

    /// Types the blocks of a session, from the first to the last, into one shell.
    pub fn types(&self, document: &str, name: &str) {
        let blocks = blocks(&read(document), name);
        assert!(!blocks.is_empty(), "{document} has no session {name}");
        let mut shell = Shell::open(self);
        shell.run(&self.adapt(&self.preface));
        for block in &blocks {
            match &block.how {
                How::Background => self.start(block),
                How::Types => drop(shell.run(&self.adapt(&block.script))),
                How::Shows(text) => {
                    let from = shell.run(&self.adapt(&block.script));
                    shell.wait_for(text, from);
                }
                How::Until(text) => shell.repeat(&self.adapt(&block.script), text),
            }
        }
    }

    /// Every page of the hub that the document names is there, as the document writes it.
    pub fn opens_the_pages_of(&self, document: &str) {
        let text = read(document);
        let pages: BTreeSet<&str> = text.split("http://localhost:9800/").skip(1).map(path).collect();
        assert!(!pages.is_empty(), "{document} names no page");
        for page in pages {
            let mut curl = self.bash();
            let url = self.adapt(&format!("http://localhost:9800/{page}"));
            curl.args(["-c", &format!("curl --silent --fail --head '{url}'")]);
            let output = curl.output().unwrap();
            let head = String::from_utf8_lossy(&output.stdout).to_lowercase();
            assert!(output.status.success() && head.contains("content-type: text/html"), "{url}: {head}");
        }
    }

    /// Ends the servers, as Ctrl-C does.
    pub fn stops(&self) {
        for mut terminal in self.terminals.borrow_mut().drain(..) {
            end(&mut terminal);
        }
    }

    /// Starts a server and waits until it answers.
    fn start(&self, block: &Block) {
        let log = File::create(self.folder.path().join("server.log")).unwrap();
        let mut bash = self.bash();
        // The server's own; a client would take its address for one to ask.
        bash.env("HUB_LISTEN", format!("127.0.0.1:{}", self.ports[0]));
        bash.env("HUB_SIM_LISTEN", format!("127.0.0.1:{}", self.ports[1]));
        bash.args(["-e", "-c", &self.adapt(&block.script)]).stdin(Stdio::null());
        bash.stdout(log.try_clone().unwrap()).stderr(log);
        self.terminals.borrow_mut().push(bash.spawn().unwrap());
        let mut health = self.bash();
        health
            .env("HUB_LISTEN", format!("127.0.0.1:{}", self.ports[0]))
            .args(["-c", "target/release/hub-server health"]);
        let log = self.folder.path().join("server.log");
        until("the server answers", &log, || health.output().is_ok_and(|output| output.status.success()));
    }

    fn bash(&self) -> Command {
        let mut bash = Command::new("bash");
        for (name, _) in std::env::vars_os() {
            let own = name.to_str().is_some_and(|name| name.starts_with("HUB_") || name.starts_with("XDG_"));
            if own || name == "CI" {
                bash.env_remove(name);
            }
        }
        let path = std::env::var("PATH").unwrap();
        bash.env("PATH", format!("{}:{path}", self.folder.path().join("bin").display()))
            .env("HOME", self.folder.path())
            .env("LISTEN", format!("127.0.0.1:{}", self.ports[2]))
            .env("PYTHONUNBUFFERED", "1")
            .current_dir(self.folder.path().join("clone"))
            .process_group(0);
        bash
    }

    fn adapt(&self, script: &str) -> String {
        PORTS.iter().zip(&self.ports).fold(script.to_owned(), |text, (from, to)| text.replace(from, to))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stops();
    }
}

/// The path at the beginning of a text that goes on after a URL.
fn path(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '/' | '-' | '.' | '_'));
    end.map_or(text, |end| &text[..end]).trim_end_matches('.')
}

/// A cargo that builds nothing: the programs are there. It takes what the documents say, and nothing else.
fn make_cargo(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let script = "#!/bin/sh\n[ \"$*\" = 'build --release -p hub-server -p hub-cli' ] || { echo \"cargo $*?\" >&2; exit 1; }\n";
    std::fs::write(path, script).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The shell of one reader: variables and programs in the background stay between blocks.
struct Shell {
    process: Child,
    log: std::path::PathBuf,
    typed: usize,
}

impl Shell {
    fn open(session: &Session) -> Self {
        let path = session.folder.path().join("shell.log");
        let log = File::create(&path).unwrap();
        let mut bash = session.bash();
        bash.env("HUB_SIM_URL", format!("http://127.0.0.1:{}", session.ports[1]));
        bash.args(["-e", "-o", "pipefail"]).stdin(Stdio::piped());
        bash.stdout(log.try_clone().unwrap()).stderr(log);
        Self { process: bash.spawn().unwrap(), log: path, typed: 0 }
    }

    /// Types a block and waits for its end; a command that fails ends the shell, and the test. Answers where in the
    /// log its output begins.
    fn run(&mut self, script: &str) -> usize {
        let from = self.output().len();
        self.typed += 1;
        let mark = format!("@@ block {} done", self.typed);
        let input = self.process.stdin.as_mut().unwrap();
        writeln!(input, "{script}\necho '{mark}'").unwrap();
        let (log, process) = (&self.log, &mut self.process);
        until(&format!("the end of\n{script}"), log, || {
            let done = std::fs::read_to_string(log).unwrap_or_default().contains(&mark);
            assert!(
                done || process.try_wait().unwrap().is_none(),
                "a command failed in\n{script}\n\n{}",
                std::fs::read_to_string(log).unwrap_or_default()
            );
            done
        });
        from
    }

    fn wait_for(&self, text: &str, from: usize) {
        until(&format!("{text:?} is shown"), &self.log, || self.output()[from..].contains(text));
    }

    fn repeat(&mut self, script: &str, text: &str) {
        for _ in 0..LOOKS {
            let from = self.run(&format!("(\n{script}\n) || true"));
            if self.output()[from..].contains(text) {
                return;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        panic!("{text:?} is not shown by\n{script}\n\n{}", self.output());
    }

    fn output(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap()).into_owned()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// Ends a shell and everything it started.
fn end(process: &mut Child) {
    let group = format!("-{}", process.id());
    let _ = Command::new("kill").args(["-TERM", "--", &group]).status();
    let _ = process.wait();
    let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
}

fn until(what: &str, log: &Path, mut holds: impl FnMut() -> bool) {
    for _ in 0..LOOKS {
        if holds() {
            return;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    panic!("waited in vain for {what}\n\n{}", std::fs::read_to_string(log).unwrap_or_default());
}
