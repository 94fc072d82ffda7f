//! The bare client: the same bodies with the same headers, signed again each time, over kept connections to the
//! same receiver; no store, no order, no trace. What a hub could reach at most.

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use data_encoding::{BASE64, HEXLOWER};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderName, HeaderValue, Request, Uri};
use http_body_util::{BodyExt, Full};
use hub_core::{tasks::Tasks, time::Clock};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use sha2::Sha256;
use tokio::net::TcpStream;

use crate::{Result, hub::SECRET, marker::Marker, options::Work, peer::Peer, receiver::HOOK};

#[derive(Debug, Deserialize)]
struct Sample {
    headers: Vec<(String, String)>,
    body: String,
}

/// The request that is sent again and again.
struct Pattern {
    headers: http::HeaderMap,
    /// The body around its marker.
    before: String,
    after: String,
    id: String,
    timestamp: String,
}

impl Pattern {
    fn new(sample: Sample) -> Result<Self> {
        let mut headers = http::HeaderMap::new();
        for (name, value) in sample.headers {
            headers.insert(HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
        }
        let text = |name: &str| {
            let value = headers.get(name).and_then(|value| value.to_str().ok());
            value.map(str::to_owned).ok_or_else(|| format!("the sample has no {name}"))
        };
        let (id, timestamp) = (text("webhook-id")?, text("webhook-timestamp")?);
        let (before, rest) = sample.body.split_once("[#").ok_or("the sample has no marker")?;
        let (_, after) = rest.split_once(']').ok_or("the sample has no marker")?;
        let (before, after) = (before.to_owned(), after.to_owned());
        Ok(Self { headers, before, after, id, timestamp })
    }

    fn request(&self, number: u64) -> Request<Full<Bytes>> {
        let marker = Marker { number, conversation: 0 }.text();
        let body = format!("{}{}{}", self.before, &marker[..20], self.after);
        let simple = HEXLOWER.encode(&sign(&[body.as_bytes()]));
        let standard =
            BASE64.encode(&sign(&[format!("{}.{}.", self.id, self.timestamp).as_bytes(), body.as_bytes()]));
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = Uri::from_static(HOOK);
        *request.headers_mut() = self.headers.clone();
        for (name, value) in
            [("x-signature", format!("sha256={simple}")), ("webhook-signature", format!("v1,{standard}"))]
        {
            if let Ok(value) = HeaderValue::try_from(value) {
                request.headers_mut().insert(HeaderName::from_static(name), value);
            }
        }
        request
    }
}

fn sign(parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}

/// Waits for a line, posts everything, prints when it is done and waits for the end of its input, so that what
/// it used can still be read.
pub async fn run(work: &Work) -> Result<()> {
    let sample = Peer::new(&work.receiver)?.get("/_bench/sample").await?;
    let pattern = Arc::new(Pattern::new(serde_json::from_slice(&sample)?)?);
    let (tasks, next, most) = (Tasks::new(), Arc::new(AtomicU64::new(0)), work.messages);
    let done = Arc::new(AtomicU64::new(0));
    let (clock, rate) = (Clock::system(), work.rate);
    let mut senders = Vec::new();
    for _ in 0..work.connections {
        let stream = TcpStream::connect(&work.receiver).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tasks.spawn("connection", async move { drop(connection.await) });
        senders.push(sender);
    }
    writeln!(std::io::stdout(), "ready")?;
    std::io::stdin().read_line(&mut String::new())?;
    let began = clock.instant();
    let mut posting = Vec::new();
    for mut sender in senders {
        let (pattern, next, done) = (Arc::clone(&pattern), Arc::clone(&next), Arc::clone(&done));
        let clock = clock.clone();
        posting.push(tasks.spawn("sender", async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= most || sender.ready().await.is_err() {
                    return;
                }
                if let Some(rate) = rate {
                    clock.sleep_until(began + Duration::from_micros(number * 1_000_000 / rate)).await;
                }
                let Ok(answer) = sender.send_request(pattern.request(number)).await else { return };
                if answer.status().is_success() && answer.into_body().collect().await.is_ok() {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            }
        }));
    }
    for one in posting {
        one.await?;
    }
    writeln!(std::io::stdout(), "{}", done.load(Ordering::Relaxed))?;
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}
