//! Guarantees to authors of plugins.

use std::time::Duration;

use async_trait::async_trait;
use hub_core::sandbox::{
    Body, Dialect, ErrorKind, FetchAnswer, FetchCall, FetchGate, Grants, HookInput, Limits, LogLevel, Reply,
    SandboxFault, Source,
};

use super::stage::{Stage, answered, asked, json, kind, request, within};

fn text(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}

#[tokio::test]
async fn on_request_rewrites_url_method_headers_and_body() {
    let stage = Stage::new(1);
    let source = "function onRequest(ctx) {
        ctx.req.url += '?a=1';
        ctx.req.method = 'PUT';
        ctx.req.headers['X-N'] = 7;
        delete ctx.req.headers['Content-Type'];
        ctx.req.body.who = ctx.msg.sender.user_name;
    }";
    let outcome = stage.run(source, HookInput { measure: true, ..asked() }).await;
    assert_eq!(outcome.error, None);
    assert!(outcome.present && !outcome.skipped && outcome.replies.is_empty());
    let changed = outcome.request.unwrap();
    assert_eq!(changed.url, "https://good.example/hook?a=1");
    assert_eq!(changed.method, "PUT");
    assert_eq!(changed.headers, [("X-N".to_owned(), "7".to_owned())].into());
    assert_eq!(changed.body.text(), r#"{"content":"order 42","n":1,"who":"Ada"}"#);
    assert!(outcome.memory_bytes > 50_000 && outcome.memory_bytes < 2 << 20, "{}", outcome.memory_bytes);
    assert_eq!(stage.ask(source).await.memory_bytes, 0, "it is read when it is wanted");
}

#[tokio::test]
async fn a_string_body_is_sent_as_it_is_and_anything_else_as_json() {
    let stage = Stage::new(1);
    for (assigned, expected) in [
        ("'plain'", Body::Text("plain".to_owned())),
        ("JSON.stringify({a: 1})", Body::Text("{\"a\":1}".to_owned())),
        ("[1, 'x']", Body::Json(json(&serde_json::json!([1, "x"])))),
        ("7", Body::Json(json(&serde_json::json!(7)))),
        ("null", Body::Empty),
        ("undefined", Body::Empty),
        ("'\\ud800x\\0'", Body::Text("\u{fffd}x\0".to_owned())),
        ("({a: '\\udfff'})", Body::Json(json(&serde_json::json!({"a": "\u{fffd}"})))),
    ] {
        let outcome = stage.ask(&format!("function onRequest(ctx) {{ ctx.req.body = {assigned}; }}")).await;
        assert_eq!(outcome.error, None, "{assigned}");
        assert_eq!(outcome.request.unwrap().body, expected, "{assigned}");
    }
}

#[tokio::test]
async fn an_unchanged_body_keeps_its_bytes() {
    let stage = Stage::new(1);
    let spaced = r#"{ "b": 1.0, "a": 12345678901234567890 }"#;
    let body = Body::Json(serde_json::value::RawValue::from_string(spaced.to_owned()).unwrap());
    let input = HookInput::on_request(
        super::stage::message(),
        hub_core::sandbox::PluginRequest { body, ..request() },
    );
    let outcome = stage.run("function onRequest(ctx) { ctx.req.headers.A = 'b' }", input.clone()).await;
    assert_eq!(outcome.request.unwrap().body.text(), spaced);
    let outcome = stage.run("function onRequest(ctx) { ctx.req.body.b }", input).await;
    assert_eq!(outcome.request, None);
}

#[tokio::test]
async fn typed_arrays_are_there_however_they_are_named() {
    let stage = Stage::new(1);
    for bytes in [
        "new Uint8Array(2)",
        "new Float16Array(1).buffer",
        "new DataView(new ArrayBuffer(2))",
        "new globalThis['Uint8' + 'Clamped' + 'Array'](2)",
        "new (Reflect.get(globalThis, Reflect.ownKeys(globalThis).find((name) => /^Int8/.test(String(name)))))(2)",
        r"new \u0055int16Array(1)",
    ] {
        let outcome =
            stage.ask(&format!("function onRequest(ctx) {{ ctx.reply({bytes}.byteLength) }}")).await;
        assert_eq!((outcome.error, outcome.replies), (None, vec![text("2")]), "{bytes}");
    }
}

