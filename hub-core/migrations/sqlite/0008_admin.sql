-- API keys of users (contract section 2).
CREATE TABLE user_keys (
    id           TEXT NOT NULL PRIMARY KEY,
    user_id      TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name         TEXT NOT NULL,
    key_hash     TEXT NOT NULL UNIQUE,
    last4        TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER
) STRICT;
CREATE INDEX user_keys_by_user ON user_keys (user_id, id);

-- What was ended lately, for whoever still serves it: sockets, other nodes. Rows live for minutes.
CREATE TABLE revocations (
    id      TEXT NOT NULL PRIMARY KEY,
    subject TEXT NOT NULL,
    at      INTEGER NOT NULL
) STRICT;
CREATE INDEX revocations_by_time ON revocations (at);

-- What administrators and holders of credentials did. No references: it outlives what it names.
CREATE TABLE audit (
    id          TEXT NOT NULL PRIMARY KEY,
    at          INTEGER NOT NULL,
    -- Empty for a stranger, 'operator' for the command line.
    actor       TEXT NOT NULL,
    actor_name  TEXT NOT NULL,
    -- Id of the session or key that was used; empty without one.
    credential  TEXT NOT NULL,
    action      TEXT NOT NULL,
    target      TEXT NOT NULL,
    target_name TEXT NOT NULL,
    -- JSON; holds no secret.
    detail      TEXT NOT NULL,
    ip          TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_actor ON audit (actor, id);
CREATE INDEX audit_by_target ON audit (target, id);

-- What each node counted in each minute. Old minutes are added up in minute 0.
CREATE TABLE tallies (
    minute       INTEGER NOT NULL,
    node         TEXT NOT NULL,
    messages_in  INTEGER NOT NULL,
    messages_out INTEGER NOT NULL,
    delivered    INTEGER NOT NULL,
    failed       INTEGER NOT NULL,
    plugin_runs  INTEGER NOT NULL,
    PRIMARY KEY (minute, node)
) STRICT;
INSERT INTO tallies (minute, node, messages_in, messages_out, delivered, failed, plugin_runs)
SELECT 0, '',
    (SELECT COUNT(*) FROM messages WHERE direction = 'inbound'),
    (SELECT COUNT(*) FROM messages WHERE direction = 'outbound'),
    (SELECT COUNT(*) FROM deliveries WHERE state = 'done'),
    (SELECT COUNT(*) FROM deliveries WHERE state = 'dead'),
    0;
