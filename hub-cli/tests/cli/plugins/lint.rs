//! What `plugins lint` finds before a plugin ever runs.

use super::file;
use crate::program::{run, stderr, stdout};

const HEAD: &str = "// ==UserScript==\n// @name x\n// ==/UserScript==\n";
const HOOK: &str = "function onRequest(ctx) {";

/// Lints a source; gives the exit code, what was listed without the folder, and what was noted.
fn lint(source: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "p.js", source);
    let output = run(folder.path(), &["plugins", "lint", &path]);
    let prefix = format!("{}/", folder.path().display());
    (output.status.code(), stdout(&output).replace(&prefix, ""), stderr(&output))
}

#[test]
fn plugins_lint_reports_errors_with_their_position() {
    for (code, found) in [
        (
            "function onrequest(ctx) {}",
            "p.js:4:10\terror\tthere is no function onRequest or onResponse, so nothing runs; did you mean onRequest?",
        ),
        ("const x = 1;", "p.js:1\terror\tthere is no function onRequest or onResponse, so nothing runs"),
        (
            "function onRequest(ctx) {\n  const fs = require('fs');\n}",
            "p.js:5:14\terror\trequire is not available",
        ),
        (
            "const fs = require('fs');\nfunction onRequest(ctx) {}",
            "p.js:4:12\terror\trequire is not available",
        ),
        ("function onRequest(ctx) { eval('1') }", "p.js:4:27\terror\teval is not available"),
        (
            "function onRequest(ctx) { return new Function('1') }",
            "p.js:4:38\terror\tFunction is not available",
        ),
        (
            "function onRequest(ctx) {\n  setTimeout(() => ctx.reply('x'), 10);\n}",
            "p.js:5:3\terror\tsetTimeout is not available",
        ),
        (
            "async function onRequest(ctx) { await fetch('https://a.example/') }",
            "p.js:4:39\terror\tfetch needs a @connect line",
        ),
        (
            "async function onRequest(ctx) { await ctx.fetch('https://a.example/') }",
            "p.js:4:43\terror\tfetch needs a @connect line",
        ),
        (
            "async function onRequest(ctx) {\n  await import('fs');\n}",
            "p.js:5:9\terror\timport is not available",
        ),
        ("import fs from 'fs';\nfunction onRequest(ctx) {}", "p.js:4:1\terror\timport is not available"),
        (
            "function onRequest(ctx) {}\nctx.nothing();",
            "p.js:5:1\terror\tctx is not available: it is the argument of a hook",
        ),
        ("const limit = null.limit;\nfunction onRequest(ctx) {}", "error\tthe top level fails: TypeError"),
        (
            "function onRequest(ctx) { new Headers(); const f = ({ get: Headers }) => Headers; f(ctx) }",
            "p.js:4:31\terror\tHeaders is not available: fetch takes",
        ),
        (
            "function onRequest(ctx) {\n  return [1].map((x) => Intl.DateTimeFormat(x));\n}",
            "p.js:5:25\terror\tIntl is not available",
        ),
        ("function onRequest(ctx) { conosle.log(ctx) }", "p.js:4:27\terror\tconosle is not defined"),
        ("function onRequest(ctx) { total = 1 }", "p.js:4:27\terror\ttotal is not defined"),
        ("function onRequest(ctx) { XMLHttpRequest }", "p.js:4:27\terror\tXMLHttpRequest is not available"),
        (
            "module.exports = { onRequest(ctx) {} };",
            "p.js:4:1\terror\tmodule is not available: declare function",
        ),
        (
            "const hooks = { onRequest(ctx) {} };\nexport { hooks }",
            "p.js:4:17\terror\tthere is no function onRequest or onResponse, so nothing runs; declare it at the top",
        ),
        (
            "function onRequest(ctx) {",
            "p.js:4\terror\tthe source ends within a bracket, string, template or comment",
        ),
    ] {
        let (exit, listed, noted) = lint(&format!("{HEAD}{code}\n"));
        assert_eq!(exit, Some(6), "{code}: {listed}{noted}");
        assert!(listed.lines().count() == 1 && listed.contains(found), "{code}: {listed}{noted}");
    }
}

#[test]
fn an_unknown_setting_is_a_warning_with_a_suggestion() {
    let (exit, listed, _) =
        lint(&format!("// ==UserScript==\n// @name x\n//  @versoin 1\n// ==/UserScript==\n{HOOK}}}\n"));
    assert_eq!(exit, Some(0));
    assert_eq!(listed, "p.js:3:5\twarning\tunknown key @versoin; did you mean @version?\n");
}

#[test]
fn plugins_lint_accepts_a_working_plugin() {
    for code in [
        "function onRequest(ctx) { /* eval() */ ctx.reply('setTimeout(1) ' + `fetch(${1})`); }",
        "const setTimeout = (f) => f();\nfunction onRequest(ctx) { setTimeout(() => 1) }",
        "function onRequest(ctx) { const api = { fetch() {}, require() {} }; api.fetch(); api.require() }",
        "function onRequest(ctx) { if (typeof require !== 'undefined') return; const eval2 = 1 }",
        "const onResponse = (ctx) => ctx.skip;",
        "export default { onRequest(ctx) { ctx.reply(new URL(ctx.req.url).host + atob('YQ==') + crypto.randomUUID()) } }",
        "function handle() { return structuredClone([new TextEncoder(), new AbortController()]) }\nexport { handle as onResponse }",
        "function onRequest({ msg: window }) { const { process, ...Intl } = window; return [process, Intl] }",
        "globalThis.counter = 1;\nfunction onRequest(ctx) { counter++ }",
        "async function onRequest(ctx) { ctx.req.body.f = ctx.msg.content.split(/['\"`]/) }",
    ] {
        let (exit, listed, noted) = lint(&format!("{HEAD}{code}\n"));
        assert_eq!((exit, &*listed), (Some(0), ""), "{code}: {noted}");
        assert!(noted.contains("no problems"), "{noted}");
    }
    let connected = "// ==UserScript==\n// @name x\n// @connect a.example\n// ==/UserScript==\n\
        const known = await fetch('https://a.example/');\nasync function onRequest(ctx) { await fetch('https://a.example/') }\n";
    let (exit, listed, noted) = lint(connected);
    assert_eq!((exit, &*listed), (Some(0), ""), "{noted}");
}
