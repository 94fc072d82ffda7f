//! `cargo run --release -p hub-tests --bin bench-sandbox`: what one run of a plugin costs, next to a bare evaluation of
//! the same source in the same engine in the same run. `tests/BENCHMARKS.md` has the last table.
#![expect(clippy::print_stdout, reason = "a table is printed")]

mod bare;

use std::{collections::BTreeMap, fs, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use hub_core::{
    sandbox::{
        self, Body, HookInput, HookOutcome, HookRun, Limits, NoFetch, PluginRequest, Sandbox, SandboxConfig,
        Source, WorkerProgram,
    },
    time::{Clock, Stopwatch},
};
use serde_json::value::RawValue;

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Result<T, E = Failure> = std::result::Result<T, E>;

/// A realistic plugin of 60 lines.
const PLUGIN: &str = include_str!("plugin.js");
const MESSAGE: &str = r#"{"content":"Hello, my order #4217 and order 99 are broken, please call +49 170 1234567 or write to ada@shop.example today!","sender":{"user_id":"wxid_1","user_name":"Ada"},"sessionID":"s-1","msg_type":1,"timestamp":1790000000}"#;
const BODY: &str = r#"{"type":"message","content":"Hello","sender":{"user_id":"wxid_1","user_name":"Ada"},"items":[{"type":"text","text":" one "},{"type":"image","url":"x"},{"type":"text","text":"two "}]}"#;

/// Rounds of the comparison, and runs of each side in one.
const ROUNDS: usize = 40;
const RUNS: u32 = 100;
/// Runs of the throughput, and how many wait at a time.
const MANY: usize = 40_000;
const AT_A_TIME: usize = 16;
/// Workers that are killed.
const KILLS: usize = 30;

fn main() -> Result<()> {
    sandbox::run_worker_if_asked();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(measure())
}

async fn measure() -> Result<()> {
    let one = sandbox_of(1);
    let source = Source::new(PLUGIN);
    assert_same(&run(&one, &source).await?)?;

    let (mut bare, mut hook, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let watch = Stopwatch::start();
        for _ in 0..RUNS {
            bare::evaluate(PLUGIN, MESSAGE, BODY)?;
        }
        let left = watch.elapsed() / RUNS;
        let watch = Stopwatch::start();
        for _ in 0..RUNS {
            run(&one, &source).await?;
        }
        let right = watch.elapsed() / RUNS;
        ratios.push(right.as_secs_f64() / left.as_secs_f64());
        bare.push(left);
        hook.push(right);
    }
    let resident = one.idle_workers().first().map(|id| resident(*id)).transpose()?;

    let two = Arc::new(sandbox_of(2));
    let watch = Stopwatch::start();
    let mut runs = FuturesUnordered::new();
    for number in 0..MANY {
        if runs.len() == AT_A_TIME {
            runs.next().await.transpose()?;
        }
        let (two, source) = (Arc::clone(&two), source.clone());
        runs.push(async move { run_for(&two, &source, &format!("tenant {}", number % 4)).await });
    }
    while let Some(outcome) = runs.next().await {
        outcome?;
    }
    let rate = count(MANY) / watch.elapsed().as_secs_f64();

    let mut replaced = Vec::new();
    for _ in 0..KILLS {
        let hang = Source::new("function onRequest() { [].reverse.call({ length: 2 ** 53 - 1 }) }");
        run(&one, &hang).await?;
        let watch = Stopwatch::start();
        run(&one, &source).await?;
        replaced.push(watch.elapsed());
    }

    let (bare, hook, replaced) = (median(bare), median(hook), median(replaced));
    ratios.sort_by(f64::total_cmp);
    let ratio = ratios[ratios.len() / 2];
    println!("|                                               | sandbox | bare | aim |");
    println!("| --- | --- | --- | --- |");
    println!("| warm run of a 60-line plugin, wall, median | {hook:.0?} | {bare:.0?} | |");
    println!("| the same as a ratio, median of {ROUNDS} rounds | {ratio:.2} | 1 | <= 1.5 |");
    println!("| hook runs, 2 workers | {rate:.0}/s | | |");
    println!(
        "| RSS of a worker after {} runs | {:.1} MiB | | |",
        ROUNDS * RUNS as usize,
        mebibytes(resident.unwrap_or(0))
    );
    println!("| run right after a kill, median | {replaced:.1?} | | |");
    Ok(())
}

fn sandbox_of(workers: usize) -> Sandbox {
    let config = SandboxConfig { workers, ..SandboxConfig::of(WorkerProgram::SelfExe) };
    Sandbox::new(config, Clock::system())
}

async fn run(sandbox: &Sandbox, source: &Source) -> Result<HookOutcome> {
    run_for(sandbox, source, "tenant").await
}

async fn run_for(sandbox: &Sandbox, source: &Source, tenant: &str) -> Result<HookOutcome> {
    let request = PluginRequest {
        url: "https://desk.example/hook".to_owned(),
        method: "POST".to_owned(),
        headers: BTreeMap::from([("Content-Type".to_owned(), "application/json".to_owned())]),
        body: Body::Json(RawValue::from_string(BODY.to_owned())?),
    };
    let mut input = HookInput::on_request(RawValue::from_string(MESSAGE.to_owned())?, request);
    input.limits = Limits { timeout: Duration::from_millis(500), ..input.limits };
    let run = HookRun { tenant: tenant.to_owned(), source: source.clone(), input };
    Ok(sandbox.run(run, &NoFetch).await?)
}

/// Both sides do the same work.
fn assert_same(outcome: &HookOutcome) -> Result<()> {
    let made = outcome.request.as_ref().map(|request| request.body.text().to_owned());
    let expected = bare::evaluate(PLUGIN, MESSAGE, BODY)?;
    if made.as_deref() != Some(expected.as_str()) {
        return Err(format!("sandbox and bare engine disagree: {outcome:?}, {expected}").into());
    }
    Ok(())
}

fn resident(process: u32) -> Result<usize> {
    let pages = fs::read_to_string(format!("/proc/{process}/statm"))?;
    Ok(pages.split(' ').nth(1).ok_or("no pages")?.parse::<usize>()? * 4096)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
fn count(number: usize) -> f64 {
    number as f64
}

fn mebibytes(bytes: usize) -> f64 {
    count(bytes) / count(1 << 20)
}
