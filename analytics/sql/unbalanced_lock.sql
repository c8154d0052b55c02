-- Unbalanced locks: a receipt was given back that was not held, outlived its request or its successor, or the rank (J22, R113).
--
-- A request has one receipt: where it locks another path the old one goes back with the next event, the last one before
-- it ends. One that still ran at the clean end of a rank may hold its lock. One row for each node and boundary: the first
-- unlock too many, the end that it outlived, or the last lock too many.
-- kind: check
WITH whole AS (
    SELECT run, rank, epoch, closed
    FROM runs
    WHERE opened_seq IS NOT NULL AND (run, rank, epoch) NOT IN (SELECT (run, rank, epoch) FROM gaps)
), counted AS (
    SELECT
        lock_changes.*,
        closed,
        CASE event WHEN 'Locked' THEN 1 ELSE -1 END AS delta,
        sum(CASE event WHEN 'Locked' THEN 1 ELSE -1 END) OVER (
            PARTITION BY run, rank, epoch, node, boundary ORDER BY seq
        ) AS held,
        sum(CASE event WHEN 'Locked' THEN 1 ELSE -1 END) OVER (
            PARTITION BY run, rank, epoch, request ORDER BY seq
        ) AS held_by_request,
        lead(seq) OVER (PARTITION BY run, rank, epoch ORDER BY seq) AS next_seq,
        lead(event) OVER (PARTITION BY run, rank, epoch ORDER BY seq) AS next_event,
        lead(request) OVER (PARTITION BY run, rank, epoch ORDER BY seq) AS next_request,
        lead(node) OVER (PARTITION BY run, rank, epoch ORDER BY seq) AS next_node
    FROM lock_changes
    JOIN whole USING (run, rank, epoch)
), unlocked AS (
    SELECT run, rank, epoch, node, boundary, 'unlocked without a lock' AS fault, min(seq) AS seq, min(seq) AS lock_seq
    FROM counted
    WHERE held < 0
    GROUP BY ALL
), second AS (
    SELECT run, rank, epoch, node, boundary, 'the old one was kept' AS fault, min(seq) AS seq, min(seq) AS lock_seq
    FROM counted
    WHERE event = 'Locked' AND held_by_request > 1
        AND (run, rank, epoch, request) IN (SELECT (run, rank, epoch, request) FROM admissions)
        AND ((next_seq, next_event, next_request) IS DISTINCT FROM (seq + 1, 'Unlocked', request) OR next_node = node)
    GROUP BY ALL
), outlived AS (
    SELECT
        run, rank, epoch, node, boundary, 'still locked when its request ended' AS fault, ended_seq AS seq,
        max(counted.seq) FILTER (counted.event = 'Locked') AS lock_seq
    FROM counted
    JOIN (SELECT run, rank, epoch, request, seq AS ended_seq FROM endings) AS ended USING (run, rank, epoch, request)
    WHERE counted.seq < ended_seq
    GROUP BY run, rank, epoch, node, boundary, request, ended_seq
    HAVING sum(delta) > 0
), kept AS (
    SELECT run, rank, epoch, node, boundary, 'still locked at the end' AS fault, max(seq) FILTER (event = 'Locked') AS seq, max(seq) FILTER (event = 'Locked') AS lock_seq
    FROM counted
    ANTI JOIN (SELECT run, rank, epoch, request FROM admissions) AS admitted USING (run, rank, epoch, request)
    WHERE closed
    GROUP BY ALL
    HAVING sum(delta) > 0
)
SELECT fault.* EXCLUDE (lock_seq), lock_changes.request, lock_changes.cause
FROM (FROM unlocked UNION ALL FROM second UNION ALL FROM outlived UNION ALL FROM kept) AS fault
JOIN lock_changes
    ON lock_changes.run = fault.run AND lock_changes.rank = fault.rank AND lock_changes.seq = fault.lock_seq
ORDER BY fault.run, fault.rank, fault.seq
