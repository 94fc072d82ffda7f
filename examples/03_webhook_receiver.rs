//! Receives webhooks and checks who sent them: `WEBHOOK_SECRET=… cargo run -p hub-examples --example 03_webhook_receiver`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]
use std::{error::Error, sync::Arc};

use bytes::Bytes;
use data_encoding::{BASE64, HEXLOWER};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, Request, Response, StatusCode};
use hub_core::local_http::{Cut, Limits, LocalService, serve};
use hub_core::{tasks::Tasks, time::Clock};
use sha2::Sha256;

struct Receiver(String);

fn is(key: &[u8], signed: &[u8], digest: Option<Vec<u8>>) -> bool {
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(key) else { return false };
    // Compares in constant time.
    digest.is_some_and(|digest| mac.chain_update(signed).verify_slice(&digest).is_ok())
}

impl Receiver {
    /// `X-Signature` over the body, or the Standard Webhooks headers over id, time and body.
    fn verify(&self, headers: &HeaderMap, body: &[u8]) -> bool {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if let Some(hex) = header("x-signature").strip_prefix("sha256=") {
            return is(self.0.as_bytes(), body, HEXLOWER.decode(hex.as_bytes()).ok());
        }
        let (id, at) = (header("webhook-id"), header("webhook-timestamp"));
        let sent: i64 = at.parse().unwrap_or_default();
        let fresh = (Clock::system().now().as_seconds() - sent).abs() <= 300;
        let key = self.0.strip_prefix("whsec_").and_then(|key| BASE64.decode(key.as_bytes()).ok());
        let key = key.unwrap_or_else(|| self.0.clone().into_bytes());
        let signed = [id.as_bytes(), b".", at.as_bytes(), b".", body].concat();
        let mut signatures = header("webhook-signature").split(' ').filter_map(|one| one.strip_prefix("v1,"));
        fresh && signatures.any(|one| is(&key, &signed, BASE64.decode(one.as_bytes()).ok()))
    }
}

#[async_trait::async_trait]
impl LocalService for Receiver {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let verified = self.verify(request.headers(), request.body());
        let word = if verified { "verified" } else { "refused" };
        println!("{word} {}", String::from_utf8_lossy(request.body()));
        let status = if verified { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
        let answer = Response::builder().status(status).header("content-type", "application/json");
        answer.body(Bytes::from_static(br#"{"reply":"thank you"}"#)).map_err(|_| Cut)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::var("LISTEN").unwrap_or_else(|_| "127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("ready http://{}/", listener.local_addr()?);
    let receiver = Receiver(std::env::var("WEBHOOK_SECRET")?);
    serve(listener, Arc::new(receiver), Limits::default(), Tasks::new()).await;
    Ok(())
}
