CREATE TABLE plugins (
    id         TEXT NOT NULL PRIMARY KEY,
    -- Nobody's when its author is gone.
    author_id  TEXT REFERENCES users (id) ON DELETE SET NULL,
    name       TEXT NOT NULL,
    -- The name without regard to case and width: it belongs to whoever took it first.
    name_key   TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX plugins_by_author ON plugins (author_id, id);

-- A version's source never changes; only its state does.
CREATE TABLE plugin_versions (
    id           TEXT NOT NULL PRIMARY KEY,
    plugin_id    TEXT NOT NULL REFERENCES plugins (id) ON DELETE CASCADE,
    version      TEXT NOT NULL,
    description  TEXT NOT NULL,
    script       TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    matches      TEXT NOT NULL,
    connects     TEXT NOT NULL,
    timeout_ms   INTEGER NOT NULL,
    state        TEXT NOT NULL,
    reason       TEXT,
    reviewed_by  TEXT,
    reviewed_at  INTEGER,
    created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX plugin_versions_by_plugin ON plugin_versions (plugin_id, id);
CREATE INDEX plugin_versions_pending ON plugin_versions (id) WHERE state = 'pending';

CREATE TABLE channel_plugins (
    channel_id   TEXT NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
    plugin_id    TEXT NOT NULL REFERENCES plugins (id) ON DELETE CASCADE,
    version_id   TEXT NOT NULL REFERENCES plugin_versions (id) ON DELETE CASCADE,
    position     INTEGER NOT NULL,
    enabled      INTEGER NOT NULL,
    installed_at INTEGER NOT NULL,
    PRIMARY KEY (channel_id, plugin_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX channel_plugins_by_plugin ON channel_plugins (plugin_id);
CREATE INDEX channel_plugins_by_version ON channel_plugins (version_id);
