//! Requests that two parsers may read in two ways, and unreadable requests: one response each, then the
//! connection ends.

use super::*;

/// Name of the defect, and the bytes. Most of them contain a second request.
const HEADS: &[(&str, &str)] = &[
    (
        "length with chunks",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "chunks with length",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    ),
    ("two lengths", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
    ("one length twice", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab"),
    ("a list of lengths", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2, 2\r\n\r\nab"),
    ("a signed length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +2\r\n\r\nab"),
    ("a negative length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n"),
    ("a hexadecimal length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x2\r\n\r\nab"),
    ("a length with a space", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1 2\r\n\r\nab"),
    ("an empty length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n"),
    (
        "a length beyond all bounds",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551616\r\n\r\n",
    ),
    ("a length at the bound", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551615\r\n\r\n"),
    ("another coding", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\nab"),
    (
        "a coding behind chunks",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    ),
    (
        "a coding before chunks",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ),
    ("chunks twice", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
    (
        "two codings",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    ),
    ("a misspelt coding", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    ("a quoted coding", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"),
    (
        "a vertical tab in the coding",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    ),
    ("chunks in HTTP/1.0", "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    (
        "a space before the colon",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    ),
    ("a tab before the colon", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length\t: 2\r\n\r\nab"),
    ("a folded header", "GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n"),
    ("a folded first header", "GET / HTTP/1.1\r\n Host: h\r\n\r\n"),
    ("a header without a name", "GET / HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n"),
    ("a header without a colon", "GET / HTTP/1.1\r\nHost: h\r\nnonsense\r\n\r\n"),
    ("a NUL in a name", "GET / HTTP/1.1\r\nHost: h\r\nX\0Y: a\r\n\r\n"),
    ("a NUL in a value", "GET / HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n"),
    ("a carriage return in a value", "GET / HTTP/1.1\r\nHost: h\r\nX: a\rY: b\r\n\r\n"),
    ("a bare line feed", "GET / HTTP/1.1\r\nHost: h\nX: a\r\n\r\n"),
    ("bare line feeds only", "GET / HTTP/1.1\nHost: h\n\n"),
    ("no host", "GET / HTTP/1.1\r\n\r\n"),
    ("two hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"),
    ("two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    ("one host twice", "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n"),
    ("a host with a user", "GET / HTTP/1.1\r\nHost: u:p@a\r\n\r\n"),
    ("a host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    ("a host with a space", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
    ("a list of hosts", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"),
    ("a port beyond all bounds", "GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n"),
    ("another host in the target", "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("another scheme in the target", "GET file:///etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a relative target", "GET healthz HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a star for GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("no target", "GET  HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a target in two parts", "GET / x HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a fragment", "GET /#x HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("no method", " / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a method with a colon", "GE:T / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("no version", "GET /\r\nHost: a\r\n\r\n"),
    ("HTTP/0.9", "GET / HTTP/0.9\r\nHost: a\r\n\r\n"),
    ("HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n"),
    ("HTTP/2 with a preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ("a TLS greeting", "\x16\x03\x01\x02\0\x01\0\x01\x7f\x03\x03"),
    ("another protocol", "SSH-2.0-OpenSSH_9.2\r\n"),
    ("a head that ends early", "GET / HTTP/1.1\r\nHost: a\r\n"),
];

#[tokio::test]
async fn every_malformed_head_gets_one_answer_and_the_end() {
    let stage = Stage::reading().await;
    for (what, head) in HEADS {
        let mut client = stage.connect().await;
        client.say(head).await;
        if head.contains("\r\n\r\n") {
            // May come too late, when the answer was already given.
            let _ = client.0.write_all(b"GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n").await;
        } else {
            client.0.shutdown().await.unwrap();
        }
        let answer = client.read_to_end().await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{what}: {answer:?}");
        assert_refused(&answer, 400, "INVALID_PARAMS");
    }
    assert_eq!(stage.closed("bad_head"), HEADS.len() as u64);
    until(|| stage.server.stats().open() == 0).await;
}

#[tokio::test]
async fn an_oversized_head_gets_the_name_of_its_limit() {
    let stage = Stage::ok().await;
    let many = "x: y\r\n".repeat(MAX_HEADERS);
    let big = format!("x: {}\r\n", "y".repeat(8_000)).repeat(5);
    for (head, status, code) in [
        (format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(8 * 1024)), 414, "INVALID_PARAMS"),
        (format!("GET /{}", "a".repeat(70_000)), 414, "INVALID_PARAMS"),
        (format!("GET / HTTP/1.1\r\nHost: h\r\n{many}\r\n"), 431, "INVALID_PARAMS"),
        (format!("GET / HTTP/1.1\r\nHost: h\r\n{big}\r\n"), 431, "INVALID_PARAMS"),
        (format!("GET / HTTP/1.1\r\nHost: h\r\nx: {}", "y".repeat(70_000)), 431, "INVALID_PARAMS"),
        ("TRACE / HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), 405, "METHOD_NOT_ALLOWED"),
        ("CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n".to_owned(), 405, "METHOD_NOT_ALLOWED"),
    ] {
        let mut client = stage.connect().await;
        let _ = client.0.write_all(head.as_bytes()).await;
        let answer = client.read_to_end().await;
        assert_refused(&answer, status, code);
        assert_eq!(answer.contains("\r\nallow: "), status == 405, "{answer}");
    }
}

#[tokio::test]
async fn a_malformed_head_after_a_good_one_closes_the_connection() {
    let stage = Stage::ok().await;
    let mut client = stage.connect().await;
    client.say(&format!("{GET}GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n{GET}")).await;
    let answers = client.read_to_end().await;
    let (first, second) = answers.split_once("\r\n\r\nok").unwrap();
    assert!(first.starts_with("HTTP/1.1 200 "), "{answers}");
    assert_refused(second, 400, "INVALID_PARAMS");
}

#[tokio::test]
async fn malformed_chunks_are_a_body_that_cannot_be_read() {
    let hub = App::with(|values| values.rate_limits.auth_per_ip = 100.try_into().unwrap()).await;
    let stage = Stage::application(&hub, ServeLimits::default()).await;
    for chunks in [
        "x\r\nab\r\n0\r\n\r\n",
        "-1\r\nab\r\n0\r\n\r\n",
        "0x2\r\nab\r\n0\r\n\r\n",
        "2\r\nabc\r\n0\r\n\r\n",
        "2\nab\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nab\r\n0\r\n\r\n",
        "2;a=\nb\r\nab\r\n0\r\n\r\n",
        "\r\n0\r\n\r\n",
    ] {
        let mut client = stage.connect().await;
        client
            .say(&format!(
                "POST /api/auth/login HTTP/1.1\r\nHost: h\r\nOrigin: http://localhost:9800\r\n\
                 Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}{GET}"
            ))
            .await;
        client.0.shutdown().await.unwrap();
        let answer = client.read_to_end().await;
        assert_refused(&answer, 400, "INVALID_PARAMS");
    }
}
