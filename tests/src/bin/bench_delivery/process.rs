//! Processes: started, talked to over their standard streams, never left behind; and what they use, as the
//! kernel counts it.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use crate::Result;

/// A running process; killed when dropped. Reading its lines blocks: nothing else happens here meanwhile.
pub struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    pub id: u32,
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    /// Starts this program in another role.
    pub fn role(arguments: &[&str]) -> Result<Self> {
        Self::start(Command::new(std::env::current_exe()?).args(arguments))
    }

    /// Starts a program with these variables and no other.
    pub fn program(program: &Path, variables: &[(&str, String)]) -> Result<Self> {
        let variables = variables.iter().map(|(name, value)| (name, value));
        Self::start(Command::new(program).env_clear().envs(variables))
    }

    fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a process has no standard streams".into());
        };
        Ok(Self { id: child.id(), child, stdin, stdout: BufReader::new(stdout) })
    }

    /// The next line that it prints.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stdout.read_line(&mut line)? == 0 {
            return Err("a process ended too early".into());
        }
        Ok(line.trim().to_owned())
    }

    /// Presses Enter.
    pub fn go_on(&mut self) -> Result<()> {
        Ok(self.stdin.write_all(b"\n")?)
    }

    /// Asks it to end, and waits until it has.
    pub fn terminate(mut self) -> Result<()> {
        let sent = Command::new("kill").args(["-TERM", &self.id.to_string()]).status()?;
        if !sent.success() || !self.child.wait()?.success() {
            return Err("a process did not end well".into());
        }
        Ok(())
    }

    /// Processor time so far.
    pub fn cpu(&self) -> Duration {
        Stat::read(self.id).map_or(Duration::ZERO, |stat| stat.cpu)
    }

    /// Memory in use, in bytes.
    pub fn rss(&self) -> u64 {
        memory(self.id, "VmRSS:")
    }
}

/// Processor time so far of PostgreSQL as this process started it, ended backends included.
pub fn postgres_cpu() -> Duration {
    let own = std::process::id();
    let processes = || std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let all: Vec<Stat> = ids.filter_map(Stat::read).collect();
    let is_ours = |mut id: u32| loop {
        match all.iter().find(|stat| stat.id == id) {
            Some(stat) if stat.parent == own => return true,
            Some(stat) => id = stat.parent,
            None => return false,
        }
    };
    all.iter().filter(|stat| stat.name == "postgres" && is_ours(stat.id)).map(|stat| stat.cpu).sum()
}

/// The part of `/proc/ID/stat` that counts here.
struct Stat {
    id: u32,
    parent: u32,
    name: String,
    /// Its own and that of children it has waited for.
    cpu: Duration,
}

/// Unit of processor time in `/proc`: `USER_HZ` is 100 on all current architectures of Linux.
const TICK: Duration = Duration::from_millis(10);

impl Stat {
    fn read(id: u32) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name is in parentheses and may hold some itself.
        let (head, tail) = text.rsplit_once(')')?;
        let name = head.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = tail.split_whitespace().collect();
        let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u32>().ok()).sum::<u32>();
        Some(Self { id, parent: fields.get(1)?.parse().ok()?, name, cpu: TICK * ticks })
    }
}

/// A field of `/proc/ID/status` that counts memory, in bytes.
pub fn memory(id: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}