#[tokio::test]
async fn headers_have_one_spelling_and_any_name() {
    let stage = Stage::new(1);
    let source = "function onRequest(ctx) {
        const { headers } = ctx.req;
        headers['x-a'] = 1;
        headers['X-A'] += 1;
        headers['__PROTO__'] = 2;
        ctx.reply([headers['x-A'], 'X-a' in headers, headers.toString === Object.prototype.toString,
            Object.keys(headers).sort()].join(' '));
        if (ctx.msg.sender.user_name === 'Ada') ctx.req.headers = { 'x-b': 3, ...headers };
    }";
    let outcome = stage.ask(source).await;
    assert_eq!(
        (outcome.error, &outcome.replies),
        (None, &vec![text("2 true true Content-Type,X-A,__proto__")])
    );
    let names: Vec<String> = outcome.request.unwrap().headers.into_keys().collect();
    assert_eq!(names, ["Content-Type", "X-A", "__proto__", "x-b"]);
}

#[tokio::test]
async fn replies_come_in_all_forms_and_ten_of_them() {
    let stage = Stage::new(1);
    let source = "function onRequest(ctx) {
        ctx.reply('one'); reply(2); reply('data:text/plain,x'); reply({base64: 'AAAA', filename: 'a.bin'});
        reply({base64: 'AAAA'}); reply({forward: true}); skip();
        for (let n = 0; n < 6; n++) reply('n' + n);
    }";
    let outcome = stage.ask(source).await;
    assert_eq!(outcome.error, None);
    assert!(outcome.skipped);
    let file = |filename: &str| Reply::File { base64: "AAAA".to_owned(), filename: filename.to_owned() };
    let first =
        [text("one"), text("2"), Reply::DataUri("data:text/plain,x".to_owned()), file("a.bin"), file("")];
    assert_eq!(outcome.replies[..5], first);
    assert_eq!(outcome.replies[5..], [Reply::Forward, text("n0"), text("n1"), text("n2"), text("n3")]);
    assert_eq!(outcome.logs.len(), 2);
    assert_eq!(outcome.logs[0].level, LogLevel::Warn);
}

#[tokio::test]
async fn a_missing_grant_throws() {
    let stage = Stage::new(1);
    let none = Grants { reply: false, skip: false, fetch: false };
    for call in ["reply('x')", "ctx.reply('x')", "skip()", "ctx.skip()", "await fetch('https://a.example/')"]
    {
        let source = format!("async function onRequest(ctx) {{ {call} }}");
        let outcome = stage.run(&source, HookInput { grants: none, ..asked() }).await;
        assert_eq!(kind(&outcome), Some(ErrorKind::Throw), "{call}");
        assert!(outcome.replies.is_empty() && !outcome.skipped);
    }
    let outcome = stage.run("function onResponse(ctx) { ctx.skip() }", answered(None)).await;
    assert_eq!(outcome.error.unwrap().message, "Error: skip() works in onRequest only");
}

