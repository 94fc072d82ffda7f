//! The measurements: idle sockets, fan-out, long polls, and resuming.

use std::{sync::Arc, time::Duration};

use hub_core::{tasks::Tasks, time::Clock};
use serde_json::Value;

use crate::{
    Result,
    client::{Socket, age, stamp},
    http_caller::Caller,
    hub::{Channel, Hub, settle},
    moments::now_us,
    options::{Options, Sizes},
    process::Process,
};

/// Sockets that are opened at a time.
const OPENING: usize = 50;
/// Messages written in one call where there is no rate.
const CHUNK: usize = 1_000;

/// Times in microseconds, sorted.
pub struct Times(pub Vec<u64>);

/// A figure of the hub and of the bare server.
pub struct Pair<T> {
    pub hub: T,
    pub bare: T,
}

pub struct Results {
    /// Bytes of one idle socket.
    pub idle: Pair<u64>,
    pub fan_out: Pair<Times>,
    pub polls: Pair<Times>,
    pub resume: Resume,
}

pub struct Resume {
    pub took: Duration,
    pub before: u64,
    pub highest: u64,
}

/// Everything, on one hub.
pub async fn all(options: &Options) -> Result<Results> {
    let sizes = options.sizes();
    let folder = tempfile::tempdir()?;
    let hub = Arc::new(Hub::start(options, &sizes, folder.path()).await?);
    let mut bare = Process::role(&["bare"])?;
    let bare_address = bare.line()?;
    let mut channels = Vec::new();
    for _ in 0..sizes.channels {
        channels.push(hub.channel().await);
    }
    let quiet = hub.channel().await;
    let target = Hub::target(&quiet, "");
    let idle = Pair {
        hub: idle(&hub.process, &hub.address, &target, sizes.idle).await?,
        bare: idle(&bare, &bare_address, "/ws?channel=0", sizes.idle).await?,
    };
    let fan_out = Pair {
        hub: fan_out_of_hub(&hub, &channels, &sizes).await?,
        bare: fan_out_of_bare(&bare_address, &sizes).await?,
    };
    let polls = Pair {
        hub: polls_of_hub(&hub, &channels[0], sizes.polls).await?,
        bare: polls_of_bare(&bare_address, sizes.polls).await?,
    };
    let resume = resume(&hub, &quiet, sizes.missed).await?;
    Ok(Results { idle, fan_out, polls, resume })
}

/// Measures the memory of a process per additional idle socket, in bytes.
async fn idle(process: &Process, address: &str, target: &str, count: usize) -> Result<u64> {
    // The first sockets allocate the memory that all of them share.
    let mut open = open_sockets(address, target, count.div_ceil(10)).await?;
    settle().await;
    let before = process.rss();
    open.extend(open_sockets(address, target, count).await?);
    settle().await;
    let after = process.rss();
    drop(open);
    settle().await;
    Ok(after.saturating_sub(before) / count as u64)
}

async fn open_sockets(address: &str, target: &str, count: usize) -> Result<Vec<Socket>> {
    let mut open = Vec::with_capacity(count);
    while open.len() < count {
        let some = (count - open.len()).min(OPENING);
        let opening = (0..some).map(|_| Socket::open(address, target));
        open.extend(futures_util::future::try_join_all(opening).await?);
    }
    Ok(open)
}

/// Starts a task for each socket that records the ages of its messages.
fn listen(tasks: &Tasks, sockets: Vec<Socket>, messages: usize) -> Vec<Listening> {
    let listen = |socket: Socket| tasks.spawn("socket", socket.ages(messages));
    sockets.into_iter().map(listen).collect()
}

type Listening = tokio::task::JoinHandle<Option<Result<Vec<u64>>>>;

async fn heard(listening: Vec<Listening>) -> Result<Times> {
    let mut ages = Vec::new();
    for one in listening {
        ages.extend(one.await?.ok_or("a socket was given up")??);
    }
    Ok(Times::of(ages))
}

async fn fan_out_of_hub(hub: &Hub, channels: &[Channel], sizes: &Sizes) -> Result<Times> {
    let (tasks, mut listening) = (Tasks::new(), Vec::new());
    for channel in channels {
        let sockets = open_sockets(&hub.address, &Hub::target(channel, "&since=0"), sizes.sockets).await?;
        listening.extend(listen(&tasks, sockets, sizes.messages / channels.len()));
    }
    for turn in 0..sizes.messages / channels.len() * channels.len() {
        hub.write(&channels[turn % channels.len()], [stamp()]).await;
        pace(sizes.rate).await;
    }
    heard(listening).await
}

