-- Messages and outcomes are stored in their tables at once.
DROP TABLE commit_log;