#[tokio::test]
async fn on_response_reads_the_answer_and_cannot_change_the_request() {
    let stage = Stage::new(1);
    let source = "function onResponse(ctx) {
        if (ctx.res.body === null) return ctx.reply({forward: true});
        try { ctx.req.url = 'x' } catch (e) { ctx.reply(e.name) }
        ctx.reply(ctx.res.status + JSON.parse(ctx.res.body).answer);
    }";
    let outcome = stage.run(source, answered(Some(r#"{"answer":"!"}"#))).await;
    assert_eq!((outcome.error, outcome.request), (None, None));
    assert_eq!(outcome.replies, [text("TypeError"), text("200!")]);
    let outcome = stage.run(source, answered(None)).await;
    assert_eq!(outcome.replies, [Reply::Forward]);
    let outcome = stage.run("function onRequest() {}", answered(None)).await;
    assert!(!outcome.present && outcome.error.is_none());
}

#[tokio::test]
async fn state_lives_from_one_hook_to_the_next() {
    let stage = Stage::new(1);
    let source = "function onRequest(ctx) { ctx.state.n = [1] }
        function onResponse(ctx) { ctx.reply(ctx.state.n.concat(2).join()) }";
    let outcome = stage.ask(source).await;
    assert_eq!(outcome.state.as_ref().unwrap().get(), r#"{"n":[1]}"#);
    let outcome = stage.run(source, HookInput { state: outcome.state, ..answered(None) }).await;
    assert_eq!(outcome.replies, [text("1,2")]);
    assert!(stage.ask("function onRequest(ctx) { }").await.state.is_none());
    let outcome = stage.ask("function onRequest(ctx) { ctx.state = 'x'.repeat(65535) }").await;
    assert_eq!(outcome.error.unwrap().message, "ctx.state is larger than 64 KiB");
}

#[tokio::test]
async fn the_published_dialect_runs() {
    let stage = Stage::new(1);
    let source = "// ==WebhookPlugin==
        var greeting = 'hi';
        function onRequest(c) {
            var body = JSON.parse(ctx.req.body);
            ctx.req.body = JSON.stringify({ text: ctx.msg.sender + ': ' + body.content });
            reply(greeting);
        }";
    let outcome = stage.run(source, HookInput { dialect: Dialect::WebhookPlugin, ..asked() }).await;
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.request.unwrap().body.text(), r#"{"text":"Ada: order 42"}"#);
    assert_eq!(outcome.replies, [text("hi")]);
}

#[tokio::test]
async fn the_console_is_kept_within_its_caps() {
    let stage = Stage::new(1);
    let source = "function onRequest() {
        console.log('a', 1, {b: [2]}, null, undefined, new Error('c'), () => 1, 2n);
        console.error('e'); console.debug('d');
        const o = {}; o.o = o; console.warn(o);
        for (let n = 0; n < 200; n++) console.log('n' + n);
    }";
    let outcome = stage.ask(source).await;
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.logs[0].text, r#"a 1 {"b":[2]} null undefined Error: c [function] 2n"#);
    let levels: Vec<_> = outcome.logs[..4].iter().map(|line| line.level).collect();
    assert_eq!(levels, [LogLevel::Info, LogLevel::Error, LogLevel::Debug, LogLevel::Warn]);
    assert_eq!(outcome.logs.len(), 100);
    let outcome = stage.ask("function onRequest() { for (;;) console.log('x'.repeat(1e6)) }").await;
    assert_eq!(outcome.logs.iter().map(|line| line.text.len()).sum::<usize>(), 8 * 1024);
}

#[tokio::test]
async fn errors_have_the_line_and_column_of_the_authors_file() {
    let stage = Stage::new(1);
    let source = "// one\nfunction inner() {\n    null.x;\n}\nfunction onRequest() {\n  inner();\n}\n";
    let error = stage.ask(source).await.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Throw);
    assert!(error.message.starts_with("TypeError: "), "{}", error.message);
    assert_eq!((error.line, error.column.is_some()), (Some(3), true));
    let stack = error.stack.unwrap();
    assert!(stack.contains("inner (plugin.js:3") && stack.contains("onRequest (plugin.js:6"), "{stack}");

    let error = stage.ask("function onRequest() {\n  let 1x;\n}").await.error.unwrap();
    assert_eq!((error.kind, error.line), (ErrorKind::Syntax, Some(2)), "{error:?}");
    let error = stage.ask("var x = 1;\nthrow new RangeError('top');").await.error.unwrap();
    assert_eq!((error.kind, error.line), (ErrorKind::Throw, Some(2)), "{error:?}");
    let error = stage.ask("async function onRequest() {\n await null;\n throw new Error('late') }").await;
    assert_eq!(error.error.unwrap().line, Some(3));

    for (thrown, message) in [
        ("'text'", "thrown: text"),
        ("7", "thrown: 7"),
        ("null", "null was thrown"),
        ("undefined", "thrown: undefined"),
        ("{}", "thrown: a value that is not an Error (object)"),
        ("Symbol('s')", "thrown: a value that is not an Error (symbol)"),
    ] {
        let error = stage.ask(&format!("function onRequest() {{ throw {thrown} }}")).await.error.unwrap();
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Throw, message));
    }
}

#[tokio::test]
async fn an_interrupted_run_reports_its_position() {
    let stage = Stage::new(1);
    let source = "function onRequest() {\n  reply('early'); console.log('before');\n  for (;;) {}\n}";
    let outcome = stage.run(source, within(100, asked())).await;
    let error = outcome.error.unwrap();
    // An empty loop has no line of its own; the engine names the statement before it.
    assert_eq!(error.kind, ErrorKind::Timeout);
    assert!(matches!(error.line, Some(2 | 3)), "{error:?}");
    assert_eq!(error.message, "took longer than 100 ms");
    assert_eq!((outcome.replies, outcome.logs.len()), (vec![text("early")], 1));
    stage.assert_honest("a timeout").await;
}

#[tokio::test]
async fn a_run_that_cannot_be_interrupted_keeps_what_it_said() {
    let stage = Stage::new(1);
    let source = "function onRequest() { reply('early'); [].reverse.call({length: 2 ** 53 - 1}) }";
    let outcome = stage.run(source, within(100, asked())).await;
    assert_eq!(kind(&outcome), Some(ErrorKind::Timeout));
    assert_eq!(outcome.replies, [text("early")]);
    stage.assert_honest("a kill").await;
}

