-- Steps of traces are bytes, which older versions do not read; the texts that those stored stay where they are.
ALTER TABLE traces ADD COLUMN packed_steps BLOB NOT NULL DEFAULT x'';

-- One index for the traces of a channel and for those of a bot without a channel. All traces of a bot are those of its
-- channels and these.
DROP INDEX traces_by_bot;
DROP INDEX traces_by_channel;
CREATE INDEX traces_by_channel_or_bot ON traces (COALESCE(channel_id, bot_id), id);
