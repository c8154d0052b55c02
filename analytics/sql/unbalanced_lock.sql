-- Unbalanced locks: a receipt was given back that was not held, or was never given back by a rank that ended cleanly (J22).
--
-- One row for each node and boundary: the first unlock too many, or the last lock too many.
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
), kept AS (
    SELECT run, rank, epoch, node, boundary, 'still locked at the end' AS fault, max(seq) FILTER (event = 'Locked') AS seq
    FROM counted
    WHERE closed
    GROUP BY ALL
    HAVING arg_max(held, seq) > 0
)
SELECT fault.*, lock_changes.request, lock_changes.cause
FROM (FROM unlocked UNION ALL FROM kept) AS fault
JOIN lock_changes USING (run, rank, epoch, node, boundary, seq)
ORDER BY run, rank, seq
