//! Tests of the fault proxy, on which other tests rely.

use std::{io, net::SocketAddr, time::Duration};

use hub_core::{tasks::Tasks, time::Clock};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixListener},
};

use crate::support::{
    fault_proxy::{Direction, Fault, FaultProxy, Target},
    http::until,
};

/// Long enough for anything that happens at all on a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Time in which nothing may happen. On a slow machine it only takes longer.
const NOTHING: Duration = Duration::from_millis(100);

/// A server that answers every byte with the same byte, until the end.
async fn echo() -> (SocketAddr, Tasks) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, tasks) = (listener.local_addr().unwrap(), Tasks::new());
    let inner = tasks.clone();
    tasks.spawn("echo", async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            inner.spawn("echo connection", async move {
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
                let _ = to.write_all(b"END").await;
            });
        }
    });
    (address, tasks)
}

async fn scene() -> (FaultProxy, TcpStream, Tasks) {
    let (address, tasks) = echo().await;
    let proxy = FaultProxy::open(Target::Tcp(address)).await;
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    say(&mut stream, b"hello").await;
    assert_eq!(hear(&mut stream, 5).await.unwrap(), b"hello");
    (proxy, stream, tasks)
}

async fn say(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).await.unwrap();
}

async fn hear(stream: &mut TcpStream, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let read =
        tokio::time::timeout(TEST_TIMEOUT, stream.read_exact(&mut bytes)).await.expect("bytes in time");
    read.map(|_| bytes)
}

async fn hears_nothing(stream: &mut TcpStream) -> bool {
    tokio::time::timeout(NOTHING, stream.read(&mut [0; 1])).await.is_err()
}

#[tokio::test]
async fn bytes_pass_both_ways_and_so_does_the_end() {
    let (proxy, mut stream, _server) = scene().await;
    let long: Vec<u8> = (0..300_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
    let (mut from, mut to) = stream.split();
    let (sent, heard) = tokio::join!(
        async {
            to.write_all(&long).await.unwrap();
            to.shutdown().await
        },
        async {
            let mut heard = Vec::new();
            from.read_to_end(&mut heard).await.map(|_| heard)
        }
    );
    sent.unwrap();
    let heard = heard.unwrap();
    assert!(heard.strip_suffix(b"END") == Some(&long[..]), "{} bytes", heard.len());
    assert_eq!((proxy.passed(Direction::Up), proxy.passed(Direction::Down)), (300_005, 300_008));
    assert_eq!(proxy.accepted(), 1);
    until("the connection's end", async || (proxy.open_connections() == 0).then_some(())).await;
}

#[tokio::test]
async fn a_delay_holds_bytes_back() {
    let (proxy, mut stream, _server) = scene().await;
    proxy.set_one(Direction::Down, Fault::Delay(Duration::from_millis(300)));
    let clock = Clock::system();
    let before = clock.now();
    say(&mut stream, b"x").await;
    assert_eq!(hear(&mut stream, 1).await.unwrap(), b"x");
    assert!(clock.now().since(before) >= Duration::from_millis(300));
}

#[tokio::test]
async fn a_throttle_lets_bytes_drip_and_can_be_lifted() {
    let (proxy, mut stream, _server) = scene().await;
    proxy.set_one(Direction::Up, Fault::Throttle(10));
    let clock = Clock::system();
    let before = clock.now();
    say(&mut stream, &"x".repeat(100_000).into_bytes()).await;
    hear(&mut stream, 4).await.unwrap();
    assert!(clock.now().since(before) >= Duration::from_millis(300));
    assert!(proxy.passed(Direction::Up) < 50_000);
    proxy.set(Fault::None);
    hear(&mut stream, 99_996).await.unwrap();
}

#[tokio::test]
async fn a_reset_cuts_connections_old_and_new() {
    let (proxy, mut stream, _server) = scene().await;
    proxy.set(Fault::Reset);
    let error = hear(&mut stream, 1).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    // The system takes a connection before anyone can refuse it.
    let error = match TcpStream::connect(proxy.address()).await {
        Ok(mut stream) => hear(&mut stream, 1).await.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    proxy.set(Fault::None);
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    say(&mut stream, b"again").await;
    assert_eq!(hear(&mut stream, 5).await.unwrap(), b"again");
}

#[tokio::test]
async fn a_half_close_ends_one_direction_alone() {
    let (proxy, mut stream, _server) = scene().await;
    // The server sees the end and says so: that direction still works.
    proxy.set_one(Direction::Up, Fault::HalfClose);
    assert_eq!(hear(&mut stream, 3).await.unwrap(), b"END");
}

#[tokio::test]
async fn a_blackhole_holds_everything_until_it_is_lifted() {
    let (proxy, mut stream, _server) = scene().await;
    proxy.set(Fault::Blackhole);
    say(&mut stream, b"anybody?").await;
    assert!(hears_nothing(&mut stream).await);
    let mut other = TcpStream::connect(proxy.address()).await.unwrap();
    say(&mut other, b"me too").await;
    assert!(hears_nothing(&mut other).await);
    proxy.set(Fault::None);
    assert_eq!(hear(&mut stream, 8).await.unwrap(), b"anybody?");
    assert_eq!(hear(&mut other, 6).await.unwrap(), b"me too");
}

#[tokio::test]
async fn corruption_changes_the_bytes_it_says() {
    let (proxy, mut stream, _server) = scene().await;
    // Counted from the connection's first byte, and five went before.
    proxy.set_one(Direction::Up, Fault::Corrupt(4));
    say(&mut stream, b"aaaaaaaa").await;
    assert_eq!(hear(&mut stream, 8).await.unwrap(), b"aaqaaaqa");
}

#[tokio::test]
async fn a_socket_file_is_a_target_too_and_no_target_is_a_hang_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let proxy = FaultProxy::open(Target::Unix(path.clone())).await;
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    server.write_all(b"hi").await.unwrap();
    assert_eq!(hear(&mut stream, 2).await.unwrap(), b"hi");
    drop(listener);
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(hear(&mut stream, 1).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}
