use std::{
    io,
    net::IpAddr,
    sync::{Mutex, MutexGuard},
};

use super::*;
use crate::{
    egress::{Direct, OutboundProxy, Resolver},
    error::ErrorCode,
    secret::Secret,
};

/// Resolves the names of the tests, and keeps which were asked for.
#[derive(Default)]
struct Names(Mutex<Vec<String>>);

impl Names {
    fn lookups(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap()
    }
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.lookups().push(host.to_owned());
        let address = match host {
            "receiver.example" | "direct.example" | "sub.direct.example" => "203.0.114.7",
            "inside.example" => "10.0.0.7",
            "proxy.internal" | "here.example" => "127.0.0.1",
            _ => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(vec![address.parse().unwrap()])
    }
}

/// A proxy that answers for every target, and what it was asked.
struct Proxy {
    canary: Canary,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// An HTTP proxy. It opens tunnels that end at once.
    async fn http() -> Self {
        Self::start(|mut stream, requests| async move {
            let request = read_head(&mut stream).await;
            let tunnel = request.starts_with("CONNECT ");
            requests.lock().unwrap().push(request);
            let answer: &[u8] = if tunnel {
                b"HTTP/1.1 200 OK\r\n\r\n"
            } else {
                b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi"
            };
            let _ = stream.write_all(answer).await;
        })
        .await
    }

    /// An HTTP proxy that says no to tunnels.
    async fn refusing() -> Self {
        Self::start(|mut stream, requests| async move {
            let request = read_head(&mut stream).await;
            requests.lock().unwrap().push(request);
            let answer = b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
            let _ = stream.write_all(answer).await;
        })
        .await
    }

    /// A SOCKS proxy that asks for a user and a password (RFC 1928, RFC 1929).
    async fn socks() -> Self {
        Self::start(|mut stream, requests| async move {
            let mut greeting = [0; 2];
            stream.read_exact(&mut greeting).await.unwrap();
            let mut methods = vec![0; greeting[1].into()];
            stream.read_exact(&mut methods).await.unwrap();
            assert!(methods.contains(&2), "{methods:?}");
            stream.write_all(&[5, 2]).await.unwrap();
            let (_, user, password) =
                (stream.read_u8().await, text(&mut stream).await, text(&mut stream).await);
            stream.write_all(&[1, 0]).await.unwrap();
            let mut request = [0; 4];
            stream.read_exact(&mut request).await.unwrap();
            let target = match request[3] {
                1 => {
                    let mut address = [0; 4];
                    stream.read_exact(&mut address).await.unwrap();
                    IpAddr::from(address).to_string()
                }
                3 => text(&mut stream).await,
                kind => panic!("address of the kind {kind}"),
            };
            let port = stream.read_u16().await.unwrap();
            requests.lock().unwrap().push(format!("{user} {password} {target}:{port}"));
            stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
            read_request(&mut stream).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
        })
        .await
    }

    async fn start<F: Future<Output = ()> + Send + 'static>(
        act: impl Fn(TcpStream, Arc<Mutex<Vec<String>>>) -> F + Send + Sync + 'static,
    ) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&requests);
        let canary = Canary::start(move |stream| act(stream, Arc::clone(&list))).await;
        Self { canary, requests }
    }

    fn url(&self, scheme: &str) -> String {
        format!("{scheme}://ada:p%40ss@proxy.internal:{}", self.canary.at.port())
    }

    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => seen.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(seen).unwrap()
}

