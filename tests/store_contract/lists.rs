//! Every list, page, count and search of the store, each run on [filled](super::filled) tables.

use std::{
    sync::{Arc, atomic::AtomicU64, atomic::Ordering},
    time::Duration,
};

use hub_core::{
    access::Role,
    accounts::UserStatus,
    admin::UserQuery,
    apps::{AppView, sockets::SocketScope},
    bots::{BotStatus, Direction, MessageFilter, MessageSearch, Outcome},
    id::{AppId, ChannelId, InstallationId, Kind, MessageId, PluginId, TraceId, kind},
    network::WindowRules,
    page::{PageRequest, encode},
    store::{
        Read, SEALED_COLUMNS,
        accounts::Alive,
        ai::ConversationQuery,
        audit::AuditFilter,
        leases::Lease,
        recording::{RecordedStatement, record},
    },
    time::Timestamp,
    traces::{TraceQuery, TraceSearch, TraceStatus},
};

use super::{
    filled::{NODE, bot, channel, id, owner},
    scene::{everything, scope},
};
use crate::support::database::Db;

/// Rows of a page.
const LIMIT: u32 = 5;
/// Rows that a search reads of each index.
const MAX_SEARCHED: u32 = 8;

/// A list that was read.
#[derive(Debug)]
pub struct Listed {
    /// File and method of the store, as `traces::list`.
    pub method: &'static str,
    /// The method, and which of its filters.
    pub name: String,
    /// The statements it ran.
    pub ran: Vec<RecordedStatement>,
    /// Steps of SQLite's virtual machine.
    pub steps: u64,
}

/// Reads lists on one connection.
struct Lists {
    read: Read,
    steps: Arc<AtomicU64>,
    /// The number of the row at which pages begin; `None` is the first page.
    from: Option<u32>,
    found: Vec<Listed>,
}

impl Lists {
    fn page<K: Kind>(&self) -> PageRequest {
        let cursor = self.from.map(|row| encode("list", &id::<K>(row).to_string()));
        PageRequest::parse("list", Some(LIMIT), cursor.as_deref()).unwrap()
    }
}

/// Runs a method of a view, with the name of its filters.
macro_rules! list {
    ($lists:ident, $view:ident::$method:ident($($arg:expr),* $(,)?) $(, $variant:expr)?) => {{
        const METHOD: &str = concat!(stringify!($view), "::", stringify!($method));
        let before = $lists.steps.load(Ordering::Relaxed);
        let (result, ran) = record($lists.read.$view().$method($($arg),*)).await;
        let steps = $lists.steps.load(Ordering::Relaxed) - before;
        let position = if $lists.from.is_some() { "in the middle" } else { "" };
        let name = [METHOD $(, $variant)?, position].join(" ").trim_end().to_owned();
        assert!(result.is_ok(), "{name}: {:?}", result.err());
        assert!(ran.iter().any(|ran| ran.rows > 0), "{name} found nothing");
        $lists.found.push(Listed { method: METHOD, name, ran, steps });
    }};
}

/// Reads every list of a database with so many rows: its first page, and one in the middle.
pub async fn read_all(db: &Db, rows: u32) -> Vec<Listed> {
    let mut read = db.store.read().await.unwrap();
    // The first statement of a connection also reads the schema.
    read.bots().count(owner()).await.unwrap();
    let steps = read.count_steps().await.unwrap();
    let mut lists = Lists { read, steps, from: None, found: Vec::new() };
    for from in [None, Some(rows / 2)] {
        lists.from = from;
        pages_of_traces(&mut lists).await;
        searches(&mut lists).await;
        pages_of_messages(&mut lists).await;
        pages_of_a_user(&mut lists).await;
        pages_of_administrators(&mut lists).await;
    }
    lists.from = None;
    work_of_nodes(&mut lists).await;
    rows_that_are_named(&mut lists).await;
    counts(&mut lists).await;
    lists.found
}

async fn pages_of_traces(lists: &mut Lists) {
    let all = TraceQuery::default;
    let epoch = Some(Timestamp::from_millis(0));
    let later = Some(Timestamp::from_millis(0) + Duration::from_secs(3600));
    let channel_id = Some(channel());
    let with = |status| TraceQuery { status: Some(status), ..all() };
    for (variant, query) in [
        ("all", all()),
        ("oldest first", TraceQuery { oldest_first: true, ..all() }),
        ("within a time", TraceQuery { since: epoch, until: later, ..all() }),
        ("failed", with(TraceStatus::Error)),
        ("failed in a channel", TraceQuery { channel_id, ..with(TraceStatus::Error) }),
        ("pending", with(TraceStatus::Pending)),
        ("pending in a channel", TraceQuery { channel_id, ..with(TraceStatus::Pending) }),
        ("channel", TraceQuery { channel_id, ..all() }),
    ] {
        for (whose, scope) in [("", scope(owner())), (", for operators", everything())] {
            let page = lists.page::<kind::Trace>();
            list!(lists, traces::list(scope, bot(), &query, &page), &format!("{variant}{whose}"));
        }
    }
    let named = lists.from.is_none().then_some([
        ("message", TraceQuery { message_id: Some(id(0)), ..all() }),
        ("ids", TraceQuery { ids: vec![id(0), id(4)], ..all() }),
    ]);
    for (variant, query) in named.into_iter().flatten() {
        let page = lists.page::<kind::Trace>();
        list!(lists, traces::list(scope(owner()), bot(), &query, &page), variant);
    }
}

