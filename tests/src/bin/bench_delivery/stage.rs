//! Everything that runs while one database is measured.

use std::{path::Path, time::Duration};

use hub_core::time::Clock;

use crate::{
    Result,
    database::Place,
    flow::{Flow, Meter, per_second, share},
    hub::{Bot, Hub, Owner, Setup, free_address},
    load::Load,
    moments::now_us,
    options::{Database, Options},
    peer::Peer,
    process::Process,
    receiver::{HOOK, REPLY},
    report::{Queue, Reference},
};

/// Requests of one channel at a time, unless it says otherwise.
const CONCURRENCY: u64 = 8;
/// If nothing arrives for this long, the missing messages are lost.
const GIVE_UP: Duration = Duration::from_secs(30);
/// Interval at which counters are read.
const BREATH: Duration = Duration::from_millis(50);
/// Plugin that changes every message, for the measurement with a plugin.
const PLUGIN: &str = include_str!("plugin.js");
/// Seconds of messages before those that are measured.
pub const WARM_UP_SECONDS: u64 = 2;
/// Seconds that replies are measured: a person takes few of them per second.
const REPLY_SECONDS: u64 = 20;

pub struct Stage<'a> {
    pub options: &'a Options,
    pub setup: Setup,
    pub place: Place,
    pub simulator: Peer,
    pub receiver: Peer,
    bots: Vec<Bot>,
    channels: Vec<String>,
    owner: Owner,
    _processes: [Process; 2],
}

impl<'a> Stage<'a> {
    /// Starts everything on an empty database; the hub has its user, bots and channels then.
    pub async fn open(
        options: &'a Options,
        program: &Path,
        database: Database,
        folder: &Path,
    ) -> Result<(Self, Hub)> {
        let (mut simulator, mut receiver) = (Process::role(&["simulator"])?, Process::role(&["receiver"])?);
        let processes = (Peer::new(&simulator.line()?)?, Peer::new(&receiver.line()?)?);
        let place = Place::new(database).await?;
        let setup = Setup {
            program: program.to_owned(),
            folder: folder.join("data"),
            database_url: place.url().map(str::to_owned),
            simulator: processes.0.address.clone(),
            receiver: processes.1.address.clone(),
            dead: free_address().await?,
            log: options.log.clone(),
            nodes: options.nodes,
        };
        let hub = setup.start().await?;
        let owner = Owner::register(&hub, &setup.simulator).await;
        let (mut bots, mut channels) = (Vec::new(), Vec::new());
        for _ in 0..options.bots {
            let bot = owner.bind().await;
            for number in 0..options.channels {
                channels.push(owner.channel(&bot, number, &format!("{}{HOOK}", setup.receiver)).await);
            }
            bots.push(bot);
        }
        let (simulator_side, receiver_side) = processes;
        let stage = Self {
            options,
            setup,
            place,
            simulator: simulator_side,
            receiver: receiver_side,
            bots,
            channels,
            owner,
            _processes: [simulator, receiver],
        };
        Ok((stage, hub))
    }

    /// Ends a hub and starts another one on the same database.
    pub async fn restart(&mut self, hub: Hub) -> Result<Hub> {
        hub.terminate()?;
        let hub = self.setup.start().await?;
        self.owner = self.owner.at(&hub);
        Ok(hub)
    }

