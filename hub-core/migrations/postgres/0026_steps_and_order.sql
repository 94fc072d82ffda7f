-- Steps of traces are stored without what most of them have in common, which older versions do not read. A trace grows
-- less, so that more of them fit on a page.
ALTER TABLE traces SET (fillfactor = 30);

-- Texts that are in an index are compared byte by byte, as SQLite does, whatever the order of the database is. The order
-- of a language, which most databases have, costs several times as much, and changes with versions of the system's library,
-- after which an index is wrong.
DO $$
DECLARE changed record;
BEGIN
    FOR changed IN
        SELECT format('%s', c.oid::regclass) AS name,
            string_agg(format('ALTER COLUMN %I TYPE text COLLATE "C"', a.attname), ', ') AS changes
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND c.relname <> '_sqlx_migrations'
            AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid = 'text'::regtype
            AND EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND a.attnum = ANY (i.indkey))
        GROUP BY c.oid
    LOOP
        EXECUTE format('ALTER TABLE %s %s', changed.name, changed.changes);
    END LOOP;
END $$;
