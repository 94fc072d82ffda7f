//! Messages, traces, explanations and the search.

use hub_core::id::{ChannelId, Id, MessageId, TraceId};
use serde_json::json;

use super::*;

/// A text that is markup, in names and messages of people.
const HOSTILE: &str = "<script>alert(1)</script>\u{202e}\"'";

/// Ann's bot with two messages: one without a channel, with a hostile text, and one whose delivery failed.
pub(super) struct Seen {
    pub(super) bot: String,
    pub(super) message: String,
    pub(super) trace: String,
    pub(super) channel: String,
    quiet: String,
}

pub(super) async fn sql(app: &App, sql: String) {
    let store = &app.hub.context().store;
    store.write(move |tx| Box::pin(async move { tx.channels().execute(sql).await })).await.unwrap();
}

async fn message(app: &App, bot: &str, id: MessageId, content: &str, minutes_ago: i64) {
    let at = app.clock.now().as_millis() - minutes_ago * 60_000;
    let (quoted, name) = (content.replace('\'', "''"), HOSTILE.replace('\'', "''"));
    sql(
        app,
        format!(
            "INSERT INTO messages (id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id, group_id,
                kind, content, items, dedupe_key, status, sent_at, created_at)
             VALUES ('{id}', '{bot}', 'inbound', 'ada', 'ada', 'wx', '{name}', '', '', 'text', '{quoted}', '[]', '{id}',
                'received', {at}, {at})"
        ),
    )
    .await;
}

/// Twenty more messages of a bot, with ids from a number on.
pub(super) async fn more(app: &App, bot: &str, first: u128) {
    let now = u128::try_from(app.clock.now().as_millis()).unwrap() << 80;
    for n in first..first + 20 {
        message(app, bot, Id::from_u128(now | n), "another one", 2).await;
    }
}

/// The steps of a delivery that failed twice, half a minute apart, after a plugin changed the request.
fn steps(app: &App) -> Value {
    let at = |ms: i64| {
        hub_core::time::Timestamp::from_millis(app.clock.now().as_millis() - 60_000 + ms).to_string()
    };
    let step = |name: &str, kind: &str, status: &str, from: i64, took: u64, detail: Value| json!({ "name": name, "kind": kind, "status": status, "started_at": at(from), "duration_ms": took, "detail": detail });
    let headers = json!([["content-type", "application/json"]]);
    let plugin = json!({
        "plugin": "tagger", "version": "1.0.0", "hook": true,
        "changes": { "headers": ["+ x-kind: order"], "body": "@@ -1 +1 @@\n-{\"a\":1}\n+{\"a\":2}" },
        "logs": [{ "at_ms": 2, "level": "info", "text": HOSTILE }],
    });
    let request = |attempt: u64| {
        json!({ "attempt": attempt, "method": "POST", "url": "https://receiver.example/hook", "headers": headers,
            "body": json!({ "content": HOSTILE }).to_string() })
    };
    let response = json!({ "status": 500, "headers": headers, "body": "broken" });
    json!([
        step("received", "inbox", "ok", 0, 0, json!({ "msg_type": "text" })),
        step("filter", "filter", "ok", 0, 1, json!({})),
        step("plugin.on_request", "plugin", "ok", 1, 3, plugin),
        step("request", "webhook", "ok", 4, 40, request(1)),
        step("response", "webhook", "error", 44, 0, response),
        step("request", "webhook", "ok", 30_044, 40, request(2)),
        step(
            "response",
            "webhook",
            "error",
            30_084,
            0,
            json!({ "status": 500, "headers": headers, "body": "" })
        ),
    ])
}

