//! The globals of the web, after their standards.

use hub_core::sandbox::{
    ErrorKind, FetchAnswer, FetchCall, FetchGate, Grants, HookInput, NoFetch, Reply, Source,
};

use super::stage::{Stage, asked, kind};

/// Evaluates expressions; each must have the value as text.
async fn assert_values(cases: &[(&str, &str)]) {
    let stage = Stage::new(1);
    for (expression, expected) in cases {
        let source = format!(
            "const failure = async (make) => {{ try {{ await make(); return 'none' }} catch (e) {{ return `${{e.name}} ${{e.code}} ${{e instanceof Error}}` }} }};
             const hex = (bytes) => new Uint8Array(bytes.buffer ?? bytes).toHex();
             async function onRequest(ctx) {{ ctx.state = String(await ({expression})); }}"
        );
        let outcome = stage.ask(&source).await;
        assert_eq!(outcome.error, None, "{expression}");
        let value: String = serde_json::from_str(outcome.state.unwrap().get()).unwrap();
        assert_eq!(&value, expected, "{expression}");
    }
}

#[tokio::test]
async fn urls_are_parsed_and_changed_as_browsers_do() {
    assert_values(&[
        ("new URL('HTTPS://User:p%20w@EXAMPLE.com:443/a/../b?q=1#h').href", "https://User:p%20w@example.com/b?q=1#h"),
        ("new URL('../c?d', 'https://a.example/x/y/z').href", "https://a.example/x/c?d"),
        ("new URL('//b.example/', 'https://a.example').href", "https://b.example/"),
        ("new URL('https://bücher.example/é').href", "https://xn--bcher-kva.example/%C3%A9"),
        ("new URL('http://127.1/').hostname", "127.0.0.1"),
        ("new URL('http://[::1]:8080/').host", "[::1]:8080"),
        ("new URL('file:///c:/a').origin", "null"),
        ("new URL('https://a.example:8443/').origin", "https://a.example:8443"),
        ("failure(() => new URL('/relative'))", "TypeError undefined true"),
        ("failure(() => new URL('https://a b/'))", "TypeError undefined true"),
        ("failure(() => new URL('x', 'nothing'))", "TypeError undefined true"),
        ("URL.canParse('https://a.example') + ',' + URL.canParse('a') + ',' + URL.parse('a')", "true,false,null"),
        ("(() => { const u = new URL('https://a.example/p?x=1'); u.port = '99'; u.host = 'b.example:7'; u.pathname = 'q r'; u.hash = 'é'; u.protocol = 'mailto'; return u })()", "https://b.example:7/q%20r?x=1#%C3%A9"),
        ("(() => { const u = new URL('https://a.example/'); u.port = 'x'; u.hostname = 'a b'; return u.href })()", "https://a.example/"),
        ("JSON.stringify({ u: new URL('https://a.example') })", r#"{"u":"https://a.example/"}"#),
        ("failure(() => { new URL('https://a.example/').origin = 'https://c/' })", "TypeError undefined true"),
        ("`${Object.prototype.toString.call(new URL('a:b'))} ${new URL('a:b').pathname}`", "[object URL] b"),
    ])
    .await;
}

#[tokio::test]
async fn the_query_of_a_url_and_its_parameters_are_one() {
    assert_values(&[
        ("new URLSearchParams('?a=1&b=%20x+y&a=é').toString()", "a=1&b=+x+y&a=%C3%A9"),
        ("new URLSearchParams({ 'a b': 1, c: '&=' })", "a+b=1&c=%26%3D"),
        ("new URLSearchParams([['a', 1], ['a', 2]]).getAll('a')", "1,2"),
        ("new URLSearchParams(new Map([['k', 'v']]))", "k=v"),
        ("failure(() => new URLSearchParams([['a']]))", "TypeError undefined true"),
        ("new URLSearchParams('z=1&a=2&z=0').size + [...new URLSearchParams('a=1').keys()].join()", "3a"),
        ("(() => { const p = new URLSearchParams('z=1&a=2&z=0'); p.sort(); p.set('z', '9'); p.append('y', null); p.delete('a', 'no'); return p })()", "a=2&z=9&y=null"),
        ("(() => { const p = new URLSearchParams('a=1&a=2'); p.delete('a', '1'); return `${p} ${p.has('a', '1')} ${p.has('a')} ${p.get('b')}` })()", "a=2 false true null"),
        ("(() => { const u = new URL('https://a.example/?x=1'); u.searchParams.append('y', 'z w'); return u.href })()", "https://a.example/?x=1&y=z+w"),
        ("(() => { const u = new URL('https://a.example/?x=1'); const p = u.searchParams; u.search = '?k=v'; return `${p} ${u.searchParams === p}` })()", "k=v true"),
        ("(() => { const u = new URL('https://a.example/?x=1#h'); u.searchParams.delete('x'); return u.href })()", "https://a.example/#h"),
        ("(() => { let all = ''; new URLSearchParams('a=1&b=2').forEach((v, k) => { all += k + v }); return all })()", "a1b2"),
        ("new URLSearchParams('a=%ff&b=\\ud800')", "a=%EF%BF%BD&b=%EF%BF%BD"),
    ])
    .await;
}

#[tokio::test]
async fn text_is_encoded_and_decoded() {
    assert_values(&[
        ("hex(new TextEncoder().encode('aé你😀\\ud800'))", "61c3a9e4bda0f09f9880efbfbd"),
        ("(() => { const into = new Uint8Array(5); const { read, written } = new TextEncoder().encodeInto('é😀x', into); return `${read} ${written} ${hex(into)}` })()", "1 2 c3a9000000"),
        ("new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x61, 0xff]))", "a\u{fffd}"),
        ("new TextDecoder('utf-8', { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf])).length", "1"),
        ("failure(() => new TextDecoder('utf8', { fatal: true }).decode(new Uint8Array([0xc3])))", "TypeError undefined true"),
        ("failure(() => new TextDecoder('klingon'))", "RangeError undefined true"),
        ("failure(() => new TextDecoder().decode('text'))", "TypeError undefined true"),
        ("(() => { const d = new TextDecoder(); return d.decode(new Uint8Array([0xe4, 0xbd]), { stream: true }) + '|' + d.decode(new Uint8Array([0xa0]).buffer) })()", "|你"),
        ("new TextDecoder('GB2312').encoding + new TextDecoder('gbk').decode(new Uint8Array([0xc4, 0xe3, 0xba, 0xc3]))", "gbk你好"),
        ("new TextDecoder('utf-16le').decode(new DataView(new Uint8Array([0, 0x60, 0x4f]).buffer, 1))", "你"),
        ("new TextDecoder('latin1').encoding", "windows-1252"),
    ])
    .await;
}

#[tokio::test]
async fn base64_is_forgiving_as_the_standard_says() {
    assert_values(&[
        ("btoa('hello') + atob(' aGVs\\nbG8 ')", "aGVsbG8=hello"),
        ("btoa('\\u00ff\\0')", "/wA="),
        ("atob('/w').charCodeAt(0)", "255"),
        ("btoa('') + atob('') + btoa(null)", "bnVsbA=="),
        ("failure(() => btoa('你'))", "InvalidCharacterError 5 true"),
        ("failure(() => btoa('\\ud800'))", "InvalidCharacterError 5 true"),
        ("failure(() => atob('a'))", "InvalidCharacterError 5 true"),
        ("failure(() => atob('ab-_'))", "InvalidCharacterError 5 true"),
        ("failure(() => atob('ab=c'))", "InvalidCharacterError 5 true"),
        ("failure(() => { throw new DOMException('m') })", "Error 0 true"),
    ])
    .await;
}

#[tokio::test]
async fn values_are_cloned_with_their_cycles() {
    assert_values(&[
        ("(() => { const a = { n: [1, , 3], d: new Date(5), s: new Set([1]), r: /x/gi }; a.self = a; const b = structuredClone(a); return [b !== a, b.self === b, 1 in b.n, b.n.length, b.d.getTime(), b.s.has(1), b.r.flags].join() })()", "true,true,false,3,5,true,gi"),
        ("(() => { const m = structuredClone(new Map([[{ k: 1 }, new Uint16Array([1, 2]).subarray(1)]])); const [[k, v]] = m; return k.k + v.join() + v.byteOffset })()", "122"),
        ("(() => { const e = structuredClone(new TypeError('no', { cause: { a: 1 } })); return `${e instanceof TypeError} ${e.message} ${e.cause.a}` })()", "true no 1"),
        ("(() => { const b = new ArrayBuffer(4); const c = structuredClone({ b }, { transfer: [b] }); return `${b.detached} ${c.b.byteLength}` })()", "true 4"),
        ("(() => { class A { constructor() { this.x = 1 } get y() { return 2 } } const c = structuredClone(new A()); return `${c.x} ${c.y} ${c instanceof A}` })()", "1 undefined false"),
        ("Object.keys(structuredClone(JSON.parse('{\"__proto__\": 1}'))).join()", "__proto__"),
        ("structuredClone(ctx.msg).sender.user_name", "Ada"),
        ("structuredClone(Object(1n)) + 1n", "2"),
        ("failure(() => structuredClone(() => 1))", "DataCloneError 25 true"),
        ("failure(() => structuredClone({ s: Symbol() }))", "DataCloneError 25 true"),
        ("failure(() => structuredClone(Promise.resolve()))", "DataCloneError 25 true"),
        ("failure(() => structuredClone(1, { transfer: [1] }))", "DataCloneError 25 true"),
    ])
    .await;
}

#[tokio::test]
async fn an_abort_is_seen_once_by_everyone_who_listens() {
    assert_values(&[
        ("(() => { const c = new AbortController(); let n = 0; const f = () => n++; c.signal.addEventListener('abort', f); c.signal.addEventListener('abort', f); c.signal.onabort = (e) => { n += e.type === 'abort' && e.target === c.signal ? 10 : 0 }; c.abort(); c.abort(); return `${n} ${c.signal.aborted} ${c.signal.reason.name}` })()", "11 true AbortError"),
        ("(() => { const c = new AbortController(); let n = 0; const f = () => n++; c.signal.addEventListener('abort', f); c.signal.removeEventListener('abort', f); c.abort('why'); return n + c.signal.reason })()", "0why"),
        ("(() => { const a = new AbortController(), b = new AbortController(); const any = AbortSignal.any([a.signal, b.signal]); b.abort(7); return any.aborted + ' ' + any.reason })()", "true 7"),
        ("failure(() => AbortSignal.abort().throwIfAborted())", "AbortError 20 true"),
        ("failure(() => new AbortSignal())", "TypeError undefined true"),
    ])
    .await;
}

#[tokio::test]
async fn digests_and_signatures_are_those_of_other_programs() {
    let fox = "new TextEncoder().encode('The quick brown fox jumps over the lazy dog')";
    let sign = |hash: &str| {
        format!(
            "crypto.subtle.importKey('raw', new TextEncoder().encode('key'), {{ name: 'HMAC', hash: '{hash}' }}, false, ['sign']).then((key) => crypto.subtle.sign('HMAC', key, {fox})).then(hex)"
        )
    };
    let digest =
        |hash: &str| format!("crypto.subtle.digest('{hash}', new TextEncoder().encode('abc')).then(hex)");
    let cases = [
        (digest("SHA-1"), "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (digest("sha-256"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            digest("SHA-384"),
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
        ),
        (
            digest("SHA-512"),
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        ),
        (sign("SHA-1"), "de7c9b85b8b78aa6bc8a7a36f70a90701c9db4d9"),
        (sign("SHA-256"), "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"),
        (
            sign("SHA-512"),
            "b42af09057bac1e2d41708e48a902e09b5ff7f12ab428a4fe86653c73dd248fb82f948a549f7b791a5b41915ee4d1ec3935357e4e2317250d0372afa2ebeeb3a",
        ),
    ];
    let cases: Vec<_> = cases.iter().map(|(expression, expected)| (expression.as_str(), *expected)).collect();
    assert_values(&cases).await;
    let key = "crypto.subtle.importKey('raw', new Uint8Array([1, 2]), { name: 'hmac', hash: { name: 'SHA-256' } }, true, ['sign', 'verify'])";
    assert_values(&[
        (&format!("(async () => {{ const k = await {key}; const s = await crypto.subtle.sign({{ name: 'HMAC' }}, k, new Uint8Array(3)); const other = new Uint8Array(s); const ok = await crypto.subtle.verify('HMAC', k, s, new Uint8Array(3)); other[0] ^= 1; return [ok, await crypto.subtle.verify('HMAC', k, other, new Uint8Array(3)), k.algorithm.length, hex(await crypto.subtle.exportKey('raw', k))] }})()"), "true,false,16,0102"),
        ("failure(() => crypto.subtle.digest('MD5', new Uint8Array()))", "NotSupportedError 9 true"),
        ("failure(() => crypto.subtle.digest('SHA-256', 'text'))", "TypeError undefined true"),
        ("failure(() => crypto.subtle.importKey('jwk', {}, { name: 'HMAC', hash: 'SHA-256' }, true, ['sign']))", "NotSupportedError 9 true"),
        ("failure(() => crypto.subtle.importKey('raw', new Uint8Array(1), 'AES-GCM', true, ['sign']))", "NotSupportedError 9 true"),
        ("failure(() => crypto.subtle.importKey('raw', new Uint8Array(0), { name: 'HMAC', hash: 'SHA-1' }, true, ['sign']))", "DataError 0 true"),
        ("failure(() => crypto.subtle.importKey('raw', new Uint8Array(1), { name: 'HMAC', hash: 'SHA-1' }, true, ['encrypt']))", "SyntaxError 12 true"),
        ("failure(async () => crypto.subtle.sign('HMAC', await crypto.subtle.importKey('raw', new Uint8Array(1), { name: 'HMAC', hash: 'SHA-1' }, false, ['verify']), new Uint8Array()))", "InvalidAccessError 15 true"),
    ])
    .await;
}

/// Computed with Python's hmac, hashlib and base64.
#[tokio::test]
async fn a_plugin_signs_for_feishu_and_dingtalk() {
    let stage = Stage::new(1);
    let source = "
        const utf8 = new TextEncoder();
        async function hmac(key, text) {
            const made = await crypto.subtle.importKey('raw', utf8.encode(key), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
            return btoa(String.fromCharCode(...new Uint8Array(await crypto.subtle.sign('HMAC', made, utf8.encode(text)))));
        }
        async function onRequest(ctx) {
            const [at, secret] = ['1599360473', 'kc_secret-SECabc'];
            ctx.req.body = { timestamp: at, sign: await hmac(`${at}\\n${secret}`, '') };
            const [time, key] = ['1599360473123', 'SEC0a1b2c3d4e5f'];
            const url = new URL(ctx.req.url);
            url.searchParams.set('timestamp', time);
            url.searchParams.set('sign', await hmac(key, `${time}\\n${key}`));
            ctx.req.url = url;
        }";
    let outcome = stage.ask(source).await;
    assert_eq!(outcome.error, None);
    let request = outcome.request.unwrap();
    assert_eq!(
        request.body.text(),
        r#"{"timestamp":"1599360473","sign":"zwbZNjtZVXgeKPCh+bD1c4mfuvFCgxiF0zBZwLaFeyY="}"#
    );
    assert_eq!(
        request.url,
        "https://good.example/hook?timestamp=1599360473123&sign=C7CUd3N%2FEES235bnvVbUH1zXUKYk1iwuVW7orJDqGO0%3D"
    );
}

#[tokio::test]
async fn randomness_comes_from_the_seed_of_the_run() {
    let stage = Stage::new(1);
    let source = "function onRequest(ctx) { ctx.state = [crypto.randomUUID(), [...crypto.getRandomValues(new Uint32Array(4))].join()] }";
    let values = async |seed: u8| {
        let outcome = stage.run(source, HookInput { seed: [seed; 32], ..asked() }).await;
        assert_eq!(outcome.error, None);
        let values: [String; 2] = serde_json::from_str(outcome.state.unwrap().get()).unwrap();
        values
    };
    let (first, again, other) = (values(1).await, values(1).await, values(2).await);
    assert_eq!(first, again);
    assert!(first[0] != other[0] && first[1] != other[1], "{first:?} {other:?}");
    for [uuid, _] in [first, other] {
        let parts: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{uuid}");
        assert!(uuid.as_bytes()[14] == b'4' && b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
    }
    assert_values(&[
        ("failure(() => crypto.getRandomValues(new Float64Array(1)))", "TypeMismatchError 17 true"),
        ("failure(() => crypto.getRandomValues([1]))", "TypeMismatchError 17 true"),
        ("failure(() => crypto.getRandomValues(new Uint8Array(65537)))", "QuotaExceededError 22 true"),
        ("(() => { const a = new Uint8Array(8); crypto.getRandomValues(a.subarray(4)); return a.subarray(0, 4).join() + a.subarray(4).some((n) => n) })()", "0,0,0,0true"),
    ])
    .await;
}

#[tokio::test]
async fn a_time_zone_that_is_not_known_is_an_error() {
    assert_values(&[
        ("failure(() => new Date(0).toLocaleString('zh-CN', { timeZone: 'Asia/Shanghai' }))", "RangeError undefined true"),
        ("failure(() => new Date(0).toLocaleDateString([], { timeZone: 'Local' }))", "RangeError undefined true"),
        ("failure(() => new Date(0).toLocaleTimeString('en', { timeZone: '+25:00' }))", "RangeError undefined true"),
        ("new Date(0).toLocaleString() === new Date(0).toLocaleString('en', { timeZone: 'Etc/UTC' })", "true"),
        ("new Date(0).toLocaleString('en', { timeZone: '+08:00' }) === new Date(8 * 36e5).toLocaleString()", "true"),
        ("new Date(0).toLocaleDateString('en', { timeZone: '-0130' }) === new Date(-15 * 36e4).toLocaleDateString()", "true"),
    ])
    .await;
}

struct Echo;

#[async_trait::async_trait]
impl FetchGate for Echo {
    async fn fetch(&self, call: FetchCall, _: std::time::Duration) -> Result<FetchAnswer, String> {
        if call.url.contains("slow") {
            std::future::pending::<()>().await;
        }
        let body = serde_json::to_string(&call).unwrap();
        Ok(FetchAnswer { status: 200, headers: [].into(), body })
    }
}

#[tokio::test]
async fn fetch_takes_urls_forms_and_signals() {
    let stage = Stage::new(1);
    let grants = Grants { fetch: true, ..Grants::default() };
    let input = HookInput { grants, ..asked() };
    let source = "async function onRequest(ctx) {
        const made = await fetch(new URL('/a b', 'https://good.example'), { method: 'POST', body: new URLSearchParams({ k: 'v w' }) });
        const call = await made.json();
        ctx.reply([call.url, call.body, call.headers['Content-Type']].join(' '));
        const controller = new AbortController();
        const slow = fetch('https://slow.example/', { signal: controller.signal });
        controller.abort();
        for (const make of [slow, fetch('https://slow.example/', { signal: AbortSignal.abort('gone') })]) {
            try { await make } catch (e) { ctx.reply(e.name ?? e) }
        }
        ctx.req.body = new URLSearchParams({ a: 'ö' });
    }";
    let outcome = stage.try_run(source, input, &Echo).await.unwrap();
    assert_eq!(outcome.error, None);
    let texts = [
        "https://good.example/a%20b k=v+w application/x-www-form-urlencoded;charset=UTF-8",
        "AbortError",
        "gone",
    ];
    assert_eq!(outcome.replies, texts.map(|text| Reply::Text(text.to_owned())));
    assert_eq!(outcome.request.unwrap().body.text(), "a=%C3%B6");
}

#[tokio::test]
async fn the_globals_of_the_web_stay_within_the_limits_of_a_run() {
    let stage = Stage::new(1);
    for code in [
        "const keep = []; for (;;) keep.push(new TextEncoder().encode('x'.repeat(1e6)))",
        "let s = 'a=b&'; for (;;) s = new URLSearchParams(s + s).toString()",
        "let o = {}; for (let n = 0; n < 1e5; n++) o = { o }; structuredClone(o)",
        "for (const all = [];;) all.push(crypto.getRandomValues(new Uint8Array(65536)))",
        "let s = 'x'; for (;;) s = btoa(s)",
    ] {
        let outcome = stage.ask(&format!("function onRequest() {{ {code} }}")).await;
        let ended =
            [ErrorKind::Memory, ErrorKind::Stack, ErrorKind::Throw, ErrorKind::Crash, ErrorKind::Timeout];
        assert!(kind(&outcome).is_some_and(|kind| ended.contains(&kind)), "{code}: {outcome:?}");
        stage.assert_honest(code).await;
    }
}

#[tokio::test]
async fn undeclared_names_are_found() {
    let stage = Stage::new(1);
    let unknown = async |source: &str| stage.sandbox.unknown_names("t", &Source::new(source)).await.unwrap();
    for (source, names) in [
        ("function onRequest(ctx) { setTimeout(() => 1, process.hrtime()) }", vec!["process", "setTimeout"]),
        (
            "const window = {}; function onRequest(ctx) { window.x = ctx; { let process = 1; return process } }",
            vec![],
        ),
        ("const f = (Headers) => Headers.get; function g() { return new Headers() }", vec!["Headers"]),
        ("const f = ({ module: a, b: exports = 1 }) => { a.module = { module: 1 }; return exports }", vec![]),
        ("function onRequest() { total = 1; typeof require }", vec!["require", "total"]),
        ("for (const x of y) { label: for (;;) { x.z; break label } }", vec!["y"]),
        ("try { a() } catch (Intl) { Intl.b } finally { Intl }", vec!["Intl", "a"]),
        ("class A { #performance = 1; static performance() { return this.#performance } }", vec![]),
        ("const s = `${Buffer.from('Request')} Response`; // FormData", vec!["Buffer"]),
        (
            "export default { onRequest(ctx) { return [URL, atob, crypto, structuredClone, reply, fetch, console, skip, Promise, escape] } }",
            vec![],
        ),
        ("let {", vec![]),
    ] {
        assert_eq!(unknown(source).await, names, "{source}");
    }
}

#[tokio::test]
async fn hooks_may_be_exported() {
    let stage = Stage::new(1);
    for source in [
        "export function onRequest(ctx) { ctx.reply('hook') }",
        "export const onRequest = async (ctx) => ctx.reply('hook')",
        "function handle(ctx) { ctx.reply('hook') }\nexport { handle as onRequest }",
        "export default { onRequest(ctx) { ctx.reply('hook') } }",
        "export default class { static onRequest(ctx) { ctx.reply('hook') } }",
        "export default function onRequest(ctx) { ctx.reply('hook') }",
    ] {
        let outcome = stage.ask(source).await;
        assert_eq!(
            (outcome.error, outcome.replies),
            (None, vec![Reply::Text("hook".to_owned())]),
            "{source}"
        );
        assert!(outcome.hooks.unwrap().on_request, "{source}");
    }
    for source in [
        "export default 1",
        "export default null",
        "export const onrequest = 1",
        "export { x as onResponse }; let x",
    ] {
        let outcome = stage.ask(source).await;
        assert!(outcome.error.is_none() && !outcome.present, "{source}: {outcome:?}");
    }
    let only = HookInput { only_load: true, ..asked() };
    let outcome = stage.try_run("export function onRequest() { throw 1 }", only, &NoFetch).await.unwrap();
    assert!(outcome.error.is_none() && !outcome.present && outcome.hooks.unwrap().on_request);
}

#[tokio::test]
async fn a_source_may_begin_as_files_of_other_programs_do() {
    let stage = Stage::new(1);
    for head in [
        "'use strict';",
        "\"use strict\"",
        "#!/usr/bin/env node",
        "\u{feff}#!/usr/bin/env node",
        "\u{feff}// x",
    ] {
        let source = format!("{head}\nfunction onRequest(ctx) {{\n  throw new Error('here') }}\n");
        let error = stage.ask(&source).await.error.unwrap();
        assert_eq!((error.message.as_str(), error.line), ("Error: here", Some(3)), "{head:?}");
    }
}
