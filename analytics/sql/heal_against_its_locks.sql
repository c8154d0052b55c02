-- Heals against their locks: a node's FULL pages were replaced while a receipt held them, for somebody to read (R90, B10).
--
-- A receipt holds every node from its own up to the root.
-- kind: check
WITH RECURSIVE healed AS (
    SELECT run, rank, epoch, seq, node, request, cause
    FROM node_changes
    WHERE event = 'Healed' AND (run, rank, seq) IN (
        SELECT (run, rank, seq) FROM pages WHERE event = 'Healed' AND pool = 'full' AND from_kind = 'tree'
    )
), states AS MATERIALIZED (
    FROM node_states
), paths AS (
    SELECT healed.*, locks.node AS reached, locked_seq
    FROM healed
    JOIN locks USING (run, rank, epoch)
    WHERE locked_seq < seq AND (unlocked_seq IS NULL OR unlocked_seq > seq)
    UNION ALL
    SELECT paths.* EXCLUDE (reached, locked_seq), states.parent, locked_seq
    FROM paths
    JOIN states
        ON states.run = paths.run AND states.rank = paths.rank AND states.epoch = paths.epoch
        AND states.node = paths.reached
        AND states.seq <= paths.seq AND (until_seq IS NULL OR until_seq > paths.seq)
    WHERE paths.reached > 0 AND paths.reached <> paths.node
)
SELECT run, rank, epoch, seq, node, request, cause, min(locked_seq) AS locked_seq
FROM paths
WHERE reached = node
GROUP BY ALL
ORDER BY run, rank, seq
