-- Times are Unix milliseconds, ids are their printed text, booleans are 0 or 1.
CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE users (
    id            TEXT NOT NULL PRIMARY KEY,
    username      TEXT NOT NULL UNIQUE,
    display_name  TEXT NOT NULL,
    email         TEXT NOT NULL,
    role          TEXT NOT NULL,
    status        TEXT NOT NULL,
    password_hash TEXT,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
    id           TEXT NOT NULL PRIMARY KEY,
    user_id      TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    token_hash   TEXT NOT NULL UNIQUE,
    created_at   INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    ip           TEXT NOT NULL,
    user_agent   TEXT NOT NULL
) STRICT;
CREATE INDEX sessions_by_user ON sessions (user_id, id);

-- One-time tokens: a hash, what it is for, until when, and whether it was used.
CREATE TABLE one_time (
    hash       TEXT NOT NULL PRIMARY KEY,
    purpose    TEXT NOT NULL,
    subject    TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER
) STRICT;

-- First answers of calls that carried an Idempotency-Key (contract section 1).
CREATE TABLE idempotency (
    principal  TEXT NOT NULL,
    key        TEXT NOT NULL,
    body_hash  TEXT NOT NULL,
    answer     TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (principal, key)
) STRICT;
CREATE INDEX idempotency_by_expiry ON idempotency (expires_at);
