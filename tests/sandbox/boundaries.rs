//! Behaviour of a run at its limits.

use hub_core::sandbox::{ErrorKind, Reply};

use super::stage::{Stage, answered, asked, kind, within};

fn text(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}

fn hook(code: &str) -> String {
    format!("async function onRequest(c) {{ {code} }}")
}

#[tokio::test]
async fn no_recursion_is_deeper_than_a_thousand_levels() {
    let stage = Stage::new(1);
    for shape in [
        "function f(){n++;f()}",
        "function f(){ n += 1; f() }",
        "const f = () => { n++; f() }",
        "const f = () => (n++, f())",
        "function f(){ ++n; return f() }",
        "var f = function () { n++; f() }",
        "function f(){ n++; g() } function g(){ n++; f() }",
        "const o = { get a() { n++; return this.a } }; const f = () => o.a",
        "class C { static f() { n++; C.f() } } const f = C.f",
        "function f(a, b, c){ n++; f(a, b, c) }",
        "async function f(){ n++; await f() }",
        "function f(){ try { n++; f() } finally { n += 0 } }",
    ] {
        let source = format!(
            "let n = 0; {shape};\nasync function onRequest(c) {{ try {{ await f() }} catch (e) {{ c.reply(e.name) }} c.reply(n) }}"
        );
        let outcome = stage.ask(&source).await;
        let [Reply::Text(name), Reply::Text(reached)] = &outcome.replies[..] else {
            panic!("{shape}: {outcome:?}")
        };
        let reached: u32 = reached.parse().unwrap();
        assert_eq!(name, "RangeError", "{shape}");
        assert!((200..=1000).contains(&reached), "{shape}: {reached} levels");
    }
    let plain = "let n = 0; function f(){n++;f()} function onRequest(c) { try { f() } catch {} c.reply(n) }";
    let Reply::Text(reached) = &stage.ask(plain).await.replies[0] else { panic!("no text") };
    assert!((900..=1000).contains(&reached.parse().unwrap()), "{reached} levels");
}

#[tokio::test]
async fn a_reply_has_at_most_64_kib() {
    let stage = Stage::new(1);
    let outcome = stage.ask(&hook("c.reply('长'.repeat(3000)); c.reply('x'.repeat(65536))")).await;
    assert_eq!(outcome.error, None);
    assert_eq!(outcome.replies, [text(&"长".repeat(3000)), text(&"x".repeat(65536))]);
    let error = stage.ask(&hook("c.reply('x'.repeat(65537))")).await.error.unwrap();
    assert_eq!(error.message, "RangeError: a reply's text is at most 64 KiB");
    let error =
        stage.ask(&hook("for (let n = 0; n < 9; n++) c.reply('x'.repeat(65536))")).await.error.unwrap();
    assert_eq!(error.message, "RangeError: replies are larger than 512 KiB");
}

#[tokio::test]
async fn half_a_character_is_replaced_in_keys_as_in_values() {
    let stage = Stage::new(1);
    for code in [
        r"c.req.body = { ['\ud800a']: '\udc00b', '\\ud800': 'c\\\\' }; c.state = c.req.body",
        r"c.req.body = JSON.parse('{\x22\\ud800a\x22:\x22\\udc00b\x22,\x22\\\\ud800\x22:\x22c\\\\\\\\\x22}'); c.state = c.req.body",
    ] {
        let outcome = stage.ask(&hook(code)).await;
        assert_eq!(outcome.error, None, "{code}");
        let expected = "{\"\u{fffd}a\":\"\u{fffd}b\",\"\\\\ud800\":\"c\\\\\\\\\"}";
        assert_eq!(outcome.request.unwrap().body.text(), expected, "{code}");
        assert_eq!(outcome.state.unwrap().get(), expected, "{code}");
    }
    let nested = stage.ask(&hook(r"c.state = [{ a: { ['\udfff']: 1 } }]")).await;
    assert_eq!(nested.state.unwrap().get(), "[{\"a\":{\"\u{fffd}\":1}}]");
    stage.assert_honest("half characters").await;
}

#[tokio::test]
async fn json_that_nothing_can_read_is_an_error_of_the_plugin() {
    let stage = Stage::new(1);
    for code in [
        "JSON.stringify",
        // What the author makes of the functions that the hub calls.
        "String.prototype.replace = RegExp.prototype[Symbol.replace] = () => '{'; c.state = { ['\\ud800']: 1 }",
        "if (JSON.rawJSON) c.state = { n: JSON.rawJSON('1e999') }",
    ] {
        let outcome = stage.ask(&hook(code)).await;
        assert!(matches!(kind(&outcome), None | Some(ErrorKind::Output)), "{code}: {outcome:?}");
        stage.assert_honest(code).await;
    }
}

