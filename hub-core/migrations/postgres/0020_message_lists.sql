-- Lists of messages over all bots: each filter has an index whose order is that of the list.
CREATE INDEX traces_by_channel_message ON traces (channel_id, message_id);
CREATE INDEX traces_by_replay ON traces (replay_of, id) WHERE replay_of IS NOT NULL;
CREATE INDEX deliveries_open_messages ON deliveries (bot_id, message_id) WHERE state IN ('pending', 'parked');

-- The newest delivery of a channel in a state is the last one in the index.
DROP INDEX deliveries_by_channel;
CREATE INDEX deliveries_by_channel ON deliveries (channel_id, state, id);

-- Traces that failed or were skipped. They are few, and an index on the status of every trace would be written at each
-- attempt.
CREATE TABLE undelivered (
    trace_id   TEXT NOT NULL PRIMARY KEY,
    message_id TEXT NOT NULL,
    bot_id     TEXT NOT NULL,
    channel_id TEXT,
    status     TEXT NOT NULL
);
INSERT INTO undelivered (trace_id, message_id, bot_id, channel_id, status)
SELECT id, message_id, bot_id, channel_id, status FROM traces WHERE status IN ('error', 'skipped');
CREATE INDEX undelivered_by_bot ON undelivered (bot_id, status, message_id);
CREATE INDEX undelivered_by_channel ON undelivered (channel_id, status, message_id);
CREATE INDEX undelivered_traces ON undelivered (bot_id, status, trace_id);

CREATE FUNCTION note_undelivered() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO undelivered (trace_id, message_id, bot_id, channel_id, status)
    VALUES (NEW.id, NEW.message_id, NEW.bot_id, NEW.channel_id, NEW.status)
    ON CONFLICT (trace_id) DO UPDATE SET status = excluded.status;
    RETURN NULL;
END $$;
CREATE TRIGGER undelivered_at_once AFTER INSERT ON traces
    FOR EACH ROW WHEN (NEW.status IN ('error', 'skipped')) EXECUTE FUNCTION note_undelivered();
CREATE TRIGGER undelivered_at_end AFTER UPDATE OF status ON traces
    FOR EACH ROW WHEN (NEW.status IN ('error', 'skipped')) EXECUTE FUNCTION note_undelivered();

CREATE FUNCTION forget_traces() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM undelivered WHERE trace_id IN (SELECT id FROM gone);
    RETURN NULL;
END $$;
CREATE TRIGGER forget_traces AFTER DELETE ON traces
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION forget_traces();