async fn searches(lists: &mut Lists) {
    let all = TraceSearch::default;
    let (channel_id, bot_id) = (Some(channel()), Some(bot()));
    let mut of_traces = vec![
        ("all", all()),
        ("bot", TraceSearch { bot_id, ..all() }),
        ("channel", TraceSearch { bot_id, channel_id, ..all() }),
        ("failed", TraceSearch { status: Some(TraceStatus::Error), ..all() }),
        ("pending", TraceSearch { status: Some(TraceStatus::Pending), ..all() }),
        ("replays", TraceSearch { replay_of: Some(id(0)), ..all() }),
        ("of a replay", TraceSearch { replay_id: Some(id(0)), ..all() }),
        ("text", TraceSearch { q: Some("text".to_owned()), ..all() }),
        ("http status", TraceSearch { http_status: Some(200), ..all() }),
    ];
    if lists.from.is_none() {
        of_traces.extend([
            ("message", TraceSearch { message_id: Some(id(0)), ..all() }),
            ("named", TraceSearch { q: Some(id::<kind::Trace>(0).to_string()), ..all() }),
        ]);
    }
    for (variant, search) in of_traces {
        let page = lists.page::<kind::Trace>();
        list!(lists, traces::search(Some(owner()), &search, &page, MAX_SEARCHED), variant);
    }
    let all = MessageSearch::default;
    let with = |filter| MessageSearch { filter, ..all() };
    let outcome = |outcome| MessageSearch { outcome: Some(outcome), ..all() };
    let user_id = Some("person 0".to_owned());
    let mut of_messages = vec![
        ("all", all()),
        ("bot", MessageSearch { bot_id, ..all() }),
        ("channel", MessageSearch { bot_id, channel_id, ..all() }),
        ("person", with(MessageFilter { user_id, ..MessageFilter::default() })),
        ("text", with(MessageFilter { q: Some("text".to_owned()), ..MessageFilter::default() })),
        ("failed", outcome(Outcome::Failed)),
        ("in flight", outcome(Outcome::InFlight)),
        ("skipped", outcome(Outcome::Skipped)),
        ("failed in a channel", MessageSearch { bot_id, channel_id, ..outcome(Outcome::Failed) }),
    ];
    if lists.from.is_none() {
        let q = Some(id::<kind::Message>(0).to_string());
        of_messages.push(("named", with(MessageFilter { q, ..MessageFilter::default() })));
    }
    for (variant, search) in of_messages {
        let page = lists.page::<kind::Message>();
        list!(lists, messages::search(Some(owner()), &search, &page, MAX_SEARCHED), variant);
    }
}

async fn pages_of_messages(lists: &mut Lists) {
    let all = MessageFilter::default;
    let epoch = Some(Timestamp::from_millis(0));
    let later = Some(Timestamp::from_millis(0) + Duration::from_secs(3600));
    let user_id = Some("person 0".to_owned());
    for (variant, filter) in [
        ("all", all()),
        ("within a time", MessageFilter { since: epoch, until: later, ..all() }),
        ("direction", MessageFilter { direction: Some(Direction::Inbound), ..all() }),
        ("person", MessageFilter { user_id: user_id.clone(), ..all() }),
        ("direction of a person", MessageFilter { direction: Some(Direction::Inbound), user_id, ..all() }),
        ("text", MessageFilter { q: Some("text".to_owned()), ..all() }),
    ] {
        let page = lists.page::<kind::Message>();
        list!(lists, messages::page(bot(), &filter, &page), variant);
    }
    let after = lists.from.map(|row| (Timestamp::from_millis(i64::from(row)), "person 0"));
    list!(lists, contacts::page(bot(), after, LIMIT));
    list!(lists, log::after(channel(), lists.from.map_or(0, i64::from), LIMIT, 1_000_000));
}

