-- Up to which number the channel's clients have acknowledged its log.
ALTER TABLE channels ADD COLUMN acked_seq INTEGER NOT NULL DEFAULT 0;

-- Which node has clients of which channel, so that a commit elsewhere wakes that node and no other.
CREATE TABLE channel_listeners (
    node       TEXT NOT NULL,
    channel_id TEXT NOT NULL,
    sockets    INTEGER NOT NULL,
    until      INTEGER NOT NULL,
    PRIMARY KEY (node, channel_id)
) STRICT, WITHOUT ROWID;
