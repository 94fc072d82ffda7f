-- One lease per node, so that a node renews one row however many bots it works for. A bot whose lease_owner is not
-- here, or whose lease is over, is free.
CREATE TABLE nodes (
    id          TEXT NOT NULL PRIMARY KEY,
    lease_until INTEGER NOT NULL
) STRICT;
INSERT INTO nodes (id, lease_until)
    SELECT lease_owner, MAX(lease_until) FROM bots WHERE lease_owner IS NOT NULL GROUP BY lease_owner;
ALTER TABLE bots DROP COLUMN lease_until;
-- The bots of a node, and those of none.
CREATE INDEX bots_by_lease ON bots (lease_owner, lease_fence, id);
