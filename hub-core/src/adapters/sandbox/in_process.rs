//! Runs in the hub's own process: for plugins the embedder wrote, since one built-in function called on a hostile
//! value never returns, and one allocation at the ceiling ends the process.

use std::{cell::RefCell, pin::pin, rc::Rc, sync::mpsc as sync, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::sync::mpsc;

use super::{
    Deadline, HookOutcome, SandboxFault, Source, Task,
    engine::{self, Host, Output},
    fetch_gate::{FetchAnswer, FetchCall, FetchGate},
    hook::{Limits, MAX_FETCHES},
};

type Answered = (u32, Result<FetchAnswer, String>);

/// Carries fetches from the engine's thread to the hub's tasks and back.
struct Bridge {
    calls: mpsc::Sender<(u32, FetchCall)>,
    answers: sync::Receiver<Answered>,
}

impl Host for Bridge {
    fn fetch(&mut self, number: u32, call: FetchCall) {
        // The capacity suffices for a run; there is no receiver if the caller is gone.
        let _ = self.calls.try_send((number, call));
    }

    fn answer(&mut self, left: Duration) -> Option<Answered> {
        self.answers.recv_timeout(left).ok()
    }
}

/// Does one task on a thread for blocking work.
pub(super) async fn run(
    source: Source,
    task: Task,
    gate: &dyn FetchGate,
) -> Result<HookOutcome, SandboxFault> {
    let limits = task.input().map_or_else(Limits::default, |input| input.limits);
    let deadline = Deadline::in_(limits.timeout);
    let (calls, mut called) = mpsc::channel(MAX_FETCHES as usize);
    let (answer, answers) = sync::sync_channel(MAX_FETCHES as usize);
    let engine = move || {
        let mut outcome = HookOutcome::default();
        match (engine::compile(source.hash(), source.text()), task) {
            (Ok(program), Task::Run(input)) => {
                let host = Rc::new(RefCell::new(Bridge { calls, answers }));
                engine::run(program, &input, deadline, &Output::new(), host, |made| outcome = made);
            }
            (Ok(_), Task::Names) => outcome.unknown_names = engine::unknown_names(source.text()),
            (Ok(_), Task::Compile) => {}
            (Err(error), _) => outcome.error = Some(error),
        }
        outcome
    };
    let mut running = pin!(on_a_thread(engine));
    let mut fetches = FuturesUnordered::new();
    loop {
        tokio::select! {
            outcome = &mut running => {
                return outcome.ok_or_else(|| SandboxFault::Crashed("it panicked".to_owned()));
            }
            Some((number, call)) = called.recv() => {
                fetches.push(async move { (number, gate.fetch(call, deadline.left()).await) });
            }
            Some(answered) = fetches.next() => {
                let _ = answer.try_send(answered);
            }
        }
    }
}

/// `None` when the work panicked.
async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
