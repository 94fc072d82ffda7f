//! A process that runs out of file descriptors: it goes on accepting, if only to refuse.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use super::*;

const CHILD: &str = "serve::tests::descriptors::a_server_with_few_descriptors";

/// Not a test of its own: the other process of the test below.
#[tokio::test]
#[ignore = "serves until it is killed; run by the test below"]
async fn a_server_with_few_descriptors() {
    let stage = Stage::ok().await;
    println!("listening on {}", stage.address);
    std::future::pending::<()>().await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_process_without_descriptors_refuses_and_recovers() {
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new("sh")
        .arg("-c")
        .arg("ulimit -n 64; exec \"$0\" --ignored --exact \"$1\" --nocapture")
        .arg(program)
        .arg(CHILD)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = loop {
        let line = lines.next().expect("it goes on").unwrap();
        if let Some((_, address)) = line.split_once("listening on ") {
            break address.to_owned();
        }
    };
    let mut served = Vec::new();
    let mut refused = 0;
    for _ in 0..200 {
        let mut client = Client(TcpStream::connect(&address).await.unwrap());
        let _ = client.0.write_all(GET.as_bytes()).await;
        let mut first = [0; 12];
        let read = tokio::time::timeout(TEST_TIMEOUT, client.0.read_exact(&mut first)).await;
        match read.expect("every connection is answered or closed") {
            Ok(_) if first.ends_with(b"200") => served.push(client),
            _ => refused += 1,
        }
    }
    assert!((20..64).contains(&served.len()) && refused > 100, "{} served, {refused} refused", served.len());
    drop(served);
    let back = async {
        loop {
            let mut client = Client(TcpStream::connect(&address).await.unwrap());
            let _ = client.0.write_all(GET.as_bytes()).await;
            let mut first = [0; 12];
            if client.0.read_exact(&mut first).await.is_ok() && first.ends_with(b"200") {
                return;
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, back).await.expect("it serves again");
    child.kill().unwrap();
    child.wait().unwrap();
}
