//! The worker: what the process does that runs plugins. One thread runs the engine; another watches the clock and
//! ends the process, since the engine cannot be stopped everywhere.

use std::{
    borrow::Cow,
    cell::RefCell,
    fs::File,
    io::{self, BufReader, Read, Write},
    process,
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use super::{
    Deadline, WORKER_ARGUMENT,
    engine::{self, Host, Output},
    fetch_gate::{FetchAnswer, FetchCall},
    frame::{self, FRAME_SIZE, FRAME_TIME, FromWorker, MAX_FROM_WORKER, MAX_TO_WORKER, ToWorker},
    hook::{ErrorKind, HookInput, HookOutcome, Limits, ScriptError},
    lockdown,
    watchdog::Watchdog,
};

/// Stack of the engine's thread: many times what a thousand calls take.
const STACK: usize = 8 << 20;
/// Exit code after a panic.
const PANICKED: i32 = 70;
/// Exit code when the worker cannot be confined.
const UNCONFINED: i32 = 71;

/// Serves as a worker and never returns, if that is what this process was started for. To be called first in `main`,
/// before there are threads.
pub fn run_worker_if_asked() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == WORKER_ARGUMENT) {
        let exit = serve().unwrap_or_else(|error| {
            complain(&error.to_string());
            UNCONFINED
        });
        process::exit(exit);
    }
}

/// To the hub's log; a failure of that cannot be reported.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

fn serve() -> io::Result<i32> {
    // Which would otherwise unwind into the engine, where a plugin could catch it.
    std::panic::set_hook(Box::new(|panic| {
        complain(&panic.to_string());
        process::exit(PANICKED);
    }));
    lockdown::drop_descriptors();
    lockdown::limit()?;
    let (input, output) = lockdown::pipes()?;
    let output = Pipe(Arc::new(Mutex::new(Unsent { file: output, frames: Vec::new() })));
    let watchdog = Watchdog::start(output.clone())?;
    let engine = thread::Builder::new().stack_size(STACK).spawn(move || {
        let filtered = lockdown::filter();
        engine::warm_up();
        Worker { input: BufReader::new(input), output, watchdog }.work(filtered);
    })?;
    Ok(engine.join().map_or(PANICKED, |()| 0))
}

/// The way to the hub, for both threads.
#[derive(Clone)]
pub(super) struct Pipe(Arc<Mutex<Unsent>>);

struct Unsent {
    file: File,
    /// Frames that are sent with the next one.
    frames: Vec<u8>,
}

impl Unsent {
    fn add(&mut self, message: &FromWorker) -> bool {
        let frame = frame::encode(message, MAX_FROM_WORKER);
        frame.map(|frame| self.frames.extend_from_slice(&frame)).is_ok()
    }

    fn send(&mut self) -> io::Result<()> {
        self.file.write_all(&std::mem::take(&mut self.frames))
    }
}

impl Pipe {
    /// Sends a frame, or keeps it to be sent with the next one; a hub that is gone needs no worker.
    fn send(&self, message: &FromWorker, at_once: bool) {
        let mut unsent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !unsent.add(message) {
            process::exit(PANICKED);
        }
        if at_once && unsent.send().is_err() {
            process::exit(0);
        }
    }

    /// Sends a frame unless another one is being sent.
    pub(super) fn try_send(&self, message: &FromWorker) {
        if let Ok(mut unsent) = self.0.try_lock() {
            unsent.add(message);
            let _ = unsent.send();
        }
    }
}

struct Worker {
    input: BufReader<File>,
    output: Pipe,
    watchdog: Watchdog,
}

