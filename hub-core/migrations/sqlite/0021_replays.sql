-- Replays of many traces at once. The deliveries are the work; these rows only count them.
CREATE TABLE replays (
    id         TEXT NOT NULL PRIMARY KEY,
    owner_id   TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    -- JSON: traces that could not be replayed, with the reason.
    refused    TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX replays_by_owner ON replays (owner_id, id);

CREATE TABLE replay_traces (
    replay_id TEXT NOT NULL REFERENCES replays (id) ON DELETE CASCADE,
    trace_id  TEXT NOT NULL,
    PRIMARY KEY (replay_id, trace_id)
) STRICT, WITHOUT ROWID;
