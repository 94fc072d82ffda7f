-- Further ways to sign in (contract section 3).

-- Keys of WebAuthn. `credential` is the library's own form: the public key, the counter and the flags.
CREATE TABLE passkeys (
    id            TEXT NOT NULL PRIMARY KEY,
    user_id       TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    credential_id TEXT NOT NULL UNIQUE,
    credential    TEXT NOT NULL,
    name          TEXT NOT NULL,
    created_at    BIGINT NOT NULL,
    last_used_at  BIGINT
);
CREATE INDEX passkeys_by_user ON passkeys (user_id, id);

-- Accounts at external providers. Whom they belong to is decided by provider and subject, by nothing else.
CREATE TABLE external_accounts (
    provider   TEXT NOT NULL,
    subject    TEXT NOT NULL,
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    username   TEXT NOT NULL,
    avatar_url TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (provider, subject),
    UNIQUE (user_id, provider)
);

-- Ceremonies of signing in that a browser has begun. Ids and browsers are hashes, the state is sealed.
CREATE TABLE sign_in_flows (
    id         TEXT NOT NULL PRIMARY KEY,
    purpose    TEXT NOT NULL,
    browser    TEXT NOT NULL,
    state      TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX sign_in_flows_by_browser ON sign_in_flows (browser, created_at);
CREATE INDEX sign_in_flows_by_expiry ON sign_in_flows (expires_at);

-- Logins by QR code. The id is public, the poll secret a hash, the ticket for the session sealed.
CREATE TABLE qr_logins (
    id          TEXT NOT NULL PRIMARY KEY,
    poll_hash   TEXT NOT NULL,
    user_code   TEXT NOT NULL,
    status      TEXT NOT NULL,
    user_id     TEXT REFERENCES users (id) ON DELETE CASCADE,
    exchange    TEXT,
    ip          TEXT NOT NULL,
    user_agent  TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL
);
CREATE INDEX qr_logins_by_expiry ON qr_logins (expires_at);
