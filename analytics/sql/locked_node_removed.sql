-- Locked nodes removed: a leaf left the tree while a receipt held it (R100, R109).
-- kind: check
WITH changes AS (
    SELECT run, rank, epoch, node, seq, event, request, cause, CASE event WHEN 'Locked' THEN 1 ELSE -1 END AS delta
    FROM lock_changes
    UNION ALL
    SELECT run, rank, epoch, node, seq, event, request, cause, 0
    FROM node_changes
    WHERE event = 'Removed'
), counted AS (
    SELECT
        changes.*,
        sum(delta) OVER life AS held,
        max(seq) FILTER (event = 'Locked') OVER life AS locked_seq
    FROM changes
    WINDOW life AS (PARTITION BY run, rank, epoch, node ORDER BY seq)
)
SELECT run, rank, epoch, node, seq, cause, held, locked_seq
FROM counted
WHERE event = 'Removed' AND held > 0
ORDER BY run, rank, seq
