use super::*;
use crate::{error::ErrorCode, filter::FilterInput, network::MessageKind};

fn user_script(lines: &str) -> String {
    format!("// ==UserScript==\n{lines}\n// ==/UserScript==\nfunction onRequest(ctx) {{}}\n")
}

fn published(lines: &str) -> String {
    user_script(lines).replace("UserScript", "WebhookPlugin")
}

fn flaws(source: &str) -> Vec<(u32, String)> {
    let flaws = Manifest::inspect(source).expect_err(source);
    flaws.into_iter().map(|flaw| (flaw.line, flaw.message)).collect()
}

#[track_caller]
fn flaw(source: &str, line: u32, says: &str) {
    let flaws = flaws(source);
    assert!(
        flaws.len() == 1 && flaws[0].0 == line && flaws[0].1.contains(says),
        "{says}: {flaws:?} in {source}"
    );
}

fn good(source: &str) -> Manifest {
    Manifest::parse(source).expect(source)
}

#[test]
fn every_key_of_the_specification_is_read() {
    let manifest = good(&user_script(
        "// @name         Order tagger\n//@description Marks orders\n//   @version\t1.2.0\n// @match text, image\n\
         // @connect API.example.com, other.example\n// @grant none\n// @timeout 2500\n// @author ada\n\n//\n// prose",
    ));
    assert_eq!(manifest.dialect, Some(Dialect::UserScript));
    assert_eq!(manifest.name.as_deref(), Some("Order tagger"));
    assert_eq!(manifest.description.as_deref(), Some("Marks orders"));
    assert_eq!(manifest.version.as_deref(), Some("1.2.0"));
    assert_eq!(manifest.author.as_deref(), Some("ada"));
    assert_eq!(manifest.matches.as_written(), ["text", "image"]);
    assert_eq!(manifest.connects, ["api.example.com", "other.example"]);
    assert_eq!(manifest.grants, Grants { reply: true, skip: true });
    assert_eq!(manifest.timeout.as_millis(), 2500);
    assert_eq!(manifest.warnings, []);
}

#[test]
fn missing_keys_have_their_defaults() {
    for source in [user_script(""), "function onRequest() {}".to_owned(), "// only a comment".to_owned()] {
        let manifest = good(&source);
        assert_eq!(manifest.name, None);
        assert_eq!(manifest.matches.as_written(), ["*"]);
        assert_eq!(manifest.timeout.as_millis(), 5000);
        assert_eq!(manifest.grants, Grants::default());
        assert!(manifest.connects.is_empty());
    }
    assert_eq!(good("onRequest = 1").dialect, None);
}

#[test]
fn published_plugins_speak_another_dialect() {
    let manifest = good(&published(
        "// @name bridge\n// @timeout 3\n// @grant reply,skip\n// @config a text \"x\"\n// @config b text \"y\"\n// @icon i",
    ));
    assert_eq!(manifest.dialect, Some(Dialect::WebhookPlugin));
    assert_eq!(manifest.timeout.as_duration(), Duration::from_secs(3));
    assert_eq!((manifest.grants.reply, manifest.grants.skip), (true, true));
    assert_eq!(manifest.warnings, []);
    let none = good(&published("// @grant none")).grants;
    assert_eq!((none.reply, none.skip), (false, false));
    let reply = good(&published("// @grant reply")).grants;
    assert_eq!((reply.reply, reply.skip), (true, false));
    let long = good(&published("// @timeout 30"));
    assert_eq!(long.timeout.as_millis(), MAX_TIMEOUT_MS);
    assert_eq!(long.warnings.len(), 1);
    flaw(&published("// @grant net"), 2, "@grant");
    flaw(&published("// @timeout 0"), 2, "@timeout");
}

