//! The worker program of the tests, since a test binary cannot be one itself; and what the tests ask of a process of
//! its own: `inspect` says what a worker holds, `grow` how much memory a hub takes for thousands of runs, and
//! `without-filter PROGRAM …` becomes a program that cannot filter system calls.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a part of the tests")]

use std::{collections::BTreeMap, fs, time::Duration};

use hub_core::{
    sandbox::{
        self, Body, HookInput, HookRun, Limits, NoFetch, PluginRequest, Sandbox, SandboxConfig, Source,
        WorkerProgram,
    },
    time::Clock,
};
use serde_json::value::RawValue;

/// Runs of `grow`; a hundredth of them first, which pay for what is kept.
const RUNS: usize = 10_000;

fn main() {
    sandbox::run_worker_if_asked();
    let mode = std::env::args().nth(1);
    #[cfg(target_os = "linux")]
    if mode.as_deref() == Some("without-filter") {
        without_filter();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        match mode.as_deref() {
            Some("inspect") => inspect().await,
            Some("grow") => grow().await,
            other => panic!("{other:?}"),
        }
    });
}

/// Denies the system call `seccomp` to this process and its children, as a strict container profile does, and becomes the
/// program of the arguments.
#[cfg(target_os = "linux")]
fn without_filter() {
    use std::os::unix::process::CommandExt as _;

    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

    let deny = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let rules = [(libc::SYS_seccomp, Vec::new())].into();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, deny, arch).unwrap();
    let filter: BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter(&filter).unwrap();
    let mut arguments = std::env::args_os().skip(2);
    let program = arguments.next().unwrap();
    panic!("{}", std::process::Command::new(program).args(arguments).exec());
}

fn sandbox() -> Sandbox {
    let config = SandboxConfig { workers: 1, ..SandboxConfig::of(WorkerProgram::SelfExe) };
    Sandbox::new(config, Clock::system())
}

async fn run(sandbox: &Sandbox, source: &str) {
    let request = PluginRequest {
        url: "https://good.example/".to_owned(),
        method: "POST".to_owned(),
        headers: BTreeMap::new(),
        body: Body::Json(RawValue::from_string("{\"a\":1}".to_owned()).unwrap()),
    };
    let mut input = HookInput::on_request(RawValue::from_string("{}".to_owned()).unwrap(), request);
    input.limits = Limits { timeout: Duration::from_secs(10), ..input.limits };
    let run = HookRun { tenant: String::new(), source: Source::new(source), input };
    // What a hostile plugin comes to is looked at elsewhere.
    let _ = sandbox.run(run, &NoFetch).await;
}

async fn inspect() {
    let sandbox = sandbox();
    run(&sandbox, "function onRequest() {}").await;
    let folder = format!("/proc/{}", sandbox.idle_workers()[0]);
    println!("{}", fs::read_to_string(format!("{folder}/status")).unwrap());
    println!("{}", fs::read_to_string(format!("{folder}/limits")).unwrap());
    // Only root may look into a process that made itself unreadable.
    if let (Ok(environment), Ok(open)) =
        (fs::read(format!("{folder}/environ")), fs::read_dir(format!("{folder}/fd")))
    {
        println!("environ: {:?}", String::from_utf8_lossy(&environment));
        let targets = open.map(|entry| fs::read_link(entry.unwrap().path()).unwrap().display().to_string());
        println!("descriptors: {}", targets.collect::<Vec<_>>().join(" "));
    }
}

async fn grow() {
    let sandbox = sandbox();
    let resident = || -> usize {
        let pages = fs::read_to_string("/proc/self/statm").unwrap();
        pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    let sources = [
        "function onRequest(c) { c.req.body.b = c.req.body.a; c.reply('x'); console.log('y') }",
        "function onRequest(c) { c.req.body = 'x'.repeat(4000); for (let n = 0; n < 99; n++) reply('x'.repeat(4000)) }",
        "function onRequest(c) { for (let n = 0; n < 300; n++) console.log('x'.repeat(100)); throw new Error('z') }",
    ];
    let mut before = 0;
    for number in 0..RUNS {
        if number == RUNS / 100 {
            before = resident();
        }
        run(&sandbox, sources[number % sources.len()]).await;
    }
    println!("{}", resident().saturating_sub(before));
}
