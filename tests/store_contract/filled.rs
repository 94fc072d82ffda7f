//! Tables of a hub with any number of rows: half of them belong to one user, and the others to so many more users.

use hub_core::id::{BotId, ChannelId, Id, Kind, NodeId, UserId, kind};

use crate::support::database::Db;

/// Rows per user, so that users, bots and channels grow too.
const ROWS_PER_USER: u32 = 10;
/// First number of an id, with as many digits as a ULID has after seven.
const FIRST: u64 = 1_000_000_000_000_000_000;

/// The `number`th id of a table.
pub fn id<K: Kind>(number: u32) -> Id<K> {
    let digits = format!("{}0000000{}", K::PREFIX, FIRST + u64::from(number));
    digits.parse().expect("digits are an id")
}

/// The user who has half of the rows.
pub fn owner() -> UserId {
    id(0)
}

/// A bot of this user.
pub fn bot() -> BotId {
    id(0)
}

/// A channel of this bot.
pub fn channel() -> ChannelId {
    id(0)
}

/// The node that has the bots of this user.
pub const NODE: NodeId = NodeId::from_u128(1);

/// The id of that number as SQL.
fn sql_id(prefix: &str, number: &str) -> String {
    format!("'{prefix}_0000000' || ({FIRST} + {number})")
}

