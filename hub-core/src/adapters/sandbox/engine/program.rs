//! Source to bytecode, in this process and for this process alone.
//!
//! A plugin is an ES module, so its code is strict; bytecode of modules is what the engine's safe interface can run
//! in a context that cannot compile. Bytecode is never stored, sent or taken from elsewhere: it is as good as
//! machine code.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

use rquickjs::{
    Context, Ctx, Error, Function, Module, Object, Promise, Runtime, Value, WriteOptions,
    context::intrinsic as has,
    loader::{Bundle, ImportAttributes, Loader, Resolver},
    module::Evaluated,
};

use super::{
    super::{
        hook::{ErrorKind, Hook, MAX_SOURCE, ScriptError},
        tokens,
    },
    failure,
};

/// Intrinsics of a plugin's context: the standard library without code generation, timers of the system, and weak
/// references, which would expose garbage collection.
type Library =
    (has::Date, has::RegExpCompiler, has::RegExp, has::Json, has::Proxy, has::MapSet, has::Promise);
type WithBytes = (has::TypedArrays, Library);
type Compiler = (has::Eval, WithBytes);

/// Name of a plugin in stacks.
pub(super) const PLUGIN: &str = "plugin.js";
/// Name of the prelude in stacks.
const PRELUDE: &str = "prelude.js";
/// Texts of which a source needs at least one to access typed arrays: parts of their names, the global object, an
/// escape in a name. Few sources have one, and typed arrays are a fifth of the cost of a context.
const BYTES: [&str; 9] = [
    "8Array",
    "16Array",
    "32Array",
    "64Array",
    "ClampedArray",
    "ArrayBuffer",
    "DataView",
    "globalThis",
    "\\u",
];
/// The same for the globals of the web, see `web.js`; they need typed arrays.
const WEB: [&str; 12] = [
    "URL",
    "atob",
    "btoa",
    "TextEncoder",
    "TextDecoder",
    "structuredClone",
    "Abort",
    "DOMException",
    "crypto",
    "CryptoKey",
    "globalThis",
    "\\u",
];
/// Name of the web's globals in stacks.
const WEB_FILE: &str = "web.js";
/// The export under which the hooks of a plugin are found.
const HOOKS: &str = "hub$hooks";

/// Memory for compiling 256 KiB of source; the engine's own limit of a run may be less.
const COMPILE_MEMORY: usize = 64 << 20;
/// Stack for the parser.
const COMPILE_STACK: usize = 1 << 20;
/// Programs one process compiles. They stay until it ends; a worker is replaced long before.
const MAX_PROGRAMS: usize = 1024;

#[derive(Clone, Copy)]
pub(in super::super) struct Program {
    bundle: Bundle,
    uses: Uses,
}

/// The parts of the sandbox that a program names, so that only they are loaded.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Uses {
    bytes: bool,
    pub(super) web: bool,
}

impl Uses {
    pub(super) const ALL: Self = Self { bytes: true, web: true };

    fn of(source: &str) -> Self {
        let web = WEB.iter().any(|name| source.contains(name));
        Self { bytes: web || BYTES.iter().any(|name| source.contains(name)), web }
    }
}

/// All programs of this process, by the hash of their source.
static PROGRAMS: LazyLock<Mutex<HashMap<[u8; 32], Program>>> = LazyLock::new(Mutex::default);

pub(super) static PRELUDE_PROGRAM: LazyLock<Program> = LazyLock::new(|| {
    Program::keep(PRELUDE, bytecode(PRELUDE, include_str!("prelude.js")).expect("tested"), Uses::default())
});

pub(super) static WEB_PROGRAM: LazyLock<Program> = LazyLock::new(|| {
    Program::keep(WEB_FILE, bytecode(WEB_FILE, include_str!("web.js")).expect("tested"), Uses::ALL)
});

/// A program this process has compiled.
pub(in super::super) fn find(hash: [u8; 32]) -> Option<Program> {
    PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner).get(&hash).copied()
}

/// Compiles a plugin, unless that was done before.
///
/// # Errors
/// `Syntax`, with its place in the author's file; `Memory` when this process has compiled too much.
pub(in super::super) fn compile(hash: [u8; 32], source: &str) -> Result<Program, ScriptError> {
    if let Some(program) = find(hash) {
        return Ok(program);
    }
    if source.len() > MAX_SOURCE {
        return Err(ScriptError::new(ErrorKind::Syntax, "the source is larger than 256 KiB"));
    }
    // On a line of its own, after which nothing of the author's can come: an open comment, string, template or
    // bracket is a syntax error. `typeof` finds functions, constants and variables alike.
    let tail = [Hook::OnRequest, Hook::OnResponse].map(|hook| {
        let name = hook.as_str();
        format!("typeof {name} === 'function' ? {name} : undefined")
    });
    // A byte order mark is white space to the engine, behind which `#!` is not the start of the file.
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let with_tail = format!("{source}\nexport const {HOOKS} = [{}];\n", tail.join(", "));
    let code = bytecode(PLUGIN, &with_tail).map_err(|error| placed(error, source))?;
    let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    if programs.len() >= MAX_PROGRAMS {
        return Err(ScriptError::new(
            ErrorKind::Memory,
            "this process has compiled as many plugins as it may",
        ));
    }
    Ok(*programs.entry(hash).or_insert_with(|| Program::keep(PLUGIN, code, Uses::of(source))))
}

