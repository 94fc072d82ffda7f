-- Open deliveries in their order: a look for work reads the oldest ones and stops, however many there are.
DROP INDEX deliveries_open;
CREATE INDEX deliveries_open ON deliveries (bot_id, id) WHERE state IN ('pending', 'parked');
