//! Descriptors and limits of a worker, and memory of the hub after thousands of runs, each in a process of its own.
#![cfg(target_os = "linux")]

use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sandbox-worker");

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_worker_holds_two_pipes_and_no_rights() {
    // A hub that inherited descriptors, and holds a secret in its environment.
    let script = "exec 7</etc/passwd 9>/dev/null; exec \"$0\" inspect";
    let told = output(Command::new("sh").args(["-c", script, PROGRAM]).env("HUB_SECRET_KEY", "planted"));
    let field = |name: &str| {
        let line = told.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("no {name} in {told}")).split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!(field("NoNewPrivs:"), "1");
    assert_eq!(field("Seccomp:"), "2");
    let limit = |name: &str| {
        let line = told.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(limit("Max core file size"), "0");
    assert_eq!(limit("Max file size"), "0");
    assert_eq!(limit("Max open files"), "8");
    let memory: u64 = limit("Max address space").parse().unwrap();
    assert!(memory > 256 << 20 && memory < 1 << 30, "{memory}");
    if let Some(environment) = told.lines().find_map(|line| line.strip_prefix("environ: ")) {
        assert_eq!(environment, "\"\"");
        let open = told.lines().find_map(|line| line.strip_prefix("descriptors: ")).unwrap();
        // And what the kernel says about it alone.
        let own = |target: &str| target.starts_with("/proc/") && target.ends_with("/status");
        let pipe = |target: &str| target.starts_with("pipe:") || target.starts_with("socket:");
        assert!(open.split(' ').all(|target| pipe(target) || own(target)), "{open}");
    }
    assert!(!told.contains("planted"));
}

#[test]
fn ten_thousand_runs_leave_nothing_in_the_hub() {
    let grown: usize = output(Command::new(PROGRAM).arg("grow")).trim().parse().unwrap();
    assert!(grown < 2 << 20, "the hub grew by {grown} bytes");
}
