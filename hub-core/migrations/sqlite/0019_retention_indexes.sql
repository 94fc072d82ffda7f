-- Retention finds what has expired by an index: nothing old costs nothing, however many rows there are.
CREATE INDEX one_time_by_expiry ON one_time (expires_at);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);
CREATE INDEX sessions_by_use ON sessions (last_seen_at);
CREATE INDEX binds_by_expiry ON binds (expires_at);
CREATE INDEX binds_by_owner ON binds (owner_id, id);
CREATE INDEX ai_usage_by_day ON ai_usage (day);