#[test]
fn wrong_values_are_reported_with_their_line() {
    for (line, says) in [
        ("@timeout 0", "@timeout"),
        ("@timeout -1", "@timeout"),
        ("@timeout 10001", "@timeout"),
        ("@timeout 5s", "@timeout"),
        ("@timeout 1e3", "@timeout"),
        ("@timeout NaN", "@timeout"),
        ("@timeout", "@timeout"),
        ("@timeout 99999999999999999999", "@timeout"),
        ("@grant reply", "@grant must be none"),
        ("@grant GM_xmlhttpRequest", "@grant must be none"),
        ("@grant", "@grant"),
        ("@name", "@name"),
        ("@name \u{202e}evil", "@name"),
        ("@match https://*/*", "@match must be"),
        ("@match other", "@match must be"),
        ("@match", "@match must be"),
        ("@match text,,image", "@match must be"),
        ("@match expr: content +", "@match expr: does not compile"),
        ("@match expr: 1 + 1", "@match expr: must be true or false"),
        ("@connect *", "wildcard"),
        ("@connect ::1", "in brackets"),
        ("@connect https://x.example/", "without scheme or path"),
        ("@connect a.example:0", "1 to 65535"),
        ("@connect a..example", "dot"),
        ("@connect a.example,", "must name a host"),
        ("@connect", "must name a host"),
        ("@connect a b.example", "not a host name"),
    ] {
        flaw(&user_script(&format!("// @version 1\n// {line}")), 3, says);
    }
    let hosts: Vec<String> = (0..200).map(|n| format!("h{n}.example")).collect();
    let line = format!("// @connect {}", hosts[..21].join(","));
    flaw(&user_script(&line), 2, "at most 20");
    flaw(&user_script(&format!("// @name {}", "n".repeat(65))), 2, "at most 64");
    flaw(&user_script(&format!("// @name {}", "n".repeat(1100))), 2, "1024 bytes");
    let line =
        hosts.chunks(7).map(|few| format!("// @connect {}", few.join(","))).collect::<Vec<_>>().join("\n");
    assert_eq!(flaws(&user_script(&line))[0], (4, "@connect must list at most 20 hosts".to_owned()));
    let all = user_script("// @timeout 0\n// @grant x\n// @connect *, ::1");
    assert_eq!(flaws(&all).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 3, 4, 4]);
    let error = Manifest::parse(&all).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidParams);
    assert!(error.details().iter().all(|detail| detail.field == "script"));
    assert!(error.details()[0].reason.starts_with("line 2: @timeout"), "{:?}", error.details());
}

#[test]
fn only_list_keys_may_be_repeated() {
    for key in ["name x", "version 1", "description d", "timeout 100", "grant none", "icon i"] {
        let source = user_script(&format!("// @{key}\n// @{key}"));
        flaw(&source, 3, "in line 2 already");
    }
    assert_eq!(
        good(&user_script("// @match text\n// @match image, text")).matches.as_written(),
        ["text", "image"]
    );
    assert_eq!(
        good(&user_script("// @connect a.example\n// @connect n8n:5678, A.example\n// @connect 127.0.0.1"))
            .connects,
        ["a.example", "n8n:5678", "127.0.0.1"]
    );
}

#[test]
fn unknown_keys_are_warnings() {
    let manifest =
        good(&user_script("// @name x\n// @run-at document-end\n// @run-at again\n// @\u{1}odd x"));
    let lines: Vec<u32> = manifest.warnings.iter().map(|note| note.line).collect();
    assert_eq!(lines, [3, 4, 5]);
    assert_eq!(manifest.warnings[0].message, "unknown key @run-at");
    assert_eq!(manifest.warnings[2].message, "unknown key @odd");
    for (key, message) in [
        ("versoin", "unknown key @versoin; did you mean @version?"),
        ("Match", "unknown key @Match; did you mean @match?"),
        ("conect", "unknown key @conect; did you mean @connect?"),
        ("require", "unknown key @require"),
    ] {
        assert_eq!(good(&user_script(&format!("// @{key} x"))).warnings[0].message, message);
    }
}

#[test]
fn notes_have_the_column_of_what_they_are_about() {
    let place = |source: &str| {
        let flaw = Manifest::inspect(source).unwrap_err().remove(0);
        (flaw.line, flaw.column)
    };
    assert_eq!(place(&user_script("//  é @x y\n  // @timeout  0 ")), (3, 16));
    assert_eq!(place(&user_script("// @timeout")), (2, 4));
    assert_eq!(place("x()\n// ==UserScript==\n"), (2, 1));
    let warning = good(&user_script("//\t@odd x")).warnings.remove(0);
    assert_eq!((warning.line, warning.column), (2, 4));
}

