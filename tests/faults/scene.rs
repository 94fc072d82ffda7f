//! A hub with one bot and many channels, on a clock that does not move: what is due later stays where it is.

use std::{sync::Arc, time::Duration};

use hub_core::{
    access::Actor,
    channels::sinks::{RetrySettings, WebhookUpdate},
    egress::{EgressConfig, EgressFault, Resolver},
    id::ChannelId,
    testing::{START, TestBot, TestHub},
    traces::{StepName, Trace, TraceQuery},
};

use crate::support::fault_receiver::Seen;

/// The first wait of every channel's schedule.
pub const WAIT: Duration = Duration::from_secs(1000);

/// The hub and its people.
#[derive(Debug)]
pub struct Scene {
    pub hub: TestHub,
    pub ada: Actor,
    pub bot: TestBot,
    /// A hub that ended: the database lies in its folder.
    former: Option<TestHub>,
}

impl Scene {
    /// A hub that may reach loopback.
    pub async fn open() -> Self {
        Self::with(|egress| egress.allow = vec!["127.0.0.0/8".parse().unwrap()]).await
    }

    /// A hub that finds names this way.
    pub async fn resolving(resolver: impl Resolver + 'static, allow: &[&str]) -> Self {
        let allow = allow.iter().map(|rule| rule.parse().unwrap()).collect();
        Self::with(|egress| {
            egress.resolver = Some(Arc::new(resolver));
            egress.allow = allow;
        })
        .await
    }

    async fn with(change: impl FnOnce(&mut EgressConfig)) -> Self {
        let builder = TestHub::builder().egress(change).config(|config| {
            config.max_channels = 1000;
            // Far fewer than there are channels: slots that do not come back would be missed.
            config.max_in_flight = 16;
        });
        let hub = builder.start().await;
        let ada = hub.register("ada").await;
        let bot = hub.bind(&ada).await;
        Self { hub, ada, bot, former: None }
    }

    /// Starts the hub again, under rules that allow nothing private.
    pub async fn forbid_everything_private(&mut self) {
        self.hub.shutdown().await;
        let without = self.hub.another().seed(99).egress(|egress| egress.allow.clear()).start().await;
        self.former = Some(std::mem::replace(&mut self.hub, without));
    }

    /// A channel whose webhook sends one request at a time.
    pub async fn channel(&self, name: &str, url: String, timeout_ms: u32) -> ChannelId {
        let webhook = WebhookUpdate {
            url,
            timeout_ms,
            max_concurrency: 1,
            retry: RetrySettings { schedule_s: vec![1000; 3] },
            ..WebhookUpdate::default()
        };
        self.hub.webhook_channel(&self.ada, self.bot.id, name, webhook).await
    }

    /// Someone writes to the bot.
    pub fn say(&self, from: &str, text: &str) {
        self.hub.sim().say(&self.bot.wx_id, Some(from), text).unwrap();
    }

    /// Waits until so many messages of a channel have been tried, and gives their traces, newest first.
    pub async fn tried(&self, channel: ChannelId, messages: usize) -> Vec<Trace> {
        let query = TraceQuery { channel_id: Some(channel), ..TraceQuery::default() };
        self.hub
            .until(&format!("{messages} tried messages of {channel}"), async || {
                let mut traces = self.hub.traces(&self.ada, self.bot.id, &query).await;
                traces.retain(|trace| trace.attempts > 0);
                (traces.len() >= messages).then_some(traces)
            })
            .await
    }
}

/// Outcome of the only attempt of a trace.
pub fn seen(trace: &Trace) -> Seen {
    let detail = |name| trace.steps.iter().find(|step| step.name == name).map(|step| &step.detail);
    if let Some(answer) = detail(StepName::Response) {
        return Seen::Status(answer.status.unwrap());
    }
    let error = detail(StepName::Request).expect("a request was tried").error.as_ref();
    let class = error.and_then(|error| error.class.as_deref()).unwrap_or_else(|| panic!("{trace:?}"));
    let all = [
        EgressFault::BlockedAddress,
        EgressFault::Dns,
        EgressFault::Connect,
        EgressFault::Tls,
        EgressFault::Timeout,
        EgressFault::TooLarge,
        EgressFault::Broken,
    ];
    Seen::Class(all.into_iter().find(|fault| fault.as_str() == class).unwrap())
}

/// Time from the attempt to the next one; `None` if no other is due.
pub fn next_attempt(trace: &Trace) -> Option<Duration> {
    Some(trace.steps.last()?.detail.next_attempt_at?.since(START))
}
