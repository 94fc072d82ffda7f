//! Watchdog of a worker. It ends the process when a run exceeds its deadline and the engine did not stop.

use std::{
    io, process,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use super::{
    Deadline,
    engine::{self, Output},
    frame::FromWorker,
    hook::{HookOutcome, ScriptError},
    worker::Pipe,
};
use crate::time::Stopwatch;

/// Time after the deadline at which the process ends. Within it the engine can be interrupted and report its
/// position.
const GRACE: Duration = Duration::from_millis(50);
/// Exit code of a worker that exceeded it.
pub(super) const TIMED_OUT: i32 = 75;

/// Handle of the engine's thread to the watchdog thread.
#[derive(Clone)]
pub(super) struct Watchdog(Arc<Shared>);

struct Shared {
    /// Time since the watchdog started.
    watch: Stopwatch,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    run: Option<Run>,
    /// Time of the thread's next check. It is not woken for later deadlines, nor when a run ends.
    looks_at: Option<Duration>,
}

struct Run {
    id: u64,
    deadline: Deadline,
    output: Output,
}

impl Run {
    fn left(&self) -> Duration {
        (self.deadline.limit + GRACE).saturating_sub(self.deadline.elapsed())
    }
}

impl Watchdog {
    pub(super) fn start(pipe: Pipe) -> io::Result<Self> {
        let shared =
            Arc::new(Shared { watch: Stopwatch::start(), state: Mutex::default(), changed: Condvar::new() });
        let watching = Arc::clone(&shared);
        thread::Builder::new().stack_size(256 << 10).spawn(move || watching.look_out(&pipe))?;
        Ok(Self(shared))
    }

    /// Starts to watch a run.
    pub(super) fn arm(&self, id: u64, deadline: Deadline, output: Output) {
        let run = Run { id, deadline, output };
        let due = self.0.watch.elapsed() + run.left();
        let mut state = self.0.lock();
        state.run = Some(run);
        if state.looks_at.is_none_or(|at| due < at) {
            self.0.changed.notify_one();
        }
    }

    /// Stops watching. Never returns once the watchdog ends the process for a run that is too late, because it holds
    /// the lock.
    pub(super) fn disarm(&self) {
        self.0.lock().run = None;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_out(&self, pipe: &Pipe) {
        let mut state = self.lock();
        loop {
            let Some(run) = &state.run else {
                state.looks_at = None;
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = run.left();
            if left.is_zero() {
                // The lock stays held, so that the other thread cannot report anything.
                report(run, pipe);
                process::exit(TIMED_OUT);
            }
            state.looks_at = Some(self.watch.elapsed() + left);
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn report(run: &Run, pipe: &Pipe) {
    let error = Some(ScriptError::timeout(run.deadline.limit));
    let mut outcome = HookOutcome { error, ..HookOutcome::default() };
    engine::complete(&mut outcome, &run.output, run.deadline);
    pipe.try_send(&FromWorker::Done { id: run.id, outcome });
}
