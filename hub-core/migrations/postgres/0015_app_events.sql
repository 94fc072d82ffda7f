-- What apps are told: the queue of what is still to be told, and the log of what was.
CREATE TABLE app_events (
    id              TEXT NOT NULL PRIMARY KEY,
    app_id          TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    bot_id          TEXT NOT NULL REFERENCES bots (id) ON DELETE CASCADE,
    -- No reference: that it ended is told after it did.
    installation_id TEXT NOT NULL,
    message_id      TEXT,
    trace_id        TEXT,
    kind            TEXT NOT NULL,
    -- Whom an answer goes to; empty where nobody asked.
    peer            TEXT NOT NULL,
    event           TEXT NOT NULL,
    state           TEXT NOT NULL,
    attempts        BIGINT NOT NULL,
    due_at          BIGINT NOT NULL,
    -- Until when a node works on it.
    claimed_until   BIGINT NOT NULL,
    response_status BIGINT,
    response_body   TEXT NOT NULL,
    error           TEXT,
    duration_ms     BIGINT NOT NULL,
    created_at      BIGINT NOT NULL
);
CREATE INDEX app_events_due ON app_events (due_at) WHERE state = 'pending';
CREATE INDEX app_events_by_installation ON app_events (installation_id, id);
CREATE INDEX app_events_by_app ON app_events (app_id);
CREATE INDEX app_events_by_bot ON app_events (bot_id);
CREATE INDEX app_events_by_time ON app_events (created_at);
