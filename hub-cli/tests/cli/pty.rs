//! The program at a terminal of 100 columns, as a person sees it.

use std::{
    io::{Read, Write},
    process::Command,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use hub_core::time::Stopwatch;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// How long something may take to be seen.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(30);

/// A program at a terminal.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    seen: Arc<Mutex<Vec<u8>>>,
    reader: Option<thread::JoinHandle<()>>,
    /// The terminal lives as long as this.
    _master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    /// Starts a command, with what it was given of arguments and variables.
    pub fn start(command: &Command) -> Self {
        let size = PtySize { rows: 60, cols: 100, ..PtySize::default() };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut builder = CommandBuilder::new(command.get_program());
        builder.args(command.get_args());
        builder.env_clear();
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                builder.env(name, value);
            }
        }
        builder.env("TERM", "xterm-256color");
        let child = pair.slave.spawn_command(builder).unwrap();
        // The reader ends with the last holder of the other side.
        drop(pair.slave);
        let (mut reader, keys) =
            (pair.master.try_clone_reader().unwrap(), pair.master.take_writer().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = seen.clone();
        let reader = thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut piece) {
                sink.lock().unwrap().extend_from_slice(&piece[..read]);
            }
        });
        Self { child, keys, seen, reader: Some(reader), _master: pair.master }
    }

    /// Everything that was written to the terminal so far.
    pub fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    /// Waits until this was written behind the first `from` bytes; gives how much was written then.
    #[track_caller]
    pub fn wait_for(&self, from: usize, text: &str) -> usize {
        let watch = Stopwatch::start();
        loop {
            let seen = self.seen();
            if seen.get(from..).is_some_and(|seen| seen.contains(text)) {
                return seen.len();
            }
            assert!(watch.elapsed() < OUTPUT_TIMEOUT, "no {text:?} in {seen:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Types.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits for the end; gives the exit code and everything that was written.
    #[track_caller]
    pub fn end(mut self) -> (u32, String) {
        let watch = Stopwatch::start();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(watch.elapsed() < OUTPUT_TIMEOUT, "it does not end: {:?}", self.seen());
            thread::sleep(Duration::from_millis(20));
        };
        // It ends when no one holds the other side any more: then everything was read.
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        (status.exit_code(), self.seen())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}