async fn pages_of_a_user(lists: &mut Lists) {
    let installation = id::<kind::Installation>(0);
    let page = lists.page::<kind::AppCall>();
    list!(lists, app_calls::page(installation, &page));
    let page = lists.page::<kind::AppEvent>();
    list!(lists, app_events::page(installation, &page));
    for view in [AppView::All, AppView::Own, AppView::Public] {
        for (whose, scope) in [("", scope(owner())), (" for operators", everything())] {
            let page = lists.page::<kind::App>();
            list!(lists, apps::page(scope, view, &page), &format!("{view}{whose}"));
        }
    }
    let page = lists.page::<kind::Plugin>();
    list!(lists, plugins::page_of(owner(), &page));
    let page = lists.page::<kind::Key>();
    list!(lists, user_keys::page(owner(), &page));
    let page = lists.page::<kind::Passkey>();
    list!(lists, passkeys::list(owner(), &page));
    let page = lists.page::<kind::Session>();
    let epoch = Timestamp::from_millis(0);
    list!(lists, accounts::list_sessions(owner(), Alive { now: epoch, idle_since: epoch }, &page));
    let page = lists.page::<kind::Audit>();
    list!(lists, audit::page_of_user(owner(), &page));
    if lists.from.is_none() {
        let page = lists.page::<kind::Bot>();
        list!(lists, bots::page(Some(owner()), &page), "of a user");
        let page = lists.page::<kind::Channel>();
        list!(lists, channels::page(scope(owner()), bot(), &page));
        let page = lists.page::<kind::Installation>();
        list!(lists, installations::page(bot(), &page));
        let page = lists.page::<kind::App>();
        list!(lists, apps::page(scope(owner()), AppView::Installed, &page), "installed");
    }
}

/// Lists of everyone's rows, in the order of their ids.
async fn pages_of_administrators(lists: &mut Lists) {
    // Users and bots are fewer than other rows.
    let all_rows = lists.from;
    lists.from = all_rows.map(|row| row / 10);
    for (variant, query) in [
        ("all", UserQuery::default()),
        ("role", UserQuery { role: Some(Role::Member), ..UserQuery::default() }),
        ("status", UserQuery { status: Some(UserStatus::Active), ..UserQuery::default() }),
        ("text", UserQuery { q: Some("user".to_owned()), ..UserQuery::default() }),
    ] {
        let page = lists.page::<kind::User>();
        list!(lists, users::page(&query, &page), variant);
    }
    let page = lists.page::<kind::Bot>();
    list!(lists, bots::page(None, &page), "of all users");
    list!(lists, bots::page_in_status(None, Some(BotStatus::Online), &page));
    lists.from = all_rows;
    let user = Some(owner().to_string());
    for (variant, filter) in [
        ("all", AuditFilter::default()),
        ("actor", AuditFilter { actor: user.clone(), ..AuditFilter::default() }),
        ("action", AuditFilter { action: Some("bot.create".to_owned()), ..AuditFilter::default() }),
        ("target", AuditFilter { target: user, ..AuditFilter::default() }),
    ] {
        let page = lists.page::<kind::Audit>();
        list!(lists, audit::page(&filter, &page), variant);
    }
    let page = lists.page::<kind::App>();
    list!(lists, apps::pending(&page));
    let page = lists.page::<kind::Plugin>();
    list!(lists, plugins::page(&page));
    let page = lists.page::<kind::PluginVersion>();
    list!(lists, plugins::pending(&page));
}

/// Lists that nodes read to deliver and to send.
async fn work_of_nodes(lists: &mut Lists) {
    let epoch = Timestamp::from_millis(0);
    let rules = WindowRules { age: None, sends: None, burst: None, gap: Duration::ZERO };
    let people = ["person 0".to_owned()];
    let networks = ["sim".to_owned()];
    list!(lists, deliveries::backlog(bot(), 0, &[], epoch, LIMIT));
    list!(lists, sending::people(bot(), "", &rules, epoch + Duration::from_secs(60), LIMIT));
    list!(lists, sending::open(bot(), &people, &rules, epoch + Duration::from_secs(60), LIMIT));
    list!(lists, media::downloading(bot(), LIMIT));
    list!(lists, media::loose(epoch, LIMIT));
    list!(lists, media::opened_with_md5(bot(), "md5", LIMIT));
    list!(lists, leases::work(&Lease { bot_id: bot(), fence: 0 }));
    list!(lists, leases::any_free(&networks, epoch));
    list!(lists, leases::unserved(epoch, LIMIT));
    list!(lists, app_events::due(id(0)));
    list!(lists, deliveries::event_backlog(bot(), 0, &[], epoch, LIMIT));
    list!(
        lists,
        app_sockets::following(SocketScope::Installation(id(0)), id(0), &[], (LIMIT, 1_000_000), epoch),
        "installation"
    );
    list!(
        lists,
        app_sockets::following(SocketScope::App(id(0)), id(0), &[], (LIMIT, 1_000_000), epoch),
        "app"
    );
    list!(lists, messages::received(bot(), LIMIT));
    list!(lists, messages::recent_private(bot(), "person 0", epoch, LIMIT));
    let query = ConversationQuery {
        bot_id: bot(),
        channel_id: channel(),
        peer: "person 0".to_owned(),
        message_id: MessageId::MAX,
        later_answers: true,
        limit: LIMIT,
        replies_since: epoch,
        day: 0,
    };
    list!(lists, ai::conversation(&query));
    list!(lists, bots::logins_of(owner(), "sim", None, LIMIT));
    list!(lists, bots::holders("sim", "account 0", "person of 0"));
    list!(lists, channels::of_bot(bot()));
    list!(lists, channel_plugins::installed_of_bot(bot()));
    list!(lists, channel_plugins::installed(bot(), channel(), ChannelId::MAX));
    list!(lists, installations::runtimes(bot()));
    list!(lists, installations::toolboxes(bot()));
    for column in SEALED_COLUMNS.iter().filter(|column| matches!(column.table, "media" | "messages" | "apps"))
    {
        list!(lists, sealed::page(column, None, LIMIT), column.table);
    }
}

