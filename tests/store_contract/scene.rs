//! Fixtures of the cases: channels, messages, batches, traces.

use std::{collections::BTreeMap, time::Duration};

use hub_core::{
    access::{Actor, Role, Scope, UserActor},
    bots::MessageStatus,
    channels::{ChannelOptions, ChannelRecord, sinks::SinkId},
    id::{BotId, ChannelId, DeliveryId, MessageId, NodeId, TraceId, UserId},
    network::MessageKind,
    secret::{Sealed, TokenHash},
    store::{
        due::{Reading, Stamp},
        inbox::{
            Accept, AcceptMessage, AcceptRoute, Accepted, ContactUpdate, MessageRow, NewDelivery, Taken,
        },
        leases::{Lease, NodeEntry},
        outbox::{NewOutbound, NewPart},
        traces::{NewTrace, TraceUpdate},
    },
    time::Clock,
    traces::{PackedSteps, Step, StepDetail, StepKind, StepName, TraceStatus},
};

use crate::support::database::{Db, START};

/// Texts that a database might change: controls, directions, characters beyond the first plane, quotes,
/// patterns, what looks like SQL or JSON. U+0000 is not among them: it is refused or replaced before.
pub const HOSTILE_TEXTS: [&str; 9] = [
    "",
    "\u{1}\u{7f}\u{85}\u{feff}",
    "left \u{202e}thgir\u{202c} \u{2066}isolated\u{2069}",
    "👩‍👩‍👧‍👦 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𠜎",
    "e\u{301} is not é",
    "'; DROP TABLE users; --",
    "{\"a\":[1,\"\\u0041\"]} \\ \\n",
    "%_\\%",
    "\r\n\t trailing  ",
];

/// The last moment before something is over.
pub fn just_before(span: Duration) -> Duration {
    span.saturating_sub(Duration::from_millis(1))
}

/// The scope of a user.
pub fn scope(user_id: UserId) -> Scope {
    Actor::User(UserActor::embedded(user_id, Role::Member)).scope().unwrap()
}

/// The scope of the operator, who sees everything.
pub fn everything() -> Scope {
    Actor::Operator.scope().unwrap()
}

/// A channel to be made, without handle.
pub fn channel(db: &Db, bot_id: BotId, name: &str) -> ChannelRecord {
    ChannelRecord {
        id: db.ids.next(),
        bot_id,
        name: name.to_owned(),
        handle: None,
        enabled: true,
        key_last4: "last".to_owned(),
        filter: "{}".to_owned(),
        websocket: "{}".to_owned(),
        ilink: "{}".to_owned(),
        webhook: "{}".to_owned(),
        webhook_secret: None,
        webhook_old_secret: None,
        webhook_old_until: None,
        webhook_disabled: None,
        ai: "{}".to_owned(),
        ai_api_key: None,
        options: ChannelOptions::default(),
        last_seq: 0,
        created_at: START,
        updated_at: START,
    }
}

/// Makes a channel whose key is its name.
pub async fn add_channel(db: &Db, bot_id: BotId, name: &str) -> ChannelId {
    let record = channel(db, bot_id, name);
    let (id, hash) = (record.id, TokenHash::of(name));
    commit!(db, |tx| tx.channels().insert(&record, &hash).await).unwrap();
    id
}

/// A node with the network of all bots here.
pub fn entry(id: NodeId) -> NodeEntry {
    NodeEntry { id, name: String::new(), networks: vec!["sim".to_owned()] }
}

/// Takes the lease of every bot that no one holds.
pub async fn lease(db: &Db) -> (NodeId, BTreeMap<BotId, Lease>) {
    let node: NodeId = db.ids.next();
    let until = START + Duration::from_secs(30);
    let leases = commit!(db, |tx| tx.leases().acquire(&entry(node), START, until, 100).await).unwrap();
    (node, leases.into_iter().map(|lease| (lease.bot_id, lease)).collect())
}

/// A user, their bot with one channel, and the lease on it.
pub struct Stage {
    pub owner: UserId,
    pub bot: BotId,
    pub channel: ChannelId,
    pub node: NodeId,
    pub lease: Lease,
}

/// Sets the stage.
pub async fn stage(db: &Db) -> Stage {
    let owner = db.user("ada").await;
    let bot = db.bot(owner).await;
    let channel = add_channel(db, bot, "channel").await;
    let (node, mut leases) = lease(db).await;
    let lease = leases.remove(&bot).unwrap();
    Stage { owner, bot, channel, node, lease }
}

/// A step with a reason that tells it from others.
fn step(trace: TraceId, reason: &str) -> PackedSteps {
    let detail = StepDetail { reason: Some(reason.to_owned()), ..StepDetail::default() };
    let step = Step::new(StepName::Request, StepKind::Webhook, TraceStatus::Ok, START, START, detail);
    PackedSteps::new(trace, &[step])
}

/// The reasons of a trace's steps.
pub async fn step_reasons(db: &Db, trace: TraceId) -> Vec<String> {
    let steps = db.store.read().await.unwrap().traces().steps_of(&[trace]).await.unwrap().remove(&trace);
    steps.unwrap().into_iter().filter_map(|step| step.detail.reason).collect()
}

