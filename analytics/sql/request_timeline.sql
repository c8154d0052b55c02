-- One request's life, event by event: everything that names it, with what happened and to how many pages.
--
-- Its decode steps are not listed: they name it among others.
-- kind: report
-- set rid VARCHAR: the request's name, as the server gave it
WITH lives AS (
    SELECT run, rank, epoch, request FROM admissions WHERE rid = getvariable('rid')
), moved AS (
    SELECT
        run, rank, seq, count(*) FILTER (pool = 'full') AS full_pages, count(*) FILTER (pool = 'swa') AS swa_pages,
        any_value(to_kind) AS to_kind
    FROM pages
    WHERE (run, rank, epoch, request) IN (SELECT (run, rank, epoch, request) FROM lives)
    GROUP BY ALL
)
SELECT run, rank, seq, events.step, time_ns, event, cause, request, node, full_pages, swa_pages, to_kind
FROM events
JOIN lives USING (run, rank, epoch, request)
LEFT JOIN moved USING (run, rank, seq)
ORDER BY run, rank, seq
