CREATE TABLE bots (
    id                TEXT NOT NULL PRIMARY KEY,
    owner_id          TEXT NOT NULL REFERENCES users (id),
    name              TEXT NOT NULL,
    network           TEXT NOT NULL,
    status            TEXT NOT NULL,
    status_reason     TEXT,
    status_since      BIGINT NOT NULL,
    wx_id             TEXT NOT NULL,
    owner_user_id     TEXT NOT NULL,
    credentials       TEXT NOT NULL,
    credentials_rev   BIGINT NOT NULL,
    cursor            TEXT NOT NULL,
    last_inbound_at   BIGINT,
    last_poll_at      BIGINT,
    last_error        TEXT,
    -- Raised by every change to the bot's channels: a batch accepted under old rules is refused.
    config_rev        BIGINT NOT NULL,
    -- Which node polls and delivers for the bot; the fence grows with each change of hands.
    lease_owner       TEXT,
    lease_until       BIGINT NOT NULL,
    lease_fence       BIGINT NOT NULL,
    created_at        BIGINT NOT NULL
);
CREATE INDEX bots_by_owner ON bots (owner_id, id);
-- One person's account on a network belongs to one bot, of whichever user.
CREATE UNIQUE INDEX bots_by_network_owner ON bots (network, owner_user_id) WHERE owner_user_id <> '';
CREATE INDEX bots_by_wx_id ON bots (wx_id);

CREATE TABLE binds (
    id            TEXT NOT NULL PRIMARY KEY,
    owner_id      TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    -- Set for a re-login of one bot: another account is refused.
    for_bot_id    TEXT,
    network       TEXT NOT NULL,
    name          TEXT NOT NULL,
    status        TEXT NOT NULL,
    -- Sealed: the text to scan and the network's notes.
    private       TEXT NOT NULL,
    codes_shown   BIGINT NOT NULL,
    rev           BIGINT NOT NULL,
    bot_id        TEXT,
    created_at    BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL
);

CREATE TABLE contacts (
    bot_id           TEXT NOT NULL REFERENCES bots (id) ON DELETE CASCADE,
    user_id          TEXT NOT NULL,
    user_name        TEXT NOT NULL,
    remark           TEXT NOT NULL,
    avatar_url       TEXT NOT NULL,
    message_count    BIGINT NOT NULL,
    last_message_at  BIGINT NOT NULL,
    -- Sealed permission to answer, and the accounting of the window it belongs to.
    context_token    TEXT,
    window_opened_at BIGINT,
    window_sends     BIGINT NOT NULL,
    window_closed    TEXT,
    PRIMARY KEY (bot_id, user_id)
);
CREATE INDEX contacts_by_time ON contacts (bot_id, last_message_at, user_id);

CREATE TABLE messages (
    id            TEXT NOT NULL PRIMARY KEY,
    bot_id        TEXT NOT NULL REFERENCES bots (id) ON DELETE CASCADE,
    direction     TEXT NOT NULL,
    peer          TEXT NOT NULL,
    from_user_id  TEXT NOT NULL,
    to_user_id    TEXT NOT NULL,
    user_name     TEXT NOT NULL,
    session_id    TEXT NOT NULL,
    group_id      TEXT NOT NULL,
    kind          TEXT NOT NULL,
    content       TEXT NOT NULL,
    items         TEXT NOT NULL,
    quoted        TEXT,
    network_id    TEXT,
    dedupe_key    TEXT NOT NULL,
    -- Sealed: context token and the network's own form.
    private       TEXT,
    status        TEXT NOT NULL,
    status_reason TEXT,
    channel_id    TEXT,
    trace_id      TEXT,
    sent_at       BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    UNIQUE (bot_id, dedupe_key)
);
CREATE INDEX messages_by_bot ON messages (bot_id, id);
CREATE INDEX messages_by_peer ON messages (bot_id, peer, id);
CREATE INDEX messages_by_network_id ON messages (bot_id, network_id) WHERE network_id IS NOT NULL;

-- One row per item to send: a long text is several rows of one message.
CREATE TABLE outbox (
    id         TEXT NOT NULL PRIMARY KEY,
    message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    bot_id     TEXT NOT NULL,
    peer       TEXT NOT NULL,
    part       BIGINT NOT NULL,
    parts      BIGINT NOT NULL,
    client_id  TEXT NOT NULL,
    text       TEXT NOT NULL,
    state      TEXT NOT NULL,
    attempts   BIGINT NOT NULL,
    -- Tries whose outcome nobody knows: written, and no usable answer came.
    unknowns   BIGINT NOT NULL,
    due_at     BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    last_error TEXT,
    network_id TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX outbox_open ON outbox (bot_id, peer, id) WHERE state IN ('queued', 'sending');
CREATE INDEX outbox_by_message ON outbox (message_id);
CREATE INDEX outbox_by_network_id ON outbox (bot_id, network_id) WHERE network_id IS NOT NULL;