/// A trace with one step with the reason `step`.
pub fn trace(
    db: &Db,
    bot_id: BotId,
    message_id: MessageId,
    channel_id: Option<ChannelId>,
    step: &str,
) -> NewTrace {
    let id = db.ids.next();
    NewTrace {
        id,
        message_id,
        bot_id,
        channel_id,
        replay_of: None,
        status: TraceStatus::Pending,
        open_sinks: 1,
        summary: step.to_owned(),
        started_at: START,
        duration_ms: 0,
        steps: self::step(id, step),
    }
}

/// An update that adds a step to a trace, three seconds after its start.
pub fn update(id: TraceId, step: &str) -> TraceUpdate {
    TraceUpdate {
        id,
        status: Some(TraceStatus::Ok),
        ended: 1,
        summary: Some(step.to_owned()),
        attempts: Some(1),
        ended_at: START + Duration::from_secs(3),
        steps: self::step(id, step),
    }
}

/// An outcome of [`START`].
pub fn stamp() -> Stamp {
    Stamp { read: Reading { at: Clock::system().instant(), wall: START }, followed: None }
}

/// A message from `peer` whose dedupe key and network id are `key`, without channels.
pub fn message(db: &Db, bot_id: BotId, peer: &str, key: &str, content: &str) -> AcceptMessage {
    let row = MessageRow {
        id: db.ids.next(),
        bot_id,
        peer: peer.to_owned(),
        from_user_id: peer.to_owned(),
        to_user_id: "bot".to_owned(),
        user_name: format!("Name of {peer}"),
        session_id: peer.to_owned(),
        group_id: String::new(),
        kind: MessageKind::Text,
        content: content.to_owned(),
        items: "[]".to_owned(),
        quoted: None,
        network_id: Some(key.to_owned()),
        dedupe_key: key.to_owned(),
        private: Some(Sealed::from("sealed".to_owned())),
        status: MessageStatus::Received,
        sent_at: START,
        created_at: START,
    };
    let contact = ContactUpdate {
        context_token: Some(Sealed::from(format!("token of {key}"))),
        opened_at: START,
        network_name: row.user_name.clone(),
    };
    AcceptMessage { row, contact: Some(contact), routes: Vec::new(), media: Vec::new(), apps: Vec::new() }
}

/// The same message, taken by a channel, whose webhook gets a delivery held under `claim`.
pub fn taken(
    db: &Db,
    mut message: AcceptMessage,
    channel_id: ChannelId,
    claim: i64,
) -> (AcceptMessage, DeliveryId) {
    let id: DeliveryId = db.ids.next();
    let trace = trace(db, message.row.bot_id, message.row.id, Some(channel_id), "received");
    let delivery = NewDelivery { id, sink: SinkId::Webhook, lane: message.row.peer.clone(), claim };
    let taken = Some(Taken { content: None, deliveries: vec![delivery] });
    message.routes.push(AcceptRoute { channel_id, trace, taken });
    (message, id)
}

/// The same message, whose channel's AI sink gets a delivery too, held by no one.
pub fn with_ai(db: &Db, mut message: AcceptMessage) -> (AcceptMessage, DeliveryId) {
    let id: DeliveryId = db.ids.next();
    let delivery = NewDelivery { id, sink: SinkId::Ai, lane: message.row.peer.clone(), claim: 0 };
    let route = message.routes.last_mut().unwrap();
    route.trace.open_sinks += 1;
    route.taken.as_mut().unwrap().deliveries.push(delivery);
    (message, id)
}

/// A batch for a bot under a lease.
pub fn batch(lease: &Lease, cursor: Option<&str>, messages: Vec<AcceptMessage>) -> Accept {
    Accept {
        bot_id: lease.bot_id,
        fence: lease.fence,
        config_rev: 0,
        cursor: cursor.map(str::to_owned),
        now: START,
        is_read_at_once: false,
        messages,
    }
}

/// Accepts one message of `peer` with a delivery to the stage's channel, held under `claim`.
pub async fn accept_one(
    db: &Db,
    on: &Stage,
    peer: &str,
    key: &str,
    claim: i64,
) -> (MessageId, DeliveryId, TraceId) {
    let (message, delivery) = taken(db, message(db, on.bot, peer, key, key), on.channel, claim);
    let (id, trace) = (message.row.id, message.routes[0].trace.id);
    let accepted = db.store.accept(batch(&on.lease, Some(key), vec![message])).await.unwrap();
    assert!(matches!(accepted, Accepted::Stored(seqs) if seqs[0].is_some()));
    (id, delivery, trace)
}

/// A message for `peer`, in as many parts as there are texts.
pub fn outbound(db: &Db, bot_id: BotId, peer: &str, key: &str, texts: &[&str]) -> NewOutbound {
    NewOutbound {
        message_id: db.ids.next(),
        bot_id,
        peer: peer.to_owned(),
        dedupe_key: key.to_owned(),
        content: texts.concat(),
        parts: texts
            .iter()
            .map(|text| NewPart {
                id: db.ids.next(),
                client_id: format!("{key}-{text}"),
                text: (*text).to_owned(),
                file: None,
            })
            .collect(),
        quoted: None,
        channel_id: None,
        trace_id: None,
        private: None,
        expires_at: START + Duration::from_secs(3600),
        now: START,
    }
}
