//! The behaviours of the receiver, and the outcome of each.

use hub_core::egress::EgressFault::{Broken, Connect, Timeout, TooLarge};

use super::behaviour::{
    Behaviour, Listening,
    Seen::{Class, Status},
    Slot, Then,
};

const OK: &str = "HTTP/1.1 200 OK\r\n";

/// Every behaviour of a TCP peer.
pub fn behaviours() -> Vec<Behaviour> {
    [connections(), slow(), bodies(), chunks(), heads(), statuses(), retry_after(), kept()].concat()
}

fn connections() -> Vec<Behaviour> {
    vec![
        Behaviour::new("refuse", "refuses connections", Class(Connect), |_| async {})
            .listening(Listening::Refuses),
        Behaviour::new("blackhole", "drops what asks to connect", Class(Timeout), |_| async {})
            .listening(Listening::Ignores),
        Behaviour::new(
            "reset-accept",
            "cuts the connection before it reads",
            Class(Broken),
            |peer| async move {
                peer.reset();
            },
        )
        .or(Class(Connect)),
        Behaviour::new("reset-request", "cuts it within the request", Class(Broken), |mut peer| async move {
            peer.read_bytes(20).await;
            peer.reset();
        }),
        Behaviour::new(
            "reset-head",
            "cuts it within its answer's head",
            Class(Broken),
            |mut peer| async move {
                peer.read_request().await;
                peer.send("HTTP/1.1 200 OK\r\ncontent-ty").await;
                peer.reset();
            },
        ),
        Behaviour::new(
            "reset-body",
            "cuts it within its answer's body",
            Class(Broken),
            |mut peer| async move {
                peer.read_request().await;
                peer.send(format!("{OK}content-length: 100\r\n\r\nabc")).await;
                peer.reset();
            },
        )
        .after_its_status(),
        Behaviour::saying("close-status", "closes after the status line", Class(Broken), OK),
        Behaviour::saying("close-empty", "closes instead of answering", Class(Broken), ""),
    ]
}

fn slow() -> Vec<Behaviour> {
    vec![
        Behaviour::new("silent", "never answers", Class(Timeout), |mut peer| async move {
            peer.read_request().await;
            peer.hold().await;
        }),
        Behaviour::new(
            "drip-head",
            "one byte of the head per second",
            Class(Timeout),
            |mut peer| async move {
                peer.read_request().await;
                peer.send(format!("{OK}x: ")).await;
                peer.drip("y").await;
            },
        ),
        Behaviour::new(
            "drip-body",
            "one byte of the body per second",
            Class(Timeout),
            |mut peer| async move {
                peer.read_request().await;
                peer.send(format!("{OK}content-length: 1000\r\n\r\n")).await;
                peer.drip("y").await;
            },
        )
        .after_its_status(),
        Behaviour::new(
            "hang-body",
            "200 without a length, and then nothing",
            Class(Timeout),
            |mut peer| async move {
                peer.read_request().await;
                peer.send(format!("{OK}\r\n")).await;
                peer.hold().await;
            },
        )
        .after_its_status(),
        Behaviour::new(
            "continue-hang",
            "100 Continue, and then nothing",
            Class(Timeout),
            |mut peer| async move {
                peer.read_request().await;
                peer.send("HTTP/1.1 100 Continue\r\n\r\n").await;
                peer.hold().await;
            },
        ),
        Behaviour::new(
            "continue-endless",
            "100 Continue without end",
            Class(Timeout),
            |mut peer| async move {
                peer.read_request().await;
                peer.drip("HTTP/1.1 100 Continue\r\n\r\n").await;
            },
        ),
    ]
}