/// Binds a bot and stores its messages.
pub(super) async fn seen(app: &App, caller: &Caller<'_>, simulator: &Simulator) -> Seen {
    let bot = bind(caller, simulator, None).await["id"].as_str().unwrap().to_owned();
    let created = caller.post(&format!("/api/bots/{bot}/channels"), &json!({ "name": "orders" })).await;
    let created = created.json.to_string();
    let channel = created.split_once("\"ch_").unwrap().1.split('"').next().unwrap();
    let channel: ChannelId = format!("ch_{channel}").parse().unwrap();
    let now = u128::try_from(app.clock.now().as_millis()).unwrap() << 80;
    let (quiet, failed): (MessageId, MessageId) = (Id::from_u128(now | 1), Id::from_u128(now | 2));
    let trace: TraceId = Id::from_u128(now | 3);
    message(app, &bot, quiet, HOSTILE, 90).await;
    message(app, &bot, failed, "order 42", 1).await;
    let (at, steps) = (app.clock.now().as_millis() - 60_000, steps(app).to_string().replace('\'', "''"));
    sql(
        app,
        format!(
            "INSERT INTO traces (id, message_id, bot_id, channel_id, status, summary, attempts, started_at, duration_ms,
                steps)
             VALUES ('{trace}', '{failed}', '{bot}', '{channel}', 'error', 'failed after 2 attempt(s): status 500', 2,
                {at}, 30084, '{steps}')"
        ),
    )
    .await;
    let [message, trace, channel, quiet] =
        [failed.to_string(), trace.to_string(), channel.to_string(), quiet.to_string()];
    Seen { bot, message, trace, channel, quiet }
}

#[tokio::test]
async fn messages_of_all_bots_are_listed_with_their_outcome_in_each_channel() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let seen = seen(&app, &ann, &simulator).await;
    let page = text(&ann.get("/console/messages").await);
    for part in [
        format!("href=\"/console/messages/{}/{}\"", seen.bot, seen.message),
        format!("href=\"/console/traces/{}/{}\"", seen.bot, seen.trace),
        "<bdi>orders</bdi>".to_owned(),
        "failed after 2 attempt(s): status 500".to_owned(),
        "2 messages".to_owned(),
        "data-live=\"message trace sent media\"".to_owned(),
    ] {
        assert!(page.contains(&part), "{part}: {page}");
    }
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script>alert"), "{page}");

    let rows = |page: &str| page.matches("<tr data-key").count();
    for (query, count) in [
        ("outcome=failed", 1),
        ("outcome=in_flight", 0),
        ("direction=outbound", 0),
        ("since=1h", 1),
        ("since=1d", 2),
        ("q=ORDER", 1),
        ("user_id=ada", 2),
        (&*format!("channel_id={}", seen.channel), 1),
        (&*format!("bot_id={}&q=order", seen.bot), 1),
    ] {
        let page = text(&ann.get(&format!("/console/messages?{query}")).await);
        assert_eq!(rows(&page), count, "{query}: {page}");
    }
    let none = text(&ann.get("/console/messages?outcome=in_flight").await);
    assert!(none.contains("Nothing is in flight."), "{none}");
    let none = text(&ann.clone().with("Accept-Language", "zh").get("/console/messages?q=crm").await);
    assert!(none.contains("没有符合“crm”的结果。"), "{none}");
}

#[tokio::test]
async fn pages_of_messages_follow_each_other_with_the_same_filters() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let seen = seen(&app, &ann, &simulator).await;
    let first = text(&ann.get("/console/messages?limit=1&since=1d").await);
    assert!(first.contains(&seen.message) && !first.contains(&seen.quiet), "{first}");
    assert!(first.contains("data-held"), "{first}");
    let older = first.split("rel=\"next\"").next().unwrap().rsplit("href=\"").next().unwrap();
    let older = older.split('"').next().unwrap().replace("&amp;", "&");
    app.clock.advance(std::time::Duration::from_secs(7));
    let reply = ann.get(&older).await;
    let second = text(&reply);
    assert_eq!(reply.response.status(), 200, "{older}: {second}");
    assert!(second.contains(&seen.quiet) && !second.contains(&seen.message), "{second}");
    assert!(!second.contains("data-held"), "{second}");
}

