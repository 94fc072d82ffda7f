//! The control side of the simulator and the receiver.

use bytes::Bytes;
use serde_json::Value;

use crate::{Result, moments::Moments};

/// Client of the simulator or of the receiver.
#[derive(Debug, Clone)]
pub struct Peer {
    client: reqwest::Client,
    pub address: String,
}

/// Counters of the messages that passed a peer.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    pub seen: u64,
    pub repeated: u64,
    pub order_breaks: u64,
}

impl Peer {
    #[expect(clippy::disallowed_methods, reason = "a benchmark talks to processes of its own")]
    pub fn new(address: &str) -> Result<Self> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self { client, address: address.to_owned() })
    }

    pub async fn get(&self, path: &str) -> Result<Bytes> {
        let answer = self.client.get(format!("http://{}{path}", self.address)).send().await?;
        Ok(answer.error_for_status()?.bytes().await?)
    }

    pub async fn post(&self, path: &str, body: String) -> Result<Value> {
        let request = self.client.post(format!("http://{}{path}", self.address)).body(body);
        let answer = request
            .header("content-type", "application/json")
            .send()
            .await?
            .error_for_status()?
            .bytes()
            .await?;
        Ok(if answer.is_empty() { Value::Null } else { serde_json::from_slice(&answer)? })
    }

    pub async fn counts(&self) -> Result<Counts> {
        let counts: Value = serde_json::from_slice(&self.get("/_bench/counts").await?)?;
        let number = |name: &str| counts[name].as_u64().unwrap_or_default();
        let (seen, repeated) = (number("seen"), number("repeated"));
        Ok(Counts { seen, repeated, order_breaks: number("order_breaks") })
    }

    pub async fn moments(&self) -> Result<Vec<u64>> {
        Ok(Moments::from_bytes(&self.get("/_bench/moments").await?))
    }

    pub async fn reset(&self) -> Result<()> {
        self.get("/_bench/reset").await.map(drop)
    }
}
