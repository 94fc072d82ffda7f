//! The attack corpus: scripts that hang, fill memory, dig deep, break out or leave something behind. Each is over,
//! one way or another, and the honest run after it on the same worker pool is right.

use std::time::Duration;

use hub_core::{
    sandbox::{ErrorKind, HookOutcome, NoFetch, Reply, SandboxFault},
    time::Clock,
};

use super::stage::{Stage, asked, kind, within};

/// Time of each attack.
const DEADLINE: u64 = 100;
/// Upper limit of a run on any machine; a run that takes longer fails the test.
const NEVER: Duration = Duration::from_secs(60);

/// One attack a line: its name, how it must end, the source.
const CORPUS: &str = include_str!("corpus.txt");

/// Expected end of an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Anyhow.
    Over,
    /// As a failure of the plugin, or of its worker.
    Error,
    /// Only by being stopped, or by the memory it takes.
    Stopped,
}

struct Attack {
    name: String,
    end: End,
    source: String,
}

fn listed() -> impl Iterator<Item = Attack> {
    CORPUS.lines().map(|line| {
        let mut parts = line.splitn(3, ' ');
        let (name, end, source) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let end = match end {
            "over" => End::Over,
            "error" => End::Error,
            "stopped" => End::Stopped,
            other => panic!("{other}"),
        };
        Attack { name: name.to_owned(), end, source: source.to_owned() }
    })
}

/// Sources too long to be written down.
fn long() -> Vec<Attack> {
    let hook = |code: String| format!("function onRequest(c) {{ {code} }}");
    [
        ("nested (", End::Error, hook("(".repeat(20_000))),
        ("nested [", End::Error, hook("[".repeat(50_000))),
        ("a long sum", End::Over, hook("1+".repeat(100_000) + "1")),
        ("a nested pattern", End::Error, hook("[".repeat(20_000) + &"]".repeat(20_000) + " = []")),
        ("nested templates", End::Error, hook("`${".repeat(20_000) + &"}`".repeat(20_000))),
        ("else if", End::Over, hook("if (c.a) {} ".to_owned() + &"else if (c.a) {} ".repeat(10_000))),
    ]
    .map(|(name, end, source)| Attack { name: name.to_owned(), end, source })
    .into()
}

/// Attacks through each path to a function's constructor, for each kind of function.
fn code_generation() -> Vec<Attack> {
    let functions = [
        "function () {}",
        "() => 1",
        "async () => 1",
        "function* () {}",
        "async function* () {}",
        "class {}",
        "Math.max",
        "c.reply",
        "console.log",
        "c.reply.bind(c)",
        "({ m() {} }).m",
        "fetch",
        "Object.getOwnPropertyDescriptor({ get a() { return 1 } }, 'a').get",
    ];
    let ways = [
        "F.constructor('return 7')",
        "new F.constructor('return 7')",
        "Reflect.construct(F.constructor, ['return 7'])",
        "Reflect.apply(F.constructor, null, ['return 7'])",
        "new (class extends F.constructor {})('return 7')",
        "Object.getPrototypeOf(F).constructor('return 7')",
    ];
    let mut attacks = Vec::new();
    for function in functions {
        for way in ways {
            let route = way.replace("F.", "f.").replace("(F)", "(f)");
            attacks.push((format!("{route} of {function}"), format!("const f = ({function}); {route}")));
        }
    }
    for route in [
        "eval('7')",
        "(0, eval)('7')",
        "globalThis.eval('7')",
        "globalThis['ev' + 'al']('7')",
        "Function('7')",
        "new Function('7')",
        "globalThis.Function('7')",
        "Reflect.get(globalThis, 'Function')('7')",
        "Object.getPrototypeOf(Object.getPrototypeOf(async () => 1)).constructor('7')",
        "''.constructor.constructor('7')",
        "[].at.constructor('7')",
        "Reflect.ownKeys.constructor('7')",
        "c.constructor.constructor('7')",
        "c.msg.constructor.constructor('7')",
        "new Proxy(() => 1, {}).constructor('7')",
        "setTimeout('7', 0)",
        "new ShadowRealm().evaluate('7')",
        "await import('data:text/javascript,7')",
        "await import('plugin.js')",
        "await import('prelude.js')",
        "import.meta.resolve('x')",
        "require('vm')",
        "WebAssembly.compile(new Uint8Array(8))",
        "Promise.resolve('7').then((0, eval))",
        "[1].map(Array.constructor)",
        "JSON.parse('7', Function)",
        "'7'.replace(/7/, Function)",
    ] {
        attacks.push((route.to_owned(), route.to_owned()));
    }
    let source = |code: &str| {
        let (setup, route) = code.rsplit_once("; ").unwrap_or(("", code));
        format!(
            "async function onRequest(c) {{
                try {{ {setup}; const made = await ({route}); c.reply('made ' + typeof made) }}
                catch (e) {{ c.reply('refused') }}
            }}"
        )
    };
    attacks.into_iter().map(|(name, code)| Attack { name, end: End::Over, source: source(&code) }).collect()
}

