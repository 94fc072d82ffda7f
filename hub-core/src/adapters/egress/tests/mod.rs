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
    error::{Advice, Setting},
    local_http::{Cut, LocalService},
    tasks::Tasks,
};

mod answers;
mod proxy;
mod resend;

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
        // As if it had been stored before a rule changed: only `send` is between it and the socket.
        url: target::check(url, |_| Ok(())).unwrap(),
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
fn clients_share_what_was_read_of_the_machine() {
    let first = open();
    let provider = |client: &Egress| Arc::clone(client.0.tls.crypto_provider());
    for other in [first.trusted(), first.fresh(), first.fresh().fresh(), first.once()] {
        assert!(Arc::ptr_eq(&provider(&first), &provider(&other)));
    }
    assert!(!Arc::ptr_eq(&provider(&first), &provider(&open())), "each hub reads for itself");
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
    let trusted = egress.trusted();
    assert!(trusted.check_url("http://10.0.0.1:22/").is_ok());
    assert!(trusted.check_url("ftp://10.0.0.1/").is_err());
    assert!(trusted.fresh().check_url("http://10.0.0.1:22/").is_ok());
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
        // Only what the URL contains, as it is parsed, not what a name resolves to.
        let shown = match canary.url(host).parse::<url::Url>().unwrap().host().unwrap() {
            url::Host::Ipv4(ip) => ip.to_string(),
            url::Host::Ipv6(ip) => format!("[{ip}]"),
            url::Host::Domain(name) => {
                assert!(!message.contains("127"), "{message}");
                name.to_owned()
            }
        };
        let rule = format!("{shown}:{}", canary.at.port());
        let setting = format!("to allow it, add {rule} to the setting egress_allow");
        assert!(message.ends_with(&setting), "{message}");
        let saved = egress.check_url(&canary.url(host)).unwrap_err();
        assert!(saved.message().ends_with(&setting), "{saved}");
        assert_eq!(saved.advice(), [Advice::Set(Setting::EgressAllow, Some(rule))]);
    }
    // Allowed in general, but it is this process itself that listens there.
    let own = EgressConfig {
        allow: vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()],
        own_listeners: vec![SocketAddr::from(([0, 0, 0, 0], canary.at.port()))],
        ..EgressConfig::default()
    };
    let egress = Egress::new(own).unwrap();
    for host in ["127.0.0.1", "127.0.0.2", "localhost", "0.0.0.0"] {
        let (fault, _, message) = fault(&egress, call(&canary.url(host))).await;
        assert_eq!(fault, EgressFault::BlockedAddress, "{host}");
        // No rule helps here, so none is named.
        assert_eq!(message, "the target must not be an address of this hub", "{host}");
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
        (closed().trusted(), "127.0.0.1"),
        (closed().trusted().fresh(), "localhost"),
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
async fn the_request_is_sent_unchanged() {
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
    let agent = concat!("user-agent: message-hub/", env!("CARGO_PKG_VERSION"));
    let expected = ["accept-encoding: identity", "accept: */*", "content-length: 7", &host, agent, "x-a: b"];
    assert_eq!(lines[0], "post /hook http/1.1");
    assert_eq!(lines[1..], expected);
    assert_eq!(body, "{\"a\":1}");
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
