-- Nothing to change here: SQLite checks a reference by one look into an index, and compresses nothing.
SELECT 1;