/// Gives an error its place where the engine has none in the author's source: modules are resolved after they were
/// read, and what is open at the end of the source is found in the line after it.
fn placed(error: ScriptError, source: &str) -> ScriptError {
    if error.kind != ErrorKind::Syntax {
        return error;
    }
    if let Some(line) = error.line {
        let last = u32::try_from(source.lines().count()).unwrap_or(u32::MAX);
        if line <= last {
            return error;
        }
        let unexpected = "the source ends within a bracket, string, template or comment";
        return ScriptError { line: Some(last), ..ScriptError::new(ErrorKind::Syntax, unexpected) };
    }
    let tokens = tokens::tokens(source);
    let Some(import) = tokens::static_import(&tokens) else { return error };
    ScriptError {
        line: Some(import.line),
        column: Some(import.column),
        ..ScriptError::new(ErrorKind::Syntax, "import is not available: a plugin is one file without modules")
    }
}

fn bytecode(name: &str, source: &str) -> Result<Vec<u8>, ScriptError> {
    let broken = |_| ScriptError::new(ErrorKind::Memory, "no memory for compiling");
    let (_runtime, context) = compiling_runtime().map_err(broken)?;
    context.with(|ctx| {
        let options = WriteOptions { strip_source: true, ..WriteOptions::default() };
        Module::declare(ctx.clone(), name, source)
            .and_then(|module| module.write(options))
            .map_err(|error| failure::read(&ctx, &error, ErrorKind::Syntax, None))
    })
}

/// A context that compiles, within its limits.
pub(super) fn compiling_runtime() -> rquickjs::Result<(Runtime, Context)> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(COMPILE_MEMORY);
    runtime.set_max_stack_size(COMPILE_STACK);
    let context = Context::custom::<Compiler>(&runtime)?;
    Ok((runtime, context))
}

impl Program {
    /// Keeps bytecode for the rest of the process's life, which is what the engine's loader wants.
    fn keep(name: &'static str, code: Vec<u8>, uses: Uses) -> Self {
        let code: &'static [u8] = Box::leak(code.into_boxed_slice());
        Self { bundle: rquickjs::loader::bundle::Bundle(Box::leak(Box::new([(name, code)]))), uses }
    }

    pub(super) fn uses(self) -> Uses {
        self.uses
    }

    /// Runs the top level in a context; the promise settles when that has ended.
    pub(super) fn load<'js>(
        mut self,
        ctx: &Ctx<'js>,
    ) -> rquickjs::Result<(Module<'js, Evaluated>, Promise<'js>)> {
        let name = self.bundle.0[0].0;
        self.bundle.load(ctx, name, None)?.eval()
    }
}

impl Uses {
    /// A context without code generation.
    pub(super) fn context(self, runtime: &Runtime) -> rquickjs::Result<Context> {
        if self.bytes { Context::custom::<WithBytes>(runtime) } else { Context::custom::<Library>(runtime) }
    }
}

/// The hooks of a loaded plugin: `onRequest` and `onResponse`, by their names in the file, as exports of these names, or
/// as members of the default export.
pub(super) fn hooks<'js>(module: &Module<'js, Evaluated>) -> rquickjs::Result<[Option<Function<'js>>; 2]> {
    let named: Object = module.get(HOOKS)?;
    let exports = module.namespace()?;
    let default: Option<Value> = exports.get("default").ok();
    let default = default.and_then(Value::into_object);
    let hook = |at: u32, hook: Hook| -> rquickjs::Result<_> {
        if let Some(function) = named.get(at)? {
            return Ok(Some(function));
        }
        let exported: Option<Value> = exports.get(hook.as_str())?;
        let exported = exported.filter(|value| !value.is_undefined());
        let value = match (exported, &default) {
            (Some(value), _) => Some(value),
            (None, Some(default)) => Some(default.get(hook.as_str())?),
            (None, None) => None,
        };
        Ok(value.and_then(Value::into_function))
    };
    Ok([hook(0, Hook::OnRequest)?, hook(1, Hook::OnResponse)?])
}

/// Refuses every `import()`, also of what is loaded already.
pub(super) struct NoImports;

impl Resolver for NoImports {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        Err(Error::new_resolving(base, name))
    }
}

impl Loader for NoImports {
    fn load<'js>(
        &mut self,
        _: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js>> {
        Err(Error::new_loading(name))
    }
}

/// A context that compiles, for measuring the engine.
pub(super) fn compiling_context(runtime: &Runtime) -> rquickjs::Result<Context> {
    Context::custom::<Compiler>(runtime)
}
