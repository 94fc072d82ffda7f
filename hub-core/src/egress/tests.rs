use std::{
    future::Future,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{Answer, Call, Egress, EgressConfig, EgressError, EgressFault, target};
use crate::{
    local_http::{Cut, LocalService},
    tasks::Tasks,
};

/// A listener that counts its connections.
struct Canary {
    at: SocketAddr,
    connections: Arc<AtomicUsize>,
    tasks: Tasks,
}

impl Canary {
    async fn start<F: Future<Output = ()> + Send + 'static>(
        act: impl Fn(TcpStream) -> F + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (connections, tasks) = (Arc::new(AtomicUsize::new(0)), Tasks::new());
        let (counter, inner) = (Arc::clone(&connections), tasks.clone());
        tasks.spawn("canary", async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                inner.spawn("connection", act(stream));
            }
        });
        Self { at, connections, tasks }
    }

    /// Reads one request, answers with these bytes, closes.
    async fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = Arc::new(bytes.into());
        Self::start(move |mut stream| {
            let bytes = Arc::clone(&bytes);
            async move {
                read_request(&mut stream).await;
                let _ = stream.write_all(&bytes).await;
            }
        })
        .await
    }

    fn url(&self, host: &str) -> String {
        format!("http://{host}:{}/hook", self.at.port())
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

/// Reads up to the end of the body that the test's calls send.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    let mut buffer = [0; 1024];
    while !seen.ends_with(b"{\"a\":1}") {
        match stream.read(&mut buffer).await {
            Ok(n) if n > 0 => seen.extend_from_slice(&buffer[..n]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&seen).into_owned()
}

fn open() -> Egress {
    let allow =
        vec!["127.0.0.0/8".parse().unwrap(), "[::1]:1".parse().unwrap(), "127.0.0.1:1".parse().unwrap()];
    Egress::new(EgressConfig { allow, ..EgressConfig::default() }).unwrap()
}

fn closed() -> Egress {
    Egress::new(EgressConfig::default()).unwrap()
}

fn call(url: &str) -> Call {
    Call {
        method: Method::POST,
        // As if it had been stored before a rule changed: only `send` stands between it and the socket.
        url: target::check(url, |_| true).unwrap(),
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"{\"a\":1}"),
        deadline: Duration::from_secs(20),
        max_answer: 1000,
    }
}

async fn fault(egress: &Egress, call: Call) -> (EgressFault, bool, String) {
    let EgressError { fault, written, message } = egress.send(call).await.unwrap_err();
    (fault, written, message)
}

#[test]
fn urls_are_refused_when_saved() {
    let egress = closed();
    for bad in [
        "",
        "example.com",
        "/hook",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "unix:/run/x.sock",
        "javascript:alert(1)",
        "http://",
        "http://user@example.com/",
        "http://user:pw@example.com/",
        "http://:pw@example.com/",
        " http://example.com/",
        "http://example.com/\r\nX: y",
        "http://example.com/a b",
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://0/",
        "http://127.0.0.1./",
        "http://①②⑦.0.0.1/",
        "http://127。0。0。1/",
        "http://%31%32%37.0.0.1/",
        "http://127%2e0.0.1/",
        "http://１２７.0.0.1/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[::127.0.0.1]/",
        "http://[::]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[2001:0:4136:e378::1]/",
        "http://[fe80::1%25eth0]/",
        "http://[fd00::1]/",
        "http://[ff02::1]/",
        "http://example.com:22/",
        "http://example.com:25/",
        "http://example.com:6379/",
        "http://example.com:0/",
        "http://example.com:99999/",
        "http://256.256.256.256/",
    ] {
        let error = egress.check_url(bad).expect_err(bad);
        assert_eq!(error.details()[0].field, "url", "{bad}");
    }
    assert!(egress.check_url(&format!("http://example.com/{}", "a".repeat(2048))).is_err());
    for (good, stored) in [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://EXAMPLE.com:443/a?b=c#frag", "https://example.com/a?b=c"),
        ("http://example.com:8080/", "http://example.com:8080/"),
        ("http://1.1.1.1/", "http://1.1.1.1/"),
        ("http://[2606:4700::1111]:8443/", "http://[2606:4700::1111]:8443/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
    ] {
        assert_eq!(egress.check_url(good).unwrap().as_url().as_str(), stored);
    }
    assert!(open().check_url("http://127.0.0.1:9000/").is_ok());
    assert!(open().check_url("http://127.0.0.1:1/").is_ok());
    assert!(open().check_url("http://127.0.0.1:2/").is_err());
    assert!(open().check_url("http://10.0.0.1:9000/").is_err());
    let trusted = egress.trusted().unwrap();
    assert!(trusted.check_url("http://10.0.0.1:22/").is_ok());
    assert!(trusted.check_url("ftp://10.0.0.1/").is_err());
    assert!(trusted.fresh().unwrap().check_url("http://10.0.0.1:22/").is_ok());
}

#[tokio::test]
async fn blocked_targets_never_see_a_connection() {
    let canary = Canary::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let egress = closed();
    for host in
        ["127.0.0.1", "2130706433", "0x7f.1", "127.1", "0", "127.0.0.1.", "[::ffff:127.0.0.1]", "localhost"]
    {
        let (fault, written, message) = fault(&egress, call(&canary.url(host))).await;
        assert_eq!((fault, written), (EgressFault::BlockedAddress, false), "{host}: {message}");
        assert!(!message.contains("127"), "{message}");
    }
    // Allowed in general, but it is this process itself that listens there.
    let own = EgressConfig {
        allow: vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()],
        own_listeners: vec![SocketAddr::from(([0, 0, 0, 0], canary.at.port()))],
        ..EgressConfig::default()
    };
    let egress = Egress::new(own).unwrap();
    for host in ["127.0.0.1", "127.0.0.2", "localhost", "0.0.0.0"] {
        assert_eq!(fault(&egress, call(&canary.url(host))).await.0, EgressFault::BlockedAddress, "{host}");
    }
    assert_eq!(canary.connections(), 0);
}

#[tokio::test]
async fn allow_rules_and_trust_open_targets() {
    let canary = Canary::answering("HTTP/1.1 200 OK\r\nx-a: b\r\ncontent-length: 2\r\n\r\nok").await;
    let by_name = EgressConfig {
        allow: vec![format!("localhost:{}", canary.at.port()).parse().unwrap()],
        ..EgressConfig::default()
    };
    for (egress, host) in [
        (open(), "127.0.0.1"),
        (Egress::new(by_name).unwrap(), "localhost"),
        (closed().trusted().unwrap(), "127.0.0.1"),
        (closed().trusted().unwrap().fresh().unwrap(), "localhost"),
    ] {
        let Answer { status, headers, body } = egress.send(call(&canary.url(host))).await.unwrap();
        assert_eq!((status, &headers["x-a"], &body[..]), (StatusCode::OK, &"b".parse().unwrap(), &b"ok"[..]));
    }
    assert_eq!(canary.connections(), 4);
}

#[tokio::test]
async fn a_rule_for_one_port_of_a_name_opens_no_other() {
    let canary = Canary::answering("HTTP/1.1 200 OK\r\n\r\n").await;
    let other = EgressConfig { allow: vec!["localhost:1".parse().unwrap()], ..EgressConfig::default() };
    let egress = Egress::new(other).unwrap();
    assert_eq!(fault(&egress, call(&canary.url("localhost"))).await.0, EgressFault::BlockedAddress);
    assert_eq!(canary.connections(), 0);
}

#[tokio::test]
async fn the_request_goes_out_as_it_was_given() {
    let (sender, mut seen) = tokio::sync::mpsc::channel(1);
    let canary = Canary::start(move |mut stream| {
        let sender = sender.clone();
        async move {
            let _ = sender.send(read_request(&mut stream).await).await;
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        }
    })
    .await;
    let mut call = call(&canary.url("127.0.0.1"));
    for (name, value) in
        [("host", "evil"), ("content-length", "1"), ("transfer-encoding", "chunked"), ("x-a", "b")]
    {
        call.headers.insert(name, HeaderValue::from_static(value));
    }
    assert_eq!(open().send(call).await.unwrap().status, StatusCode::NO_CONTENT);
    let seen = seen.recv().await.unwrap();
    let (head, body) = seen.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<_> = head.lines().map(str::to_lowercase).collect();
    lines[1..].sort_unstable();
    let host = format!("host: {}", canary.at);
    assert_eq!(lines, ["post /hook http/1.1", "accept: */*", "content-length: 7", &host, "x-a: b"]);
    assert_eq!(body, "{\"a\":1}");
}

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
    let big_header = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "a".repeat(33_000));
    let many_headers = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(101));
    for answer in [announced, chunked, until_close, big_header, many_headers] {
        let canary = Canary::answering(answer.as_str()).await;
        let (fault, written, message) = fault(&open(), call(&canary.url("127.0.0.1"))).await;
        assert_eq!((fault, written), (EgressFault::TooLarge, true), "{message} {}", &answer[..40]);
    }
    let fits = format!("HTTP/1.1 200 OK\r\n\r\n{}", "a".repeat(1000));
    let canary = Canary::answering(fits).await;
    assert_eq!(open().send(call(&canary.url("127.0.0.1"))).await.unwrap().body.len(), 1000);
}

