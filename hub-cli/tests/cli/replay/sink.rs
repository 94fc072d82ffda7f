//! A receiver on this machine that records requests and sends prepared responses.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
};

/// A received request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The lines of its head.
    pub head: String,
    pub body: String,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let is_it =
            |line: &&str| line.split(':').next().is_some_and(|known| known.eq_ignore_ascii_case(name));
        self.head.lines().find(is_it).and_then(|line| Some(line.split_once(':')?.1.trim()))
    }
}

/// The status and the body for the request of this number, from 0.
type Answers = dyn Fn(usize) -> (u16, String) + Send + Sync;

struct State {
    seen: Mutex<Vec<Request>>,
    came: Condvar,
    answers: Box<Answers>,
}

pub struct Sink {
    pub url: String,
    state: Arc<State>,
}

impl Sink {
    pub fn new(answers: impl Fn(usize) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let state =
            Arc::new(State { seen: Mutex::default(), came: Condvar::new(), answers: Box::new(answers) });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, state) = (stream.unwrap(), Arc::clone(&shared));
                std::thread::spawn(move || state.serve(&stream));
            }
        });
        Self { url, state }
    }

    /// Takes everything.
    pub fn kind() -> Self {
        Self::new(|_| (200, "{}".to_owned()))
    }

    pub fn requests(&self) -> Vec<Request> {
        self.state.seen.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.state.seen.lock().unwrap().len()
    }

    /// Waits until so many came.
    pub fn wait(&self, count: usize) {
        let timeout = std::time::Duration::from_secs(60);
        let seen = self.state.seen.lock().unwrap();
        let (seen, _) = self.state.came.wait_timeout_while(seen, timeout, |seen| seen.len() < count).unwrap();
        assert!(seen.len() >= count, "only {} requests came", seen.len());
    }
}

impl State {
    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(request) = read(&mut reader) {
            let number = {
                let mut seen = self.seen.lock().unwrap();
                seen.push(request);
                self.came.notify_all();
                seen.len() - 1
            };
            let (status, body) = (self.answers)(number);
            let answer = format!(
                "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            // The client may be gone.
            if (&*stream).write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<Request> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut request = Request { head, body: String::new() };
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    request.body = String::from_utf8(body).unwrap();
    Some(request)
}