#[tokio::test]
async fn memory_and_depth_are_errors_of_the_plugin() {
    let stage = Stage::new(1);
    let error = stage.ask("function onRequest() { const a = []; for (;;) a.push({}) }").await.error.unwrap();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Memory, "needed more than 32 MiB"));
    let small = Limits { memory: 2 << 20, ..Limits::default() };
    let input = HookInput { limits: small, ..asked() };
    let outcome = stage.run("function onRequest() { 'x'.repeat(3e6) + 1 }", input).await;
    assert_eq!((kind(&outcome), outcome.memory_bytes), (Some(ErrorKind::Memory), 2 << 20));

    let levels = "let n = 0; function f() { n++; f() }
        function onRequest() { try { f() } catch (e) { reply(e.name); reply(n) } }";
    let replies = stage.ask(levels).await.replies;
    assert_eq!(replies[0], text("RangeError"));
    let Reply::Text(reached) = &replies[1] else { panic!("{replies:?}") };
    let reached: u32 = reached.parse().unwrap();
    // The hook is a level too.
    assert!((700..1000).contains(&reached), "{reached} levels");
    for recursion in [
        "const f = () => { n++; f() }; f()",
        "const f = () => n++ && f(); n++; f(); n--",
        "const o = { f() { n++; this.f() } }; o.f()",
        "const o = { get f() { n++; return this.f } }; o.f",
        "class A { constructor() { n++; new A() } } new A()",
        "const f = async () => { n++; await f() }; f().catch(() => 1)",
        "function f() { n++; f.call() } f()",
    ] {
        let source = format!(
            "let n = 0; const count = () => {{ const reached = n; n = 0; return reached }};
             let top = 0; try {{ {recursion} }} catch {{ top = count() }}
             async function onRequest(ctx) {{ try {{ {recursion} }} catch {{}} await null; ctx.state = Math.max(top, count()) }}"
        );
        let outcome = stage.ask(&source).await;
        assert_eq!(outcome.error, None, "{recursion}");
        let reached: u32 = outcome.state.unwrap().get().parse().unwrap();
        assert!((100..1000).contains(&reached), "{recursion}: {reached} levels");
    }
    assert_eq!(kind(&stage.ask("function onRequest() { onRequest() }").await), Some(ErrorKind::Stack));
}

#[tokio::test]
async fn hooks_may_be_async_and_must_finish() {
    let stage = Stage::new(1);
    let source = "const wait = Promise.resolve(1);
        const onRequest = async (ctx) => { const n = await wait; await null; ctx.reply('n' + n) };";
    assert_eq!(stage.ask(source).await.replies, [text("n1")]);
    let error = stage.ask("function onRequest() { return new Promise(() => {}) }").await.error.unwrap();
    assert!(error.message.starts_with("the hook never finished"), "{}", error.message);
    let outcome = stage.ask("function onRequest() { Promise.resolve().then(() => reply('queued')) }").await;
    assert_eq!(outcome.replies, [text("queued")]);
}

/// Responds with the call itself; URLs with `slow` get no response, and those with `evil` are rejected.
struct Echo;

#[async_trait]
impl FetchGate for Echo {
    async fn fetch(&self, call: FetchCall, left: Duration) -> Result<FetchAnswer, String> {
        assert!(left <= Duration::from_secs(5));
        if call.url.contains("slow") {
            std::future::pending::<()>().await;
        }
        if call.url.contains("evil") {
            return Err("evil.example is not on a @connect line".to_owned());
        }
        let body = serde_json::json!({"asked": call}).to_string();
        Ok(FetchAnswer { status: 201, headers: [("a".to_owned(), "b".to_owned())].into(), body })
    }
}

fn fetching() -> HookInput {
    HookInput { grants: Grants { fetch: true, ..Grants::default() }, ..asked() }
}

