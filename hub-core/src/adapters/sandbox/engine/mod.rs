//! One run in the engine, on the thread of the caller: a new runtime and context, the prelude, the author's code, the
//! hook, its promises and its result. Nothing of it outlives the run.

mod depth;
mod failure;
mod names;
mod output;
mod program;
mod readback;
mod web;

use std::{cell::RefCell, rc::Rc, time::Duration};

use rquickjs::{
    Context, Ctx, Error, Exception, Function, Module, Object, Promise, Runtime, Value, promise::PromiseState,
};

pub(super) use self::{
    names::unknown as unknown_names,
    output::{Done, Output},
    program::{Program, compile},
    readback::usable,
};
use self::{
    program::{PRELUDE_PROGRAM, WEB_PROGRAM},
    readback::Left,
};
use super::{
    Deadline,
    fetch_gate::{FetchAnswer, FetchCall},
    hook::{
        Dialect, ErrorKind, Hook, HookInput, HookOutcome, Hooks, Limits, LogLevel, MAX_FETCH_BODY, Reply,
        ScriptError,
    },
    lockdown,
};

/// Makes fetches on behalf of a run.
pub(super) trait Host {
    /// Starts a fetch. Its answer carries the same number.
    fn fetch(&mut self, number: u32, call: FetchCall);

    /// Waits for the next answer, `left` at most. `None` when none arrives in time.
    fn answer(&mut self, left: Duration) -> Option<(u32, Result<FetchAnswer, String>)>;
}

/// Prepares the engine, so that the first run does not pay for it.
pub(super) fn warm_up() {
    std::sync::LazyLock::force(&depth::STACK);
    std::sync::LazyLock::force(&PRELUDE_PROGRAM);
    std::sync::LazyLock::force(&WEB_PROGRAM);
}

/// Makes one run and reports its outcome before the engine is torn down: freeing a full heap takes long, and a
/// corrupt one can crash the process there.
pub(super) fn run(
    program: Program,
    input: &HookInput,
    deadline: Deadline,
    output: &Output,
    host: Rc<RefCell<dyn Host>>,
    report: impl FnOnce(HookOutcome),
) {
    let mut outcome = HookOutcome::default();
    let limit = input.limits.memory.max(Limits::MIN_MEMORY);
    let prepared = prepare(program, limit, deadline);
    match &prepared {
        Ok((runtime, context)) => {
            let ended =
                context.with(|ctx| Run { ctx, input, deadline, output, host }.go(program, &mut outcome));
            outcome.error = ended.err();
            let used = if input.measure || outcome.error.is_some() {
                u64::try_from(runtime.memory_usage().malloc_size).unwrap_or(0)
            } else {
                0
            };
            outcome.memory_bytes = used;
            if let Some(error) = &mut outcome.error {
                // With a full heap the engine throws null, because it has no memory for an error object. The heap may
                // have been freed by now.
                let grown = used.max(lockdown::grown());
                let full = error.message == failure::NULL && grown > limit as u64 / 2;
                if full || error.kind == ErrorKind::Memory {
                    *error = ScriptError {
                        kind: ErrorKind::Memory,
                        message: out_of_memory(limit),
                        ..error.clone()
                    };
                    outcome.memory_bytes = limit as u64;
                }
            }
        }
        Err(_) => outcome.error = Some(ScriptError::new(ErrorKind::Memory, out_of_memory(limit))),
    }
    complete(&mut outcome, output, deadline);
    report(outcome);
}

fn out_of_memory(limit: usize) -> String {
    format!("needed more than {} MiB", limit >> 20)
}

/// Adds the output that is kept outside the engine.
pub(super) fn complete(outcome: &mut HookOutcome, output: &Output, deadline: Deadline) {
    let Done { replies, skipped, logs, .. } = output.take();
    outcome.replies = replies;
    outcome.skipped = skipped;
    outcome.logs = logs;
    outcome.duration = deadline.elapsed();
}

fn prepare(program: Program, limit: usize, deadline: Deadline) -> rquickjs::Result<(Runtime, Context)> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(limit);
    runtime.set_gc_threshold(limit / 4);
    runtime.set_max_stack_size(*depth::STACK);
    runtime.set_loader(program::NoImports, program::NoImports);
    runtime.set_interrupt_handler(Some(Box::new(move || deadline.over())));
    let context = program.uses().context(&runtime)?;
    Ok((runtime, context))
}

/// Defines every global that a plugin can have, for [`names`]. None of them can be called.
fn define_globals(ctx: &Ctx<'_>) -> rquickjs::Result<()> {
    let (prelude, _) = PRELUDE_PROGRAM.load(ctx)?;
    let begin: Function = prelude.get("begin")?;
    let (empty, request) = (Object::new(ctx.clone())?, Object::new(ctx.clone())?);
    request.set("headers", empty.clone())?;
    let web = web_globals(ctx, [0; 32])?;
    let none = Value::new_undefined(ctx.clone());
    let _: Value = begin.call((empty.clone(), web, false, empty.clone(), request, none, empty))?;
    Ok(())
}

