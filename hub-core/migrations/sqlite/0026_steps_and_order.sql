-- Steps of traces are stored without what most of them have in common, which older versions do not read.
SELECT 1;
