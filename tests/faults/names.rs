//! Name resolution: what a resolver may answer, and how long it may take.

use std::{
    io,
    net::{IpAddr, Ipv4Addr},
    sync::atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use hub_core::egress::{
    EgressFault::{BlockedAddress, Connect, Dns, Timeout},
    Resolver,
};

use super::scene::{Scene, next_attempt, seen};
use crate::support::fault_receiver::{
    FaultReceiver,
    Seen::{self, Class, Status},
    behaviours,
};

/// Answers by the first label of a name.
struct Names {
    asked: AtomicUsize,
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let live = IpAddr::from(Ipv4Addr::LOCALHOST);
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        // No one listens on the rest of 127.0.0.0/8.
        let dead = (0..1000_u16).map(|n| {
            let [high, low] = n.to_be_bytes();
            IpAddr::from([127, 9, high, low])
        });
        match host.split('.').next().unwrap() {
            "nxdomain" => Err(io::ErrorKind::NotFound.into()),
            "servfail" | "cname-loop" => Err(io::Error::other("temporary failure in name resolution")),
            "no-records" => Ok(Vec::new()),
            "timeout" => std::future::pending().await,
            "thousand-dead" => Ok(dead.collect()),
            "thousand-live" => Ok(vec![live; 1000]),
            "dead-v6" => Ok(vec!["::1".parse().unwrap(), live]),
            "dead-v4" => Ok(vec![IpAddr::from([127, 9, 9, 9]), live]),
            "half-private" => Ok(vec!["93.184.216.34".parse().unwrap(), "10.0.0.1".parse().unwrap()]),
            // A thousand good ones do not hide a bad one at the end.
            "last-private" => Ok(dead.chain(["10.0.0.1".parse().unwrap()]).collect()),
            "rebinding" if asked.is_multiple_of(2) => Ok(vec![live]),
            "rebinding" => Ok(vec!["10.0.0.1".parse().unwrap()]),
            host => panic!("unknown host {host}"),
        }
    }
}

#[tokio::test]
async fn the_trace_names_the_response_of_the_resolver() {
    let cases: [(&str, Seen); 10] = [
        ("nxdomain", Class(Dns)),
        ("servfail", Class(Dns)),
        ("cname-loop", Class(Dns)),
        ("no-records", Class(Dns)),
        ("timeout", Class(Timeout)),
        ("thousand-dead", Class(Connect)),
        ("thousand-live", Status(200)),
        ("dead-v6", Status(200)),
        ("dead-v4", Status(200)),
        ("half-private", Class(BlockedAddress)),
    ];
    let cases = cases.into_iter().chain([("last-private", Class(BlockedAddress))]);
    let names = Names { asked: AtomicUsize::new(0) };
    let scene = Scene::resolving(names, &["127.0.0.0/8", "::1/128"]).await;
    let well = behaviours().into_iter().find(|row| row.name == "cookie").unwrap();
    let well = FaultReceiver::open(&well).await;
    let mut channels = Vec::new();
    for (name, expected) in cases {
        let url = format!("http://{name}.example:{}/hook", well.address.port());
        let timeout_ms = if expected == Class(Timeout) { 500 } else { 30_000 };
        channels.push((name, expected, scene.channel(name, url, timeout_ms).await));
    }
    scene.say("alice", "hello");
    for (name, expected, channel) in channels {
        let trace = &scene.tried(channel, 1).await[0];
        assert_eq!(seen(trace), expected, "{name}: {trace:?}");
        assert_eq!(
            next_attempt(trace).is_some(),
            expected != Status(200),
            "{name}: a failure is tried again"
        );
    }
}

#[tokio::test]
async fn a_name_that_moves_to_a_private_address_is_blocked_there() {
    let scene = Scene::resolving(Names { asked: AtomicUsize::new(0) }, &["127.0.0.0/8"]).await;
    // This one closes every connection, so each message makes its own and asks again.
    let well = behaviours().into_iter().find(|row| row.name == "cookie").unwrap();
    let well = FaultReceiver::open(&well).await;
    let url = format!("http://rebinding.example:{}/hook", well.address.port());
    let channel = scene.channel("rebinding", url, 30_000).await;
    for n in 1..=10 {
        scene.say(&format!("person {n}"), "hello");
        scene.tried(channel, n).await;
    }
    let seen: Vec<Seen> = scene.tried(channel, 10).await.iter().rev().map(seen).collect();
    let (good, bad): (Vec<Seen>, Vec<Seen>) = seen.iter().partition(|seen| **seen == Status(200));
    assert!(bad.iter().all(|seen| *seen == Class(BlockedAddress)), "{bad:?}");
    assert!(!good.is_empty() && !bad.is_empty(), "{seen:?}");
    assert_eq!(well.requests().len(), good.len());
}