/// Rows with given ids, of a parent that has few of them, or of a name.
async fn rows_that_are_named(lists: &mut Lists) {
    let (messages, traces): ([MessageId; 2], [TraceId; 2]) = ([id(0), id(4)], [id(0), id(4)]);
    let keys = ["key 0".to_owned()];
    list!(lists, messages::for_sinks(&messages));
    list!(lists, messages::find_all(bot(), &messages));
    list!(lists, messages::listed(&messages));
    list!(lists, messages::quoted(bot(), &["net 0", "sent 0"]));
    list!(lists, outbox::known(bot(), &keys));
    list!(lists, media::of_messages(&messages));
    list!(lists, traces::steps_of(&traces));
    list!(lists, traces::listed(&traces));
    list!(lists, traces::find(scope(owner()), Some(bot()), id(0)));
    list!(lists, traces::outcomes(&messages));
    list!(lists, deliveries::of_trace(id(0), id(0)));
    list!(lists, deliveries::open_of(&messages));
    list!(lists, replays::sources(owner(), &traces));
    list!(lists, bots::owners(&[bot()]));
    list!(lists, bots::names(&[bot()]));
    list!(lists, users::names(&[owner()]));
    list!(lists, contacts::names(bot(), &["person 0"]));
    list!(lists, log::pulses(&[channel()]));
    list!(lists, ilink::traces_of(channel(), &messages));
    list!(lists, app_sockets::installations(&[id::<kind::Installation>(0)] as &[InstallationId]));
    list!(lists, app_sockets::apps(&[id::<kind::App>(0)] as &[AppId]));
    list!(lists, app_sockets::due(&[id(0)], &[]));
    list!(lists, channel_plugins::scripts(&[id(0)]));
    list!(lists, plugins::versions(everything(), id::<kind::Plugin>(0) as PluginId));
    list!(lists, plugins::versions_for(bot(), id(0)));
    list!(lists, channels::has_name(bot(), "channel 0", ChannelId::MAX));
}

async fn counts(lists: &mut Lists) {
    let epoch = Timestamp::from_millis(0);
    list!(lists, bots::count(owner()));
    list!(lists, channels::count(bot()));
    list!(lists, installations::count(bot()));
    list!(lists, apps::count_of(owner()));
    list!(lists, plugins::count_of(owner()));
    list!(lists, passkeys::count(owner()));
    list!(lists, passkeys::credential_ids(owner()));
    list!(lists, external_accounts::list(owner()));
    list!(lists, accounts::count_sign_in_methods(owner()));
    list!(lists, ilink::clients(channel()));
    list!(lists, outbox::queued_parts(bot(), "person 0"));
    list!(lists, media::bytes_of(owner()));
    list!(lists, channels::deliveries_by_state(bot(), channel(), ChannelId::MAX));
    list!(lists, channels::health(bot(), channel(), ChannelId::MAX));
    list!(lists, channels::totals(owner(), LIMIT));
    list!(lists, channel_plugins::installed_elsewhere(id(1), id(0), None));
    list!(lists, replays::find(owner(), id(0)));
    list!(lists, replays::bots_of(owner(), Some(id(0))));
    list!(lists, leases::held(NODE));
    list!(lists, leases::any_held(epoch));
    list!(lists, leases::with_work(NODE, epoch));
    list!(lists, log::listened_elsewhere(NODE, epoch));
    list!(lists, revocations::since(epoch));
    list!(lists, accounts::has_admin());
    list!(lists, demo::holder());
    list!(lists, stats::bots_of(owner()));
    list!(lists, stats::oldest_open_of(owner()));
    list!(lists, stats::minutes_of(owner(), epoch, LIMIT));
    list!(lists, stats::total());
    list!(lists, stats::minutes(0));
    list!(lists, stats::users());
    list!(lists, stats::bots());
    list!(lists, stats::channels());
    list!(lists, stats::open_deliveries());
}
