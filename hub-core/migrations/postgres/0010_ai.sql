-- A message may have one delivery per sink of a channel: `webhook`, `ai`, and what else takes messages.
ALTER TABLE deliveries ADD COLUMN sink TEXT NOT NULL DEFAULT 'webhook';

-- How many deliveries of a trace have not ended, and the worst end of those that have: a trace is pending until the
-- last of them ended.
ALTER TABLE traces ADD COLUMN open_sinks BIGINT NOT NULL DEFAULT 0;
ALTER TABLE traces ADD COLUMN worst TEXT;

-- The AI endpoint of the administrator, one row: settings as JSON, its key sealed.
CREATE TABLE ai_config (
    id         BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    settings   TEXT NOT NULL,
    api_key    TEXT,
    updated_at BIGINT NOT NULL
);

-- What a channel's answers cost per day (UTC, days since 1970).
CREATE TABLE ai_usage (
    channel_id        TEXT NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
    day               BIGINT NOT NULL,
    source            TEXT NOT NULL,
    calls             BIGINT NOT NULL,
    prompt_tokens     BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    PRIMARY KEY (channel_id, day, source)
);