fn bodies() -> Vec<Behaviour> {
    // A million NULs, compressed; members of such a file stand one after another.
    let mut member = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xed\xc1\x31\x01\x00\x00\x00\xc2\xa0\xf5\x4f\x6d\x08\x5f\xa0".to_vec();
    member.resize(member.len() + 1016, 0);
    member.extend(b"\x3e\x03\x1c\xea\x38\xa7\x00\x00\x10\x00");
    let bomb = member.repeat(500);
    let bomb_head = format!("{OK}content-encoding: gzip\r\ncontent-length: {}\r\n\r\n", bomb.len());
    vec![
        Behaviour::new("endless-body", "a body without end", Class(TooLarge), |mut peer| async move {
            peer.read_request().await;
            peer.send(format!("{OK}\r\n")).await;
            peer.send_endlessly("a".repeat(16 * 1024)).await;
        })
        .after_its_status(),
        // The body is waited for, since the status does not depend on it.
        Behaviour {
            slot: Slot::Timeout,
            ..Behaviour::new(
                "gigabyte",
                "announces a gigabyte and sends a byte",
                Class(TooLarge),
                |mut peer| async move {
                    peer.read_request().await;
                    peer.send(format!("{OK}content-length: 1000000000\r\n\r\na")).await;
                    peer.hold().await;
                },
            )
            .after_its_status()
        },
        Behaviour::saying(
            "length-short",
            "sends more than it announced",
            Status(200),
            format!("{OK}content-length: 2\r\n\r\nmore than two"),
        ),
        Behaviour::saying(
            "length-long",
            "sends less than it announced",
            Class(Broken),
            format!("{OK}content-length: 20\r\n\r\nless"),
        )
        .after_its_status(),
        Behaviour::saying(
            "lengths-differ",
            "announces two lengths",
            Class(Broken),
            format!("{OK}content-length: 1\r\ncontent-length: 2\r\n\r\nab"),
        ),
        Behaviour::saying(
            "no-content-body",
            "204 with a body",
            Status(204),
            "HTTP/1.1 204 No Content\r\n\r\nbody",
        ),
        Behaviour::saying(
            "gzip-bomb",
            "half a megabyte that unpacks to 500",
            Status(200),
            [bomb_head.into_bytes(), bomb].concat(),
        ),
    ]
}

fn chunks() -> Vec<Behaviour> {
    let chunked = format!("{OK}transfer-encoding: chunked\r\n\r\n");
    let endless = chunked.clone();
    vec![
        Behaviour::saying(
            "chunk-bad",
            "a chunk size that is no number",
            Class(Broken),
            format!("{chunked}zz\r\nab\r\n0\r\n\r\n"),
        )
        .after_its_status(),
        Behaviour::saying(
            "chunk-huge",
            "a chunk size over 64 bits",
            Class(Broken),
            format!("{chunked}fffffffffffffffffff\r\n"),
        )
        .after_its_status(),
        Behaviour::new("chunk-extension", "a chunk extension without end", Class(Broken), move |mut peer| {
            let head = format!("{endless}1;");
            async move {
                peer.read_request().await;
                peer.send(head).await;
                peer.send_endlessly("a".repeat(16 * 1024)).await;
            }
        })
        .after_its_status(),
        Behaviour::saying(
            "chunk-trailers",
            "a megabyte of trailers",
            Class(Broken),
            format!(
                "{chunked}1\r\na\r\n0\r\n{}\r\n",
                "x-trailer: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".repeat(23_000)
            ),
        )
        .after_its_status(),
    ]
}

fn heads() -> Vec<Behaviour> {
    let many = "x-header: value\r\n".repeat(10_000);
    let length = "content-length: 0\r\n\r\n";
    vec![
        Behaviour::new("endless-head", "headers without end", Class(TooLarge), |mut peer| async move {
            peer.read_request().await;
            peer.send(OK).await;
            peer.send_endlessly("x-header: value\r\n".repeat(1000)).await;
        }),
        Behaviour::saying("many-headers", "10,000 headers", Class(TooLarge), format!("{OK}{many}{length}")),
        Behaviour::saying(
            "many-continues",
            "1,000 times 100 Continue, then 200",
            Status(200),
            format!("{}{OK}{length}", "HTTP/1.1 100 Continue\r\n\r\n".repeat(1000)),
        ),
        Behaviour::saying(
            "switch",
            "101, though no one asked",
            Status(101),
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        ),
        Behaviour::saying(
            "no-status",
            "a body without a head, as HTTP/0.9 had it",
            Class(Broken),
            "<html>hello</html>",
        ),
        Behaviour::saying(
            "http2",
            "the preface of HTTP/2",
            Class(Broken),
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ),
        Behaviour::saying(
            "latin-1",
            "headers in Latin-1 and in no encoding at all",
            Status(200),
            [OK.as_bytes(), b"x-a: \xfc\xe4\r\nx-b: \xff\xfe\xc3\x28\r\n", length.as_bytes()].concat(),
        ),
        Behaviour::saying(
            "duplicates",
            "the same headers twice",
            Status(200),
            format!(
                "{OK}content-type: text/plain\r\ncontent-type: application/json\r\nx-a: b\r\nx-a: c\r\ncontent-length: 0\r\n{length}"
            ),
        ),
        Behaviour::saying(
            "cookie",
            "sets a cookie",
            Status(200),
            format!("{OK}connection: close\r\nset-cookie: planted=yes; path=/\r\n{length}"),
        ),
    ]
}

