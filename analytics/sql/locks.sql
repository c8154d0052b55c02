-- Locks, one row for each receipt: who held which path, from when to when.
--
-- The first lock of a node and boundary for a request pairs with its first unlock. `unlocked_seq` is NULL for one
-- that is still held.
-- kind: view 2
WITH numbered AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY run, rank, epoch, node, boundary, request, event ORDER BY seq) AS turn
    FROM lock_changes
)
SELECT
    run, rank, epoch, locked.node, locked.boundary, locked.request, marked, skipped,
    locked.seq AS locked_seq,
    locked.step AS locked_step,
    locked.time_ns AS locked_ns,
    locked.cause AS locked_cause,
    unlocked.seq AS unlocked_seq,
    unlocked.step AS unlocked_step,
    unlocked.time_ns AS unlocked_ns,
    unlocked.cause AS unlocked_cause
FROM (SELECT * EXCLUDE (event) FROM numbered WHERE event = 'Locked') AS locked
LEFT JOIN (
    SELECT run, rank, epoch, node, boundary, request, turn, seq, step, time_ns, cause FROM numbered WHERE event = 'Unlocked'
) AS unlocked USING (run, rank, epoch, node, boundary, request, turn)