#[tokio::test]
async fn fetches_are_made_by_the_hub() {
    let stage = Stage::new(1);
    let source = "async function onRequest(ctx) {
        const made = await Promise.all([
            ctx.fetch('https://good.example/a', {method: 'PUT', headers: {'X-A': 1}, body: {b: 2}}),
            fetch('https://good.example/b'),
        ]);
        const [first, second] = [await made[0].json(), await made[1].text()];
        ctx.req.body = [made[0].status, made[0].ok, made[0].headers.a, first.asked, JSON.parse(second).asked.method];
        try { await fetch('https://evil.example/') } catch (e) { ctx.reply(e.name + ': ' + e.message) }
        try { for (let n = 0; n < 9; n++) await fetch('https://good.example/') } catch (e) { ctx.reply(e.message) }
    }";
    let outcome = stage.try_run(source, fetching(), &Echo).await.unwrap();
    assert_eq!(outcome.error, None);
    let body: serde_json::Value = serde_json::from_str(outcome.request.unwrap().body.text()).unwrap();
    let asked = serde_json::json!({
        "url": "https://good.example/a", "method": "PUT", "headers": {"X-A": "1"}, "body": "{\"b\":2}",
    });
    assert_eq!(body, serde_json::json!([201, true, "b", asked, "GET"]));
    let refused = "TypeError: evil.example is not on a @connect line";
    assert_eq!(outcome.replies, [text(refused), text("a run makes at most 5 fetches")]);
}

#[tokio::test]
async fn a_fetch_shares_the_runs_time_and_is_dropped_with_it() {
    let stage = Stage::new(1);
    let slow = "async function onRequest() { await fetch('https://slow.example/') }";
    let outcome = stage.try_run(slow, within(100, fetching()), &Echo).await.unwrap();
    assert_eq!(kind(&outcome), Some(ErrorKind::Timeout));
    let orphan = "function onRequest() { fetch('https://slow.example/'); reply('done') }";
    let outcome = stage.try_run(orphan, fetching(), &Echo).await.unwrap();
    assert_eq!((outcome.error, outcome.replies), (None, vec![text("done")]));
    stage.assert_honest("an orphaned fetch").await;
}

#[tokio::test]
async fn a_source_can_be_checked_without_running_it() {
    let stage = Stage::new(1);
    let check = async |source: &str| stage.sandbox.check("t", &Source::new(source)).await.unwrap();
    assert_eq!(check("throw 1").await, None);
    assert_eq!(check("let let = 1").await.unwrap().line, Some(1));
    let large = format!("//{}", "x".repeat(256 * 1024 - 2));
    assert_eq!(check(&large).await, None);
    assert_eq!(check(&format!("{large}x")).await.unwrap().kind, ErrorKind::Syntax);
    for cut_off in ["/*", "`", "(", "function onRequest() {", "} {", "return 1", "\0"] {
        assert_eq!(check(cut_off).await.map(|error| error.kind), Some(ErrorKind::Syntax), "{cut_off:?}");
    }
    assert_eq!(check("function onRequest() {} //").await, None);
    for import in ["import fs from 'fs'", "import 'fs'", "import * as all from './other.js'"] {
        let error = check(&format!("// import\nconst a = 1;\n  {import};\n")).await.unwrap();
        assert_eq!((error.line, error.column), (Some(3), Some(3)), "{import}: {error:?}");
        assert!(error.message.starts_with("import is not available"), "{import}: {error:?}");
    }
}

#[tokio::test]
async fn without_a_program_nothing_runs() {
    let sandbox = hub_core::sandbox::Sandbox::new(
        hub_core::sandbox::SandboxConfig::default(),
        hub_core::time::Clock::system(),
    );
    let fault = sandbox.check("t", &Source::new("")).await.unwrap_err();
    assert!(matches!(fault, SandboxFault::Unavailable(_)));
    assert_eq!(hub_core::Error::from(fault).code(), hub_core::ErrorCode::Unavailable);
}

#[tokio::test]
async fn the_same_in_the_hubs_own_process() {
    use hub_core::sandbox::{Sandbox, SandboxConfig, WorkerProgram};
    let config = SandboxConfig::of(WorkerProgram::InProcessTrustedOnly);
    let stage = Stage { sandbox: Sandbox::new(config, hub_core::time::Clock::system()) };
    stage.assert_honest("nothing").await;
    let source = "async function onRequest() { reply((await (await fetch('https://good.example/')).json()).asked.url) }";
    let outcome = stage.try_run(source, fetching(), &Echo).await.unwrap();
    assert_eq!(outcome.replies, [text("https://good.example/")]);
    let slow = "async function onRequest() { await fetch('https://slow.example/') }";
    let outcome = stage.try_run(slow, within(50, fetching()), &Echo).await.unwrap();
    assert_eq!(kind(&outcome), Some(ErrorKind::Timeout));
    assert_eq!(
        kind(&stage.run("function onRequest() { for(;;); }", within(50, asked())).await),
        Some(ErrorKind::Timeout)
    );
    let error = stage.sandbox.check("t", &Source::new("\nlet 1")).await.unwrap().unwrap();
    assert_eq!(error.line, Some(2));
}
