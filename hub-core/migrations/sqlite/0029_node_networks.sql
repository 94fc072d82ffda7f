-- What nodes show of themselves: their names, and the networks for which they take bots, as a JSON array.
ALTER TABLE nodes ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN networks TEXT NOT NULL DEFAULT '[]';
ALTER TABLE bots DROP COLUMN lease_name;
-- The bots of a node, and those of none, by network.
DROP INDEX bots_by_lease;
CREATE INDEX bots_by_lease ON bots (lease_owner, network, lease_fence, id);
