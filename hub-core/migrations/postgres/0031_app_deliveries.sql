-- Events for apps are delivered as messages to channels are: their open work is in `deliveries`.
ALTER TABLE deliveries ALTER COLUMN message_id DROP NOT NULL;
ALTER TABLE deliveries ALTER COLUMN channel_id DROP NOT NULL;
ALTER TABLE deliveries ALTER COLUMN trace_id DROP NOT NULL;
ALTER TABLE deliveries ADD COLUMN event_id TEXT COLLATE "C" REFERENCES app_events (id) ON DELETE CASCADE;
CREATE INDEX deliveries_by_event ON deliveries (event_id) WHERE event_id IS NOT NULL;
CREATE INDEX deliveries_of_events ON deliveries (bot_id, id) WHERE event_id IS NOT NULL;
CREATE INDEX app_events_pending ON app_events (created_at) WHERE state = 'pending';
INSERT INTO deliveries (id, message_id, bot_id, trace_id, event_id, sink, lane, seq, state, attempts, due_at, claim,
    created_at)
SELECT 'dlv_' || substr(e.id, 5), m.id, e.bot_id, e.trace_id, e.id, 'app',
    CASE WHEN e.peer = '' THEN e.installation_id ELSE e.peer END, 1, 'parked', e.attempts, e.due_at, 0, e.created_at
FROM app_events e JOIN apps a ON a.id = e.app_id AND a.webhook_verified LEFT JOIN messages m ON m.id = e.message_id
WHERE e.state = 'pending';
DROP INDEX app_events_due;
ALTER TABLE app_events DROP COLUMN due_at;
ALTER TABLE app_events DROP COLUMN claimed_until;