    fn load(&self) -> Load<'_> {
        Load { simulator: &self.simulator, bots: &self.bots, conversations: self.options.conversations }
    }

    async fn redirect(&self, target: &str) -> Result<()> {
        for channel in &self.channels {
            self.owner.redirect(channel, target).await?;
        }
        Ok(())
    }

    async fn reset(&self) -> Result<()> {
        self.simulator.reset().await?;
        self.receiver.reset().await
    }

    /// A steady rate for a while, after a short warm-up.
    pub async fn hold(&self, hub: &Hub, rate: u64, seconds: u64) -> Result<Flow> {
        self.reset().await?;
        let warm_up = rate * WARM_UP_SECONDS;
        self.load().steady(0..warm_up, rate).await?;
        self.arrive(warm_up).await?;
        self.reset().await?;
        let meter = Meter::start(self, hub).await;
        let messages = rate * seconds;
        self.load().steady(0..messages, rate).await?;
        self.arrive(messages).await?;
        meter.read(self, hub, messages).await
    }

    /// Every message is answered with a reply.
    pub async fn reply(&self, hub: &Hub, rate: u64) -> Result<Flow> {
        self.redirect(&format!("{}{REPLY}", self.setup.receiver)).await?;
        self.hold(hub, rate, self.options.seconds.min(REPLY_SECONDS)).await
    }

    /// Everything waits on the network; how fast it comes through from then on.
    pub async fn saturate(&self, hub: &Hub) -> Result<Flow> {
        let warm_up = self.bots.len() as u64;
        self.reset().await?;
        self.simulator.post("/_bench/gate", "close".to_owned()).await?;
        // Ends the polls that are held already; the next ones wait at the gate.
        self.load().at_once(0..warm_up).await?;
        self.arrive(warm_up).await?;
        let messages = self.options.backlog;
        self.load().at_once(0..messages).await?;
        self.reset().await?;
        let meter = Meter::start(self, hub).await;
        self.simulator.post("/_bench/gate", "open".to_owned()).await?;
        self.arrive(messages).await?;
        meter.read(self, hub, messages).await
    }

    /// As [`saturate`](Self::saturate), with a plugin in every channel.
    pub async fn saturate_with_plugin(&self, hub: &Hub) -> Result<Flow> {
        let plugin = self.owner.plugin(PLUGIN).await;
        for channel in &self.channels {
            self.owner.install(channel, &plugin).await;
        }
        let flow = self.saturate(hub).await?;
        for channel in &self.channels {
            self.owner.uninstall(channel, &plugin).await?;
        }
        Ok(flow)
    }

    /// The bare client against the same receiver, at a rate or as fast as it goes.
    pub fn refer(&self, messages: u64, rate: Option<u64>) -> Result<Reference> {
        let messages = messages * self.options.channels;
        let connections = CONCURRENCY * self.channels.len() as u64;
        let [count, connections] = [messages, connections].map(|number| number.to_string());
        let mut arguments = vec!["reference", "--receiver", &self.setup.receiver];
        arguments.extend(["--messages", &count, "--connections", &connections]);
        let rate = rate.map(|rate| (rate * self.options.channels).to_string());
        if let Some(rate) = &rate {
            arguments.extend(["--rate", rate]);
        }
        let mut client = Process::role(&arguments)?;
        client.line()?;
        let (began, before) = (now_us(), client.cpu());
        client.go_on()?;
        let posted: u64 = client.line()?.parse()?;
        let took = Duration::from_micros(now_us() - began);
        let cpu = client.cpu().saturating_sub(before);
        if posted != messages {
            return Err(format!("the bare client posted {posted} of {messages}").into());
        }
        client.go_on()?;
        Ok(Reference { rate: per_second(posted, took), cpu: share(cpu, posted) })
    }

    /// A receiver that refuses connections, and everyone writing on. To be called with a fresh hub.
    pub async fn queue(&mut self, hub: Hub) -> Result<Queue> {
        self.redirect(&self.setup.dead).await?;
        Clock::system().sleep(Duration::from_secs(3)).await;
        self.reset().await?;
        let empty = hub.rss();
        let (messages, began) = (self.options.queued, now_us());
        self.load().at_once(0..messages).await?;
        let mut highest = empty;
        // What was answered last is stored once the next poll comes: a moment later.
        while self.simulator.counts().await?.seen < messages {
            highest = highest.max(hub.rss());
            Clock::system().sleep(BREATH).await;
        }
        let took = Duration::from_micros(now_us() - began);
        Clock::system().sleep(Duration::from_secs(5)).await;
        let full = hub.rss();
        let hub = self.restart(hub).await?;
        Clock::system().sleep(Duration::from_secs(5)).await;
        Ok(Queue {
            messages,
            empty,
            highest: highest.max(full),
            full,
            restarted: hub.rss(),
            ready_after: hub.ready_after,
            rate: per_second(messages, took),
        })
    }

    /// Waits until this many messages came to every channel.
    async fn arrive(&self, messages: u64) -> Result<()> {
        let expected = messages * self.options.channels;
        let (mut seen, mut since) = (0, now_us());
        while seen < expected {
            let now = self.receiver.counts().await?.seen;
            if now > seen {
                (seen, since) = (now, now_us());
            } else if Duration::from_micros(now_us() - since) > GIVE_UP {
                return Err(format!("{} of {expected} messages did not arrive", expected - seen).into());
            }
            Clock::system().sleep(BREATH).await;
        }
        Ok(())
    }
}
