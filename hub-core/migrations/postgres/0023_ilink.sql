-- The iLink sink of a channel: programs that speak the protocol of the network to the hub.
ALTER TABLE channels ADD COLUMN ilink TEXT NOT NULL DEFAULT '{}';

CREATE TABLE ilink_clients (
    id           TEXT NOT NULL PRIMARY KEY,
    channel_id   TEXT NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
    token_hash   TEXT NOT NULL UNIQUE,
    ip           TEXT NOT NULL,
    user_agent   TEXT NOT NULL,
    -- Numbers of the channel's log: up to which the client acknowledged, and up to which messages were given to it.
    acked_seq    BIGINT NOT NULL,
    given_seq    BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL
);
CREATE INDEX ilink_clients_by_channel ON ilink_clients (channel_id, id);

-- Logins of such programs. The id is in the QR code; the client polls with a text of which the id is a hash.
CREATE TABLE ilink_logins (
    id         TEXT NOT NULL PRIMARY KEY,
    status     TEXT NOT NULL,
    client_id  TEXT REFERENCES ilink_clients (id) ON DELETE CASCADE,
    ip         TEXT NOT NULL,
    user_agent TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX ilink_logins_by_expiry ON ilink_logins (expires_at);
CREATE INDEX ilink_logins_by_client ON ilink_logins (client_id);
