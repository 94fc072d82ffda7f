-- What the process that works on the file has committed and not stored in the other tables yet: rows of messages and
-- outcomes, in the order of their commits. The next read or write stores them there first.
CREATE TABLE commit_log (
    id    INTEGER NOT NULL PRIMARY KEY,
    entry BLOB NOT NULL
) STRICT;
