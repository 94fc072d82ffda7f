//! Every built-in function on hostile receivers and arguments. The functions are found by walking the object graph
//! from the globals, so that none is forgotten when the engine gets new ones.

use std::time::Duration;

use hub_core::{
    random::Random,
    sandbox::{NoFetch, SandboxFault},
    time::Clock,
};

use super::stage::{Stage, asked, within};

/// Lists functions by a path of property names, and finds one of them again by its number.
const WALK: &str = "
    function walk() {
        const seen = new Set(), found = [];
        const visit = (value, path) => {
            if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value)) return;
            seen.add(value);
            if (typeof value === 'function') found.push([path, value]);
            for (const key of Reflect.ownKeys(value)) {
                const own = Object.getOwnPropertyDescriptor(value, key);
                for (const part of ['value', 'get', 'set']) visit(own[part], path + '.' + String(key));
            }
            visit(Object.getPrototypeOf(value), path + '.__proto__');
        };
        visit(globalThis, '');
        for (const value of [async () => 1, function* () {}, async function* () {}, [].values(), new Map().keys(),
            new Set().keys(), 'a'.matchAll(/a/g), 'a'[Symbol.iterator](), (function* () {})(), Iterator.from({})]) {
            visit(value, '<' + Object.prototype.toString.call(value) + '>');
        }
        return found.filter(([path]) => !path.startsWith('.reply') && !path.startsWith('.skip'));
    }";

const HOSTILE: &str = "
    const hostile = () => {
        const sparse = []; sparse.length = 2 ** 32 - 1;
        const detached = new ArrayBuffer(8); detached.transfer();
        let chain = {}; for (let n = 0; n < 1e5; n++) chain = Object.create(chain);
        const throwing = new Proxy(function () {}, { get() { throw 1 }, apply() { throw 2 }, ownKeys() { throw 3 } });
        const odd = { length: 2 ** 53 - 1, valueOf() { return -1 }, toString() { return 'x'.repeat(1e5) } };
        return [undefined, odd, sparse, detached, throwing, chain, Object.freeze([1, 2]), new Proxy([], {}), '\\ud800',
            2n ** 200n, new Float64Array(9), /(a+)+$/, new Map([[odd, odd]]), Symbol.iterator, -0];
    };";

/// One of this number of functions is tried, unless all are requested.
const EVERY: u64 = 9;

#[tokio::test]
async fn built_in_functions_on_hostile_values_end() {
    let stage = Stage::new(1);
    let count = format!("{WALK} function onRequest(c) {{ c.state = walk().length }}");
    let count: u64 = stage.ask(&count).await.state.unwrap().get().parse().unwrap();
    assert!(count > 500, "the walk found {count} functions");
    // HUB_SANDBOX_SWEEP=all tries every function, which takes minutes.
    let all = std::env::var("HUB_SANDBOX_SWEEP").is_ok_and(|sweep| sweep == "all");
    let (every, first) = if all { (1, 0) } else { (EVERY, Random::system().below(EVERY)) };
    for number in (first..count).step_by(usize::try_from(every).unwrap()) {
        let source = format!(
            "{WALK} {HOSTILE}
            function onRequest(c) {{
                const [path, f] = walk()[{number}];
                console.log(path);
                const values = hostile();
                for (const receiver of values) {{
                    for (const argument of [values[1], values[4], receiver]) {{
                        try {{ f.call(receiver, argument, argument, argument) }} catch {{}}
                    }}
                    try {{ new f(receiver, receiver) }} catch {{}}
                }}
            }}"
        );
        let run = stage.try_run(&source, within(60, asked()), &NoFetch);
        let made = Clock::system().timeout(Duration::from_secs(60), run).await;
        match made.unwrap_or_else(|| panic!("function {number} of {count} is not over")) {
            Ok(_) | Err(SandboxFault::Crashed(_)) => {}
            Err(fault) => panic!("function {number} of {count}: {fault}"),
        }
        if number % 4 == 0 {
            stage.assert_honest(&format!("function {number} of {count}")).await;
        }
    }
    stage.assert_honest("all functions").await;
}

#[tokio::test]
async fn memory_that_ends_anywhere_ends_the_run_and_nothing_else() {
    use hub_core::sandbox::{HookInput, Limits};
    let stage = Stage::new(1);
    let source = "function onRequest(c) {
        const keep = [];
        for (let n = 0; n < 200; n++) {
            try {
                keep.push((() => 1).bind(null, 1, 2, n), new Map([[n, {}]]), /a(b)/.exec('ab'), class {}, [...'abc'],
                    JSON.parse('{\"a\":[1]}'), new Promise((r) => r(1)).then((x) => [x]).finally(() => 1),
                    (async () => { await 1 })(), (function* () { yield 1 })().next(), new Uint8Array(900), 'a'.repeat(99 * n));
            } catch {}
        }
    }";
    let seed = Random::system().below(48);
    for step in 0..60 {
        let memory = Limits::MIN_MEMORY + usize::try_from(seed).unwrap() + step * 48;
        let limits = Limits { memory, timeout: Duration::from_millis(500) };
        match stage.try_run(source, HookInput { limits, ..asked() }, &NoFetch).await {
            Ok(_) | Err(SandboxFault::Crashed(_)) => {}
            Err(fault) => panic!("{memory} bytes: {fault}"),
        }
    }
    stage.assert_honest("the sweep").await;
}
