-- Programs of third parties, which users install onto their bots.
CREATE TABLE apps (
    id                 TEXT NOT NULL PRIMARY KEY,
    owner_id           TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name               TEXT NOT NULL,
    slug               TEXT NOT NULL UNIQUE,
    description        TEXT NOT NULL,
    icon_url           TEXT NOT NULL,
    homepage           TEXT NOT NULL,
    -- JSON arrays.
    redirect_uris      TEXT NOT NULL,
    events             TEXT NOT NULL,
    scopes             TEXT NOT NULL,
    tools              TEXT NOT NULL,
    setup_url          TEXT,
    webhook_url        TEXT,
    -- Whether whoever answers at the URL has echoed a challenge.
    webhook_verified   INTEGER NOT NULL,
    listing            TEXT NOT NULL,
    listing_reason     TEXT,
    client_secret_hash TEXT NOT NULL,
    -- Sealed: events are signed with it.
    webhook_secret     TEXT NOT NULL,
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL
) STRICT;
CREATE INDEX apps_by_owner ON apps (owner_id, id);
CREATE INDEX apps_by_listing ON apps (listing, id);

CREATE TABLE app_installations (
    id              TEXT NOT NULL PRIMARY KEY,
    app_id          TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    bot_id          TEXT NOT NULL REFERENCES bots (id) ON DELETE CASCADE,
    handle          TEXT NOT NULL,
    -- What the bot's owner granted, and the installation's own tools: JSON arrays.
    scopes          TEXT NOT NULL,
    tools           TEXT NOT NULL,
    enabled         INTEGER NOT NULL,
    token_hash      TEXT NOT NULL UNIQUE,
    token_last4     TEXT NOT NULL,
    old_token_hash  TEXT UNIQUE,
    old_token_until INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    UNIQUE (bot_id, app_id),
    UNIQUE (bot_id, handle)
) STRICT;
CREATE INDEX app_installations_by_app ON app_installations (app_id, id);

-- What an installation asked of the Bot API.
CREATE TABLE app_calls (
    id              TEXT NOT NULL PRIMARY KEY,
    installation_id TEXT NOT NULL REFERENCES app_installations (id) ON DELETE CASCADE,
    trace_id        TEXT,
    method          TEXT NOT NULL,
    path            TEXT NOT NULL,
    request_body    TEXT NOT NULL,
    status          INTEGER NOT NULL,
    response_body   TEXT NOT NULL,
    duration_ms     INTEGER NOT NULL,
    created_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX app_calls_by_installation ON app_calls (installation_id, id);
CREATE INDEX app_calls_by_time ON app_calls (created_at);

-- Codes of authorizations. A used one is kept for a while: whoever shows it again ends what came of it.
CREATE TABLE app_codes (
    hash            TEXT NOT NULL PRIMARY KEY,
    app_id          TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    bot_id          TEXT NOT NULL REFERENCES bots (id) ON DELETE CASCADE,
    user_id         TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    redirect_uri    TEXT NOT NULL,
    scopes          TEXT NOT NULL,
    challenge       TEXT NOT NULL,
    expires_at      INTEGER NOT NULL,
    used_at         INTEGER,
    installation_id TEXT,
    token_hash      TEXT
) STRICT;
CREATE INDEX app_codes_by_expiry ON app_codes (expires_at);