#[tokio::test]
async fn headers_are_found_in_any_case_and_have_one_spelling() {
    let stage = Stage::new(1);
    let source = "function onRequest(c) {
        const h = c.req.headers;
        c.reply([h['content-type'], h['CONTENT-TYPE'], 'content-Type' in h, h.absent, typeof h.hasOwnProperty].join());
        h['content-type'] = 'text/plain';
        h['x-a'] = '1'; h['X-A'] += '2'; h['x-b'] = 3; delete h['X-b'];
        Object.defineProperty(h, 'x-C', { value: 'c' });
        c.reply([Object.keys(h), JSON.stringify({ ...h }), Object.entries(h)].join(' '));
        h.__proto__ = 'p';
        c.state = [Object.hasOwn(h, 'x-c'), Object.getPrototypeOf(h) === Object.prototype];
    }";
    let outcome = stage.ask(source).await;
    assert_eq!(outcome.error, None);
    assert_eq!(
        outcome.replies,
        [
            text("application/json,application/json,true,,function"),
            text(
                "Content-Type,X-A,X-C {\"Content-Type\":\"text/plain\",\"X-A\":\"12\",\"X-C\":\"c\"} Content-Type,text/plain,X-A,12,X-C,c"
            ),
        ]
    );
    assert_eq!(outcome.state.unwrap().get(), "[true,true]");
    let headers = outcome.request.unwrap().headers;
    let names: Vec<&str> = headers.keys().map(String::as_str).collect();
    assert_eq!(names, ["Content-Type", "X-A", "X-C", "__proto__"]);
    let source = "function onResponse(c) {
        for (const change of [() => { c.req.headers['content-type'] = 'x' }, () => { delete c.req.headers['content-type'] }]) {
            try { change(); c.reply('changed') } catch (e) { c.reply(e.name) }
        }
        c.reply(c.req.headers['content-type'] + c.res.headers['RETRY-after']);
    }";
    let mut input = answered(None);
    input.response.as_mut().unwrap().headers.insert("Retry-After".to_owned(), "7".to_owned());
    let outcome = stage.run(source, input).await;
    assert_eq!(outcome.replies, [text("TypeError"), text("TypeError"), text("application/json7")]);
}

#[tokio::test]
async fn bound_functions_work_and_the_script_that_crashed_the_engine_with_them_does_not() {
    let stage = Stage::new(1);
    let source = "function onRequest(c) {
        function add(a, b) { return [this.base + a + b, new.target === add].join() }
        const bound = add.bind({ base: 1 }, 2);
        class P { constructor(a, b) { this.sum = a + b } }
        const Q = P.bind(null, 1), q = new Q(2);
        c.reply([bound(3), bound.name, bound.length, q.sum, q instanceof P, q instanceof Q].join(' '));
        try { new ((() => 1).bind()) } catch (e) { c.reply(e.name) }
        try { (() => 1).bind.call({}) } catch (e) { c.reply(e.name) }
        c.reply([0, 2].map((n) => Math.max.bind(null, 1)(n)).join());
    }";
    let outcome = stage.ask(source).await;
    let type_error = text("TypeError");
    assert_eq!(
        outcome.replies,
        [text("6,false bound add 1 3 true true"), type_error.clone(), type_error, text("1,2")],
        "{:?}",
        outcome.error
    );
    let crash = "function onRequest(){let f=()=>1;for(;;)f=f.bind.apply(f,new Array(6e4).fill('x'))}";
    for _ in 0..3 {
        let outcome = stage.run(crash, within(2_000, asked())).await;
        let kind = kind(&outcome);
        assert!(
            matches!(kind, Some(ErrorKind::Memory | ErrorKind::Timeout | ErrorKind::Throw)),
            "{outcome:?}"
        );
        stage.assert_honest("bind").await;
    }
}

#[tokio::test]
async fn the_limit_applies_to_the_run_and_the_wait_is_reported_next_to_it() {
    let stage = Stage::new(1);
    let busy = hook("const end = Date.now() + 1200; while (Date.now() < end);");
    let (first, second) = futures_util::future::join(
        stage.run(&busy, within(5_000, asked())),
        stage.run(&hook(""), within(1_000, asked())),
    )
    .await;
    assert_eq!((first.error, second.error), (None, None));
    assert!(second.waited >= std::time::Duration::from_millis(1_100), "{:?}", second.waited);
}
