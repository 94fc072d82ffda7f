-- Events for apps are delivered as messages to channels are: their open work is in `deliveries`. SQLite cannot make a
-- column nullable.
CREATE TABLE deliveries_of_all (
    id               TEXT NOT NULL PRIMARY KEY,
    message_id       TEXT REFERENCES messages (id) ON DELETE CASCADE,
    bot_id           TEXT NOT NULL,
    channel_id       TEXT REFERENCES channels (id) ON DELETE CASCADE,
    trace_id         TEXT,
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
    finished_at      INTEGER,
    sink             TEXT NOT NULL DEFAULT 'webhook',
    -- The event of a delivery to an app, which has no channel. Its message and trace are NULL if a message did not
    -- cause it.
    event_id         TEXT REFERENCES app_events (id) ON DELETE CASCADE
) STRICT;
INSERT INTO deliveries_of_all (id, message_id, bot_id, channel_id, trace_id, lane, seq, state, attempts, due_at,
    first_attempt_at, claim, target_url, last_error, created_at, finished_at, sink)
SELECT id, message_id, bot_id, channel_id, trace_id, lane, seq, state, attempts, due_at, first_attempt_at, claim,
    target_url, last_error, created_at, finished_at, sink
FROM deliveries;
INSERT INTO deliveries_of_all (id, message_id, bot_id, trace_id, event_id, sink, lane, seq, state, attempts, due_at,
    claim, created_at)
SELECT 'dlv_' || substr(e.id, 5), m.id, e.bot_id, e.trace_id, e.id, 'app',
    CASE WHEN e.peer = '' THEN e.installation_id ELSE e.peer END, 1, 'parked', e.attempts, e.due_at, 0, e.created_at
FROM app_events e JOIN apps a ON a.id = e.app_id AND a.webhook_verified LEFT JOIN messages m ON m.id = e.message_id
WHERE e.state = 'pending';
DROP TABLE deliveries;
ALTER TABLE deliveries_of_all RENAME TO deliveries;
CREATE INDEX deliveries_by_message ON deliveries (message_id);
CREATE INDEX deliveries_open ON deliveries (bot_id, id) WHERE state IN ('pending', 'parked');
CREATE INDEX deliveries_open_messages ON deliveries (bot_id, message_id) WHERE state IN ('pending', 'parked');
CREATE INDEX deliveries_by_channel ON deliveries (channel_id, state, id);
CREATE INDEX deliveries_by_event ON deliveries (event_id) WHERE event_id IS NOT NULL;
CREATE INDEX deliveries_of_events ON deliveries (bot_id, id) WHERE event_id IS NOT NULL;
CREATE INDEX app_events_pending ON app_events (created_at) WHERE state = 'pending';
DROP INDEX app_events_due;
ALTER TABLE app_events DROP COLUMN due_at;
ALTER TABLE app_events DROP COLUMN claimed_until;
