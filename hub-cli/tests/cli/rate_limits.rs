//! A server that limits requests: commands send few of them, and retry after the requested time.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::Output,
    sync::{Arc, Mutex},
};

use crate::{
    program::{documents, ends, feed},
    stage::Stage,
};

/// Passes requests without a body on to a server, counts them, and refuses the first ones.
struct Gate {
    url: String,
    /// First lines, in order.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Gate {
    /// Refuses as many requests as there are answers.
    fn before(server: &str, refusals: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = server.trim_start_matches("http://").to_owned();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                pass(connection.unwrap(), &server, &seen, refusals);
            }
        });
        Self { url, requests }
    }

    /// Runs a command with the server behind the gate; gives the paths of its requests too.
    fn run(&self, stage: &Stage, arguments: &[&str]) -> (Output, Vec<String>) {
        self.requests.lock().unwrap().clear();
        let output = stage.signed_in().env("HUB_SERVER", &self.url).args(arguments).output().unwrap();
        (output, self.requests.lock().unwrap().clone())
    }
}

/// One request of a connection, which is closed after its answer.
fn pass(mut client: TcpStream, server: &str, seen: &Mutex<Vec<String>>, refusals: &[&str]) {
    let mut lines = BufReader::new(&client).lines().map(Result::unwrap);
    let Some(first) = lines.next() else { return };
    let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let count = {
        let mut seen = seen.lock().unwrap();
        seen.push(first.clone());
        seen.len()
    };
    if let Some(refusal) = refusals.get(count - 1) {
        let body = r#"{"success":false,"error":{"code":"RATE_LIMITED","message":"too many requests"}}"#;
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {refusal}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        );
        client.write_all(answer.as_bytes()).unwrap();
        return;
    }
    let kept = headers.iter().filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    let kept = kept.fold(String::new(), |kept, line| kept + line + "\r\n");
    let mut upstream = TcpStream::connect(server).unwrap();
    upstream.write_all(format!("{first}\r\n{kept}connection: close\r\n\r\n").as_bytes()).unwrap();
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer).unwrap();
    client.write_all(&answer).unwrap();
}

fn traces(requests: &[String]) -> usize {
    requests.iter().filter(|line| line.contains("/traces")).count()
}

#[test]
fn exports_and_replays_make_one_request_per_page_and_none_per_trace() {
    let stage = Stage::new();
    for text in ["order 1", "order 2", "order 3"] {
        stage.say(text);
    }
    let gate = Gate::before(&stage.url, &[]);
    let (output, requests) = gate.run(&stage, &["traces", "export", "--bot", "demo"]);
    let (out, _) = ends(&output, 0);
    let exported = documents(&out);
    let text = |place: usize| exported[place]["message"]["content"].clone();
    assert_eq!([text(0), text(1), text(2)], ["order 1", "order 2", "order 3"]);
    assert!(
        exported.iter().all(|line| line["steps"].as_array().is_some_and(|steps| steps.len() > 2)),
        "{out}"
    );
    assert_eq!(traces(&requests), 1, "{requests:#?}");
    assert!(!requests.iter().any(|line| line.contains("/messages")), "{requests:#?}");
    // One to count what is sent, one to read it.
    let (output, requests) = gate.run(&stage, &["replay", "--bot", "demo", "--dry-run"]);
    ends(&output, 0);
    assert_eq!(traces(&requests), 2, "{requests:#?}");
    let ids: Vec<&str> = exported.iter().map(|line| line["trace_id"].as_str().unwrap()).collect();
    let (output, requests) = gate.run(&stage, &[&["replay", "--dry-run"], &ids[..]].concat());
    assert_eq!(ends(&output, 0).0.lines().count(), ids.len());
    assert_eq!(traces(&requests), 2, "{requests:#?}");
    gate.requests.lock().unwrap().clear();
    let lines = format!("{}\n", ids.join("\n")).repeat(100);
    let mut command = stage.signed_in();
    let piped = command.env("HUB_SERVER", &gate.url).args(["replay", "-", "--dry-run"]);
    assert_eq!(ends(&feed(piped, &lines), 0).0.lines().count(), 300);
    // How many lines have arrived by a request is not known, but they are more than one.
    let asked = traces(&gate.requests.lock().unwrap());
    assert!(asked < 100, "{asked} requests for 300 ids");
    // Nothing is unfinished: a list is enough.
    let (output, requests) = gate.run(&stage, &["tail", "--bot", "demo", "--follow=false", "--since", "1h"]);
    ends(&output, 0);
    assert_eq!(traces(&requests), 1, "{requests:#?}");
}

#[test]
fn a_command_retries_when_the_server_is_busy() {
    let stage = Stage::new();
    let refusals = &["429 Too Many Requests\r\nretry-after: 1", "503 Service Unavailable\r\nretry-after: 1"];
    let gate = Gate::before(&stage.url, refusals);
    let (output, requests) = gate.run(&stage, &["channels", "list", "--bot", "demo"]);
    let (out, err) = ends(&output, 0);
    assert!(out.contains("demo"), "{out}");
    assert_eq!(requests[0], requests[1], "the same request again");
    assert_eq!(requests[0], requests[2]);
    let waits: Vec<&str> = err.lines().filter(|line| line.contains("retrying in 1 s")).collect();
    assert_eq!(waits.len(), 2, "{err}");
}

#[test]
fn a_send_that_is_not_sent_in_time_exits_with_8() {
    let stage = Stage::new();
    let gate = Gate::before(&stage.url, &["429 Too Many Requests\r\nretry-after: 3600"]);
    let (output, requests) = gate.run(&stage, &["channels", "list", "--bot", "demo"]);
    let err = crate::program::fails(&output, 1, "RATE_LIMITED");
    assert_eq!(requests.len(), 1, "{err}");
}