#[tokio::test]
async fn broken_answers_are_told_apart_from_missing_connections() {
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

    let (dns, written, _) = fault(&open(), call("http://no-such-name.invalid/")).await;
    assert_eq!((dns, written), (EgressFault::Dns, false));
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

struct Echo;

#[async_trait]
impl LocalService for Echo {
    async fn call(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, Cut> {
        match request.uri().path() {
            "/cut" => Err(Cut),
            "/hang" => std::future::pending().await,
            "/long" => Ok(http::Response::new(Bytes::from(vec![b'a'; 1001]))),
            path => {
                let host = request.headers()["host"].to_str().unwrap();
                let body = format!("{} {host} {path} {}", request.method(), request.body().len());
                Ok(http::Response::new(body.into()))
            }
        }
    }
}

#[tokio::test]
async fn services_inside_the_process_need_no_socket() {
    let echo: Arc<dyn LocalService> = Arc::new(Echo);
    let config =
        EgressConfig { in_process: [("demo.internal".to_owned(), echo)].into(), ..EgressConfig::default() };
    let egress = Egress::new(config).unwrap();
    assert!(egress.check_url("http://demo.internal/x").is_ok());
    let answer = egress.send(call("http://DEMO.internal./x?y")).await.unwrap();
    assert_eq!(&answer.body[..], b"POST demo.internal. /x 7");
    let (cut, written, _) = fault(&egress, call("http://demo.internal/cut")).await;
    assert_eq!((cut, written), (EgressFault::Broken, true));
    assert_eq!(fault(&egress, call("http://demo.internal/long")).await.0, EgressFault::TooLarge);
    let hang = Call { deadline: Duration::from_millis(50), ..call("http://demo.internal/hang") };
    assert_eq!(fault(&egress, hang).await.0, EgressFault::Timeout);
}
