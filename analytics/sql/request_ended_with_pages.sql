-- Requests that ended with pages: what stood in a row was neither cached nor freed before its request was over (R147, R148).
-- kind: check
WITH moved AS (
    SELECT run, rank, epoch, pool, seq, to_holder AS request, 1 AS pages FROM pages WHERE to_kind = 'request'
    UNION ALL
    SELECT run, rank, epoch, pool, seq, from_holder, -1 FROM pages WHERE from_kind = 'request'
), ended AS (
    SELECT run, rank, epoch, request, seq AS ended_seq, event, cause
    FROM endings
    JOIN (SELECT run, rank, epoch FROM books WHERE opened_seq IS NOT NULL AND gaps IS NULL) AS whole USING (run, rank, epoch)
)
SELECT run, rank, epoch, ended_seq AS seq, event, cause, request, pool, sum(pages)::BIGINT AS pages
FROM moved
JOIN ended USING (run, rank, epoch, request)
WHERE moved.seq <= ended_seq
GROUP BY ALL
HAVING sum(pages) > 0
ORDER BY run, rank, seq, pool