#[tokio::test]
async fn filters_that_cannot_match_are_refused_and_messages_of_others_are_not_shown() {
    let (app, simulator) = App::with_simulator().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let seen = seen(&app, &ann, &simulator).await;
    for query in ["outcome=lost", "direction=up", "since=soon", "bot_id=x", "cursor=x"] {
        let reply = ann.get(&format!("/console/messages?{query}")).await;
        assert_eq!(reply.response.status(), 400, "{query}");
        assert!(text(&reply).contains("INVALID_PARAMS"), "{query}");
    }
    for query in [String::new(), format!("?bot_id={}", seen.bot), format!("?q={}", seen.message)] {
        let page = text(&bob.get(&format!("/console/messages{query}")).await);
        assert!(!page.contains("order 42") && !page.contains("<tr data-key"), "{page}");
    }
    let without_id = |reply: &Reply| text(reply).replace(reply.header("x-request-id").unwrap(), "");
    for (foreign, unknown) in [
        (
            format!("messages/{}/{}", seen.bot, seen.message),
            format!("messages/{}/{}", seen.bot, MessageId::MAX),
        ),
        (format!("traces/{}/{}", seen.bot, seen.trace), format!("traces/{}/{}", seen.bot, TraceId::MAX)),
    ] {
        let foreign = bob.get(&format!("/console/{foreign}")).await;
        assert_eq!(foreign.response.status(), 404);
        let unknown = bob.get(&format!("/console/{unknown}")).await;
        assert_eq!(without_id(&foreign), without_id(&unknown));
    }
}

#[tokio::test]
async fn the_page_of_a_message_explains_why_it_did_not_arrive() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let seen = seen(&app, &ann, &simulator).await;
    let address = format!("/console/messages/{}/{}", seen.bot, seen.message);
    let page = text(&ann.get(&address).await);
    for part in [
        "Why did it not arrive?",
        "The receiver responded with an error.",
        "order 42",
        "<a href=\"/console/traces/",
        "#replay-heading\">Then replay the message</a>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let chinese = text(&ann.clone().with("Accept-Language", "zh").get(&address).await);
    for part in [
        "投递到频道 <bdi>orders</bdi> 在 2 次尝试后失败：接收方返回状态 500。",
        "#replay-heading\">然后重放消息</a>",
        "频道已打开",
    ] {
        assert!(chinese.contains(part), "{part}: {chinese}");
    }
    assert!(page.contains(&format!("/api/bots/{}/messages/{}/explain", seen.bot, seen.message)), "{page}");
    assert!(
        page.contains(&format!("/traces?message_id={}&#39;", seen.message))
            || page.contains(&format!("/traces?message_id={}'", seen.message)),
        "{page}"
    );
    let quiet = text(&ann.get(&format!("/console/messages/{}/{}", seen.bot, seen.quiet)).await);
    assert!(quiet.contains("No channel and no app has received this message."), "{quiet}");
    assert!(quiet.contains("&lt;script&gt;") && !quiet.contains("<script>alert"), "{quiet}");
    let unknown = ann.get(&format!("{address}?channel_id=x")).await;
    assert_eq!(unknown.response.status(), 404);
}

