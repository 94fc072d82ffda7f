-- Each message makes rows that refer to it, to its channel and to its bot. To check a reference, PostgreSQL runs a
-- query and locks a row, which is a third of what a message costs; and all of it is known already: the writer holds
-- the bot's row, has just numbered the channel's log and stored the message. What goes with a deleted row goes as
-- before, by these triggers, once per statement.
ALTER TABLE messages DROP CONSTRAINT messages_bot_id_fkey;
ALTER TABLE channel_log DROP CONSTRAINT channel_log_channel_id_fkey, DROP CONSTRAINT channel_log_message_id_fkey;
ALTER TABLE deliveries DROP CONSTRAINT deliveries_channel_id_fkey, DROP CONSTRAINT deliveries_message_id_fkey;
ALTER TABLE traces DROP CONSTRAINT traces_channel_id_fkey, DROP CONSTRAINT traces_message_id_fkey;

CREATE FUNCTION forget_bots() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM messages WHERE bot_id IN (SELECT id FROM gone);
    RETURN NULL;
END $$;
CREATE TRIGGER forget_bots AFTER DELETE ON bots
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION forget_bots();

CREATE FUNCTION forget_channels() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM channel_log WHERE channel_id IN (SELECT id FROM gone);
    DELETE FROM deliveries WHERE channel_id IN (SELECT id FROM gone);
    DELETE FROM traces WHERE channel_id IN (SELECT id FROM gone);
    RETURN NULL;
END $$;
CREATE TRIGGER forget_channels AFTER DELETE ON channels
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION forget_channels();

CREATE FUNCTION forget_messages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM channel_log WHERE message_id IN (SELECT id FROM gone);
    DELETE FROM deliveries WHERE message_id IN (SELECT id FROM gone);
    DELETE FROM traces WHERE message_id IN (SELECT id FROM gone);
    RETURN NULL;
END $$;
CREATE TRIGGER forget_messages AFTER DELETE ON messages
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION forget_messages();

-- A message and a trace are rows of 2 to 3 KB. Up to a page they stay as they are, neither compressed nor put aside.
ALTER TABLE messages SET (toast_tuple_target = 8160);
ALTER TABLE traces SET (toast_tuple_target = 8160);
-- A trace grows to several times its first size within a second: with room on its page, no index hears of it.
ALTER TABLE traces SET (fillfactor = 20);
