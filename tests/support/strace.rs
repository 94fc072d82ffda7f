//! Faults of system calls, put into a running process from outside with `strace` and taken out again.

use std::{io::Write, time::Duration};

use hub_core::time::Clock;

use super::{postgres_user::find_program, process::Process};

/// A process whose system calls are tampered with, until this is [detached](Tampering::detach) or dropped.
#[derive(Debug)]
pub struct Tampering(Process);

impl Tampering {
    /// Tampers with processes and all their threads: `faults` are arguments of strace's `-e`, such as
    /// `inject=fsync:error=EIO`. Prints the reason to standard error and returns `None` if this machine does not
    /// permit it.
    ///
    /// # Panics
    /// Panics if strace is not installed and `CI=true`.
    pub async fn attach(processes: &[u32], faults: &[&str]) -> Option<Self> {
        let Some(strace) = find_program("strace") else {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "strace is not installed, and CI wants it");
            return Self::skip("strace is not installed");
        };
        let processes: Vec<String> = processes.iter().map(u32::to_string).collect();
        let mut arguments = vec!["-f"];
        for process in &processes {
            arguments.extend(["-p", process]);
        }
        for fault in faults {
            arguments.extend(["-e", fault]);
        }
        let mut strace = Process::start(&strace, &arguments, &[]);
        for _ in 0..1_000 {
            let log = strace.log();
            let tried = log.matches(" attached").count() + log.matches("No such process").count();
            if tried >= processes.len() {
                return Some(Self(strace));
            }
            if log.contains("Operation not permitted") || strace.has_ended() {
                return Self::skip(&log);
            }
            Clock::system().sleep(Duration::from_millis(20)).await;
        }
        panic!("strace neither attaches nor gives up:\n{}", strace.log());
    }

    fn skip(why: &str) -> Option<Self> {
        let _ = writeln!(std::io::stderr(), "SKIPPED, no system call can be tampered with: {why}");
        None
    }

    /// Lets the process alone again, and gives what strace wrote of its calls.
    pub async fn detach(self) -> String {
        self.0.signal("INT");
        self.0.wait().await.1
    }
}
