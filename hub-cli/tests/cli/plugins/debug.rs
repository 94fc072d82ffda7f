//! Runs in the sandbox that are held against expectations, and requests that are really sent.

use std::{
    io::{Read, Write},
    net::TcpListener,
};

use serde_json::{Value, json};

use super::{TAGGER, file};
use crate::{
    program::{command, prints, refuses},
    pty::Terminal,
    replay::sink::Sink,
};

#[test]
fn debug_compares_the_result_with_the_expected_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let script = file(path, "tagger.js", TAGGER);
    let expected = path.join("expected.json").display().to_string();
    let tried = |text: &str, more: &[&str], exit| {
        let base = ["debug", "request", &script, "--text", text, "--expect", &expected];
        prints(path, &[&base[..], more].concat(), exit)
    };
    let message = file(path, "message.json", "{\"content\": \"order 42\", \"timestamp\": 1790000000}");
    let written = prints(
        path,
        &["debug", "request", &script, "--message", &message, "--expect", &expected, "--update"],
        0,
    );
    assert!(written.contains("was written"), "{written}");
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&expected).unwrap()).unwrap();
    assert_eq!((&kept["request"]["headers"]["X-Kind"], &kept["error"]), (&json!("order"), &Value::Null));
    let same = prints(path, &["debug", "request", &script, "--message", &message, "--expect", &expected], 0);
    assert!(same.contains("expect matches"), "{same}");
    // What is named, and nothing else.
    std::fs::write(&expected, "{\"request\": {\"headers\": {\"X-Kind\": \"order\"}}}").unwrap();
    tried("order 43", &[], 0);
    let differs = tried("hello", &[], 9);
    assert!(differs.contains("request.headers.X-Kind is null, not \"order\""), "{differs}");
    let told: Value = serde_json::from_str(&tried("hello", &["--json=differences"], 9)).unwrap();
    assert_eq!(told["differences"].as_array().unwrap().len(), 1);
    // A failure that is expected is none.
    let throws = file(path, "throws.js", "function onRequest() { throw new Error('x') }");
    std::fs::write(&expected, "{\"error\": \"throw\"}").unwrap();
    prints(path, &["debug", "request", &throws, "--expect", &expected], 0);
    prints(path, &["debug", "request", &throws], 1);
    prints(path, &["debug", "request", &throws, "--update"], 2);
}

#[test]
fn debug_request_with_send_posts_the_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let script = file(path, "tagger.js", TAGGER);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut piece = [0; 4096];
        // The body is one JSON object; it ends where its last brace does.
        while !request.ends_with(b"}") {
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "the request ends early");
            request.extend_from_slice(&piece[..read]);
        }
        let body = "{\"status\":\"shipped\"}";
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        String::from_utf8(request).unwrap()
    });
    let send = ["debug", "request", &script, "--text", "order 42", "--url", &url, "--send", "--json"];
    let tried: Value = serde_json::from_str(&prints(path, &send, 0)).unwrap();
    let request = receiver.join().unwrap();
    assert!(request.starts_with("POST /hook ") && request.contains("x-kind: order"), "{request}");
    assert_eq!(tried["sent"]["status"], 200);
    assert_eq!(tried["sent"]["answered"]["replies"][0]["text"], "Order 42: shipped");
    // No one listens any more.
    refuses(path, &send[..8], 7, "UNAVAILABLE");
    let skips = file(path, "skips.js", "function onRequest(ctx) { ctx.skip() }");
    assert!(prints(path, &["debug", "request", &skips, "--send"], 0).contains("sent  nothing"));
    refuses(path, &["debug", "request", &skips, "--remote", "ch_x"], 2, "INVALID_PARAMS");
}

#[test]
fn debug_fetch_reaches_only_the_server_named_by_host() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let shop = Sink::new(|_| (200, "{\"price\": 42}".to_owned()));
    let (_, address) = shop.url.split_once("//").unwrap();
    let host = format!("shop.example={}", address.trim_end_matches("/hook"));
    let script = file(
        path,
        "price.js",
        "// ==UserScript==\n// @name price\n// @connect shop.example\n// @connect stock.example\n\
         // ==/UserScript==\nasync function onRequest(ctx) {\n\
           const answer = await ctx.fetch(`https://${ctx.msg.content}.example/price?of=tea`);\n\
           ctx.req.headers['X-Price'] = String(JSON.parse(answer.body).price);\n}\n",
    );
    let tried = |text: &str, exit| {
        let arguments = ["debug", "request", &script, "--text", text, "--host", &host, "--json"];
        serde_json::from_str::<Value>(&prints(path, &arguments, exit)).unwrap()
    };
    assert_eq!(tried("shop", 0)["request"]["headers"]["X-Price"], "42");
    let [request] = &shop.requests()[..] else { panic!("{:?}", shop.requests()) };
    assert!(request.head.starts_with("GET /price?of=tea "), "{}", request.head);
    assert_eq!(request.header("host"), Some(address.trim_end_matches("/hook")));
    let refused = tried("stock", 1)["error"].to_string();
    assert!(refused.contains("--host stock.example=ADDRESS:PORT"), "{refused}");
    assert_eq!(shop.count(), 1);
    refuses(
        path,
        &["debug", "request", &script, "--text", "x", "--host", "shop.example"],
        2,
        "INVALID_PARAMS",
    );
}

#[test]
fn debug_watch_shows_a_failure_below_the_last_good_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let script = file(path, "tagger.js", TAGGER);
    let mut watching = command(path);
    watching.env("NO_COLOR", "1").args(["debug", "request", &script, "--text", "order 42", "--watch"]);
    let mut terminal = Terminal::start(&watching);
    let good = terminal.wait_for(0, "X-Kind");
    file(path, "tagger.js", "function onRequest() { throw new Error('broken') }");
    let broken = terminal.wait_for(good, "broken");
    let seen = terminal.seen()[good..broken].to_owned();
    let place = |text: &str| seen.find(text).unwrap_or_else(|| panic!("{text} is missing: {seen:?}"));
    assert!(place("before:") < place("X-Kind") && place("X-Kind") < place("broken"), "{seen:?}");
    terminal.press("\u{3}");
    terminal.end();
}
