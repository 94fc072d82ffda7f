//! Tests of the responses of receivers and their outcomes.

use data_encoding::BASE64;

use super::*;
use crate::{egress::Phase, time::Clock};

#[tokio::test]
async fn redirects_are_answers() {
    let canary = Canary::answering("HTTP/1.1 200 OK\r\n\r\n").await;
    for status in [301, 302, 303, 307, 308] {
        let location = canary.url("127.0.0.1");
        let front = Canary::answering(format!(
            "HTTP/1.1 {status} X\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
        ))
        .await;
        let answer = open().send(call(&front.url("127.0.0.1"))).await.unwrap();
        assert_eq!(answer.status.as_u16(), status);
    }
    assert_eq!(canary.connections(), 0);
}

#[tokio::test]
async fn slow_answers_end_at_the_deadline() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n".as_slice();
    for prefix in [&b""[..], &head[..20], head] {
        let canary = Canary::start(move |mut stream| async move {
            read_request(&mut stream).await;
            let _ = stream.write_all(prefix).await;
            std::future::pending::<()>().await;
        })
        .await;
        let call = Call { deadline: Duration::from_millis(300), ..call(&canary.url("127.0.0.1")) };
        let (fault, written, _) = fault(&open(), call).await;
        assert_eq!((fault, written), (EgressFault::Timeout, true));
    }
}

#[tokio::test]
async fn a_deadline_before_the_connection_means_that_nothing_was_written() {
    // A TLS server that never says hello: connected, but no request can have gone out.
    let canary = Canary::start(|stream| async move {
        let _open = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let url = canary.url("127.0.0.1").replace("http:", "https:");
    let call = Call { deadline: Duration::from_millis(300), ..call(&url) };
    let (fault, written, _) = fault(&open(), call).await;
    assert_eq!((fault, written), (EgressFault::Timeout, false));
}

#[tokio::test]
async fn oversized_answers_are_cut_off() {
    let long = "a".repeat(1001);
    let announced = format!("HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n{long}");
    let chunked = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3e9\r\n{long}\r\n0\r\n\r\n");
    let until_close = format!("HTTP/1.1 200 OK\r\n\r\n{long}");
    let big_header = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "a".repeat(270_000));
    let many_headers = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(257));
    for answer in [announced, chunked, until_close, big_header, many_headers] {
        let canary = Canary::answering(answer.as_str()).await;
        let (fault, written, message) = fault(&open(), call(&canary.url("127.0.0.1"))).await;
        assert_eq!((fault, written), (EgressFault::TooLarge, true), "{message} {}", &answer[..40]);
    }
    let fits = format!("HTTP/1.1 200 OK\r\n\r\n{}", "a".repeat(1000));
    let canary = Canary::answering(fits).await;
    assert_eq!(open().send(call(&canary.url("127.0.0.1"))).await.unwrap().body.len(), 1000);
}

/// Each body that a receiver may send after its status, and how much of the body is kept under a limit of 1000 bytes.
#[tokio::test]
async fn the_status_is_received_whatever_the_body_is() {
    let long = "a".repeat(5000);
    let chunk = format!("1388\r\n{long}\r\n");
    let headers = format!("x-large: {}\r\n", "h".repeat(100_000));
    let many = "set-cookie: a=b\r\n".repeat(200);
    for (rest, kept, problem) in [
        (format!("content-length: 5000\r\n\r\n{long}"), 1000, "larger than 0 KiB"),
        (format!("transfer-encoding: chunked\r\n\r\n{chunk}0\r\n\r\n"), 1000, "larger than 0 KiB"),
        (format!("\r\n{long}"), 1000, "larger than 0 KiB"),
        ("content-length: 9000000000\r\n\r\nabc".to_owned(), 3, "ended early: broken"),
        ("content-length: 9\r\n\r\nabc".to_owned(), 3, "ended early: broken"),
        ("transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n".to_owned(), 3, "ended early: broken"),
        ("transfer-encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n".to_owned(), 3, "ended early: broken"),
        ("content-length: 2\r\n\r\nmore than two".to_owned(), 2, ""),
        (format!("content-length: 1000\r\n\r\n{}", "a".repeat(1000)), 1000, ""),
        (format!("{headers}content-length: 3\r\n\r\nabc"), 3, ""),
        (format!("{many}content-length: 3\r\n\r\nabc"), 3, ""),
        ("\r\n".to_owned(), 0, ""),
    ] {
        for status in [200, 410, 429] {
            let head = format!("HTTP/1.1 {status} X\r\nretry-after: 7\r\n");
            let canary = Canary::answering(format!("{head}{rest}")).await;
            let received = open().receive(call(&canary.url("127.0.0.1"))).await.unwrap();
            let shown: String = rest.chars().take(60).collect();
            assert_eq!((received.status.as_u16(), received.body.len()), (status, kept), "{shown:?}");
            assert_eq!(received.headers["retry-after"], "7");
            let found = received.end.problem().unwrap_or_default();
            assert!(found.contains(problem) && found.is_empty() == problem.is_empty(), "{shown:?}: {found}");
        }
    }
}

