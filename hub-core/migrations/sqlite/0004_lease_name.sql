-- What the node that holds the lease is called by people; its id is in lease_owner.
ALTER TABLE bots ADD COLUMN lease_name TEXT;
