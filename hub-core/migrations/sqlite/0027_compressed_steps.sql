-- Steps of traces are stored compressed, which older versions do not read.

-- The key of most messages contains the id that the network gave them, and is in an index already.
DROP INDEX messages_by_network_id;
CREATE INDEX messages_by_network_id ON messages (bot_id, network_id)
WHERE direction = 'inbound' AND dedupe_key <> 'id:' || network_id;