fn statuses() -> Vec<Behaviour> {
    let codes = [
        300, 304, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417,
        421, 422, 423, 424, 425, 426, 428, 429, 431, 451, 500, 501, 502, 503, 504, 505, 507, 511, 599,
    ];
    let plain = codes.into_iter().map(|code| {
        let answer = format!("HTTP/1.1 {code} X\r\ncontent-length: 0\r\n\r\n");
        Behaviour::saying(code.to_string(), "answers with this status", Status(code), answer)
    });
    let redirects = [301, 302, 303, 307, 308].into_iter().map(|code| {
        Behaviour::new(format!("loop-{code}"), "redirects to itself", Status(code), move |mut peer| async move {
            let host = peer.read_request().await.and_then(|request| Some(request.header("host")?.to_owned()));
            let location = format!("http://{}/hook", host.unwrap_or_default());
            peer.send(format!("HTTP/1.1 {code} X\r\nlocation: {location}\r\nrefresh: 0;url={location}\r\ncontent-length: 0\r\n\r\n")).await;
        })
    });
    plain.chain(redirects).collect()
}

fn retry_after() -> Vec<Behaviour> {
    // Clocks of tests stand in September 2026.
    let cases: [(&str, u16, &[&str], Then); 11] = [
        ("zero", 429, &["0"], Then::RetriedIn(1)),
        ("five", 429, &["5"], Then::RetriedIn(5)),
        ("date", 503, &["Mon, 21 Sep 2026 14:23:20 GMT"], Then::RetriedIn(600)),
        ("past", 429, &["Sun, 06 Nov 1994 08:49:37 GMT"], Then::RetriedIn(1)),
        ("long", 429, &["99999999999999999999999"], Then::RetriedIn(24 * 3600)),
        ("exponent", 429, &["1e99"], Then::Retried),
        ("negative", 429, &["-1"], Then::Retried),
        ("garbage", 429, &["tomorrow \u{fc}"], Then::Retried),
        ("two", 429, &["5", "40"], Then::RetriedIn(40)),
        ("service", 503, &["7"], Then::RetriedIn(7)),
        ("elsewhere", 500, &["7"], Then::Retried),
    ];
    let row = |(name, status, values, then): (&str, u16, &[&str], Then)| {
        let headers =
            values.iter().fold(String::new(), |text, value| format!("{text}retry-after: {value}\r\n"));
        let answer = format!("HTTP/1.1 {status} X\r\n{headers}content-length: 0\r\n\r\n");
        Behaviour::saying(format!("wait-{name}"), "says when to come back", Status(status), answer).then(then)
    };
    cases.into_iter().map(row).collect()
}

fn kept() -> Vec<Behaviour> {
    vec![
        Behaviour::new(
            "desync",
            "answers, and adds an answer no one asked for",
            Status(200),
            |mut peer| async move {
                while peer.read_request().await.is_some() {
                    peer.send(format!(
                        "{OK}content-length: 4\r\n\r\ntrueHTTP/1.1 500 X\r\ncontent-length: 5\r\n\r\nfalse"
                    ))
                    .await;
                }
            },
        ),
        Behaviour::new(
            "kept-closed",
            "promises to keep the connection and closes it",
            Status(200),
            |mut peer| async move {
                peer.read_request().await;
                peer.send(format!(
                    "{OK}connection: keep-alive\r\nkeep-alive: timeout=60\r\ncontent-length: 0\r\n\r\n"
                ))
                .await;
            },
        ),
    ]
}
