-- Kinds of ownership transition, one row for each in a run: a pool's pages go from one kind of account to another,
-- by an event of some cause; how many events and pages did so.
--
-- Pages that change hands between two nodes or two requests count too; pages that stay do not.
-- kind: view 2
SELECT
    run,
    pool::VARCHAR AS pool, from_kind::VARCHAR AS from_kind, to_kind::VARCHAR AS to_kind,
    event::VARCHAR AS event, coalesce(cause::VARCHAR, 'unknown') AS cause,
    count(DISTINCT (rank, seq)) AS events, count(*) AS pages
FROM pages
GROUP BY ALL
