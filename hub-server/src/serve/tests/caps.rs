//! Tests of the limits on connections and on their buffers.

use super::*;

#[tokio::test]
async fn a_connection_over_a_limit_gets_an_error_and_is_closed() {
    let limits = ServeLimits { connections_per_network: 2, ..ServeLimits::default() };
    let stage = Stage::open(make(|_: Request| async { "ok" }).map_to_response(), limits).await;
    let mut inside = [stage.connect().await, stage.connect().await];
    for client in &mut inside {
        client.say(GET).await;
        client.read_until("ok").await;
    }
    let answer = stage.connect().await.read_to_end().await;
    assert_refused(&answer, 503, "UNAVAILABLE");
    assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    assert_eq!((stage.turned_away("network"), stage.server.stats().open()), (1, 2));
    drop(inside);
    until(|| stage.server.stats().open() == 0).await;
    let mut again = stage.connect().await;
    again.say(GET).await;
    again.read_until("ok").await;
    assert_eq!(stage.server.stats().accepted(), 3);
}

#[tokio::test]
async fn the_cap_in_all_binds_proxies_too() {
    let limits = ServeLimits {
        connections: 1,
        connections_per_network: 1,
        uncapped: vec!["127.0.0.0/8".parse().unwrap()],
        ..ServeLimits::default()
    };
    let stage = Stage::open(make(|_: Request| async { "ok" }).map_to_response(), limits).await;
    let mut inside = stage.connect().await;
    inside.say(GET).await;
    inside.read_until("ok").await;
    assert_refused(&stage.connect().await.read_to_end().await, 503, "UNAVAILABLE");
    assert_eq!((stage.turned_away("total"), stage.turned_away("network")), (1, 0));
}

/// Memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn six_hundred_megabytes_in_chunks_are_cut_at_the_cap() {
    let hub = App::new().await;
    let stage = Stage::application(&hub, ServeLimits::default()).await;
    let mut client = stage.connect().await;
    client
        .say(
            "POST /api/auth/login HTTP/1.1\r\nHost: localhost:9800\r\nOrigin: http://localhost:9800\r\n\
             Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        )
        .await;
    let before = resident();
    let (mut reader, mut writer) = client.0.into_split();
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    // The clock does not move: lingering ends when the client closes.
    let write = async {
        let mut written = 0;
        while written < 600 << 20 && writer.write_all(chunk.as_bytes()).await.is_ok() {
            written += chunk.len();
            if written > 4 << 20 && stage.closed("slow_body") == 0 {
                stage.clock.advance(Duration::from_secs(1));
            }
        }
        written
    };
    let mut answer = Vec::new();
    let (written, _) = tokio::join!(write, reader.read_to_end(&mut answer));
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("PAYLOAD_TOO_LARGE"), "{answer}");
    assert!(written < 600 << 20, "the client was cut");
    let grown = resident().saturating_sub(before);
    assert!(grown < 32 * 1024, "memory grew by {grown} KiB");
}

#[tokio::test]
async fn a_stranger_may_send_less_than_a_user() {
    let hub = App::new().await;
    let ada = hub.user("ada").await;
    let stage = Stage::application(&hub, ServeLimits::default()).await;
    let cookie: String =
        ada.headers.iter().fold(String::new(), |lines, (name, value)| lines + name + ": " + value + "\r\n");
    let post = |path: &str, headers: &str, length: usize| {
        let body = format!("{{\"x\":\"{}\"}}", "x".repeat(length));
        format!(
            "POST {path} HTTP/1.1\r\nHost: hub\r\nOrigin: http://localhost:9800\r\nConnection: close\r\n\
             Content-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    for (path, headers, length, status) in [
        ("/api/auth/login", "", 1_000, 400),
        ("/api/auth/login", "", 17_000, 413),
        // Reading it ends with the stranger, before its length matters.
        ("/api/bots/bind/start", "", 17_000, 401),
        ("/api/bots/bind/start", cookie.as_str(), 17_000, 400),
        ("/api/bots/bind/start", cookie.as_str(), 1_100_000, 413),
        ("/api/auth/logout", cookie.as_str(), 17_000, 413),
    ] {
        let mut client = stage.connect().await;
        let request = post(path, headers, length);
        let send = async {
            let _ = client.0.write_all(request.as_bytes()).await;
        };
        tokio::time::timeout(TEST_TIMEOUT, send).await.expect("it is taken or cut");
        let answer = client.read_until("\r\n\r\n").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path} {length}: {answer}");
    }
}
