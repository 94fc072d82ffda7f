CREATE TABLE channels (
    id                 TEXT NOT NULL PRIMARY KEY,
    bot_id             TEXT NOT NULL REFERENCES bots (id) ON DELETE CASCADE,
    name               TEXT NOT NULL,
    handle             TEXT,
    enabled            INTEGER NOT NULL,
    key_hash           TEXT NOT NULL UNIQUE,
    key_last4          TEXT NOT NULL,
    old_key_hash       TEXT UNIQUE,
    old_key_until      INTEGER,
    filter             TEXT NOT NULL,
    websocket          TEXT NOT NULL,
    webhook            TEXT NOT NULL,
    webhook_secret     TEXT,
    webhook_old_secret TEXT,
    webhook_old_until  INTEGER,
    ai                 TEXT NOT NULL,
    ai_api_key         TEXT,
    on_plugin_error    TEXT NOT NULL,
    lane_hold_s        INTEGER NOT NULL,
    last_seq           INTEGER NOT NULL,
    -- Since when every delivery failed, and why the webhook was switched off by itself.
    failing_since      INTEGER,
    webhook_disabled   TEXT,
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL,
    UNIQUE (bot_id, handle)
) STRICT;
CREATE INDEX channels_by_bot ON channels (bot_id, id);

-- What a channel received, under its gap-free number.
CREATE TABLE channel_log (
    channel_id TEXT NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
    seq        INTEGER NOT NULL,
    message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    content    TEXT,
    PRIMARY KEY (channel_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX channel_log_by_message ON channel_log (message_id);

CREATE TABLE deliveries (
    id               TEXT NOT NULL PRIMARY KEY,
    message_id       TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    bot_id           TEXT NOT NULL,
    channel_id       TEXT NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
    trace_id         TEXT NOT NULL,
    lane             TEXT NOT NULL,
    seq              INTEGER NOT NULL,
    state            TEXT NOT NULL,
    attempts         INTEGER NOT NULL,
    due_at           INTEGER NOT NULL,
    first_attempt_at INTEGER,
    -- The fence under which a node holds the row in memory; any other value means nobody does.
    claim            INTEGER NOT NULL,
    target_url       TEXT,
    last_error       TEXT,
    created_at       INTEGER NOT NULL,
    finished_at      INTEGER
) STRICT;
CREATE INDEX deliveries_open ON deliveries (bot_id, state, id) WHERE state IN ('pending', 'parked');
CREATE INDEX deliveries_by_channel ON deliveries (channel_id, state);
CREATE INDEX deliveries_by_message ON deliveries (message_id);

CREATE TABLE traces (
    id          TEXT NOT NULL PRIMARY KEY,
    message_id  TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    bot_id      TEXT NOT NULL,
    channel_id  TEXT REFERENCES channels (id) ON DELETE CASCADE,
    replay_of   TEXT,
    status      TEXT NOT NULL,
    summary     TEXT NOT NULL,
    attempts    INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    steps       TEXT NOT NULL
) STRICT;
CREATE INDEX traces_by_bot ON traces (bot_id, id);
CREATE INDEX traces_by_message ON traces (message_id);
CREATE INDEX traces_by_channel ON traces (channel_id, id);
