-- Why the hub itself stopped a plugin in a channel; NULL while it did not.
ALTER TABLE channel_plugins ADD COLUMN paused TEXT;