/// Fills every table that grows with so many rows.
pub async fn fill(db: &Db, rows: u32) {
    let users = rows / ROWS_PER_USER;
    let (bots, channels) = (users * 2, users * 4);
    // Of the rows every second one is of the user's two bots, which have two channels each.
    let bot_number = format!("(CASE WHEN i % 2 = 0 THEN (i / 2) % 2 ELSE (i / 2) % {bots} END)");
    let channel_number = format!("({bot_number} * 2 + (i / 4) % 2)");
    let user_number = format!("(CASE WHEN i % 2 = 0 THEN 0 ELSE (i / 2) % {users} END)");
    let [user, bot, channel] = [("usr", &user_number), ("bot", &bot_number), ("ch", &channel_number)]
        .map(|(kind, n)| sql_id(kind, n));
    let this = |prefix: &str| sql_id(prefix, "i");
    // Of what has a parent every second row is of the first one, and there are as few installations as bots.
    let first_or_this = |prefix: &str| sql_id(prefix, "(CASE WHEN i % 2 = 0 THEN 0 ELSE i END)");
    let installation = sql_id("ins", &format!("(CASE WHEN i % 2 = 0 THEN 0 ELSE i % {bots} END)"));
    let of_four = |[a, b, c, d]: [&str; 4]| {
        format!("(CASE (i / 40) % 4 WHEN 0 THEN '{a}' WHEN 1 THEN '{b}' WHEN 2 THEN '{c}' ELSE '{d}' END)")
    };
    let person = "'person ' || ((i / 8) % 5)";
    let yes = if db.is_postgres() { "TRUE" } else { "1" };
    let tables: Vec<(u32, &str, &str, String)> = vec![
        (
            users,
            "users",
            "id, username, display_name, email, role, status, created_at, updated_at",
            format!("{}, 'user ' || i, '', '', 'member', 'active', i, i", this("usr")),
        ),
        (
            bots,
            "bots",
            "id, owner_id, name, network, status, status_since, wx_id, owner_user_id, credentials, credentials_rev,
                cursor, config_rev, lease_fence, lease_owner, created_at",
            format!(
                "{}, {}, 'bot', 'sim', 'online', 0, 'account ' || i, 'person of ' || i, 'sealed', 1, '', 0, 0,
                    CASE WHEN i < 2 THEN '{NODE}' END, i",
                this("bot"),
                sql_id("usr", "i / 2")
            ),
        ),
        (
            channels,
            "channels",
            "id, bot_id, name, enabled, key_hash, key_last4, filter, websocket, webhook, ai, on_plugin_error,
                lane_hold_s, last_seq, created_at, updated_at",
            format!(
                "{}, {}, 'channel ' || i, {yes}, 'hash ' || i, 'last', '{{}}', '{{}}', '{{}}', '{{}}', 'retry', 60, 0,
                    i, i",
                this("ch"),
                sql_id("bot", "i / 2")
            ),
        ),
        (
            rows,
            "messages",
            "id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id, group_id, kind, content,
                items, network_id, dedupe_key, private, status, sent_at, created_at",
            format!(
                "{}, {bot}, {}, {person}, {person}, '', '', '', '', 'text', 'text', '[]', 'net ' || i, 'key ' || i,
                    'sealed', 'received', i, i",
                this("msg"),
                of_four(["inbound", "inbound", "inbound", "outbound"])
            ),
        ),
        (
            rows,
            "traces",
            "id, message_id, bot_id, channel_id, replay_of, status, open_sinks, summary, attempts, started_at,
                duration_ms, steps",
            format!(
                "{}, {}, {bot}, CASE WHEN (i / 8) % 4 < 3 THEN {channel} END, CASE WHEN i > 0 THEN {} END, {}, 0,
                    '', 1, i, 1, '[]'",
                this("tr"),
                this("msg"),
                sql_id("tr", "0"),
                of_four(["ok", "error", "skipped", "pending"])
            ),
        ),
        (
            rows,
            "deliveries",
            "id, message_id, bot_id, channel_id, trace_id, lane, seq, state, attempts, due_at, claim, created_at",
            format!(
                "{}, {}, {bot}, {channel}, {}, {person}, i, {}, 0, 0, 7, i",
                this("dlv"),
                this("msg"),
                this("tr"),
                of_four(["pending", "parked", "dead", "dead"])
            ),
        ),
        (
            rows,
            "channel_log",
            "channel_id, seq, message_id",
            format!("{channel}, i + 1, {}", this("msg")),
        ),
        (
            rows,
            "contacts",
            "user_id, bot_id, user_name, remark, avatar_url, message_count, last_message_at, window_sends",
            format!("'person ' || i, {bot}, 'name', '', '', 1, i, 0"),
        ),
        (
            rows,
            "outbox",
            "message_id, id, bot_id, peer, part, parts, client_id, text, state, attempts, unknowns, due_at,
                expires_at, network_id, created_at, updated_at",
            format!(
                "{}, {}, {bot}, {person}, 0, 1, 'client ' || i, 'text', {}, 0, 0, i, i, 'sent ' || i, i, i",
                this("msg"),
                this("out"),
                of_four(["queued", "sent", "sent", "sent"])
            ),
        ),
        (
            rows,
            "audit",
            "id, at, actor, actor_name, credential, action, target, target_name, detail, ip",
            format!("{}, i, {user}, '', '', 'bot.create', {user}, '', '{{}}', ''", this("aud")),
        ),
        (
            rows,
            "sessions",
            "id, user_id, token_hash, created_at, last_seen_at, expires_at, ip, user_agent",
            format!("{}, {user}, 'hash ' || i, i, 1000000, 1000000, '', ''", this("ses")),
        ),
        (
            rows,
            "user_keys",
            "id, user_id, name, key_hash, last4, created_at",
            format!("{}, {user}, 'key', 'hash ' || i, 'last', i", this("key")),
        ),
        (
            rows,
            "passkeys",
            "id, user_id, credential_id, credential, name, created_at",
            format!("{}, {user}, 'id ' || i, '{{}}', 'key', i", this("pky")),
        ),
        (
            rows,
            "external_accounts",
            "provider, subject, user_id, username, avatar_url, created_at",
            format!("'provider ' || i, 'subject ' || i, {user}, '', '', i"),
        ),
        (
            rows,
            "apps",
            "id, owner_id, name, slug, description, icon_url, homepage, redirect_uris, events, scopes, tools,
                webhook_verified, webhook_url, listing, client_secret_hash, webhook_secret, created_at, updated_at",
            format!(
                "{}, {user}, 'app', 'app-' || i, '', '', '', '[]', '[]', '[]', '[{{\"name\":\"tool\",\"description\":\"\"}}]',
                    {yes}, 'http://app.test/', {}, '', 'sealed', i, i",
                this("app"),
                of_four(["listed", "pending", "unlisted", "unlisted"])
            ),
        ),
        (
            // The apps on a bot are few.
            bots,
            "app_installations",
            "id, app_id, bot_id, handle, scopes, tools, enabled, token_hash, token_last4, created_at, updated_at",
            format!(
                "{}, {}, {}, 'app-' || i, '[]', '[]', {yes}, 'hash ' || i, 'last', i, i",
                this("ins"),
                this("app"),
                this("bot")
            ),
        ),
        (
            rows,
            "app_calls",
            "id, installation_id, method, path, request_body, status, response_body, duration_ms, created_at",
            format!("{}, {installation}, 'GET', '/', '', 200, '', 1, i", this("cal")),
        ),
        (
            rows,
            "app_events",
            "id, app_id, bot_id, installation_id, kind, peer, event, state, attempts, response_body, duration_ms,
                created_at",
            format!(
                "{}, {}, {bot}, {installation}, 'message', '', '{{}}', {}, 0, '', 0, i",
                this("evt"),
                first_or_this("app"),
                of_four(["pending", "delivered", "delivered", "failed"])
            ),
        ),
        (
            rows / 4,
            "deliveries",
            "id, bot_id, event_id, sink, lane, seq, state, attempts, due_at, claim, created_at",
            format!(
                "{}, {bot}, {}, 'app', {person}, 1, 'pending', 0, 0, 7, i",
                sql_id("dlv", &format!("{rows} + i")),
                this("evt"),
            ),
        ),
        (
            rows,
            "plugins",
            "id, author_id, name, name_key, created_at",
            format!("{}, {user}, 'plugin ' || i, 'plugin ' || i, i", this("plg")),
        ),
        (
            rows,
            "plugin_versions",
            "id, plugin_id, version, description, script, content_hash, matches, connects, timeout_ms, state,
                created_at",
            format!(
                "{}, {}, '1.0.0', '', '', '', '[]', '[]', 1000,
                    CASE WHEN i % 4 = 2 THEN 'pending' ELSE 'approved' END, i",
                this("plv"),
                this("plg")
            ),
        ),
        (
            channels,
            "channel_plugins",
            "channel_id, plugin_id, version_id, position, enabled, installed_at",
            format!("{}, {}, {}, 0, {yes}, 0", this("ch"), this("plg"), this("plv")),
        ),
        (
            rows,
            "media",
            "id, owner_id, bot_id, message_id, item, kind, file_name, content_type, size, md5, state, source, attempts,
                due_at, expires_at, created_at",
            format!(
                "{}, {user}, {bot}, CASE WHEN i % 20 < 19 THEN {} END, 0, 'file', '', '', 1, 'md5', {}, 'sealed', 0,
                    i, 0, i",
                this("med"),
                this("msg"),
                of_four(["ready", "downloading", "ready", "failed"])
            ),
        ),
        (
            rows,
            "ilink_clients",
            "id, channel_id, token_hash, ip, user_agent, acked_seq, given_seq, created_at, last_used_at",
            format!("{}, {}, 'hash ' || i, '', '', 0, 0, i, i", this("ilc"), sql_id("ch", &format!("(i % {channels})"))),
        ),
        (
            rows,
            "replays",
            "id, owner_id, refused, created_at",
            format!("{}, {user}, '[]', i", this("rpl")),
        ),
        (
            rows,
            "replay_traces",
            "replay_id, trace_id",
            format!("{}, {}", first_or_this("rpl"), this("tr")),
        ),
        (
            rows,
            "ai_usage",
            "channel_id, day, source, calls, prompt_tokens, completion_tokens",
            format!("{channel}, i, 'global', 1, 1, 1"),
        ),
    ];
    for (rows, table, columns, values) in tables {
        db.sql(format!(
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {rows})
             INSERT INTO {table} ({columns}) SELECT {values} FROM n"
        ))
        .await;
    } // One administrator, and what is never much.
    db.sql(format!(
        "UPDATE users SET role = 'admin' WHERE id = '{}';
         INSERT INTO nodes (id, lease_until) VALUES ('{NODE}', 1000000);
         INSERT INTO channel_listeners (node, channel_id, sockets, until)
            SELECT 'other', id, 1, 1000000 FROM channels WHERE id = '{}';
         INSERT INTO revocations (id, subject, at) SELECT '{}', id, 1000000 FROM users WHERE id = '{}';
         INSERT INTO tallies (minute, node, messages_in, messages_out, delivered, failed, plugin_runs)
            VALUES (1, '', 1, 1, 1, 1, 1)",
        owner(),
        self::channel(),
        id::<kind::Revocation>(0),
        owner()
    ))
    .await;
}