/// Defines the web's globals. Returns the object that the prelude needs of them.
fn web_globals<'js>(ctx: &Ctx<'js>, seed: [u8; 32]) -> rquickjs::Result<Object<'js>> {
    let (web, loaded) = WEB_PROGRAM.load(ctx)?;
    // Loading fails when memory runs out in the middle.
    if let Some(Err(error)) = loaded.result::<Value>() {
        return Err(error);
    }
    let install: Function = web.get("install")?;
    install.call((web::natives(ctx, seed)?,))
}

/// Reason for a run to end early.
enum Stop {
    /// An exception is pending, or the binding refused a value.
    Js(Error),
    /// The error for the plugin is already determined.
    Failed(ScriptError),
    /// The deadline has passed.
    Late,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Js(error)
    }
}

struct Run<'a, 'js> {
    ctx: Ctx<'js>,
    input: &'a HookInput,
    deadline: Deadline,
    output: &'a Output,
    host: Rc<RefCell<dyn Host>>,
}

impl<'js> Run<'_, 'js> {
    fn go(&self, program: Program, outcome: &mut HookOutcome) -> Result<(), ScriptError> {
        let prelude = PRELUDE_PROGRAM.load(&self.ctx).map(|(prelude, _)| prelude);
        let prelude = prelude.map_err(|error| self.explain(error.into(), ErrorKind::Throw, None))?;
        let describe: Option<Function> = prelude.get("describe").ok();
        let explain = |stop, kind| self.explain(stop, kind, describe.as_ref());
        let called = self.call(&prelude, program, &mut outcome.hooks);
        outcome.present = called.map_err(|stop| explain(stop, ErrorKind::Throw))?;
        if outcome.present {
            // From here on an error concerns the values that the hook left, including their getters.
            let left = self.finish(&prelude).map_err(|stop| explain(stop, ErrorKind::Output))?;
            (outcome.state, outcome.request) = readback::read(&left, self.input, self.output)?;
        }
        Ok(())
    }

    /// Runs the author's code. Returns `false` when it does not define the hook.
    fn call<T>(
        &self,
        prelude: &Module<'js, T>,
        program: Program,
        defined: &mut Option<Hooks>,
    ) -> Result<bool, Stop> {
        let begin: Function = prelude.get("begin")?;
        let answer: Function = prelude.get("answer")?;
        let argument: Value = self.begin(&begin, program.uses().web)?;
        let (plugin, loaded) = program.load(&self.ctx)?;
        self.settle(&loaded, &answer)?;
        let [on_request, on_response] = program::hooks(&plugin)?;
        *defined = Some(Hooks { on_request: on_request.is_some(), on_response: on_response.is_some() });
        let hook = match self.input.hook {
            Hook::OnRequest => on_request,
            Hook::OnResponse => on_response,
        };
        let Some(hook) = hook.filter(|_| !self.input.only_load) else { return Ok(false) };
        let returned: Value = hook.call((argument,))?;
        match returned.as_promise() {
            Some(promise) => self.settle(promise, &answer)?,
            None => self.drive(None, &answer)?,
        }
        Ok(true)
    }

    fn finish<T>(&self, prelude: &Module<'js, T>) -> Result<Left, Stop> {
        let finish: Function = prelude.get("finish")?;
        let result: Object = finish.call(())?;
        let left = Left::from_js(&result, self.input.hook)?;
        if self.deadline.over() { Err(Stop::Late) } else { Ok(left) }
    }

    /// Builds `ctx` and the globals.
    fn begin(&self, begin: &Function<'js>, with_web: bool) -> Result<Value<'js>, Stop> {
        let Self { ctx, input, .. } = self;
        let response = match &input.response {
            Some(response) => ctx.json_parse(text_of(response)?)?,
            None => Value::new_undefined(ctx.clone()),
        };
        let state = input.state.as_ref().map_or("{}", |state| state.get());
        let arguments = (
            self.hub()?,
            if with_web { Some(web_globals(ctx, input.seed)?) } else { None },
            input.dialect == Dialect::WebhookPlugin,
            ctx.json_parse(input.msg.get())?,
            readback::request(ctx, &input.request)?,
            response,
            ctx.json_parse(state)?,
        );
        Ok(begin.call(arguments)?)
    }

    /// Creates the functions of the hub that the prelude calls.
    fn hub(&self) -> rquickjs::Result<Object<'js>> {
        let ctx = &self.ctx;
        let hub = Object::new(ctx.clone())?;
        let deadline = self.deadline;

        let grants = self.input.grants;
        let refuse = |ctx: &Ctx<'js>, why: &str| Err(Exception::throw_message(ctx, why));

        let output = self.output.clone();
        let reply = move |ctx: Ctx<'js>, kind: String, what: String, filename: String| {
            if !grants.reply {
                return refuse(&ctx, "reply() is not granted");
            }
            let reply = match kind.as_str() {
                "text" if what.starts_with("data:") => Reply::DataUri(what),
                "text" => Reply::Text(what),
                "file" => Reply::File { base64: what, filename },
                _ => Reply::Forward,
            };
            output.reply(reply, deadline).map_err(|refused| Exception::throw_range(&ctx, refused))
        };
        hub.set("reply", Function::new(ctx.clone(), reply)?)?;

        let output = self.output.clone();
        let hook = self.input.hook;
        let skip = move |ctx: Ctx<'js>| match hook {
            _ if !grants.skip => refuse(&ctx, "skip() is not granted"),
            Hook::OnResponse => refuse(&ctx, "skip() works in onRequest only"),
            Hook::OnRequest => {
                output.skip();
                Ok(())
            }
        };
        hub.set("skip", Function::new(ctx.clone(), skip)?)?;

        let output = self.output.clone();
        let log = move |level: String, text: String| {
            let level = match level.as_str() {
                "debug" => LogLevel::Debug,
                "warn" => LogLevel::Warn,
                "error" => LogLevel::Error,
                _ => LogLevel::Info,
            };
            output.log(level, text, deadline);
        };
        hub.set("log", Function::new(ctx.clone(), log)?)?;

        let (output, host) = (self.output.clone(), Rc::clone(&self.host));
        let fetch = move |ctx: Ctx<'js>, call: String| {
            if !grants.fetch {
                return Err(Exception::throw_type(&ctx, "fetch needs a @connect line that names the host"));
            }
            let call: FetchCall = serde_json::from_str(&call).map_err(|_| {
                Exception::throw_type(&ctx, "fetch was called with something else than texts")
            })?;
            if call.url.len() + call.body.as_ref().map_or(0, String::len) > MAX_FETCH_BODY {
                return Err(Exception::throw_range(&ctx, "a fetch sends at most 256 KiB"));
            }
            let refused = || Exception::throw_range(&ctx, "a run makes at most 5 fetches");
            let number = output.fetch().ok_or_else(refused)?;
            host.borrow_mut().fetch(number, call);
            Ok(number)
        };
        hub.set("fetch", Function::new(ctx.clone(), fetch)?)?;
        Ok(hub)
    }

    /// Runs jobs until the promise is settled and no job is left. A rejection becomes the pending exception.
    fn settle(&self, promise: &Promise<'js>, answer: &Function<'js>) -> Result<(), Stop> {
        self.drive(Some(promise), answer)?;
        match promise.result::<Value>() {
            Some(Err(error)) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Runs jobs until none is left and the promise, if any, is settled. Checks the deadline between any two jobs:
    /// the engine's own check never runs during a stream of short ones.
    fn drive(&self, promise: Option<&Promise<'js>>, answer: &Function<'js>) -> Result<(), Stop> {
        loop {
            if self.deadline.over() {
                return Err(Stop::Late);
            }
            if self.ctx.execute_pending_job() {
                continue;
            }
            if promise.is_none_or(|promise| promise.state() != PromiseState::Pending) {
                return Ok(());
            }
            if !self.output.awaits_answers() {
                let never = "the hook never finished: nothing is left that could settle its promise";
                return Err(Stop::Failed(ScriptError::new(ErrorKind::Throw, never)));
            }
            let Some((number, answered)) = self.host.borrow_mut().answer(self.deadline.left()) else {
                return Err(Stop::Late);
            };
            self.output.answered();
            let (refused, answered) = match answered {
                Ok(answered) => (None, Some(text_of(&answered)?)),
                Err(refused) => (Some(refused), None),
            };
            let () = answer.call((number, refused, answered))?;
        }
    }

    fn explain(&self, stop: Stop, kind: ErrorKind, describe: Option<&Function<'js>>) -> ScriptError {
        let late = self.deadline.over();
        let error = match stop {
            Stop::Late => None,
            Stop::Failed(error) => Some(error),
            Stop::Js(error) => Some(failure::read(&self.ctx, &error, kind, describe.filter(|_| !late))),
        };
        let timeout = ScriptError::timeout(self.input.limits.timeout);
        match error {
            Some(error) if !late => error,
            // Keep the position of the interruption.
            Some(ScriptError { line, column, stack, .. }) => ScriptError { line, column, stack, ..timeout },
            None => timeout,
        }
    }
}

fn text_of(value: &impl serde::Serialize) -> rquickjs::Result<String> {
    serde_json::to_string(value).map_err(|_| Error::Unknown)
}