async fn text(stream: &mut TcpStream) -> String {
    let mut bytes = vec![0; stream.read_u8().await.unwrap().into()];
    stream.read_exact(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// A client behind a proxy.
fn behind(url: &str, except: &[&str], resolves: bool) -> (Egress, Arc<Names>) {
    let except = except.iter().map(|direct| direct.parse().unwrap()).collect();
    let names = Arc::new(Names::default());
    let config = EgressConfig {
        proxy: Some(OutboundProxy::new(&url.into(), except, resolves).unwrap()),
        resolver: Some(Arc::clone(&names) as Arc<dyn Resolver>),
        allow: vec!["here.example:1".parse().unwrap()],
        ..EgressConfig::default()
    };
    (Egress::new(config).unwrap(), names)
}

#[tokio::test]
async fn an_http_proxy_is_asked_for_targets_that_were_checked() {
    let proxy = Proxy::http().await;
    let (egress, names) = behind(&proxy.url("http"), &[], false);
    let answer = egress.send(call("http://receiver.example/hook")).await.unwrap();
    assert_eq!(&*answer.body, b"hi");
    let request = proxy.requests().remove(0);
    assert!(request.starts_with("POST http://receiver.example/hook HTTP/1.1\r\n"), "{request}");
    // ada:p@ss
    assert!(request.to_lowercase().contains("\r\nproxy-authorization: basic ywrhonbac3m=\r\n"), "{request}");
    assert_eq!(*names.lookups(), ["receiver.example", "proxy.internal"]);

    // The tunnel ends before the handshake.
    let (ended, written, message) = fault(&egress, call("https://receiver.example/hook")).await;
    assert_eq!((ended, written), (EgressFault::Connect, false), "{message}");
    let request = proxy.requests().remove(0);
    assert!(request.starts_with("CONNECT receiver.example:443 HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("Basic YWRhOnBAc3M="), "{request}");
}

#[tokio::test]
async fn private_targets_are_refused_before_the_proxy_hears_of_them() {
    let proxy = Proxy::http().await;
    for scheme in ["http", "socks5"] {
        let (egress, _) = behind(&proxy.url(scheme), &[], false);
        for url in [
            "http://inside.example/",
            "https://inside.example/",
            "http://10.0.0.7/",
            "http://169.254.169.254/latest",
            "http://localhost/",
            // Its own name is no way to it.
            "http://proxy.internal/",
            "https://proxy.internal/",
        ] {
            let (blocked, written, message) = fault(&egress, call(url)).await;
            assert_eq!((blocked, written), (EgressFault::BlockedAddress, false), "{scheme} {url}: {message}");
        }
        let (dns, _, message) = fault(&egress, call("http://nowhere.example/")).await;
        assert_eq!(dns, EgressFault::Dns, "{message}");
    }
    assert_eq!(proxy.canary.connections(), 0);
}

#[tokio::test]
async fn a_socks_proxy_gets_the_address_that_was_checked() {
    let proxy = Proxy::socks().await;
    let (egress, _) = behind(&proxy.url("socks5"), &[], false);
    assert_eq!(&*egress.send(call("http://receiver.example/hook")).await.unwrap().body, b"hi");
    assert_eq!(proxy.requests(), ["ada p@ss 203.0.114.7:80"]);
}

#[tokio::test]
async fn a_proxy_that_resolves_gets_names_that_are_not_resolved_here() {
    let proxy = Proxy::socks().await;
    let (egress, names) = behind(&proxy.url("socks5"), &[], true);
    assert_eq!(&*egress.send(call("http://nowhere.example/hook")).await.unwrap().body, b"hi");
    assert_eq!(proxy.requests(), ["ada p@ss nowhere.example:80"]);
    assert_eq!(*names.lookups(), ["proxy.internal"]);
    for url in ["http://10.0.0.7/", "http://localhost/", "http://receiver.example:25/"] {
        assert_eq!(fault(&egress, call(url)).await.0, EgressFault::BlockedAddress, "{url}");
    }
    assert_eq!(proxy.canary.connections(), 1);
}

#[tokio::test]
async fn exceptions_and_this_machine_are_reached_directly() {
    let (proxy, receiver) = (Proxy::http().await, Canary::answering("HTTP/1.1 204 No Content\r\n\r\n").await);
    let port = receiver.at.port();
    for (except, url) in [
        (vec!["here.example"], format!("http://here.example:{port}/")),
        (vec!["10.0.0.0/8", ".example"], format!("http://here.example:{port}/")),
        (vec![], format!("http://127.0.0.1:{port}/")),
    ] {
        let (mut config, names) = {
            let (egress, names) = behind(&proxy.url("http"), &except, false);
            (EgressConfig::clone(&egress.0.config), names)
        };
        config.allow = vec![
            format!("here.example:{port}").parse().unwrap(),
            format!("127.0.0.1:{port}").parse().unwrap(),
        ];
        let egress = Egress::new(config).unwrap();
        assert_eq!(egress.send(call(&url)).await.unwrap().status, StatusCode::NO_CONTENT, "{url}");
        assert!(!names.lookups().contains(&"proxy.internal".to_owned()));
    }
    // Directly, but under the rule.
    let (egress, _) = behind(&proxy.url("http"), &["inside.example"], false);
    assert_eq!(fault(&egress, call("http://inside.example/")).await.0, EgressFault::BlockedAddress);
    assert_eq!((proxy.canary.connections(), receiver.connections()), (0, 3));
}

#[tokio::test]
async fn a_proxy_that_refuses_connections_is_named() {
    let proxy = Proxy::refusing().await;
    let (egress, _) = behind(&proxy.url("http"), &[], false);
    let expected = "no connection could be opened through the outbound proxy";
    for _ in 0..2 {
        let (refused, written, message) = fault(&egress, call("https://receiver.example/")).await;
        assert_eq!((refused, written, &*message), (EgressFault::Connect, false, expected));
    }
    // Without a tunnel the refusal is the answer.
    let answer = egress.send(call("http://receiver.example/")).await.unwrap();
    assert_eq!(answer.status, StatusCode::PROXY_AUTHENTICATION_REQUIRED);
    for scheme in ["http", "https", "socks5"] {
        let (egress, _) = behind(&format!("{scheme}://127.0.0.1:1"), &[], false);
        let (refused, written, message) = fault(&egress, call("https://receiver.example/")).await;
        assert_eq!((refused, written, &*message), (EgressFault::Connect, false, expected), "{scheme}");
        let (egress, _) = behind(&format!("{scheme}://gone.internal:1"), &[], false);
        let (refused, _, message) = fault(&egress, call("https://receiver.example/")).await;
        // The library keeps to itself why a SOCKS proxy was not reached.
        let expected =
            if scheme == "socks5" { expected } else { "the name of the outbound proxy does not resolve" };
        assert_eq!((refused, &*message), (EgressFault::Connect, expected), "{scheme}");
    }
}

#[test]
fn proxies_and_exceptions_are_read_or_refused() {
    for good in ["http://proxy", "https://proxy:3129/", "socks5://u:p@[fd00::1]:1080", "socks5://10.0.0.1"] {
        OutboundProxy::new(&good.into(), Vec::new(), false).unwrap();
    }
    for bad in
        ["", "proxy:3128", "ftp://proxy", "http://", "socks5h://proxy", "http://proxy/path", "http://p?q"]
    {
        let refused = OutboundProxy::new(&Secret::new(bad), Vec::new(), false).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidParams, "{bad}");
        assert_eq!(refused.details()[0].field, "egress_proxy");
    }
    let shown = format!("{:?}", OutboundProxy::new(&"http://u:marker@p".into(), Vec::new(), false).unwrap());
    assert!(!shown.contains("marker"), "{shown}");
    let direct = |text: &str| text.parse::<Direct>().unwrap().to_string();
    for (text, read) in [
        ("corp.example", "corp.example"),
        (".Corp.Example.", "corp.example"),
        ("*.corp.example", "corp.example"),
        ("10.1.2.3", "10.1.2.3/32"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("fd00::/8", "fd00::/8"),
    ] {
        assert_eq!(direct(text), read);
    }
    for bad in ["", "*", "a b", "10.0.0.0/99", "http://x", "a..b", "x:80"] {
        assert!(bad.parse::<Direct>().is_err(), "{bad}");
    }
}
