//! `hub-server health`, against a hub and against other servers.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    process::{Command, Output},
};

use crate::support::{
    binaries,
    hub_process::{HubProcess, NetworkProcess},
};

fn health(settings: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let mut command = Command::new(binaries::program("hub-server"));
    command.arg("health").env_clear().envs(settings.iter().copied());
    let Output { status, stdout, stderr } = command.output().unwrap();
    let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
    (status.code(), stdout, stderr)
}

/// Asks at an address, and gives why the hub there is not well.
fn reason(address: &str) -> String {
    let (exit, stdout, stderr) = health(&[("HUB_LISTEN", address)]);
    assert_eq!((exit, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.starts_with("error: "), "{stderr}");
    stderr
}

fn http(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// Someone who gives every caller the same answer, or none.
fn answering(answer: Option<String>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        // Kept, so that who gets no answer is left waiting.
        let mut callers = Vec::new();
        for mut caller in listener.incoming().map_while(Result::ok) {
            let mut head = [0; 1024];
            if let (Some(answer), Ok(1..)) = (&answer, caller.read(&mut head)) {
                let _ = caller.write_all(answer.as_bytes());
            }
            callers.push(caller);
        }
    });
    address
}

#[tokio::test]
async fn a_hub_that_serves_is_well_at_the_address_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let network = NetworkProcess::start().await;
    // As in a container: on every address, of which the check takes loopback.
    let hub = HubProcess::start_at(folder.path(), &network, "0.0.0.0:0", &[]).await;
    let port = hub.url.rsplit_once(':').unwrap().1;
    let listen = format!("0.0.0.0:{port}");
    // In another process, where the hub's own folder cannot be read.
    let settings = [("HUB_LISTEN", listen.as_str()), ("HUB_DATA_DIR", "/nowhere")];
    assert_eq!(health(&settings), (Some(0), "ready\n".to_owned(), String::new()));
    hub.process.terminate().await;
    assert!(reason(&listen).contains(&format!("no hub responds at 127.0.0.1:{port}: ")));
}

#[test]
fn only_a_healthy_response_is_healthy() {
    let refusal = r#"{"success":false,"error":{"code":"UNAVAILABLE","message":"the hub is shutting down"}}"#;
    let draining = reason(&answering(Some(http("503 Service Unavailable", refusal))).to_string());
    assert!(draining.contains("cannot serve: the hub is shutting down\n"), "{draining}");
    let other = reason(&answering(Some(http("404 Not Found", "<h1>nobody</h1>"))).to_string());
    assert!(other.contains("cannot serve: status 404\n"), "{other}");
    let no_http = reason(&answering(Some("SSH-2.0-OpenSSH_9.2\r\n\r\n".to_owned())).to_string());
    assert!(no_http.contains("no hub responds at ") && no_http.contains("hint: HUB_LISTEN"), "{no_http}");
    assert!(
        reason(&answering(None).to_string()).contains("no hub responds at "),
        "who says nothing is not waited for"
    );
}

#[test]
fn an_address_that_cannot_be_checked_is_reported() {
    assert!(reason("127.0.0.1:0").contains("HUB_LISTEN"));
    // Not 2, which container engines keep for themselves.
    assert!(reason("nonsense").contains("an address with a port"));
}
