//! People who write: texts handed to the simulator at a steady rate, or all at once.

use std::time::Duration;

use hub_core::time::Clock;
use serde_json::{Value, json};

use crate::{Result, hub::Bot, marker::Marker, moments::now_us, peer::Peer};

/// Time between two calls: what is written within it arrives together.
const TICK: Duration = Duration::from_millis(5);
/// Messages of one call when there is no rate.
const CHUNK: u64 = 1_000;

/// Writes to the bots, each in turn, as different people.
pub struct Load<'a> {
    pub simulator: &'a Peer,
    pub bots: &'a [Bot],
    /// People per bot.
    pub conversations: u64,
}

impl Load<'_> {
    /// Writes the messages with these numbers, as many per second.
    pub async fn steady(&self, numbers: std::ops::Range<u64>, rate: u64) -> Result<()> {
        let (start, began) = (numbers.start, now_us());
        let mut next = start;
        while next < numbers.end {
            let due = start + (now_us() - began) * rate / 1_000_000;
            let until = due.min(numbers.end);
            if until > next {
                self.write(next..until).await?;
                next = until;
            }
            Clock::system().sleep(TICK).await;
        }
        Ok(())
    }

    /// Writes the messages with these numbers as fast as the simulator takes them.
    pub async fn at_once(&self, numbers: std::ops::Range<u64>) -> Result<()> {
        let mut next = numbers.start;
        while next < numbers.end {
            let until = (next + CHUNK).min(numbers.end);
            self.write(next..until).await?;
            next = until;
        }
        Ok(())
    }

    async fn write(&self, numbers: std::ops::Range<u64>) -> Result<()> {
        let messages: Vec<Value> = numbers.map(|number| self.message(number)).collect();
        let body = json!({ "messages": messages }).to_string();
        self.simulator.post("/_sim/messages", body).await.map(drop)
    }

    fn message(&self, number: u64) -> Value {
        let bots = self.bots.len() as u64;
        let conversation = number % (bots * self.conversations);
        let bot = usize::try_from(number % bots).unwrap_or_default();
        let person = format!("person{conversation:05}@im.wechat");
        let text = Marker { number, conversation }.text();
        json!({ "wx_id": self.bots[bot].wx_id, "from_user_id": person, "text": text })
    }
}
