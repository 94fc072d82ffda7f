//! Name resolution with the machine's own resolver: a DNS server of the test in a network namespace, where the port is
//! free and the configuration of the resolver can differ.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use hub_core::{
    egress::EgressFault::{BlockedAddress, Connect, Dns, Timeout},
    tasks::Tasks,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, UdpSocket},
};

use super::{
    namespace,
    scene::{Scene, seen},
};
use crate::support::fault_receiver::{
    FaultReceiver, Request,
    Seen::{Class, Status},
    behaviours,
};

/// Most bytes of an answer over UDP without further agreement.
const MAX_UDP: usize = 512;

const LIVE: [u8; 4] = [127, 0, 0, 1];
const PRIVATE: [u8; 4] = [10, 0, 0, 1];

/// Returns the response to a query; `None` for no response. `asked` counts the IPv4 queries for `rebinding`.
fn answer(query: &[u8], asked: &AtomicUsize) -> Option<Vec<u8>> {
    let length = usize::from(*query.get(12)?);
    let label = std::str::from_utf8(query.get(13..13 + length)?).ok()?.to_ascii_lowercase();
    let name_end = 12 + query.get(12..)?.iter().position(|byte| *byte == 0)? + 1;
    let is_v4 = query.get(name_end..name_end + 2)? == [0, 1];
    let address = |ip: [u8; 4]| [&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4], &ip[..]].concat();
    // To the name itself.
    let alias = [0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 0, 0, 2, 0xc0, 12].to_vec();
    let (code, records) = match label.as_str() {
        "nxdomain" => (3, Vec::new()),
        "servfail" => (2, Vec::new()),
        "timeout" => return None,
        "cname-loop" => (0, vec![alias]),
        _ if !is_v4 => (0, Vec::new()),
        "live" => (0, vec![address(LIVE)]),
        "no-records" => (0, Vec::new()),
        "half-private" => (0, vec![address(LIVE), address(PRIVATE)]),
        "thousand" => {
            let dead = (0..1000_u16).map(u16::to_be_bytes).map(|[high, low]| address([127, 9, high, low]));
            (0, dead.collect())
        }
        "rebinding" => {
            let even = asked.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
            (0, vec![address(if even { LIVE } else { PRIVATE })])
        }
        _ => (3, Vec::new()),
    };
    let count = u16::try_from(records.len()).ok()?.to_be_bytes();
    let mut reply = [&query[..2], &[0x81, 0x80 | code, 0, 1], &count[..], &[0, 0, 0, 0]].concat();
    reply.extend_from_slice(&query[12..name_end + 4]);
    reply.extend(records.concat());
    Some(reply)
}

/// Serves names on loopback, over UDP and, where that is too small, TCP.
async fn serve(tasks: &Tasks) {
    let (udp, tcp) =
        (UdpSocket::bind("127.0.0.1:53").await.unwrap(), TcpListener::bind("127.0.0.1:53").await.unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    tasks.spawn("DNS over UDP", async move {
        let mut query = [0; 512];
        while let Ok((length, from)) = udp.recv_from(&mut query).await {
            let Some(mut reply) = answer(&query[..length], &counter) else { continue };
            if reply.len() > MAX_UDP {
                // Truncated: ask again over TCP.
                reply.truncate(length);
                reply[2] |= 2;
                reply[6..12].fill(0);
            }
            let _ = udp.send_to(&reply, from).await;
        }
    });
    tasks.spawn("DNS over TCP", async move {
        while let Ok((mut stream, _)) = tcp.accept().await {
            while let Ok(length) = stream.read_u16().await {
                let mut query = vec![0; usize::from(length)];
                let read = stream.read_exact(&mut query).await;
                let Some(reply) = read.ok().and_then(|_| answer(&query, &asked)) else { break };
                let length = u16::try_from(reply.len()).unwrap();
                let _ = stream.write_all(&[&length.to_be_bytes()[..], &reply].concat()).await;
            }
        }
    });
}

#[test]
fn the_trace_names_the_response_of_a_dns_server_in_a_network_of_its_own() {
    namespace::run("faults::dns::inside_the_network", &[]);
}

/// The resolver asks the test's server here.
#[tokio::test]
#[ignore = "runs inside the network that the test above makes"]
async fn inside_the_network() {
    namespace::assert_inside();
    let tasks = Tasks::new();
    serve(&tasks).await;
    let scene = Scene::open().await;
    let well = behaviours().into_iter().find(|row| row.name == "cookie").unwrap();
    let well = FaultReceiver::open(&well).await;
    let url = |name: &str| format!("http://{name}.example:{}/hook", well.address.port());
    let mut channels = Vec::new();
    for (name, expected) in [
        ("live", Status(200)),
        ("nxdomain", Class(Dns)),
        ("servfail", Class(Dns)),
        ("cname-loop", Class(Dns)),
        ("no-records", Class(Dns)),
        ("timeout", Class(Timeout)),
        ("thousand", Class(Connect)),
        ("half-private", Class(BlockedAddress)),
    ] {
        let timeout_ms = if expected == Class(Timeout) { 500 } else { 30_000 };
        channels.push((name, expected, scene.channel(name, url(name), timeout_ms).await));
    }
    scene.say("alice", "hello");
    for (name, expected, channel) in channels {
        let trace = &scene.tried(channel, 1).await[0];
        assert_eq!(seen(trace), expected, "{name}: {trace:?}");
    }

    let rebinding = scene.channel("rebinding", url("rebinding"), 30_000).await;
    for n in 1..=10 {
        scene.say(&format!("person {n}"), "hello");
        scene.tried(rebinding, n).await;
    }
    let seen: Vec<_> = scene.tried(rebinding, 10).await.iter().map(seen).collect();
    let good = seen.iter().filter(|seen| **seen == Status(200)).count();
    let bad = seen.iter().filter(|seen| **seen == Class(BlockedAddress)).count();
    assert!(good > 0 && bad > 0 && good + bad == 10, "{seen:?}");
    let asked_by_it = |request: &Request| request.header("host").unwrap().starts_with("rebinding.");
    assert_eq!(well.requests().into_iter().filter(asked_by_it).count(), good);
    tasks.stop();
}
