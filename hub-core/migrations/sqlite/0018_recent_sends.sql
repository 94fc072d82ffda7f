-- When a person was last written to, within the span in which the network limits sends: a restart goes on counting.
ALTER TABLE contacts ADD COLUMN recent_sends TEXT NOT NULL DEFAULT '';
