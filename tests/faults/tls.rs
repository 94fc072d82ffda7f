//! TLS: certificates that must not be trusted, and handshakes that do not end. Against the shipped
//! server, whose process trusts the authority of this test: so a wrong name and a wrong date are all that
//! is wrong with a certificate.

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use hub_core::{tasks::Tasks, time::Clock};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use crate::support::{
    http::{Caller, until},
    hub_process::{HubProcess, NetworkProcess},
};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server's configuration with a certificate for `name`; from itself when there is no authority.
fn server(
    name: &str,
    authority: Option<&Authority>,
    change: impl FnOnce(&mut CertificateParams),
) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    change(&mut params);
    let certificate = match authority {
        Some(authority) => params.signed_by(&key, authority).unwrap(),
        None => params.self_signed(&key).unwrap(),
    };
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let config = rustls::ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.into())
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Opens a port where every connection goes to `act`.
async fn listen<F: Future<Output = ()> + Send + 'static>(
    tasks: &Tasks,
    act: impl Fn(TcpStream) -> F + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, inner) = (listener.local_addr().unwrap(), tasks.clone());
    tasks.spawn("TLS server", async move {
        while let Ok((stream, _)) = listener.accept().await {
            inner.spawn("TLS connection", act(stream));
        }
    });
    address
}

/// A web server that answers everyone who accepts its certificate.
async fn answering(tasks: &Tasks, acceptor: TlsAcceptor) -> SocketAddr {
    listen(tasks, move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            // Requests of this test are one piece; what is left of one is not needed.
            let _ = stream.read(&mut vec![0; 64 * 1024]).await;
            let _ =
                stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
            let _ = stream.shutdown().await;
        }
    })
    .await
}

#[tokio::test]
async fn bad_certificates_and_handshakes_are_named_in_the_trace() {
    let tasks = Tasks::new();
    let (trusted, unknown) = (authority("trusted by this test"), authority("unknown to the hub"));
    let ip = "127.0.0.1";
    let expired = |params: &mut CertificateParams| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    };
    let early = |params: &mut CertificateParams| params.not_before = rcgen::date_time_ymd(2090, 1, 1);
    let silent = |stream: TcpStream| async move {
        let _open = stream;
        std::future::pending::<()>().await;
    };
    let cut = |mut stream: TcpStream| async move {
        // The client's greeting, and then the end.
        let _ = stream.read(&mut [0; 64]).await;
        let _ = stream.set_zero_linger();
    };
    let slow = |mut stream: TcpStream| async move {
        // A handshake record of which one byte comes per second.
        let mut bytes = [0x16, 0x03, 0x03, 0x10, 0x00].into_iter().chain(std::iter::repeat(0));
        while stream.write_all(&[bytes.next().unwrap_or(0)]).await.is_ok() {
            Clock::system().sleep(Duration::from_secs(1)).await;
        }
    };
    let plain = |mut stream: TcpStream| async move {
        let _ = stream.read(&mut [0; 64]).await;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
    };
    let cases = [
        ("good", answering(&tasks, server(ip, Some(&trusted), |_| {})).await, "ok"),
        ("expired", answering(&tasks, server(ip, Some(&trusted), expired)).await, "tls"),
        ("not yet valid", answering(&tasks, server(ip, Some(&trusted), early)).await, "tls"),
        ("wrong name", answering(&tasks, server("other.example", Some(&trusted), |_| {})).await, "tls"),
        ("self-signed", answering(&tasks, server(ip, None, |_| {})).await, "tls"),
        ("unknown authority", answering(&tasks, server(ip, Some(&unknown), |_| {})).await, "tls"),
        ("cut", listen(&tasks, cut).await, "tls"),
        ("plain", listen(&tasks, plain).await, "tls"),
        ("silent", listen(&tasks, silent).await, "timeout"),
        ("slow", listen(&tasks, slow).await, "timeout"),
    ];

    let folder = tempfile::tempdir().unwrap();
    let roots = folder.path().join("roots.pem");
    std::fs::write(&roots, trusted.pem()).unwrap();
    let network = NetworkProcess::start().await;
    let settings = [("HUB_EGRESS_ALLOW", "127.0.0.0/8"), ("SSL_CERT_FILE", roots.to_str().unwrap())];
    let hub = HubProcess::start(folder.path(), &network, &settings).await;
    let mut ada = Caller::stranger(&hub.url);
    let credentials = json!({ "username": "ada", "password": "correct horse battery staple" });
    ada.sign_in("/api/auth/register", credentials).await;
    let (bot, wx_id) = network.bind(&ada).await;
    let mut channels = Vec::new();
    for (name, address, expected) in cases {
        let timeout_ms = if expected == "timeout" { 1000 } else { 30_000 };
        let webhook = json!({
            "url": format!("https://{address}/hook"),
            "timeout_ms": timeout_ms,
            "retry": { "schedule_s": [3600] },
        });
        let new = json!({ "name": name, "webhook": webhook });
        let made = ada.post(&format!("/api/bots/{bot}/channels"), new).await;
        channels.push((name, made["id"].as_str().unwrap().to_owned(), expected));
    }
    network.say(&wx_id, "hello").await;
    for (name, channel, expected) in channels {
        let trace = until(name, async || {
            let listed = ada.get(&format!("/api/bots/{bot}/traces?channel_id={channel}")).await;
            let listed = listed["items"].as_array().unwrap().clone();
            listed.into_iter().find(|trace| trace["attempts"] == 1)
        })
        .await;
        let id = trace["trace_id"].as_str().unwrap();
        let trace = ada.get(&format!("/api/bots/{bot}/traces/{id}")).await;
        assert_eq!(outcome(&trace), expected, "{name}: {trace}");
    }
    tasks.stop();
}

/// `ok`, or the class of the error.
fn outcome(trace: &Value) -> &str {
    let steps = trace["steps"].as_array().unwrap();
    let request = steps.iter().find(|step| step["name"] == "request").unwrap();
    request["detail"]["error"]["class"].as_str().unwrap_or_else(|| trace["status"].as_str().unwrap())
}