async fn make(stage: &Stage, attack: &Attack) -> Result<HookOutcome, SandboxFault> {
    let run = stage.try_run(&attack.source, within(DEADLINE, asked()), &NoFetch);
    let made = Clock::system().timeout(NEVER, run).await;
    made.unwrap_or_else(|| panic!("{} is not over", attack.name))
}

fn assert_ended(attack: &Attack, made: &Result<HookOutcome, SandboxFault>) {
    let name = &attack.name;
    match made {
        // The worker died, and nothing else.
        Err(SandboxFault::Crashed(_)) => {}
        Err(fault) => panic!("{name}: {fault}"),
        Ok(outcome) => match attack.end {
            End::Over => {}
            End::Error => assert!(outcome.error.is_some(), "{name} went well: {outcome:?}"),
            End::Stopped => {
                assert!(outcome.error.is_some(), "{name} went well");
                assert_ne!(kind(outcome), Some(ErrorKind::Output), "{name}");
            }
        },
    }
}

/// On two workers of two sandboxes, one of the two after the other.
async fn assert_all_end(attacks: Vec<Attack>) {
    let stages = [Stage::new(1), Stage::new(1)];
    let (even, odd): (Vec<_>, Vec<_>) = attacks.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
    let half = async |stage: &Stage, attacks: Vec<(usize, Attack)>| {
        for (_, attack) in attacks {
            let made = make(stage, &attack).await;
            assert_ended(&attack, &made);
            stage.assert_honest(&attack.name).await;
        }
    };
    futures_util::future::join(half(&stages[0], even), half(&stages[1], odd)).await;
}

#[tokio::test]
async fn every_attack_of_the_corpus_ends_and_leaves_nothing() {
    let attacks: Vec<_> = listed().chain(long()).collect();
    assert!(attacks.len() + code_generation().len() >= 330);
    assert_all_end(attacks).await;
}

#[tokio::test]
async fn no_way_leads_to_new_code() {
    let stage = Stage::new(1);
    for attack in code_generation() {
        let outcome = make(&stage, &attack).await.unwrap();
        let made: Vec<_> = outcome.replies.iter().filter(|reply| **reply != text("refused")).collect();
        let syntax = kind(&outcome) == Some(ErrorKind::Syntax);
        assert!(made.is_empty() && (syntax || outcome.replies.len() == 1), "{}: {outcome:?}", attack.name);
    }
    stage.assert_honest("all of them").await;
}

fn text(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}

