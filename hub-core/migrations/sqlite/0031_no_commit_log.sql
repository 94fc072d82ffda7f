-- Messages and outcomes are stored in their tables at once. What the log had was stored there before.
DROP TABLE commit_log;