#[tokio::test]
async fn a_body_that_never_ends_does_not_take_the_status_away() {
    for rest in ["\r\n", "content-length: 100\r\n\r\nabc", "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"] {
        let canary = Canary::start(move |mut stream| async move {
            read_request(&mut stream).await;
            let _ = stream.write_all(format!("HTTP/1.1 202 Accepted\r\n{rest}").as_bytes()).await;
            std::future::pending::<()>().await;
        })
        .await;
        let call = Call { deadline: Duration::from_millis(300), ..call(&canary.url("127.0.0.1")) };
        let received = open().receive(call).await.unwrap();
        assert_eq!(received.status, StatusCode::ACCEPTED, "{rest:?}");
        assert!(received.end.problem().unwrap().contains("timeout"), "{rest:?}");
    }
}

#[tokio::test]
async fn a_broken_response_differs_from_a_failed_connection() {
    for answer in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-le",
        "not http at all\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc",
    ] {
        let canary = Canary::answering(answer).await;
        let (fault, written, message) = fault(&open(), call(&canary.url("127.0.0.1"))).await;
        assert_eq!((fault, written), (EgressFault::Broken, true), "{answer:?} {message}");
    }
    let reset = Canary::start(|mut stream| async move {
        read_request(&mut stream).await;
        let _ = stream.set_zero_linger();
    })
    .await;
    let (broken, written, _) = fault(&open(), call(&reset.url("127.0.0.1"))).await;
    assert_eq!((broken, written), (EgressFault::Broken, true));

    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (connect, written, message) = fault(&open(), call(&format!("http://{gone}/"))).await;
    assert_eq!((connect, written), (EgressFault::Connect, false));
    assert!(!message.contains("127"), "{message}");

    let plain = Canary::start(|mut stream| async move {
        let _ = stream.read(&mut [0; 100]).await;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    })
    .await;
    let url = plain.url("127.0.0.1").replace("http:", "https:");
    let (tls, written, _) = fault(&open(), call(&url)).await;
    assert_eq!((tls, written), (EgressFault::Tls, false));

    let cut = Canary::start(|_stream| std::future::ready(())).await;
    let url = cut.url("127.0.0.1").replace("http:", "https:");
    let (tls, written, _) = fault(&open(), call(&url)).await;
    assert_eq!((tls, written), (EgressFault::Tls, false));

    for egress in [open(), open().trusted()] {
        let (dns, written, _) = fault(&egress, call("http://no-such-name.invalid/")).await;
        assert_eq!((dns, written), (EgressFault::Dns, false));
    }
}

#[tokio::test]
async fn odd_answers_end_in_one_way_or_another() {
    use EgressFault::{Broken, TooLarge};
    let ok = |body: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let cases = [
        ("HTTP/1.1 100 Continue\r\n\r\n".repeat(3) + &ok("a"), Ok((200, "a"))),
        (format!("{}HTTP/1.1 200 OK\r\n\r\nmore than announced", ok("a")), Ok((200, "a"))),
        ("HTTP/1.1 204 No Content\r\n\r\nbody".into(), Ok((204, ""))),
        (
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n".into(),
            Ok((101, "")),
        ),
        ("HTTP/1.1 200 OK\r\nset-cookie: a=b\r\nset-cookie: c=d\r\n\r\n".into(), Ok((200, ""))),
        ("HTTP/1.1 200 OK\r\nx: \u{fc}\r\n\r\n".into(), Ok((200, ""))),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".into(), Err(Broken)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n".into(), Err(Broken)),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab".into(), Err(Broken)),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\na".into(), Err(TooLarge)),
        (format!("HTTP/1.1 200 OK\r\nx: {}", "a".repeat(2_000_000)), Err(TooLarge)),
        ("<html>hello</html>".into(), Err(Broken)),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(), Err(Broken)),
    ];
    for (answer, expected) in cases {
        let canary = Canary::answering(answer.as_str()).await;
        let answered = open().send(call(&canary.url("127.0.0.1"))).await;
        let seen = match &answered {
            Ok(answer) => Ok((answer.status.as_u16(), std::str::from_utf8(&answer.body).unwrap())),
            Err(error) => Err(error.fault),
        };
        let shown: String = answer.chars().take(60).collect();
        assert_eq!(seen, expected, "{shown:?} {answered:?}");
    }
}