impl Worker {
    /// Works until the hub closes the pipe.
    fn work(self, filtered: bool) {
        let Self { input, output, watchdog } = self;
        let link = Rc::new(RefCell::new(Link { input, output: output.clone(), id: 0 }));
        loop {
            output.send(&FromWorker::Ready { filtered }, true);
            let read = link.borrow_mut().read();
            match read {
                Some(ToWorker::Run { id, hash, source, inputs }) => {
                    let runs = Runs { output: &output, watchdog: &watchdog, link: &link };
                    runs.make(id, || engine::compile(hash, source.as_deref().unwrap_or_default()), &inputs);
                }
                Some(ToWorker::Names { id, source }) => {
                    let deadline = Deadline::in_(Limits::default().timeout);
                    watchdog.arm(id, deadline, Output::new());
                    let unknown_names = engine::unknown_names(&source);
                    watchdog.disarm();
                    let outcome = HookOutcome { unknown_names, ..HookOutcome::default() };
                    output.send(&FromWorker::Done { id, outcome }, true);
                }
                // To a fetch of a run that is over.
                Some(ToWorker::Answer { .. }) => {}
                None => return,
            }
        }
    }
}

/// The runs of one frame.
struct Runs<'w> {
    output: &'w Pipe,
    watchdog: &'w Watchdog,
    link: &'w Rc<RefCell<Link>>,
}

impl Runs<'_> {
    /// Makes the runs one after another. Those that are left when the time of the frame is over, or the outcomes have
    /// become large, are not made.
    fn make(
        &self,
        first: u64,
        compile: impl Fn() -> Result<engine::Program, ScriptError>,
        inputs: &[Cow<'_, HookInput>],
    ) {
        let (frame, mut size) = (Deadline::in_(FRAME_TIME), 0);
        // Compiling only is a run without an input.
        let runs = inputs.iter().map(Some).chain(inputs.is_empty().then_some(None));
        let last = inputs.len().saturating_sub(1);
        for ((id, run), input) in (first..).zip(0..).zip(runs) {
            let limit = input.map_or(Limits::default().timeout, |input| input.limits.timeout);
            let (deadline, made) = (Deadline::in_(limit), Output::new());
            self.watchdog.arm(id, deadline, made.clone());
            self.link.borrow_mut().id = id;
            let mut is_last = true;
            let mut report = |outcome: HookOutcome| {
                self.watchdog.disarm();
                let broken = outcome
                    .error
                    .as_ref()
                    .is_some_and(|error| matches!(error.kind, ErrorKind::Timeout | ErrorKind::Memory));
                size += outcome.size();
                is_last = run == last || broken || frame.over() || size > FRAME_SIZE;
                self.output.send(&FromWorker::Done { id, outcome }, is_last);
                if broken {
                    process::exit(0);
                }
            };
            // Known to this process already when it comes without its text.
            match (compile(), input) {
                (Err(error), _) => report(HookOutcome {
                    error: Some(error),
                    duration: deadline.elapsed(),
                    ..HookOutcome::default()
                }),
                (Ok(_), None) => report(HookOutcome::default()),
                (Ok(program), Some(input)) => {
                    engine::run(program, input, deadline, &made, Rc::clone(self.link) as _, report);
                }
            }
            if is_last {
                return;
            }
        }
    }
}

/// The pipes, as the engine's thread uses them.
struct Link {
    input: BufReader<File>,
    output: Pipe,
    id: u64,
}

impl Link {
    fn read(&mut self) -> Option<ToWorker<'static>> {
        let mut head = [0; 4];
        self.input.read_exact(&mut head).ok()?;
        let mut json = vec![0; frame::length(head, MAX_TO_WORKER).ok()?];
        self.input.read_exact(&mut json).ok()?;
        frame::decode(&json).ok()
    }
}

impl Host for Link {
    fn fetch(&mut self, number: u32, call: FetchCall) {
        self.output.send(&FromWorker::Fetch { id: self.id, fetch: number, call }, true);
    }

    /// Waits without looking at the time, which the watchdog does.
    fn answer(&mut self, _: Duration) -> Option<(u32, Result<FetchAnswer, String>)> {
        loop {
            match self.read() {
                Some(ToWorker::Answer { id, fetch, answer }) if id == self.id => {
                    return Some((fetch, answer));
                }
                Some(ToWorker::Answer { .. }) => {}
                _ => process::exit(0),
            }
        }
    }
}