async fn fan_out_of_bare(address: &str, sizes: &Sizes) -> Result<Times> {
    let (tasks, mut listening) = (Tasks::new(), Vec::new());
    for channel in 0..sizes.channels {
        let sockets = open_sockets(address, &format!("/ws?channel={channel}"), sizes.sockets).await?;
        listening.extend(listen(&tasks, sockets, sizes.messages / sizes.channels));
    }
    let caller = Caller::stranger(&format!("http://{address}"));
    for turn in 0..sizes.messages / sizes.channels * sizes.channels {
        say(&caller, turn % sizes.channels).await;
        pace(sizes.rate).await;
    }
    heard(listening).await
}

async fn say(caller: &Caller, channel: usize) {
    caller.control(&format!("/say?channel={channel}"), Some(Value::String(stamp()))).await;
}

/// A message per turn, so many per second.
async fn pace(rate: usize) {
    Clock::system().sleep(Duration::from_micros(1_000_000 / rate as u64)).await;
}

/// From the writing of a message to the end of the poll that waited for it.
async fn polls_of_hub(hub: &Arc<Hub>, channel: &Channel, count: usize) -> Result<Times> {
    let (mut ages, tasks) = (Vec::with_capacity(count), Tasks::new());
    // Behind everything that was written before, this included.
    let (mut cursor, last) = (String::new(), stamp());
    hub.write(channel, [last.clone()]).await;
    loop {
        let (items, next) = hub.poll(channel, &cursor).await;
        cursor = next;
        if items.iter().any(|item| item.to_string().contains(&last)) {
            break;
        }
    }
    while ages.len() < count {
        let (asked, key, at) = (Arc::clone(hub), channel.key.clone(), cursor.clone());
        let poll = tasks.spawn("poll", async move {
            let channel = Channel { wx_id: String::new(), key };
            let (items, next) = asked.poll(&channel, &at).await;
            (items.first().and_then(|item| age(&item.to_string())), next)
        });
        Clock::system().sleep(Duration::from_millis(30)).await;
        hub.write(channel, [stamp()]).await;
        let (found, next) = poll.await?.ok_or("a poll was given up")?;
        ages.extend(found);
        cursor = next;
    }
    Ok(Times::of(ages))
}

async fn polls_of_bare(address: &str, count: usize) -> Result<Times> {
    let (mut ages, tasks) = (Vec::with_capacity(count), Tasks::new());
    let base = format!("http://{address}");
    let (caller, waiting) = (Caller::stranger(&base), Caller::stranger(&base));
    while ages.len() < count {
        let waits = waiting.clone();
        let poll = tasks
            .spawn("poll", async move { age(&waits.control("/poll?channel=0", None).await.to_string()) });
        Clock::system().sleep(Duration::from_millis(30)).await;
        say(&caller, 0).await;
        ages.extend(poll.await?.flatten());
    }
    Ok(Times::of(ages))
}

/// A client that was away comes back, and reads everything it has missed, in its order.
async fn resume(hub: &Hub, channel: &Channel, missed: usize) -> Result<Resume> {
    let mut written = 0;
    while written < missed {
        let some = (missed - written).min(CHUNK);
        hub.write(channel, (written..written + some).map(|number| format!("{number} {}", "x".repeat(200))))
            .await;
        written += some;
    }
    let all = i64::try_from(missed)?;
    loop {
        let mut look = Socket::open(&hub.address, &Hub::target(channel, "&since=1000000000")).await?;
        let init: Value = serde_json::from_str(&look.text().await?)?;
        if init["data"]["last_seq"].as_i64().is_some_and(|last| last >= all) {
            break;
        }
        Clock::system().sleep(Duration::from_millis(500)).await;
    }
    settle().await;
    let before = hub.process.rss();
    let (mut highest, began) = (before, now_us());
    let mut socket = Socket::open(&hub.address, &Hub::target(channel, "&since=0")).await?;
    let mut expected = 1;
    while expected <= all {
        let frame: Value = serde_json::from_str(&socket.text().await?)?;
        if frame["type"] != "message" {
            continue;
        }
        if frame["data"]["seq"] != expected {
            return Err(format!("message {} came in the place of {expected}", frame["data"]["seq"]).into());
        }
        if expected % 1_000 == 0 {
            highest = highest.max(hub.process.rss());
        }
        expected += 1;
    }
    Ok(Resume { took: Duration::from_micros(now_us() - began), before, highest })
}

impl Times {
    fn of(mut micros: Vec<u64>) -> Self {
        micros.sort_unstable();
        Self(micros)
    }

    /// The time that so many of a hundred stay within.
    pub fn percentile(&self, of_hundred: usize) -> Duration {
        let place = (self.0.len() * of_hundred / 100).min(self.0.len().saturating_sub(1));
        Duration::from_micros(self.0.get(place).copied().unwrap_or_default())
    }
}
