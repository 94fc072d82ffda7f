-- A delivery that ended well is deleted together with the commit of its outcome; these rows count such deliveries.
-- Older ones keep their rows until retention deletes their messages.
CREATE TABLE successes (
    channel_id TEXT NOT NULL PRIMARY KEY REFERENCES channels (id) ON DELETE CASCADE,
    count      BIGINT NOT NULL,
    last_at    BIGINT
);
INSERT INTO successes (channel_id, count, last_at)
SELECT c.id, (SELECT COUNT(*) FROM deliveries d WHERE d.channel_id = c.id AND d.state = 'done'),
    (SELECT d.finished_at FROM deliveries d WHERE d.channel_id = c.id AND d.state = 'done' ORDER BY d.id DESC LIMIT 1)
FROM channels c;
CREATE FUNCTION count_successes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO successes (channel_id, count) VALUES (NEW.id, 0);
    RETURN NULL;
END $$;
CREATE TRIGGER count_successes AFTER INSERT ON channels FOR EACH ROW EXECUTE FUNCTION count_successes();