#[tokio::test]
async fn the_phases_of_a_request_are_measured_and_the_failed_one_is_named() {
    let delay = Duration::from_millis(30);
    let slow = Canary::start(move |mut stream| async move {
        read_request(&mut stream).await;
        Clock::system().sleep(delay).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    })
    .await;
    let (answer, phases) = open().receive_measured(call(&slow.url("127.0.0.1"))).await;
    assert_eq!(answer.unwrap().status, StatusCode::OK);
    assert_eq!(phases.dns, None, "an address needs no resolution");
    assert!(phases.connect.is_some() && phases.first_byte.unwrap() >= delay, "{phases:?}");
    let by_name = EgressConfig {
        allow: vec![format!("localhost:{}", slow.at.port()).parse().unwrap()],
        ..EgressConfig::default()
    };
    let by_name = Egress::new(by_name).unwrap();
    let (answer, phases) = by_name.receive_measured(call(&slow.url("localhost"))).await;
    assert_eq!(answer.unwrap().status, StatusCode::OK);
    assert!(phases.dns.is_some() && phases.connect.is_some(), "{phases:?}");

    let silent = Canary::start(|mut stream| async move {
        read_request(&mut stream).await;
        std::future::pending::<()>().await;
    })
    .await;
    let cut = Canary::start(|_stream| std::future::ready(())).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for (url, phase) in [
        ("http://no-such-name.invalid/".to_owned(), Phase::Dns),
        (format!("http://{closed}/"), Phase::Connect),
        (cut.url("127.0.0.1").replace("http:", "https:"), Phase::Tls),
        (silent.url("127.0.0.1"), Phase::FirstByte),
    ] {
        let impatient = Call { deadline: Duration::from_secs(3), ..call(&url) };
        let (failed, _) = open().receive_measured(impatient).await;
        assert_eq!(failed.unwrap_err().1, phase, "{url}");
    }
}

#[tokio::test]
async fn a_kept_connection_that_died_is_replaced() {
    let canary = Canary::start(|mut stream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        // Keep-alive was promised; the connection ends all the same.
    })
    .await;
    let egress = open();
    for _ in 0..3 {
        assert_eq!(egress.send(call(&canary.url("127.0.0.1"))).await.unwrap().status, StatusCode::OK);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_untrusted_certificate_is_rejected() {
    let egress = open().trusted();
    let certificate = include_bytes!("self_signed.cert.der").as_slice().into();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(include_bytes!("self_signed.key.der").as_slice());
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())
        .unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut session = rustls::ServerConnection::new(config.into()).unwrap();
        while session.is_handshaking() {
            if session.complete_io(&mut stream).is_err() {
                return false;
            }
        }
        true
    });
    let (tls, written, message) = fault(&egress, call(&format!("https://{at}/"))).await;
    assert_eq!((tls, written), (EgressFault::Tls, false), "{message}");
    assert!(message.contains("certificate"), "{message}");
    assert!(!server.join().unwrap(), "the handshake was completed");
}

/// An answer whose body, given in Base64, is encoded as it says.
async fn encoded(encoding: &str, body: &str) -> Result<Answer, EgressError> {
    let body = BASE64.decode(body.as_bytes()).unwrap();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\ncontent-length: {}\r\n\r\n", body.len());
    let canary = Canary::answering([head.into_bytes(), body].concat()).await;
    open().send(call(&canary.url("127.0.0.1"))).await
}

#[tokio::test]
async fn encoded_bodies_are_decoded_and_their_limit_counts_what_comes_out() {
    for (encoding, body) in [
        ("gzip", "H4sIAAAAAAACA8tIzcnJBwCGphA2BQAAAA=="),
        ("deflate", "eJzLSM3JyQcABiwCFQ=="),
        ("br", "CwKAaGVsbG8D"),
        ("identity", "aGVsbG8="),
    ] {
        let answer = encoded(encoding, body).await.unwrap();
        assert_eq!(&answer.body[..], b"hello", "{encoding}");
    }
    let bomb = "H4sIAAAAAAACA+3BMQEAAADCoKzrX8IaHkABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAArwaH+uIboIYBAA==";
    assert_eq!(encoded("gzip", bomb).await.unwrap_err().fault, EgressFault::TooLarge);
    // What says that it is encoded and is not, or ends early.
    for body in ["aGVsbG8=", "H4sIAAAAAAACA8tIzck="] {
        let error = encoded("gzip", body).await.unwrap_err();
        assert_eq!((error.fault, error.written), (EgressFault::Broken, true), "{error}");
    }
}

#[tokio::test]
async fn headers_are_read_as_common_servers_write_them() {
    for (header, name, value) in [
        ("X-Long: first\r\n second", "x-long", Some("first second")),
        ("X-Long: first\r\n\tsecond\r\n third", "x-long", Some("first second third")),
        ("Server : nginx", "server", Some("nginx")),
        ("no colon at all", "server", None),
        ("b\u{e4}d: name", "server", None),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{header}\r\ncontent-length: 2\r\n\r\nok");
        let canary = Canary::answering(answer).await;
        let answer = open().send(call(&canary.url("127.0.0.1"))).await.expect(header);
        let seen = answer
            .headers
            .get(name)
            .map(|value| value.to_str().unwrap().split_whitespace().collect::<Vec<_>>());
        assert_eq!(seen.map(|words| words.join(" ")).as_deref(), value, "{header:?}");
        assert_eq!(&answer.body[..], b"ok", "{header:?}");
    }
}
