-- Up to which number the channel's clients have acknowledged its log.
ALTER TABLE channels ADD COLUMN acked_seq BIGINT NOT NULL DEFAULT 0;

-- Which node has clients of which channel, so that a commit elsewhere wakes that node and no other.
CREATE TABLE channel_listeners (
    node       TEXT NOT NULL,
    channel_id TEXT NOT NULL,
    sockets    BIGINT NOT NULL,
    until      BIGINT NOT NULL,
    PRIMARY KEY (node, channel_id)
);
