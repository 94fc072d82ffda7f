-- Files of messages, and files that are about to be sent. The bytes lie in the media store, under the id.
CREATE TABLE media (
    id           TEXT NOT NULL PRIMARY KEY,
    owner_id     TEXT NOT NULL,
    bot_id       TEXT NOT NULL,
    -- The channel that uploads it, if one does.
    channel_id   TEXT,
    -- NULL before the message, and after it: such a row goes with its bytes at expires_at.
    message_id   TEXT REFERENCES messages (id) ON DELETE SET NULL,
    item         INTEGER NOT NULL,
    kind         TEXT NOT NULL,
    file_name    TEXT NOT NULL,
    content_type TEXT NOT NULL,
    size         INTEGER NOT NULL,
    md5          TEXT NOT NULL,
    state        TEXT NOT NULL,
    reason       TEXT,
    -- Sealed: where the network keeps it, and its key.
    source       TEXT,
    attempts     INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX media_by_message ON media (message_id, item);
CREATE INDEX media_by_owner ON media (owner_id, size);
CREATE INDEX media_open ON media (bot_id, due_at) WHERE state = 'downloading';
CREATE INDEX media_loose ON media (expires_at) WHERE message_id IS NULL;
CREATE INDEX media_by_md5 ON media (bot_id, md5) WHERE md5 <> '';

ALTER TABLE outbox ADD COLUMN media_id TEXT;
