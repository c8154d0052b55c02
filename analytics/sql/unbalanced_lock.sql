-- Unbalanced locks: a receipt was given back that was not held, or was still held when a rank ended cleanly (J22).
--
-- A request that still ran at the end may hold its lock. One row for each node and boundary: the first unlock too
-- many, or the last lock too many.
-- kind: check
WITH counted AS (
    SELECT
        lock_changes.*,
        closed,
        sum(CASE event WHEN 'Locked' THEN 1 ELSE -1 END) OVER (
            PARTITION BY run, rank, epoch, node, boundary ORDER BY seq
        ) AS held
    FROM lock_changes
    JOIN runs USING (run, rank, epoch)
    WHERE opened_seq IS NOT NULL AND (run, rank, epoch) NOT IN (SELECT (run, rank, epoch) FROM gaps)
), unlocked AS (
    SELECT run, rank, epoch, node, boundary, 'unlocked without a lock' AS fault, min(seq) AS seq
    FROM counted
    WHERE held < 0
    GROUP BY ALL
), lasting AS (
    SELECT counted.*, CASE event WHEN 'Locked' THEN 1 ELSE -1 END AS delta
    FROM counted
    ANTI JOIN (SELECT run, rank, epoch, request FROM requests WHERE ended_seq IS NULL) AS running
        USING (run, rank, epoch, request)
    WHERE closed
), kept AS (
    SELECT run, rank, epoch, node, boundary, 'still locked at the end' AS fault, max(seq) FILTER (event = 'Locked') AS seq
    FROM lasting
    GROUP BY ALL
    HAVING sum(delta) > 0
)
SELECT fault.*, lock_changes.request, lock_changes.cause
FROM (FROM unlocked UNION ALL FROM kept) AS fault
JOIN lock_changes USING (run, rank, epoch, node, boundary, seq)
ORDER BY run, rank, seq
