//! Slow clients. They are disconnected, and other clients are not affected.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use futures_util::future::join_all;
use hub_core::{tasks::Tasks, time::Clock};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use crate::support::{
    http::Caller,
    hub_process::{HubProcess, NetworkProcess},
};

/// Number of clients of all kinds together; `HUB_SLOW_CLIENTS` overrides it, with at least 1,000 before a release.
const COUNT: usize = 200;
/// Clients from one address: fewer than the server takes from one.
const PER_ADDRESS: usize = 40;
/// Tolerance of limits for a busy machine; a longer delay is a fault of the hub.
const MARGIN: Duration = Duration::from_secs(60);
/// Responses that a client requests and does not read; together far more than the buffers of two systems.
const UNREAD: usize = 200;
/// Maximum memory of all clients together, in KiB.
const MOST_KIB: u64 = 64 * 1024;
/// Minimum size of such a response, in bytes.
const LEAST_ANSWER: usize = 100 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Sends a head byte by byte.
    Head,
    /// Sends a body byte by byte.
    Body,
    /// Requests responses and does not read them.
    Reading,
    /// Keeps a connection without using it.
    Idle,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Head, Self::Body, Self::Reading, Self::Idle];

    /// Time after which the server has disconnected the client: its limits are 5 s for a head, 30 s for a body at
    /// 1 KiB/s, and 60 s between requests.
    fn limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::Head => 10,
            Self::Body => 35,
            Self::Reading => 30,
            Self::Idle => 65,
        })
    }

    /// Minimum time before the server may disconnect the client: a client on a slow line is not an attacker.
    fn timeout(self) -> Duration {
        Duration::from_secs(match self {
            Self::Head | Self::Body => 3,
            Self::Reading => 0,
            Self::Idle => 50,
        })
    }
}

/// Connects from an address of its own, so that caps per address do not hide the limits of time.
async fn connect(server: SocketAddr, number: usize) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    let last = u8::try_from(number / PER_ADDRESS % 250 + 1).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.bind((Ipv4Addr::new(127, 77, 0, last), 0).into()).unwrap();
    socket.connect(server).await.unwrap()
}

/// Sends `piece` every second until the server disconnects. It discards responses.
async fn drip(stream: &mut TcpStream, piece: &[u8]) {
    let clock = Clock::system();
    let mut heard = [0; 1024];
    loop {
        tokio::select! {
            read = stream.read(&mut heard) => match read {
                Ok(1..) => {}
                _ => return,
            },
            () = clock.sleep(Duration::from_secs(1)) => {
                if stream.write_all(piece).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Reads until the server closes, and counts.
async fn read_to_end(stream: &mut TcpStream) -> usize {
    let (mut heard, mut buffer) = (0, vec![0; 64 * 1024]);
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        heard += length;
    }
    heard
}

/// Runs one slow client, and returns the problem if the server treated it wrongly.
async fn be_slow(server: SocketAddr, kind: Kind, number: usize) -> Option<String> {
    let clock = Clock::system();
    let mut stream = connect(server, number).await;
    let began = clock.now();
    let slow = async {
        match kind {
            Kind::Head => {
                let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: hub\r\nx-slow: ").await;
                drip(&mut stream, b"x").await;
            }
            Kind::Body => {
                let head = "POST /api/auth/login HTTP/1.1\r\nhost: hub\r\nsec-fetch-site: same-origin\r\n\
                            content-type: application/json\r\ncontent-length: 10000\r\n\r\n{";
                let _ = stream.write_all(head.as_bytes()).await;
                drip(&mut stream, b" ").await;
            }
            Kind::Idle => {
                let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: hub\r\n\r\n").await;
                read_to_end(&mut stream).await;
            }
            Kind::Reading => {
                let request = "GET /openapi.json HTTP/1.1\r\nhost: hub\r\n\r\n";
                let _ = stream.write_all(request.repeat(UNREAD).as_bytes()).await;
                clock.sleep(kind.limit() + Duration::from_secs(15)).await;
                // After the close, only bytes that were already in flight arrive.
                let heard = read_to_end(&mut stream).await;
                if heard >= UNREAD * LEAST_ANSWER {
                    return Some(format!("{heard} bytes were kept for someone who did not read"));
                }
            }
        }
        None
    };
    let most = kind.limit() + MARGIN;
    let Some(wrong) = clock.timeout(most, slow).await else {
        return Some(format!("{kind:?} is still served after {most:?}"));
    };
    let lasted = clock.now().since(began);
    wrong.or_else(|| (lasted < kind.timeout()).then(|| format!("{kind:?} was sent away after {lasted:?}")))
}

/// Resources of the server.
#[derive(Debug)]
struct Usage {
    /// Open files and connections.
    files: usize,
    /// Resident memory, and its peak.
    kib: u64,
    most_kib: u64,
}

impl Usage {
    fn of(hub: &HubProcess) -> Self {
        let id = hub.process.id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let value = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        let files = std::fs::read_dir(format!("/proc/{id}/fd")).unwrap().count();
        Self { files, kib: value("VmRSS:"), most_kib: value("VmHWM:") }
    }
}

#[tokio::test]
async fn slow_clients_are_sent_away_and_others_do_not_notice() {
    let count = std::env::var("HUB_SLOW_CLIENTS").map_or(COUNT, |count| count.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let network = NetworkProcess::start().await;
    let hub = HubProcess::start(folder.path(), &network, &[]).await;
    let port = hub.url.parse::<url::Url>().unwrap().port().unwrap();
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));

    let before = Usage::of(&hub);
    let tasks = Tasks::new();
    let healthy = tasks.spawn("healthy client", {
        let (tasks, caller) = (tasks.clone(), Caller::stranger(&hub.url));
        async move {
            let mut answered = 0;
            while !tasks.stopping() {
                let (status, answer, _) = caller.call(reqwest::Method::GET, "/healthz", None).await;
                assert!(status.is_success(), "{status} {answer}");
                answered += 1;
                Clock::system().sleep(Duration::from_millis(200)).await;
            }
            answered
        }
    });
    let clients = (0..count).map(|number| be_slow(server, Kind::ALL[number % Kind::ALL.len()], number));
    let wrong: Vec<String> = join_all(clients).await.into_iter().flatten().collect();
    tasks.stop();
    let answered = healthy.await.unwrap().expect("the healthy client was always answered");
    assert!(answered > 50, "{answered} healthy requests in all that time");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));

    // Nothing of them is left.
    let after = Usage::of(&hub);
    assert!(after.files <= before.files + 20, "{before:?} {after:?}");
    assert!(after.most_kib <= before.kib + MOST_KIB, "{before:?} {after:?}");
    let mut ada = Caller::stranger(&hub.url);
    let credentials = json!({ "username": "ada", "password": "correct horse battery staple" });
    ada.sign_in("/api/auth/register", credentials).await;
    let (ended, log) = hub.process.terminate().await;
    assert!(ended.success(), "{ended}:\n{log}");
}