#[tokio::test]
async fn a_failed_file_is_downloaded_again() {
    let (app, simulator) = App::with_simulator().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let seen = seen(&app, &ann, &simulator).await;
    let insert = format!(
        "INSERT INTO media (id, owner_id, bot_id, message_id, item, kind, file_name, content_type, size, md5, state, reason,
            source, attempts, due_at, expires_at, created_at)
         SELECT 'med_01KAJ6Z8QH0000000000000001', owner_id, id, '{}', 0, 'image', 'cat.png', 'image/png', 84000, '', 'failed',
            'the network does not have it', 'sealed', 4, 0, {}, 0 FROM bots WHERE id = '{}'",
        seen.message,
        i64::MAX,
        seen.bot
    );
    sql(&app, insert).await;
    let address = format!("/console/messages/{}/{}", seen.bot, seen.message);
    let page = text(&ann.get(&address).await);
    assert!(page.contains("cat.png") && page.contains("value=\"retry\""), "{page}");
    assert_eq!(submit(&bob, &address, &[("do", "retry")]).await.response.status(), 404);
    let reply = submit(&ann, &address, &[("do", "retry")]).await;
    assert_eq!(reply.header("location"), Some(&*format!("{address}?done=retryMedia")));
    let page = text(&ann.get(&address).await);
    assert!(page.contains("Downloading") && !page.contains("value=\"retry\""), "{page}");
}

#[tokio::test]
async fn a_trace_shows_its_steps_to_scale_and_one_of_them_in_full() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let seen = seen(&app, &ann, &simulator).await;
    let address = format!("/console/traces/{}/{}", seen.bot, seen.trace);
    let page = text(&ann.get(&address).await);
    assert_eq!(page.matches("<rect ").count(), 7, "{page}");
    for part in
        ["⋯ waited 30.0 s ⋯", "7/7: ", "Attempt 2", "Why did it not arrive?", "hub-cli traces show tr_"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let case = format!("/api/bots/{}/traces/{}/case?plugin=tagger", seen.bot, seen.trace);
    assert!(page.contains(&case) && page.contains("Make a test case"), "{page}");
    let plugin = text(&ann.get(&format!("{address}?step=3")).await);
    for part in
        ["What the plugin changed", "<ins>+ x-kind: order</ins>", "<del>-{&quot;a&quot;:1}</del>", "tagger"]
    {
        assert!(plugin.contains(part), "{part}: {plugin}");
    }
    let request = text(&ann.get(&format!("{address}?step=4")).await);
    for part in ["class=\"tree\"", "<code>content-type</code>", "https://receiver.example/hook"] {
        assert!(request.contains(part), "{part}: {request}");
    }
    for page in [&page, &plugin, &request] {
        assert!(!page.contains("<script>alert"), "{page}");
    }
    for step in ["0", "8", "-1", "x"] {
        assert_eq!(ann.get(&format!("{address}?step={step}")).await.response.status(), 404, "{step}");
    }
}

#[tokio::test]
async fn a_replay_leads_to_the_new_trace_and_a_refused_one_says_why() {
    let (app, simulator) = App::with_simulator().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let seen = seen(&app, &ann, &simulator).await;
    let address = format!("/console/traces/{}/{}", seen.bot, seen.trace);
    let to = "https://receiver.example/hook?key=1";
    let reply = submit(&ann, &address, &[("do", "replay"), ("sink", "webhook"), ("url", to)]).await;
    let location = reply.header("location").unwrap_or_else(|| panic!("{}", text(&reply))).to_owned();
    assert!(location.ends_with("?done=replayTrace") && !location.contains(&seen.trace), "{location}");
    let page = text(&ann.get(&location).await);
    assert!(
        page.contains("This is the new trace.") && page.contains(&seen.trace) && !page.contains("key=1"),
        "{page}"
    );
    let old = text(&ann.get(&address).await);
    assert!(old.contains("There is a newer trace of this message in this channel."), "{old}");

    for (sink, url, status, part) in [
        ("webhook", "ftp://receiver.example/", 400, "id=\"replay-url-problem\""),
        ("ai", to, 400, "id=\"replay-url-problem\""),
        ("webhook", "", 409, "webhook is off"),
        ("ai", "", 409, "AI sink is off"),
        ("fax", "", 400, "id=\"replay-sink-problem\""),
    ] {
        let reply = submit(&ann, &address, &[("do", "replay"), ("sink", sink), ("url", url)]).await;
        let page = text(&reply);
        assert_eq!(reply.response.status(), status, "{sink} {url}: {page}");
        assert!(page.contains(part) && page.contains(&format!("value=\"{url}\"")), "{sink} {url}: {page}");
    }
    assert_eq!(submit(&bob, &address, &[("do", "replay"), ("url", to)]).await.response.status(), 404);
}