#[test]
fn a_directive_or_an_interpreter_may_precede_the_block() {
    let block = user_script("// @name x");
    for head in [
        "\"use strict\";\n",
        "'use strict'\n\n",
        "\u{feff}'use strict' ; // as everywhere\r\n/* a\n b */\n",
        "#!/usr/bin/env node\n\"use strict\"; /* c */\n",
        "\u{feff}#!/usr/bin/env -S node --test\n// made by a bundler\n'use strict';\n\"use asm\"\n",
        " \t\n\u{2028}\n",
    ] {
        assert_eq!(good(&format!("{head}{block}")).name.as_deref(), Some("x"), "{head:?}");
    }
    for code in [
        "'use strict'; var a = 1;\n",
        "'use strict', 1\n",
        "var a = \"use strict\";\n",
        "\n#!/bin/sh\n",
        "'open\n",
    ] {
        let flaws = flaws(&format!("{code}{block}"));
        assert!(flaws[0].1.contains("must precede all code"), "{code:?}: {flaws:?}");
    }
}

#[test]
fn only_the_first_block_counts_and_it_precedes_code() {
    let two = user_script("// @name first") + &user_script("// @name second\n// @timeout 0");
    assert_eq!(good(&two).name.as_deref(), Some("first"));
    let after =
        format!("/* a licence\n // ==UserScript==\n */\n\n// @ts-check\n{}", user_script("// @name x"));
    assert_eq!(good(&after).name.as_deref(), Some("x"));
    let bom = format!("\u{feff}{}", user_script("// @name x").replace('\n', "\r\n"));
    assert_eq!(good(&bom).name.as_deref(), Some("x"));
    flaw(&format!("var a = 1;\n{}", user_script("// @name x")), 2, "must precede all code");
    flaw("\n// ==UserScript==\n// @name x\n", 2, "not closed");
    flaw("// ==UserScript==\n// @name x\n// ==/WebhookPlugin==\n", 1, "not closed");
    flaw("// ==UserScript==\n// @name x\nfunction onRequest() {}\n// ==/UserScript==", 3, "begin with //");
    flaw(&user_script(&"// @match text\n".repeat(300)), 202, "more than 200 lines");
}

#[test]
fn sources_are_bounded() {
    let fill = |size: usize| {
        let start = user_script("// @name x") + "//";
        start.clone() + &"x".repeat(size - start.len())
    };
    assert!(Manifest::parse(&fill(MAX_SOURCE)).is_ok());
    for (source, says) in [
        (fill(MAX_SOURCE + 1), "at most 262144 bytes"),
        ("é".repeat(MAX_SOURCE / 2 + 1), "at most 262144 bytes"),
        (String::new(), "empty"),
        ("a\0b".to_owned(), "NUL"),
    ] {
        let error = Manifest::parse(&source).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidParams);
        assert!(error.message().starts_with("script ") && error.message().contains(says), "{error}");
    }
}

#[test]
fn messages_are_matched_by_type_or_expression() {
    let message = |kind, content| FilterInput {
        content,
        user_id: "ann",
        user_name: "Ann",
        session_id: "s",
        kind,
        timestamp: 1_700_000_000,
        bot_id: "bot_1",
        channel_id: "ch_1",
    };
    let rules = |text: &str| good(&user_script(text)).matches;
    let (text, image) = (message(MessageKind::Text, "order 42"), message(MessageKind::Image, ""));
    for (lines, of_text, of_image) in [
        ("", true, true),
        ("// @match *", true, true),
        ("// @match text", true, false),
        ("// @match image,video", false, true),
        ("// @match expr: content.startsWith(\"order\")", true, false),
        ("// @match expr: content == \"x\"\n// @match image", false, true),
        ("// @match voice, *", true, true),
    ] {
        let rules = rules(lines);
        assert_eq!((rules.matches(&text), rules.matches(&image)), (Ok(of_text), Ok(of_image)), "{lines}");
    }
    let broken = rules("// @match expr: 1 / (timestamp - 1700000000) == 1");
    assert!(broken.matches(&text).is_err());
    flaw(&user_script("// @match expr: true\n// @match expr: false"), 3, "one expression only");
}