#[tokio::test]
async fn a_plugin_finds_nothing_but_the_language_and_what_it_is_given() {
    let stage = Stage::new(1);
    let source =
        "function onRequest(c) { c.req.body = Reflect.ownKeys(globalThis).map(String).sort().join(' ') }";
    let found = stage.ask(source).await.request.unwrap().body.text().to_owned();
    let expected = "AggregateError AsyncDisposableStack DisposableStack Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date \
        Error EvalError FinalizationRegistry Float16Array Float32Array Float64Array Infinity Int16Array Int32Array Int8Array \
        InternalError Iterator JSON Map Math NaN Number Object Promise Proxy RangeError ReferenceError Reflect \
        RegExp Set String SuppressedError Symbol Symbol(Symbol.toStringTag) SyntaxError TypeError URIError \
        Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet console decodeURI \
        decodeURIComponent encodeURI encodeURIComponent escape fetch globalThis isFinite isNaN parseFloat parseInt \
        queueMicrotask reply skip undefined unescape AbortController AbortSignal CryptoKey DOMException TextDecoder \
        TextEncoder URL URLSearchParams atob btoa crypto structuredClone";
    let known: Vec<&str> = expected.split_whitespace().collect();
    let unknown: Vec<&str> = found.split(' ').filter(|name| !known.contains(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    for name in [
        "eval",
        "Function",
        "Atomics",
        "SharedArrayBuffer",
        "performance",
        "WeakRef",
        "setTimeout",
        "process",
    ] {
        let outcome = stage.ask(&format!("function onRequest(c) {{ c.reply(typeof {name}) }}")).await;
        assert_eq!(outcome.replies, [text("undefined")], "{name}");
    }
}

#[tokio::test]
async fn hostile_results_are_refused_or_harmless() {
    let stage = Stage::new(1);
    for (code, problem) in [
        ("c.req = null", "ctx.req must be an object"),
        ("c.req = 7", "ctx.req must be an object"),
        ("c.req.headers = [1, 2]", "ctx.req.headers must be an object"),
        ("c.req.headers = null", "ctx.req.headers must be an object"),
        ("c.req.headers['X-A'] = {}", "ctx.req.headers[\"X-A\"] must be a string"),
        ("c.req.headers['X-A'] = Symbol()", "ctx.req.headers[\"X-A\"] must be a string"),
        (
            "for (let n = 0; n < 64; n++) c.req.headers['X-' + n] = ''",
            "ctx.req.headers has more than 64 headers",
        ),
        ("c.req.url = { toString() { return 'http://evil/' } }", "ctx.req.url must be a string"),
        ("c.req.url = null", "ctx.req.url must be a string"),
        ("c.req.method = () => 1", "ctx.req.method must be a string"),
        ("c.req.body = () => 1", "ctx.req.body has no JSON"),
        ("c.req.body = Symbol()", "ctx.req.body has no JSON"),
        ("c.req.body = 'x'.repeat(600000)", "replies, request and state together are larger than 512 KiB"),
        ("c.req.body.a = 1n", "BigInt"),
        ("const o = {}; o.o = o; c.req.body = o", "circular"),
        ("let o = {}; for (let n = 0; n < 70; n++) o = { o }; c.req.body = o", "nested deeper than 64"),
        ("let o = {}; for (let n = 0; n < 70; n++) o = { o }; c.state = o", "nested deeper than 64"),
        ("Object.defineProperty(c.req, 'url', { get() { throw new Error('gotcha') } })", "gotcha"),
        ("c.req = new Proxy({}, { get() { throw new Error('gotcha') } })", "gotcha"),
        ("c.req.headers = new Proxy({}, { ownKeys() { return ['a', 'a'] } })", ""),
        ("c.req.body = { toJSON() { throw new Error('gotcha') } }", "gotcha"),
    ] {
        let outcome = stage.ask(&format!("function onRequest(c) {{ {code} }}")).await;
        let error = outcome.error.unwrap_or_else(|| panic!("{code}"));
        assert_eq!(error.kind, ErrorKind::Output, "{code}: {error:?}");
        assert!(error.message.contains(problem), "{code}: {error:?}");
        assert_eq!(outcome.request, None, "{code}");
    }
    for (code, body) in [
        ("c.req.body = JSON.parse('{\"__proto__\":{\"admin\":true}}')", "{\"__proto__\":{\"admin\":true}}"),
        ("JSON.stringify = () => 'forged'; JSON.parse = () => ({}); c.req.body = [1]", "[1]"),
        ("Object.keys = () => ['forged']; Array.isArray = () => true; c.req.body = [1]", "[1]"),
        ("String.prototype.toWellFormed = () => 'forged'; c.req.body = '[1]'", "[1]"),
        ("Promise.prototype.then = () => 1; c.req.body = [1]; return Promise.resolve(1)", "[1]"),
        ("c.req.body = [1]; return { then() { c.req.body = [2] } }", "[1]"),
        ("Object.prototype.req = null; Array.prototype.toJSON = undefined; c.req.body = [1]", "[1]"),
    ] {
        let outcome = stage.ask(&format!("function onRequest(c) {{ {code} }}")).await;
        assert_eq!(outcome.error, None, "{code}");
        assert_eq!(outcome.request.unwrap().body.text(), body, "{code}");
    }
}

#[tokio::test]
async fn the_message_is_frozen_and_separate_for_each_run() {
    let stage = Stage::new(1);
    for code in [
        "c.msg.content = 'x'",
        "c.msg.sender.user_id = 'x'",
        "delete c.msg.content",
        "c.msg.more = 1",
        "Object.defineProperty(c.msg, 'content', { value: 1 })",
        "Object.setPrototypeOf(c.msg, null)",
        "c.msg.sender.toString = 1",
        "Error.prepareStackTrace = () => 1",
        "Error.stackTraceLimit = 1e9",
        "delete Error.prepareStackTrace",
        "import.meta.a.b",
    ] {
        let outcome = stage.ask(&format!("function onRequest(c) {{ {code} }}")).await;
        assert_eq!(kind(&outcome), Some(ErrorKind::Throw), "{code}");
    }
    let dump = "function onRequest(c) { c.req.body = JSON.stringify(c) + Object.keys(c).join() }";
    let told = stage.ask(dump).await.request.unwrap().body.text().to_owned();
    assert!(told.ends_with("msg,req,reply,skip,fetch,state"), "{told}");
    let shown = "function onRequest(c) { c.reply([c.reply, console.log, onRequest].map(String).join('|')) }";
    let Reply::Text(shown) = &stage.ask(shown).await.replies[0] else { panic!() };
    assert_eq!(shown.matches("[native code]").count(), 3, "{shown}");
    for thrown in ["{}", "new Proxy({}, {})", "Symbol()", "() => 1", "[]"] {
        let error = stage.ask(&format!("function onRequest() {{ throw {thrown} }}")).await.error.unwrap();
        assert!(!error.message.contains("0x"), "{}", error.message);
    }
}

#[tokio::test]
async fn runs_of_two_tenants_see_nothing_of_each_other() {
    let stage = Stage::new(1);
    let pollute = "globalThis.left = 1; Object.prototype.left = 2; Array.prototype.map = () => 'taken';
        Symbol.for('left').description; RegExp.prototype.test = () => true;
        function onRequest(c) { Promise.resolve().then(() => {}).then(() => reply('from A')); throw 1 }";
    let look = "const re = /x/g; let runs = 0;
        function onRequest(c) {
            c.reply([typeof left, typeof ({}).left, [1].map((n) => n + 1), /a/.test('b'), re.lastIndex, ++runs].join());
            re.exec('x');
        }";
    for _ in 0..100 {
        stage.ask(pollute).await;
        assert_eq!(stage.ask(look).await.replies, [text("undefined,undefined,2,false,0,1")]);
    }
}

#[tokio::test]
async fn a_dropped_run_is_killed_and_its_seat_is_free() {
    let stage = Stage::new(1);
    let forever = "function onRequest() { for (;;); }";
    let mut run = Box::pin(stage.ask(forever));
    let given_up = Clock::system().timeout(Duration::from_millis(50), &mut run).await;
    assert!(given_up.is_none());
    drop(run);
    stage.assert_honest("a run that no one waited for").await;
}
