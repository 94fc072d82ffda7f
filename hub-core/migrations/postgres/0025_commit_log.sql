-- Empty on PostgreSQL, where a commit stores the rows of a message in one statement.
CREATE TABLE commit_log (
    id    BIGINT NOT NULL PRIMARY KEY,
    entry BYTEA NOT NULL
);
