//! Spellings of addresses that are no one's webhook, at every way into the hub: when a channel is made, when its
//! webhook is set, when a trace is replayed elsewhere, and when a message is sent to what was stored under other
//! rules or to a name. A canary listens wherever they could lead to.

use std::{
    collections::BTreeSet,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use hub_core::{
    ErrorCode,
    channels::{NewChannel, sinks::WebhookUpdate},
    egress::{EgressFault::BlockedAddress, Resolver},
    tasks::Tasks,
    traces::ReplayTo,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{
    namespace,
    scene::{Scene, seen},
};
use crate::support::{
    fault_receiver::Seen::{Class, Status},
    http::until,
};

/// Addresses of this machine, of its neighbours, of what clouds put next to it, and of no one.
const PRIVATE: [Ipv4Addr; 7] = [
    Ipv4Addr::LOCALHOST,
    Ipv4Addr::UNSPECIFIED,
    Ipv4Addr::new(10, 0, 0, 1),
    Ipv4Addr::new(172, 16, 0, 1),
    Ipv4Addr::new(192, 168, 1, 1),
    Ipv4Addr::new(100, 64, 0, 1),
    Ipv4Addr::new(169, 254, 169, 254),
];

/// Private and special IPv6 addresses that hold no IPv4 address.
const PRIVATE_V6: [&str; 10] = [
    "::1",
    "::",
    "fe80::1",
    "fec0::1",
    "fc00::1",
    "fd12:3456:789a::1",
    "ff02::1",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
];

/// Addresses of the wide world: a private network can be given them (see `namespace`).
const PUBLIC: [&str; 5] = ["93.184.216.34", "1.1.1.1", "203.0.112.1", "2606:4700::1111", "2a00:1450:4001::1"];

/// Every spelling of one IPv4 address as the host of a URL.
fn spellings(ip: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = ip.octets();
    let number = u32::from(ip);
    let dotted = ip.to_string();
    let digits = |zero: u32| -> String {
        let digit = |c: char| c.to_digit(10).map_or(c, |digit| char::from_u32(zero + digit).unwrap());
        dotted.chars().map(digit).collect()
    };
    let circled = dotted.chars().map(|c| match c.to_digit(10) {
        Some(0) => '\u{24ea}',
        Some(digit) => char::from_u32(0x245f + digit).unwrap(),
        None => c,
    });
    let escaped = dotted.bytes().fold(String::new(), |text, byte| format!("{text}%{byte:02x}"));
    let (high, low) = (number >> 16, number & 0xffff);
    let (not_high, not_low) = (!number >> 16, !number & 0xffff);
    vec![
        dotted.clone(),
        format!("{dotted}."),
        number.to_string(),
        format!("{number:#x}"),
        format!("0X{number:08X}"),
        format!("{number:#o}").replacen("0o", "0", 1),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("000000{a:o}.{b}.{c:#x}.{d}"),
        format!("{a}.{b}.{}", number & 0xffff),
        format!("{a}.{}", number & 0x00ff_ffff),
        digits(0xff10),
        circled.collect(),
        dotted.replace('.', "\u{3002}"),
        dotted.replace('.', "\u{ff0e}"),
        dotted.replace('.', "\u{ff61}"),
        dotted.replace('.', "%2e"),
        dotted.replace('.', "%E3%80%82"),
        escaped,
        format!("{}\u{ad}{}", &dotted[..1], &dotted[1..]),
        format!("[::ffff:{high:x}:{low:x}]"),
        format!("[::ffff:{dotted}]"),
        format!("[0:0:0:0:0:FFFF:{high:04X}:{low:04X}]"),
        format!("[::{dotted}]"),
        format!("[::ffff:0:{dotted}]"),
        format!("[64:ff9b::{dotted}]"),
        format!("[64:ff9b:1::{dotted}]"),
        format!("[2002:{high:x}:{low:x}::]"),
        format!("[2001:0:4136:e378:8000:63bf:{not_high:x}:{not_low:x}]"),
        format!("[2001::{high:x}:{low:x}]"),
        format!("[fe80::5efe:{dotted}]"),
    ]
}

/// Every URL that no webhook may have, with the canary's port where one is free.
fn forbidden_urls(port: u16) -> Vec<String> {
    let v4 = PRIVATE.into_iter().flat_map(spellings);
    let v6 = PRIVATE_V6.into_iter().map(|ip| format!("[{ip}]"));
    let mut urls: Vec<String> = v4.chain(v6).map(|host| format!("http://{host}:{port}/hook")).collect();
    urls.extend(odd_urls(port));
    urls
}

/// Tricks with the other parts of a URL.
fn odd_urls(port: u16) -> Vec<String> {
    let with_port = [
        "http://[fe80::1%25lo]:PORT/",
        "http://[fe80::1%lo]:PORT/",
        "http://user@127.0.0.1:PORT/",
        "http://user:pass@127.0.0.1:PORT/",
        "http://example.com@127.0.0.1:PORT/",
        "http://example.com:80@127.0.0.1:PORT/",
        "http://127.0.0.1:PORT@example.com/",
        "http://127.0.0.1:PORT\\@example.com/",
        "http://127.0.0.1:PORT#@example.com/",
        "http://127.0.0.1:PORT?@example.com/",
        "http:127.0.0.1:PORT/",
        "http:/127.0.0.1:PORT/",
        "http:///127.0.0.1:PORT/",
        "http:\\\\127.0.0.1:PORT\\",
        "http://127.0.0.1\t:PORT/",
        "http://127.0.\n0.1:PORT/",
        " http://127.0.0.1:PORT/",
        "HTTP://127.0.0.1:PORT/",
        "https://127.0.0.1:PORT/",
        "//127.0.0.1:PORT/",
        "127.0.0.1:PORT",
        "ftp://127.0.0.1:PORT/",
        "gopher://127.0.0.1:PORT/_x",
        "ws://127.0.0.1:PORT/",
        "url:http://127.0.0.1:PORT/",
    ];
    let alone = [
        "",
        "file:///etc/passwd",
        "unix:///run/docker.sock",
        "data:text/plain,x",
        "javascript:alert(1)",
        "http://",
        "http://example.com:22/",
        "http://example.com:25/",
        "http://example.com:6379/",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://[::1/",
        "http://1.2.3.4.5/",
        "http://256.1.1.1/",
    ];
    let with_port = with_port.into_iter().map(|url| url.replace("PORT", &port.to_string()));
    with_port.chain(alone.map(str::to_owned)).collect()
}

/// Addresses that names may not lead to: what the spellings hold, as the system would dial it.
fn forbidden_addresses() -> Vec<IpAddr> {
    let hosts = PRIVATE.into_iter().flat_map(spellings).filter_map(|host| {
        let literal = host.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok()?;
        Some(IpAddr::from(literal))
    });
    let all: BTreeSet<IpAddr> = PRIVATE
        .into_iter()
        .map(IpAddr::from)
        .chain(PRIVATE_V6.into_iter().map(|ip| ip.parse().unwrap()))
        .chain(hosts)
        .collect();
    all.into_iter().collect()
}

/// A listener on every address of this machine that notes which one was dialled.
struct Canary {
    port: u16,
    dialled: Arc<Mutex<Vec<IpAddr>>>,
    tasks: Tasks,
}

impl Canary {
    async fn open() -> Self {
        let (dialled, tasks) = (Arc::<Mutex<Vec<IpAddr>>>::default(), Tasks::new());
        // One listener for both, except on machines without IPv6.
        let listener = match TcpListener::bind("[::]:0").await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind("0.0.0.0:0").await.unwrap(),
        };
        let port = listener.local_addr().unwrap().port();
        let (heard, inner) = (Arc::clone(&dialled), tasks.clone());
        tasks.spawn("canary", async move {
            while let Ok((stream, _)) = listener.accept().await {
                heard.lock().unwrap().push(stream.local_addr().unwrap().ip().to_canonical());
                inner.spawn("canary connection", answer(stream));
            }
        });
        Self { port, dialled, tasks }
    }

    fn dialled(&self) -> Vec<IpAddr> {
        self.dialled.lock().unwrap().clone()
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

/// Answers one request; under `/away`, with the way to a private address.
async fn answer(mut stream: TcpStream) {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let away = head.starts_with(b"POST /away ");
    let port = stream.local_addr().unwrap().port();
    let head = if away {
        format!("302 Found\r\nlocation: http://10.0.0.1:{port}/hook")
    } else {
        "200 OK".to_owned()
    };
    // What is closed without notice may be used for the next request, which fails then.
    let response = format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    let _ = stream.write_all(response.as_bytes()).await;
    // The body that came along is read, so that closing does not cut the answer.
    let _ = stream.shutdown().await;
    while stream.read(&mut [0; 1024]).await.is_ok_and(|length| length > 0) {}
}

/// Finds `n<number>.example` at the address of that number, and no other name.
struct Numbered(Vec<IpAddr>);

#[async_trait]
impl Resolver for Numbered {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let number = host.strip_prefix('n').and_then(|rest| rest.split('.').next()?.parse::<usize>().ok());
        let found = number.and_then(|number| self.0.get(number).copied());
        found.map(|address| vec![address]).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

#[tokio::test]
async fn no_spelling_is_taken_when_it_is_saved() {
    let canary = Canary::open().await;
    let urls = forbidden_urls(canary.port);
    assert!(urls.len() >= 200, "{}", urls.len());
    let scene = Scene::resolving(Numbered(vec![]), &[]).await;
    let channel = scene.channel("a", "http://n0.example/".to_owned(), 1000).await;
    scene.say("alice", "hello");
    let trace = scene.tried(channel, 1).await[0].trace_id;
    let (hub, bot) = (scene.hub.hub(), scene.bot.id);
    let mut taken = Vec::new();
    for url in urls {
        let webhook = WebhookUpdate { url: url.clone(), ..WebhookUpdate::default() };
        let new = NewChannel { webhook: Some(webhook.clone()), ..NewChannel::named("b") };
        let outcomes = [
            hub.channels().create(&scene.ada, bot, new, None).await.map(drop),
            hub.channels().set_webhook(&scene.ada, bot, channel, webhook).await.map(drop),
            hub.traces().replay(&scene.ada, bot, trace, ReplayTo::Url(&url), None).await.map(drop),
        ];
        for (entry, outcome) in ["create", "set", "replay"].into_iter().zip(outcomes) {
            if outcome.as_ref().err().map(hub_core::Error::code) != Some(ErrorCode::InvalidParams) {
                taken.push(format!("{entry} {url:?}: {outcome:?}"));
            }
        }
    }
    assert!(taken.is_empty(), "{}", taken.join("\n"));
    assert_eq!(canary.dialled(), [] as [IpAddr; 0]);
}

#[tokio::test]
async fn no_spelling_and_no_name_is_dialled_when_it_is_used() {
    let canary = Canary::open().await;
    nothing_private_is_dialled(&canary).await;
    assert_eq!(canary.dialled(), [] as [IpAddr; 0]);
}

/// Sends to every forbidden URL that was stored while the rules were others, and to names of every forbidden
/// address.
async fn nothing_private_is_dialled(canary: &Canary) {
    let addresses = forbidden_addresses();
    let count = addresses.len();
    let mut scene = Scene::resolving(Numbered(addresses), &["0.0.0.0/0", "::/0"]).await;
    let mut channels = Vec::new();
    for url in forbidden_urls(canary.port) {
        let webhook = WebhookUpdate { url: url.clone(), timeout_ms: 30_000, ..WebhookUpdate::default() };
        let name = format!("stored {}", channels.len());
        let new = NewChannel { webhook: Some(webhook), ..NewChannel::named(name) };
        // What is no URL at all is not stored under any rules.
        if let Ok(made) = scene.hub.hub().channels().create(&scene.ada, scene.bot.id, new, None).await {
            channels.push((url, made.channel.id));
        }
    }
    assert!(channels.len() >= 100, "{} of the spellings can be stored", channels.len());
    for number in 0..count {
        let url = format!("http://n{number}.example:{}/hook", canary.port);
        channels.push((url.clone(), scene.channel(&format!("name {number}"), url, 30_000).await));
    }
    scene.forbid_everything_private().await;
    scene.say("alice", "hello");
    let mut wrong = Vec::new();
    for (url, channel) in channels {
        let trace = &scene.tried(channel, 1).await[0];
        if seen(trace) != Class(BlockedAddress) {
            wrong.push(format!("{url}: {}", trace.summary));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn public_addresses_are_reached_and_private_ones_never_in_a_network_of_its_own() {
    let private = forbidden_addresses();
    let public = PUBLIC.iter().map(|ip| ip.parse().unwrap());
    let addresses: Vec<IpAddr> = private.into_iter().chain(public).collect();
    namespace::run("faults::addresses::inside_the_network", &addresses);
}

/// Every address that can be given to an interface is this machine's own here.
#[tokio::test]
#[ignore = "runs inside the network that the test above makes"]
async fn inside_the_network() {
    namespace::assert_inside();
    let canary = Canary::open().await;
    // The canary detects connections.
    for address in ["169.254.169.254", "10.0.0.1", "93.184.216.34"] {
        TcpStream::connect((address, canary.port)).await.unwrap();
    }
    until("the canary hears", async || (canary.dialled().len() == 3).then_some(())).await;
    canary.dialled.lock().unwrap().clear();
    nothing_private_is_dialled(&canary).await;

    let public: Vec<IpAddr> = PUBLIC.iter().map(|ip| ip.parse().unwrap()).collect();
    let scene = Scene::resolving(Numbered(public.clone()), &[]).await;
    let mut channels = Vec::new();
    for (number, address) in public.iter().enumerate() {
        let port = canary.port;
        for (path, expected) in [("hook", Status(200)), ("away", Status(302))] {
            let literal = format!("http://{}/{path}", SocketAddr::from((*address, port)));
            let name = format!("http://n{number}.example:{port}/{path}");
            for url in [literal, name] {
                let channel = scene.channel(&format!("public {}", channels.len()), url.clone(), 30_000).await;
                channels.push((url, channel, expected));
            }
        }
    }
    let count = channels.len();
    scene.say("alice", "hello");
    for (url, channel, expected) in channels {
        let trace = &scene.tried(channel, 1).await[0];
        assert_eq!(seen(trace), expected, "{url}: {}", trace.summary);
    }
    let dialled = canary.dialled();
    let others: Vec<_> = dialled.iter().filter(|ip| !public.contains(ip)).collect();
    assert!(others.is_empty(), "dialled: {others:?}");
    assert!(dialled.len() >= public.len() && dialled.len() <= count, "{dialled:?}");
}