#[tokio::test]
async fn the_search_leads_to_ids_and_finds_bots_by_name() {
    let (app, simulator) = App::with_simulator().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let seen = seen(&app, &ann, &simulator).await;
    for (id, to) in [
        (&seen.trace, format!("/console/traces/{}/{}", seen.bot, seen.trace)),
        (&seen.message, format!("/console/messages/{}/{}", seen.bot, seen.message)),
        (&seen.bot, format!("/console/bots/{}", seen.bot)),
        (&seen.channel, format!("/console/messages?channel_id={}", seen.channel)),
    ] {
        let reply = ann.get(&format!("/console/find?q=%20{id}")).await;
        assert_eq!((reply.response.status().as_u16(), reply.header("location")), (303, Some(&*to)));
    }
    for id in [&seen.trace, &seen.message, "tr_x"] {
        let reply = bob.get(&format!("/console/find?q={id}")).await;
        let page = text(&reply);
        assert_eq!(reply.response.status(), 200);
        assert!(page.contains(&format!("There is nothing with the ID {id}")), "{page}");
    }
    let page = text(&ann.get("/console/find?q=sHo").await);
    assert!(page.contains("<bdi>Shop</bdi>") && page.contains("href=\"/console/messages?q=sHo\""), "{page}");
    let page = text(&ann.get("/console/find?q=%3Cb%3E%26x").await);
    assert!(page.contains("&lt;b&gt;&amp;x") && page.contains("/console/messages?q=%3Cb%3E%26x"), "{page}");
    assert!(!page.contains("<bdi>Shop</bdi>"), "{page}");
}

#[tokio::test]
async fn commands_have_the_filters_of_the_page() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    bind(&ann, &simulator, None).await;
    let page = text(&ann.get("/console/messages?outcome=failed&since=1h&q=it%27s&done=x&other=1").await);
    let since = hub_core::time::Timestamp::from_millis(app.clock.now().as_millis() - 3_600_000).to_string();
    let since = url::form_urlencoded::byte_serialize(since.as_bytes()).collect::<String>();
    let curl = page.split("curl -H").nth(1).unwrap().split('<').next().unwrap();
    for part in ["/api/messages?", "outcome=failed", "q=it%27s", &format!("since={since}")] {
        assert!(curl.contains(part), "{part}: {curl}");
    }
    assert!(!curl.contains("other") && !curl.contains("done"), "{curl}");
}

#[tokio::test]
async fn a_filter_is_tried_on_the_last_messages_without_being_saved() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let seen = seen(&app, &ann, &simulator).await;
    let address = format!("/console/bots/{}/channels/{}/filter", seen.bot, seen.channel);
    let fields =
        [("do", "try_on"), ("keywords", "order"), ("user_ids", ""), ("match", "all"), ("expression", "")];
    let tried = submit(&ann, &address, &fields).await;
    let page = text(&tried);
    assert_eq!(tried.response.status(), 200, "{page}");
    assert!(page.contains("1 of 2 messages would pass") && page.contains("<bdi>keyword</bdi>"), "{page}");
    assert!(page.contains(">order</textarea>") && page.contains("&lt;script&gt;"), "{page}");
    assert!(!text(&ann.get(&address).await).contains(">order</textarea>"), "nothing is stored");

    let fields = [("do", "try_on"), ("match", "all"), ("expression", "content +")];
    let refused = submit(&ann, &address, &fields).await;
    let page = text(&refused);
    assert_eq!(refused.response.status(), 400, "{page}");
    assert!(
        page.contains("does not compile (line 1, column ") && page.contains(">content +</textarea>"),
        "{page}"
    );
}
