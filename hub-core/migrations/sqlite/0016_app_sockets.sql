-- Sockets of apps: which events are still to be written to one, and which sockets are open.
ALTER TABLE app_events ADD COLUMN socket_due INTEGER NOT NULL DEFAULT 1;
ALTER TABLE app_events ADD COLUMN written_at INTEGER;
UPDATE app_events SET socket_due = 0 WHERE state <> 'pending';
CREATE INDEX app_events_for_socket ON app_events (installation_id, id) WHERE socket_due;
CREATE INDEX app_events_for_app_socket ON app_events (app_id, id) WHERE socket_due;

-- Open sockets of all nodes, each until its node tells of it again; of one place the newest is served.
CREATE TABLE app_sockets (
    id              TEXT NOT NULL PRIMARY KEY,
    app_id          TEXT NOT NULL,
    -- NULL for one that serves all installations of the app.
    installation_id TEXT,
    until           INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX app_sockets_by_app ON app_sockets (app_id, id);
CREATE INDEX app_sockets_by_installation ON app_sockets (installation_id, id);
